package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/broker"
	"parley/cmd/runtime/config"
)

// Defaults of the global flags.
const (
	defaultRedis     = "redis://127.0.0.1:6379"
	defaultNamespace = "default"
)

// prepare runs before every command: it fills flags from the environment and checks the global ones.
func (a *app) prepare(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil || f.Name == "help" || f.Name == "version" {
			return
		}
		name := envName(f.Name)
		value := a.getenv(name)
		if value == "" {
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = usage("%s has the value %q: %v", name, value, e)
		}
	})
	a.secret(a.global.redis)
	if err != nil {
		return err
	}
	if a.global.output != "table" && a.global.output != "json" {
		return usage("--output wants table or json, has %q", a.global.output)
	}
	return nil
}

// envName is the environment twin of a flag.
func envName(flag string) string {
	return "PARLEY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// secret remembers what must never be printed of a Redis address. It works on the text, since an address that cannot be
// parsed may hold a password too.
func (a *app) secret(address string) {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	if _, query, ok := strings.Cut(rest, "password="); ok {
		query, _, _ = strings.Cut(query, "&")
		a.keep(query)
	}
	at := strings.LastIndex(rest, "@")
	if at < 0 {
		return
	}
	_, password, ok := strings.Cut(rest[:at], ":")
	if !ok || password == "" {
		return
	}
	a.secrets = append(a.secrets, ":"+password+"@")
	a.keep(password)
	a.keep(unescaped(password))
}

// keep makes a word a secret, unless it is so short that hiding it would garble every other word, and so give it away.
func (a *app) keep(word string) {
	if len(word) >= 4 {
		a.secrets = append(a.secrets, word)
	}
}

func unescaped(s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}

// connectOptions says which broker: flag, then environment, then file, then default.
func (a *app) connectOptions(fileRedis, fileNamespace string) (connectOptions, error) {
	opt := connectOptions{
		url:           firstOf(a.global.redis, fileRedis, defaultRedis),
		namespace:     firstOf(a.global.namespace, fileNamespace, defaultNamespace),
		allowEviction: a.global.allowEviction,
	}
	a.secret(opt.url)
	if err := broker.CheckNamespace(opt.namespace); err != nil {
		return opt, err
	}
	return opt, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// span is a flag that takes a duration in the notation of the configuration file.
type span struct{ to *time.Duration }

func (s span) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return s.to.String()
}

func (s span) Set(text string) error {
	d, err := config.ParseDuration(text)
	if err == nil {
		*s.to = d
	}
	return err
}

func (s span) Type() string { return "duration" }
