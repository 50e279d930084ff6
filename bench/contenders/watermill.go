package contenders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"parley/bench/measure"
)

const (
	watermillTopic       = "watermill"
	watermillGroup       = "g"
	watermillSubscribers = 8
	watermillPublishers  = 32
)

// watermillDrain reads one topic with several subscribers of one consumer group.
type watermillDrain struct {
	client      *redis.Client
	subscribers []*redisstream.Subscriber
	count       *measure.Count
	want        int
}

func openWatermill(_ context.Context, addr string) (measure.Side, error) {
	w := &watermillDrain{client: newClient(addr)}
	for i := range watermillSubscribers {
		// Closing a subscriber closes its client, so each has its own.
		subscriber, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client:                        redis.NewClient(&redis.Options{Addr: addr}),
			Consumer:                      fmt.Sprintf("r%d", i),
			ConsumerGroup:                 watermillGroup,
			DisableIndefiniteInitialBlock: true,
		}, watermill.NopLogger{})
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.subscribers = append(w.subscribers, subscriber)
	}
	return w, nil
}

func (w *watermillDrain) Prepare(ctx context.Context, n int) error {
	w.want, w.count = n, measure.NewCount(n)
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: w.client}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	payload := []byte(measure.Body())
	return fromMany(ctx, watermillPublishers, n, func(ctx context.Context) error {
		return publisher.Publish(watermillTopic, message.NewMessageWithContext(ctx, watermill.NewUUID(), payload))
	})
}

func (w *watermillDrain) Run(ctx context.Context) error {
	for _, subscriber := range w.subscribers {
		messages, err := subscriber.Subscribe(context.WithoutCancel(ctx), watermillTopic)
		if err != nil {
			return err
		}
		go w.handle(messages)
	}
	return w.count.Wait(ctx)
}

func (w *watermillDrain) handle(messages <-chan *message.Message) {
	for message := range messages {
		message.Ack()
		w.count.Add(1)
	}
}

// Verify waits for the last acknowledgements: watermill sends each after its handler is through.
func (w *watermillDrain) Verify(ctx context.Context) error {
	if err := measure.Until(ctx, 10*time.Millisecond, func() error { return w.settled(ctx) }); err != nil {
		return err
	}
	return w.count.Check()
}

func (w *watermillDrain) settled(ctx context.Context) error {
	groups, err := w.client.XInfoGroups(ctx, watermillTopic).Result()
	if err != nil {
		return err
	}
	if len(groups) != 1 || groups[0].Pending != 0 || groups[0].EntriesRead != int64(w.want) {
		return fmt.Errorf("consumer groups of the topic are %+v, want one that read %d with none pending", groups, w.want)
	}
	return nil
}

func (w *watermillDrain) Close() error {
	failed := w.client.Close()
	for _, subscriber := range w.subscribers {
		failed = errors.Join(failed, subscriber.Close())
	}
	return failed
}
