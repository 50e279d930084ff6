package guest

import (
	"sync"
	"sync/atomic"
)

// pool keeps idle instances, last used first: the warm ones are used, the others can be trimmed.
//
// The most recent one lies in hot, which costs one atomic operation to take or put; the lock is for the rest.
type pool struct {
	hot  atomic.Pointer[instance]
	mu   sync.Mutex
	idle []*instance // protected by mu
}

// take returns an idle instance, nil when there is none.
func (p *pool) take() *instance {
	if in := p.hot.Swap(nil); in != nil {
		return in
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	in := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return in
}

func (p *pool) put(in *instance) {
	if p.hot.CompareAndSwap(nil, in) {
		return
	}
	p.mu.Lock()
	p.idle = append(p.idle, in)
	p.mu.Unlock()
}

// trim removes instances until keep are left and returns them, the longest unused first.
func (p *pool) trim(keep int) []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle
	if in := p.hot.Swap(nil); in != nil {
		all = append(all, in)
	}
	cut := max(len(all)-keep, 0)
	p.idle = append([]*instance(nil), all[cut:]...)
	return all[:cut]
}

func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if p.hot.Load() != nil {
		n++
	}
	return n
}
