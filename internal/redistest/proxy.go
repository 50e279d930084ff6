package redistest

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
)

// Proxy stands between clients and one server. It reads what passes, so that a
// fault hits exactly the command that is meant, however commands are pipelined
// or shared out over connections. It knows requests and replies by their order;
// a connection that subscribes, monitors or switches replies off is passed on
// without faults from then on. Its methods are safe for concurrent use.
//
// A cluster client leaves the proxy: it follows the addresses of the nodes.
type Proxy struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	faults []*Fault
	links  map[*link]struct{}
	gate   chan struct{} // closed while traffic may pass
	down   bool
	closed bool
}

var errDown = errors.New("proxy is down")

// NewProxy stands before the server at addr, such as [Server.Addr], for the rest
// of the test.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{target: addr, listener: l, links: map[*link]struct{}{}, gate: make(chan struct{})}
	close(p.gate)
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the redis:// address of the proxy; a password is not in it.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// CutReply closes the connection when the server has done and answered the first
// command that matches: the client cannot know whether it happened. Replies
// before it arrive; replies after it on the same connection are lost too, and of
// the commands sent after it some may not have reached the server.
func (p *Proxy) CutReply(m Match) *Fault { return p.add(cutReply, m) }

// CutRequest closes the connection before the server gets the first command that
// matches. To the client it looks just like [Proxy.CutReply].
func (p *Proxy) CutRequest(m Match) *Fault { return p.add(cutRequest, m) }

// HoldReply keeps the reply to the first command that matches, and what follows
// on its connection, until [Fault.Release]. Other connections go on.
func (p *Proxy) HoldReply(m Match) *Fault { return p.add(holdReply, m) }

// Refuse answers the first command that matches with an error in the server's place, which never gets it: "BUSY Redis is busy". Inside of
// a transaction that is then discarded, as the server discards one.
func (p *Proxy) Refuse(m Match, answer string) *Fault {
	f := newFault(refuse, m)
	f.answer = answer
	return p.file(f)
}

func (p *Proxy) add(a action, m Match) *Fault { return p.file(newFault(a, m)) }

func (p *Proxy) file(f *Fault) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// faultFor is the fault that meets a command, or nil.
func (p *Proxy) faultFor(words []string) *Fault {
	p.mu.Lock()
	faults := slices.Clone(p.faults)
	p.mu.Unlock()
	for _, f := range faults {
		if f.claim(words) {
			return f
		}
	}
	return nil
}

// Stall lets nothing pass in either direction, with all connections left open,
// until [Proxy.Resume]. What is already on its way may still arrive.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.gate) {
		p.gate = make(chan struct{})
	}
}

// Resume ends a [Proxy.Stall]; what was kept back goes on in order.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.gate) {
		close(p.gate)
	}
}

// Down closes every connection and each new one at once, until [Proxy.Up].
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.CutAll()
}

// Up ends a [Proxy.Down].
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// CutAll closes every connection that is open now; clients may connect again.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed by the end of the test
		}
		if err := p.connect(client); err != nil {
			_ = client.Close() // the client sees what it would see of a dead server
		}
	}
}

// connect links a client to a connection of its own to the server.
func (p *Proxy) connect(client net.Conn) error {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return err
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down || p.closed {
		_ = server.Close()
		return errDown
	}
	p.links[l] = struct{}{}
	p.done.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
	return nil
}

// pass waits until traffic may pass.
func (p *Proxy) pass(cut <-chan struct{}) {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	select {
	case <-gate:
	case <-cut:
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.CutAll()
	p.done.Wait()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
