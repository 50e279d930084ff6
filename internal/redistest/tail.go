package redistest

import "sync"

// tailLimit is how much of a server's output is kept for failure messages.
const tailLimit = 8 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards data
	data []byte
}

// Write never fails and never blocks the server that writes.
func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if over := len(l.data) - tailLimit; over > 0 {
		l.data = append([]byte(nil), l.data[over:]...)
	}
	return len(p), nil
}

// String is what is kept.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.data)
}

func (l *tail) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = nil
}
