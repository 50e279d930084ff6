package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// Result is one measurement. Redis and host CPU are microseconds a message, user
// plus system; the host is this process or, for a contender outside it, that one.
type Result struct {
	Workload string  `json:"workload"`
	Round    int     `json:"round"`
	Kind     Kind    `json:"kind"`
	Count    int     `json:"count"`
	Seconds  float64 `json:"seconds"`
	// Value is the figure that Kind names, in its unit.
	Value   float64 `json:"value"`
	P50     float64 `json:"p50_us,omitempty"`
	P99     float64 `json:"p99_us,omitempty"`
	RedisUS float64 `json:"redis_us_per_message"`
	HostUS  float64 `json:"host_us_per_message"`
}

// Run measures one workload on an emptied server. Each step of the side may take
// up to limit.
func Run(ctx context.Context, server *Server, work Workload, limit time.Duration) (result Result, err error) {
	if err := server.Flush(ctx); err != nil {
		return Result{}, err
	}
	side, err := work.Open(ctx, server.Addr)
	if errors.Is(err, ErrNotRun) {
		return Result{}, err
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: open: %w", work.Name, err)
	}
	defer func() {
		if closing := side.Close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("%s: close: %w", work.Name, closing))
		}
	}()
	run := &run{server: server, work: work, side: side, limit: limit}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"prepare", run.prepare}, {"run", run.time}, {"verify", side.Verify}} {
		if err := run.within(ctx, step.do); err != nil {
			return Result{}, fmt.Errorf("%s: %s: %w", work.Name, step.name, err)
		}
	}
	return run.result(), nil
}

// run is one measurement under way.
type run struct {
	server *Server
	work   Workload
	side   Side
	limit  time.Duration

	before, after cost
	elapsed       time.Duration
	memory        int64
}

// cost is CPU time used so far.
type cost struct {
	redis, host time.Duration
}

func (r *run) within(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	return step(ctx)
}

func (r *run) prepare(ctx context.Context) error {
	empty, err := r.server.UsedMemory(ctx)
	if err != nil {
		return err
	}
	if err := r.side.Prepare(ctx, r.work.Count); err != nil {
		return err
	}
	filled, err := r.server.UsedMemory(ctx)
	r.memory = filled - empty
	return err
}

// time starts from a collected heap, so that no side pays for the garbage of the one before.
func (r *run) time(ctx context.Context) (err error) {
	runtime.GC()
	watched, err := startProfile(ctx, r.server, r.work.Profile, r.work.Name)
	if err != nil {
		return err
	}
	if r.before, err = r.read(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := r.side.Run(ctx); err != nil {
		return err
	}
	r.elapsed = time.Since(start)
	if r.after, err = r.read(ctx); err != nil {
		return err
	}
	return watched.end(ctx)
}

func (r *run) read(ctx context.Context) (cost, error) {
	redis, err := r.server.CPU(ctx)
	if err != nil {
		return cost{}, err
	}
	host, err := hostCPU()
	if burner, ok := r.side.(Burner); ok {
		host, err = burner.CPU()
	}
	return cost{redis: redis, host: host}, err
}

func (r *run) result() Result {
	count := float64(r.work.Count)
	host := r.after.host - r.before.host
	result := Result{
		Workload: r.work.Name,
		Kind:     r.work.Kind,
		Count:    r.work.Count,
		Seconds:  r.elapsed.Seconds(),
		RedisUS:  microseconds(r.after.redis-r.before.redis) / count,
		HostUS:   microseconds(host) / count,
	}
	if sampler, ok := r.side.(Sampler); ok {
		samples := sampler.Samples()
		result.P50 = microseconds(Percentile(samples, 50))
		result.P99 = microseconds(Percentile(samples, 99))
	}
	switch r.work.Kind {
	case Rate:
		result.Value = count / r.elapsed.Seconds()
	case Latency:
		result.Value = result.P50
	case Memory:
		result.Value = float64(r.memory) / count
	case Idle:
		result.Value = 100 * host.Seconds() / r.elapsed.Seconds()
	}
	return result
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func hostCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
