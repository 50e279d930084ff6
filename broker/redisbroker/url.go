package redisbroker

import (
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// parseURL understands the URL forms of Options.URL.
func parseURL(s string) (*redis.UniversalOptions, bool, error) {
	bad := func() error {
		return broker.ErrInvalid.With("the Redis URL %q is not understood: use redis://[user:password@]host:port[/db]", redact(s))
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return nil, false, bad()
	}
	switch scheme {
	case "redis", "rediss", "unix":
		o, err := redis.ParseURL(s)
		if err != nil {
			return nil, false, bad()
		}
		return &redis.UniversalOptions{Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig}, false, nil
	case "redis-cluster", "redis-sentinel":
		u, err := url.Parse("redis://" + firstAddr(rest))
		if err != nil {
			return nil, false, bad()
		}
		pw, _ := u.User.Password()
		o := &redis.UniversalOptions{Addrs: addrs(rest), Username: u.User.Username(), Password: pw}
		if scheme == "redis-cluster" {
			return o, true, nil
		}
		_, o.MasterName, _ = strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
		if o.MasterName == "" {
			return nil, false, bad()
		}
		return o, false, nil
	}
	return nil, false, bad()
}

// addrs returns the addresses of user:password@a:1,b:2/path.
func addrs(rest string) []string {
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "/")
	return strings.Split(rest, ",")
}

// firstAddr returns the same with the first address only, which net/url understands.
func firstAddr(rest string) string {
	at := strings.LastIndex(rest, "@") + 1
	return rest[:at] + addrs(rest)[0]
}

// redact returns the URL without credentials. What stands in front of :// may be credentials too when s is no URL.
func redact(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.ContainsAny(scheme, ":@") {
		return "(not a URL)"
	}
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}
