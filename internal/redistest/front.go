package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Front is an address in front of a server that a failover moves to another one, as a virtual address or a load balancer does. It
// carries bytes and understands none of them.
type Front struct {
	listener net.Listener
	mu       sync.Mutex // guards the fields below
	to       string
	open     map[net.Conn]bool
}

// NewFront listens for the rest of the test in front of the server at addr.
func NewFront(t testing.TB, addr string) *Front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	f := &Front{listener: l, to: addr, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		f.Switch("")
	})
	go f.accept()
	return f
}

// URL is the redis:// address of the front.
func (f *Front) URL() string { return "redis://" + f.listener.Addr().String() }

// Switch cuts what is connected and leads to the server at addr from now on.
func (f *Front) Switch(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = addr
	for c := range f.open {
		_ = c.Close()
	}
	clear(f.open)
}

func (f *Front) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.connect(c)
	}
}

// connect joins c to the server, unless that does not answer.
func (f *Front) connect(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := net.Dial("tcp", f.to)
	if err != nil {
		_ = c.Close()
		return
	}
	f.open[c], f.open[s] = true, true
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
		}()
	}
}
