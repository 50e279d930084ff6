// Package host activates handlers and delivers to them: when to start a reader, one attempt, drain.
//
// It knows no Redis and no WebAssembly. The broker's roles come from package broker; a plugin is a Runner, implemented by
// host/guest; an Observer, implemented by package tracing, sees every attempt.
//
// Loops, each in its file, all started by Host.Run:
//
//	listen    takes wake-ups of the broker                          one a host
//	sweeper   looks at idle queues for lost wake-ups, every 5 s      one a host
//	keeper    has the broker keep house, once a second or when due   one a host
//	restorer  defines entities again that a flush took               one a host
//	reader    opens a broker.Reader, again after an error            up to two a queue, none while it is idle
//	delivery  settles what finished and receives what comes next     the inside of a reader
//	worker    runs the units of slots                                as few as keep up with a reader's slots
//
// A queue has a monitor, which is no goroutine: a wake-up makes it poke a reader that has a free slot, or start one. A
// reader that is full, or that left work behind, has the next one look. max_queue_readers counts slots, over all hosts;
// the two readers of a host share them, so that one can run units while the other waits for the broker's reply.
//
// Delivery makes one call at a time, a turn, which settles everything that has finished and offers every free slot. While
// units run that take microseconds it waits up to a millisecond for them, so that 32 to 128 go into a turn; it never waits
// for one that takes longer. A slot of a fast plugin may hold up to four announced units, that of a slow one a single one,
// which keeps the count of crashes exact.
//
// The broker wakes readers only after a receive that found nothing. So a reader that has received something receives
// again until it finds nothing or is full, and then another one does: that is what "hungry" means in the code.
package host
