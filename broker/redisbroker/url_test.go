package redisbroker

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/broker"
)

func TestParseURL(t *testing.T) {
	type server struct {
		Addrs                  []string
		DB                     int
		User, Password, Master string
		TLS, Cluster           bool
	}
	for _, c := range []struct {
		url  string
		want server
	}{
		{"redis://127.0.0.1:6379", server{Addrs: []string{"127.0.0.1:6379"}}},
		{"redis://host", server{Addrs: []string{"host:6379"}}},
		{"redis://host:6380/3", server{Addrs: []string{"host:6380"}, DB: 3}},
		{"redis://:pw@host", server{Addrs: []string{"host:6379"}, Password: "pw"}},
		{"redis://ann:p%40w@host", server{Addrs: []string{"host:6379"}, User: "ann", Password: "p@w"}},
		{"redis://[::1]:7000", server{Addrs: []string{"[::1]:7000"}}},
		{"rediss://host:6380", server{Addrs: []string{"host:6380"}, TLS: true}},
		{"unix://:pw@/run/redis.sock", server{Addrs: []string{"/run/redis.sock"}, Password: "pw"}},
		{"redis-cluster://a:1,b:2", server{Addrs: []string{"a:1", "b:2"}, Cluster: true}},
		{"redis-cluster://ann:pw@a:1,b:2,c:3", server{Addrs: []string{"a:1", "b:2", "c:3"}, User: "ann", Password: "pw", Cluster: true}},
		{"redis-sentinel://a:26379,b:26379/mymaster", server{Addrs: []string{"a:26379", "b:26379"}, Master: "mymaster"}},
		{"redis-sentinel://:pw@a:26379/mymaster", server{Addrs: []string{"a:26379"}, Password: "pw", Master: "mymaster"}},
	} {
		o, cluster, err := parseURL(c.url)
		if err != nil {
			t.Errorf("%s: got %v", c.url, err)
			continue
		}
		got := server{o.Addrs, o.DB, o.Username, o.Password, o.MasterName, o.TLSConfig != nil, cluster}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.url, d)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for _, s := range []string{
		"", "localhost", "localhost:6379", "http://:s3cr3t@host", "redis://:s3cr3t@host:port", "redis://:s3cr3t@host/db",
		"redis-sentinel://:s3cr3t@a:26379", "redis-cluster://:s3cr3t@a b:1", "redis://ann:s3cr3t@host:6379/0/1", "ann:s3cr3t@host://",
	} {
		_, _, err := parseURL(s)
		if !errors.Is(err, broker.ErrInvalid) {
			t.Errorf("%q: got %v, want %v", s, err, broker.ErrInvalid)
			continue
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: the password is in the text: %v", s, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range [][2]string{
		{"redis://host:6379/2", "redis://host:6379/2"},
		{"redis://ann:s3cr3t@host", "redis://host"},
		{"redis://ann:s3@cr3t@host", "redis://host"},
		{"rediss://:s3cr3t/@host", "rediss://host"},
		{"redis-cluster://:s3cr3t@a:1,b:2", "redis-cluster://a:1,b:2"},
		{"s3cr3t@host", "(not a URL)"},
		{"ann:s3cr3t@host://", "(not a URL)"},
		{"", "(not a URL)"},
	} {
		if got := redact(c[0]); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
}

func FuzzRedisURL(f *testing.F) {
	for _, s := range []string{"redis", "rediss", "unix", "redis-cluster", "redis-sentinel", "http", "ann:x@b"} {
		f.Add(s, "ann", "host:6379", "/0", false)
		f.Add(s, "", "a:1,b:2", "/master?x=@", true)
	}
	f.Fuzz(func(t *testing.T, scheme, user, hosts, path string, front bool) {
		// A password that no other part can hold, with what passwords may hold around it.
		const secret = "s3cr3t-3f1a"
		for _, s := range []string{scheme, user, hosts, path} {
			if strings.Contains(s, secret) {
				return
			}
		}
		url := scheme + "://" + user + ":" + secret + "@" + hosts + path
		if front {
			url = user + ":" + secret + "@" + hosts + "://" + path
		}
		if got := redact(url); strings.Contains(got, secret) {
			t.Errorf("%q: the password is in %q", url, got)
		}
		if _, _, err := parseURL(url); err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the password is in %q", url, err)
		}
	})
}
