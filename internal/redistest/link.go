package redistest

import (
	"bufio"
	"net"
	"strings"
	"sync"
)

// link is one client's connection through a proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	once sync.Once
	gone chan struct{} // closed when the link is cut

	mu      sync.Mutex // guards the fields below
	waiting []*Fault   // one a command that waits for its reply; nil: no fault
	opaque  bool       // replies can no longer be told apart
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, gone: make(chan struct{})}
}

// cut closes both sides; both pumps end.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.gone)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) run() {
	var pumps sync.WaitGroup
	for _, pump := range []func() error{l.requests, l.replies} {
		pumps.Go(func() {
			// An error means that a side closed: the other must see that too.
			_ = pump()
			l.cut()
		})
	}
	pumps.Wait()
}

// requests carries commands to the server.
func (l *link) requests() error {
	r := bufio.NewReader(l.client)
	for {
		raw, words, err := readRequest(r)
		if err != nil {
			return err
		}
		l.proxy.pass(l.gone)
		fault := l.file(words)
		if fault != nil && fault.action == cutRequest {
			l.cut()
			close(fault.hit)
			return nil
		}
		if fault != nil && fault.action == refuse {
			raw = unknownCommand
		}
		if _, err := l.server.Write(raw); err != nil {
			return err
		}
	}
}

// unknownCommand goes out in place of a command that is refused: the server does nothing and answers an error, in its turn.
var unknownCommand = []byte("*1\r\n$7\r\nREFUSED\r\n")

// file notes that a command waits for its reply, before the server can answer.
func (l *link) file(words []string) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opaque = l.opaque || breaksOrder(words)
	if l.opaque {
		return nil
	}
	fault := l.proxy.faultFor(words)
	l.waiting = append(l.waiting, fault)
	return fault
}

// replies carries the server's answers back.
func (l *link) replies() error {
	r := bufio.NewReader(l.server)
	for {
		raw, err := readValue(r, nil)
		if err != nil {
			return err
		}
		fault := l.answered(raw)
		if fault != nil && !l.strike(fault) {
			return nil
		}
		if fault != nil && fault.action == refuse {
			raw = []byte("-" + fault.answer + "\r\n")
		}
		l.proxy.pass(l.gone)
		if _, err := l.client.Write(raw); err != nil {
			return err
		}
	}
}

// strike does what a fault does to a reply; false means that it is lost.
func (l *link) strike(fault *Fault) bool {
	if fault.action == cutReply {
		l.cut()
		close(fault.hit)
		return false
	}
	close(fault.hit)
	if fault.action == refuse {
		return true
	}
	select {
	case <-fault.released:
	case <-l.gone:
	}
	return true
}

// answered is the fault of the command that this reply answers, or nil.
func (l *link) answered(raw []byte) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if raw[0] == push || len(l.waiting) == 0 {
		return nil
	}
	fault := l.waiting[0]
	l.waiting = l.waiting[1:]
	return fault
}

// breaksOrder reports whether replies stop following requests one to one.
func breaksOrder(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch strings.ToUpper(words[0]) {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC":
		return true
	case "CLIENT":
		return len(words) > 1 && strings.EqualFold(words[1], "REPLY")
	}
	return false
}
