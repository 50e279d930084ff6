package redisbroker

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/broker/brokertest"
	"parley/internal/redistest"
)

// On a Cluster every queue has a slot of its own, so all dialogs go through the transmission queue. Apart from that they are the
// same: the rules hold when a host moves on what waits, as soon as it waits.
func TestConformanceCluster(t *testing.T) {
	brokertest.RunDialogs(t, openCluster(redistest.StartCluster(t)))
}

func clusterURL(c *redistest.Cluster) string {
	return "redis-cluster://" + strings.Join(c.Addrs(), ",")
}

func openCluster(c *redistest.Cluster) brokertest.New {
	url := clusterURL(c)
	return func(t testing.TB) brokertest.Harness {
		h, l := newHarness(t, url, nil)
		h.Broker = eager{l.b, t}
		h.Peer = eager{h.Peer.(*Broker), t}
		return h
	}
}

// eager is a client whose host moves on at once what its calls left in a transmission queue.
type eager struct {
	*Broker
	t testing.TB
}

func (e eager) move() {
	for _, q := range e.dir.queueNames() {
		if _, err := e.transmitAll(context.Background(), e.prefix(q), &broker.KeepReport{}); err != nil {
			e.t.Errorf("transmit what waits on %s: %v", q, err)
		}
	}
}

func (e eager) SendOn(ctx context.Context, handle string, m broker.Outgoing) (broker.Receipt, error) {
	r, err := e.Broker.SendOn(ctx, handle, m)
	e.move()
	return r, err
}

func (e eager) End(ctx context.Context, handle string, x broker.Ending, wait time.Duration) error {
	err := e.Broker.End(ctx, handle, x, wait)
	e.move()
	return err
}

func (e eager) Settle(ctx context.Context, path, token string, s broker.Settlement) (broker.SettleResult, error) {
	r, err := e.Broker.Settle(ctx, path, token, s)
	e.move()
	return r, err
}

func (e eager) OpenReader(ctx context.Context, queue string, opt broker.ReaderOptions) (broker.Reader, error) {
	r, err := e.Broker.OpenReader(ctx, queue, opt)
	if r == nil {
		return r, err
	}
	return eagerReader{r, e}, err
}

type eagerReader struct {
	broker.Reader
	e eager
}

func (r eagerReader) Turn(ctx context.Context, req broker.TurnRequest) (broker.TurnReply, error) {
	rep, err := r.Reader.Turn(ctx, req)
	if len(req.Settle) > 0 {
		r.e.move()
	}
	return rep, err
}
