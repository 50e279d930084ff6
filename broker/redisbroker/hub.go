package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// hub is the one subscription of a Broker: wake-ups, due hints and event hints of all queues of the namespace. It is made when
// somebody first listens, and goes on until the Broker is closed.
type hub struct {
	b      *Broker
	mu     sync.Mutex // guards everything below
	sub    *redis.PubSub
	chans  map[chan struct{}]string // waiting receivers → the key prefix they wait for
	wakes  map[int]func(prefix string)
	nextID int
	closed bool
	ready  bool // the subscription stands
	done   chan struct{}
}

func newHub(b *Broker) *hub {
	return &hub{b: b, chans: map[chan struct{}]string{}, wakes: map[int]func(string){}}
}

// watch returns a channel that gets a value when something of prefix was woken, and a function that ends it.
func (h *hub) watch(prefix string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	h.chans[ch] = prefix
	h.start()
	h.mu.Unlock()
	return ch, func() {
		h.mu.Lock()
		delete(h.chans, ch)
		h.mu.Unlock()
	}
}

// listen calls wake with the prefix of each woken queue, and "" when wake-ups may have been missed.
func (h *hub) listen(wake func(prefix string)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	id := h.nextID
	h.wakes[id] = wake
	h.start()
	if h.ready { // a new listener cannot know what it missed
		go wake("")
	}
	return func() {
		h.mu.Lock()
		delete(h.wakes, id)
		h.mu.Unlock()
	}
}

// start opens the subscription; h.mu is held.
func (h *hub) start() {
	if h.sub != nil || h.closed {
		return
	}
	h.sub = h.b.rdb.Subscribe(context.Background(), h.b.channel())
	h.done = make(chan struct{})
	go h.loop(h.sub, h.done)
}

// loop reads the subscription without go-redis's channel, which saves a goroutine switch a wake-up (speed, section 5).
func (h *hub) loop(sub *redis.PubSub, done chan struct{}) {
	defer close(done)
	lost := true
	for {
		m, err := sub.Receive(context.Background())
		if h.isClosed() {
			return
		}
		if err != nil {
			noticeDenials{h.b.denied}.look(err)
			lost = true
			time.Sleep(100 * time.Millisecond)
			continue
		}
		switch m := m.(type) {
		case *redis.Subscription:
			if lost {
				h.b.dir.forget()
				h.b.forgetDues()
				h.up()
				h.tell("")
			}
			lost = false
		case *redis.Message:
			h.message(m.Payload)
		}
	}
}

func (h *hub) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = true
}

func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *hub) message(p string) {
	kind, rest, _ := strings.Cut(p, " ")
	switch kind {
	case "w":
		h.tell(rest)
	case "d":
		ms, prefix, _ := strings.Cut(rest, " ")
		if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
			h.b.hintDue(prefix, n)
		}
	case "v":
		h.b.dir.stale()
	}
}

func (h *hub) tell(prefix string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch, p := range h.chans {
		if prefix == "" || p == prefix {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
	for _, f := range h.wakes {
		f(prefix)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	sub, done := h.sub, h.done
	h.mu.Unlock()
	if sub != nil {
		_ = sub.Close()
		<-done
	}
}

// Wakes implements broker.Waker.
func (b *Broker) Wakes(ctx context.Context, wake func(queue string)) error {
	stop := b.hub.listen(func(prefix string) {
		if prefix == "" {
			wake("")
			return
		}
		if q := b.queueOf(prefix); q != "" && prefix == b.prefix(q) {
			wake(q)
		}
	})
	defer stop()
	<-ctx.Done()
	return nil
}
