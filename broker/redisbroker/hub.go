package redisbroker

import (
	"context"
	"errors"
	"net"
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
	stop   chan struct{} // closed with it
	onPong func()        // set by tests before the first subscription
	ready  bool          // the subscription stands
	done   chan struct{}
}

func newHub(b *Broker) *hub {
	return &hub{b: b, chans: map[chan struct{}]string{}, wakes: map[int]func(string){}, stop: make(chan struct{})}
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

// A subscription on which nothing comes for so long is asked for a sign of life, and made again when none comes for as long once more:
// a connection that went silent looks like one on which nothing happens.
const hubSilence = 1500 * time.Millisecond

// loop reads the subscription without go-redis's channel, which saves a goroutine switch a wake-up (speed, section 5). It says once that
// wake-ups are lost, and once that they come again; then everything that sleeps looks.
func (h *hub) loop(sub *redis.PubSub, done chan struct{}) {
	defer close(done)
	lost, said, asked := true, false, false
	for {
		m, err := sub.ReceiveTimeout(context.Background(), hubSilence)
		if h.isClosed() {
			return
		}
		if err != nil {
			if isTimeout(err) && !asked && !lost && sub.Ping(context.Background()) == nil {
				asked = true
				continue
			}
			noticeDenials{h.b.denied}.look(err)
			if !said {
				said = true
				h.b.opt.Log("wake-ups are lost: the subscription is silent or broken; it is made again", "error", err)
			}
			lost, asked = true, false
			if sub = h.again(sub); sub == nil {
				return
			}
			continue
		}
		asked = false
		switch m := m.(type) {
		case *redis.Subscription:
			if lost {
				h.b.dir.forget()
				h.b.forgetDues()
				if said {
					h.b.opt.Log("wake-ups come again")
				}
				said = false
				h.up()
				h.tell("")
			}
			lost = false
		case *redis.Pong:
			if h.onPong != nil {
				h.onPong()
			}
		case *redis.Message:
			h.message(m.Payload)
		}
	}
}

// again replaces a subscription after a pause; nil when the hub was closed.
func (h *hub) again(old *redis.PubSub) *redis.PubSub {
	_ = old.Close()
	select {
	case <-h.stop:
		return nil
	case <-time.After(100 * time.Millisecond):
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.ready = false
	h.sub = h.b.rdb.Subscribe(context.Background(), h.b.channel())
	return h.sub
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
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
	if !h.closed {
		h.closed = true
		close(h.stop)
	}
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
