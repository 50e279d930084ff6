//go:build !wasip1

package sdk

import "sync"

// life says whether a unit is over. Between enter and leave it does not end, whatever goroutine ends it.
type life struct {
	mu   sync.Mutex
	over bool
}

func (l *life) enter() bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	return true
}

func (l *life) leave() { l.mu.Unlock() }

func (l *life) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}
