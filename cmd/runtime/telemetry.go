package main

import (
	"context"
	"log/slog"
	"time"

	"parley/broker"
	"parley/tracing"
)

// telemetryPatience is how long what was traced last may take to be exported at the end.
const telemetryPatience = 5 * time.Second

// telemetry starts the exporters that the file names. Both off: it exports nothing and costs nothing.
func (s *server) telemetry(ctx context.Context, c *client) (*tracing.Telemetry, error) {
	t := s.file.Host.Telemetry
	tel, err := tracing.Setup(ctx, tracing.Options{
		OTLP: t.OTLP, Prometheus: t.Prometheus, Namespace: s.opt.namespace, Log: s.log,
		Queues: func(ctx context.Context) ([]broker.QueueInfo, error) { return allQueues(ctx, c) },
	})
	if err != nil {
		return nil, s.file.Refuse(err, "host", "telemetry", "otlp")
	}
	return tel, nil
}

// endTelemetry exports what is left. It has its own time: the context of the run has ended.
func (s *server) endTelemetry(tel *tracing.Telemetry) {
	ctx, cancel := context.WithTimeout(context.Background(), telemetryPatience)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		s.log.Warn("telemetry did not end well", slog.Any("error", err))
	}
}

// allQueues looks at every queue; one that is deleted meanwhile is left out.
func allQueues(ctx context.Context, c *client) ([]broker.QueueInfo, error) {
	names, err := c.admin.Queues(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]broker.QueueInfo, 0, len(names))
	for _, name := range names {
		q, err := c.admin.Queue(ctx, name)
		if broker.ExitCode(err) == broker.ExitNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, q)
	}
	return infos, nil
}
