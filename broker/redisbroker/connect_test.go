package redisbroker

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// stranger answers every line of RESP that begins a command, or a line of text, with what say returns for it.
func stranger(t *testing.T, say func(command string) string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, say)
}

func serve(t *testing.T, l net.Listener, say func(command string) string) (addr string) {
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer func() { _ = c.Close() }()
				in := bufio.NewScanner(c)
				for in.Scan() {
					word := strings.ToUpper(strings.TrimSpace(in.Text()))
					if answer := say(word); answer != "" {
						_, _ = c.Write([]byte(answer))
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// server answers as a server does that refuses all commands with one text.
func refuses(text string) func(string) string {
	return func(word string) string {
		switch word {
		case "HELLO", "EVAL", "PING", "AUTH", "CLIENT", "SELECT":
			return "-" + text + "\r\n"
		}
		return ""
	}
}

// tlsListener has a certificate that nobody trusts.
func tlsListener(t *testing.T) net.Listener {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sheet := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, sheet, sheet, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestConnectSaysWhatIsWrong: each state of a server, and each wrong address, has a line of its own with what to do; Inspect says the same.
func TestConnectSaysWhatIsWrong(t *testing.T) {
	plain := redistest.Shared(t)
	replica := redistest.Start(t, redistest.Config("replicaof 127.0.0.1 1"))
	stale := redistest.Start(t, redistest.Config("replicaof 127.0.0.1 1"), redistest.Config("replica-serve-stale-data yes"))
	if err := stale.Client(t).ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err(); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	loading := stranger(t, refuses("LOADING Redis is loading the dataset in memory"))
	secret := redistest.Start(t, redistest.Password("s3cret"))
	for _, tc := range []struct {
		name, url string
		want      *broker.Error
		text      string
	}{
		{"nobody listens", "redis://127.0.0.1:1", broker.ErrUnreachable, "is Redis running there?"},
		{"no such host", "redis://no-such-host.invalid:1", broker.ErrUnreachable, "no host of that name"},
		{"no password", "redis://" + secret.Addr(), broker.ErrUnreachable, "refuses the credentials"},
		{"a wrong password", "redis://:wrong@" + secret.Addr(), broker.ErrUnreachable, "refuses the credentials"},
		{"a replica", replica.URL(), broker.ErrUnreachable, "is a replica, which cannot be written to: connect to its master"},
		{"a replica without its master", stale.URL(), broker.ErrUnreachable, "replica"},
		{"no such database", plain.URL() + "/99", broker.ErrUnreachable, "has no such database"},
		{"TLS to a plain port", "rediss://" + plain.Addr(), broker.ErrUnreachable, "speaks no TLS: use redis://"},
		{"plain to a TLS port", "redis://" + serve(t, tlsListener(t), refuses("ERR x")), broker.ErrUnreachable, "speaks TLS: use rediss://"},
		{"a certificate nobody trusts", "rediss://" + serve(t, tlsListener(t), refuses("ERR x")), broker.ErrUnreachable, "certificate that this machine does not trust"},
		{"a web server", "redis://" + strings.TrimPrefix(web.URL, "http://"), broker.ErrUnreachable, "is a web server, no Redis"},
		{"another protocol", "redis://" + stranger(t, func(string) string { return "220 mail.example ESMTP\r\n" }), broker.ErrUnreachable, "220 mail.example"},
		{"protected mode", "redis://" + stranger(t, refuses("DENIED Redis is running in protected mode because protected mode is enabled")), broker.ErrUnreachable, "is in protected mode"},
		{"a server that goes on loading", "redis://" + loading, broker.ErrUnreachable, "still loading its data after 200ms"},
		{"no Cluster", "redis-cluster://" + plain.Addr(), broker.ErrInvalid, "is no Cluster: use redis://"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opt := Options{URL: tc.url, Namespace: "ns", Loading: 200 * time.Millisecond}
			_, err := Open(t.Context(), opt)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.text)
			}
			if tc.name == "a replica" { // a look accepts what a connect refuses
				return
			}
			if _, err := Inspect(t.Context(), opt); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("a look says %v, want %q", err, tc.text)
			}
		})
	}
}

