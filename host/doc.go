// Package host activates handlers and delivers to them: when to start a reader, one attempt, drain.
//
// It knows no Redis and no WebAssembly. The broker's roles come from package broker; a plugin is a Runner, implemented by
// host/guest; an Observer, implemented by package tracing, sees every attempt.
package host
