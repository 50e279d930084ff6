package contenders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/host"
)

const (
	parleySource  = "source"
	parleyTarget  = "target"
	parleyFrom    = "from"
	parleyService = "//bench/work"
	parleyCaller  = "//bench/caller"
)

// parley is a connection to a namespace and, once started, a host on it.
type parley struct {
	addr    string
	broker  *redisbroker.Broker
	plugins []host.PluginConfig
	host    *host.Host
	stop    context.CancelFunc
	ended   chan error
	want    int
}

func connectParley(ctx context.Context, addr string) (*redisbroker.Broker, error) {
	return redisbroker.Open(ctx, redisbroker.Options{URL: "redis://" + addr})
}

func openParley(ctx context.Context, addr string) (*parley, error) {
	connection, err := connectParley(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &parley{addr: addr, broker: connection}, nil
}

// define creates queues with default settings. With services, source serves one, called from a queue of its own.
func (p *parley) define(ctx context.Context, services bool, queues ...string) error {
	var all broker.Definitions
	if services {
		queues = append(queues, parleyFrom)
		all.Services = []broker.Service{
			{Name: parleyService, Queue: parleySource, Contracts: []string{broker.ContractDefault}},
			{Name: parleyCaller, Queue: parleyFrom},
		}
	}
	for _, name := range queues {
		all.Queues = append(all.Queues, broker.DefaultQueue(name, services && name != parleyTarget))
	}
	_, err := p.broker.Apply(ctx, all, false)
	return err
}

// activate puts runner on a queue of the host that start starts.
func (p *parley) activate(queue string, runner host.Runner, readers int) {
	p.plugins = append(p.plugins, host.PluginConfig{Name: queue, Queue: queue, Runner: runner, MaxReaders: readers})
}

// start runs a host until halt.
func (p *parley) start() error {
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := host.New(host.Config{Readers: p.broker, Waker: p.broker, Keeper: p.broker, Plugins: p.plugins, Log: quiet})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.host, p.stop, p.ended = h, stop, make(chan error, 1)
	go func() { p.ended <- h.Run(ctx) }()
	return nil
}

// halt drains the host.
func (p *parley) halt() error {
	if p.stop == nil {
		return nil
	}
	p.stop()
	p.stop = nil
	return <-p.ended
}

// Close implements measure.Side.
func (p *parley) Close() error {
	err := p.halt()
	if len(p.plugins) > 0 {
		err = errors.Join(err, p.plugins[0].Runner.Close(context.Background()))
	}
	return errors.Join(err, p.broker.Close())
}

// settled says how many attempts committed, or what else became of one.
func (p *parley) settled() (int, error) {
	var committed int64
	for _, monitor := range p.host.Monitors() {
		committed += monitor.Settled[broker.Committed]
		for consequence, n := range monitor.Settled {
			if consequence != broker.Committed && consequence != broker.Released && n > 0 {
				return 0, fmt.Errorf("%d attempts on queue %s ended with consequence %d: %s", n, monitor.Queue, consequence, monitor.LastError)
			}
		}
	}
	return int(committed), nil
}

// holds fails unless the counters of queue say that so many messages are ready and locked and none is anywhere else.
func (p *parley) holds(ctx context.Context, queue string, ready, locked int) error {
	info, err := p.broker.Queue(ctx, queue)
	if err != nil {
		return err
	}
	want := broker.Counts{Ready: int64(ready), Locked: int64(locked), Total: int64(ready + locked)}
	if info.Counts != want || info.Status != broker.QueueActive || info.EntriesLost != 0 {
		return fmt.Errorf("queue %s is %s, lost %d entries and holds %+v, want %+v", queue, info.Status, info.EntriesLost, info.Counts, want)
	}
	return nil
}

// audit fails when a message is in no place or in two, or a counter is wrong.
func (p *parley) audit(ctx context.Context) error {
	rep, err := p.broker.Audit(ctx)
	if err != nil {
		return err
	}
	if !rep.Clean() {
		return fmt.Errorf("audit found %d differences: %+v; not settled: %v", len(rep.Differences), rep.Differences, rep.Unsettled)
	}
	return nil
}
