package contenders

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bench/measure"
	"parley/broker"
)

// parleyDurable sends single messages from many goroutines to a queue that one replica confirms.
type parleyDurable struct {
	*parleyAppend
	replica *measure.Server
}

func openParleyDurable(ctx context.Context, addr string) (measure.Side, error) {
	p, err := openParley(ctx, addr)
	if err != nil {
		return nil, err
	}
	d := &parleyDurable{parleyAppend: &parleyAppend{parley: p, senders: asynqSenders}}
	if d.replica, err = measure.StartServer(ctx, "redis-server"); err != nil {
		_ = p.Close()
		return nil, err
	}
	return d, nil
}

func (d *parleyDurable) Prepare(ctx context.Context, n int) error {
	d.want = n
	q := broker.DefaultQueue(parleySource, false)
	q.Durable = 1
	if _, err := d.broker.Apply(ctx, broker.Definitions{Queues: []broker.QueueSettings{q}}, false); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(d.addr)
	if err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{Addr: d.replica.Addr})
	defer c.Close()
	if err := c.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return err
	}
	return measure.Until(ctx, 10*time.Millisecond, func() error {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = fmt.Errorf("the replica at %s does not follow yet", d.replica.Addr)
		}
		return err
	})
}

func (d *parleyDurable) Close() error {
	err := d.parleyAppend.Close()
	if stop := d.replica.Stop(); err == nil {
		err = stop
	}
	return err
}
