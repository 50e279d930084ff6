package redisbroker

import (
	"context"
	"sync"
	"time"
)

// owed are names whose units are still to be given back, after the caller went on.
type owed struct {
	mu   sync.Mutex // guards stop and closed
	stop []context.CancelFunc
	wg   sync.WaitGroup
	shut bool
}

// Close implements broker.Reader. After a failed call, too, it gives back uncounted what the server has under the reader's names:
// that of a resume that was not answered as well, the old one first, so that a resume which is late is fenced.
func (r *reader) Close(ctx context.Context) error {
	r.mu.Lock()
	names, freed := []string{r.name}, r.freed
	if r.next != "" {
		names = append(names, r.next)
	}
	r.gone, r.freed = true, true
	r.mu.Unlock()
	r.held = map[uint64]*held{}
	if freed {
		return nil
	}
	return r.b.fault("release a reader of "+r.queue, r.b.giveBack(ctx, r.key, r.lease, names...))
}

// giveBack releases names, in order. When the server does not answer within ctx, it is tried on in the background until the lease must
// have ended: from then on they are left to be reaped.
func (b *Broker) giveBack(ctx context.Context, key string, lease time.Duration, names ...string) error {
	start := time.Now()
	for i, name := range names {
		_, err := b.repeat(ctx, "release", key, b.now(), name)
		if err == nil {
			continue
		}
		if infrastructure(err) {
			b.owe(key, lease-time.Since(start), names[i:])
		}
		return err
	}
	return nil
}

// owe goes on with giveBack for as long as left.
func (b *Broker) owe(key string, left time.Duration, names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), left)
	b.owed.mu.Lock()
	defer b.owed.mu.Unlock()
	if b.owed.shut {
		cancel()
		return
	}
	b.owed.stop = append(b.owed.stop, cancel)
	b.owed.wg.Go(func() {
		defer cancel()
		for _, name := range names {
			err := patiently(ctx, left, infrastructure, func(ctx context.Context) error {
				_, err := b.run(ctx, "release", key, b.now(), name)
				return err
			})
			if err != nil {
				return
			}
		}
	})
}

// close ends what is still tried.
func (o *owed) close() {
	o.mu.Lock()
	o.shut = true
	stop := o.stop
	o.stop = nil
	o.mu.Unlock()
	for _, f := range stop {
		f()
	}
	o.wg.Wait()
}