// TestConnectWaitsWhileRedisLoads: the first answers are LOADING; then the server is there. One line says so.
func TestConnectWaitsWhileRedisLoads(t *testing.T) {
	s := redistest.Start(t)
	var asked atomic.Int64
	var said []string
	b := &Broker{opt: Options{URL: s.URL(), Log: func(msg string, _ ...any) { said = append(said, msg) }}}
	err := b.patientLoading()(t.Context(), func() error {
		if asked.Add(1) < 4 {
			return answered("LOADING Redis is loading the dataset in memory")
		}
		return nil
	})
	if err != nil || asked.Load() != 4 || len(said) != 1 || !strings.HasPrefix(said[0], "Redis is loading its data") {
		t.Errorf("asked %d times, said %q, got %v; want 4 times, one line and no error", asked.Load(), said, err)
	}
}

// TestEvictionIsCheckedWhereItCanBe: without the right to CONFIG by INFO, and where neither is there, with a word.
func TestEvictionIsCheckedWhereItCanBe(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "noeviction"} {
		s := redistest.Start(t, redistest.Config("maxmemory-policy "+policy))
		url, _ := least(t, s, "ns", "+info")
		err := tryOpen(t, url, "ns")
		if bad := policy != "noeviction"; errors.Is(err, broker.ErrEviction) != bad || !bad && err != nil {
			t.Errorf("%s, by INFO: got %v", policy, err)
		}
		s.User(t, "ns", "-info", "+config|get")
		if err := tryOpen(t, url, "ns"); errors.Is(err, broker.ErrEviction) != (policy != "noeviction") {
			t.Errorf("%s, by CONFIG: got %v", policy, err)
		}
		s.User(t, "ns", "-config|get")
		var said []string
		b, err := Open(t.Context(), Options{URL: url, Namespace: "ns", Log: func(msg string, _ ...any) { said = append(said, msg) }})
		if err != nil || len(said) != 1 || !strings.Contains(said[0], "could not be checked") {
			t.Fatalf("%s, by neither: said %q, got %v", policy, said, err)
		}
		_ = b.Close()
		if n := s.Client(t).Do(t.Context(), "ACL", "LOG").Val().([]any); len(n) != 0 {
			t.Errorf("connecting left lines in ACL LOG: %v", n)
		}
	}
}

// TestEveryMasterIsChecked: one master that may evict, and one whose user lacks a right.
func TestEveryMasterIsChecked(t *testing.T) {
	c := redistest.StartCluster(t)
	open := func() error { return tryOpen(t, clusterURL(c), "ns") }
	if err := open(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		admin := n.Client(t)
		set := func(policy string) {
			if err := admin.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
				t.Fatal(err)
			}
		}
		set("allkeys-lru")
		if err := open(); !errors.Is(err, broker.ErrEviction) || !strings.Contains(err.Error(), n.Addr()) {
			t.Errorf("node %s may evict: got %v", n.Addr(), err)
		}
		set("noeviction")
		admin.Do(t.Context(), "ACL", "SETUSER", "default", "-xadd")
		if err := open(); !errors.Is(err, broker.ErrRights) || !strings.Contains(err.Error(), n.Addr()) {
			t.Errorf("node %s refuses xadd: got %v", n.Addr(), err)
		}
		admin.Do(t.Context(), "ACL", "SETUSER", "default", "+@all")
	}
}

// TestARightThatIsTakenAwayIsNoticed by a call that is refused, and by the subscription that Redis closes.
func TestARightThatIsTakenAwayIsNoticed(t *testing.T) {
	for _, word := range []string{"-hmget", "-xadd", "resetchannels", "off"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			url, _ := least(t, s, "ns", "+info")
			b, err := Open(t.Context(), Options{URL: url, Namespace: "ns"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			if _, err := b.Apply(t.Context(), broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}}, false); err != nil {
				t.Fatal(err)
			}
			_, stop := b.hub.watch("{ns/q}:")
			defer stop()
			redistest.Eventually(t, "the subscription", func() bool {
				return s.Client(t).PubSubNumSub(t.Context(), b.channel()).Val()[b.channel()] == 1
			})
			lost := make(chan error, 1)
			go func() { lost <- b.WatchRights(t.Context()) }()
			if word == "off" {
				s.Client(t).Do(t.Context(), "ACL", "DELUSER", "ns")
			} else {
				s.User(t, "ns", word)
			}
			_, _ = b.Send(t.Context(), "q", broker.Outgoing{Body: []byte("x")})
			want := broker.ErrRights
			if word == "off" {
				want = broker.ErrUnreachable
			}
			if err := <-lost; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
