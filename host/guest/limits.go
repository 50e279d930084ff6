package guest

import (
	"fmt"
	"time"
)

// Limits bounds one attempt of a plugin. Zero fields have the default; only Fuel has none. A limit that is reached is a
// rollback whose outcome reason names it, except for Output, which cuts.
type Limits struct {
	Memory      int64         // linear memory, in bytes; rounded down to pages of 64 KiB
	Time        time.Duration // wall time
	Fuel        uint64        // work units as counted by package meter; 0: not limited
	Output      int           // bytes kept of each of stdout, stderr and log; the last ones
	Reply       int           // bytes of the reply of a WASI command
	Effects     int           // staged effects
	EffectBytes int           // bytes of bodies, properties and values in the staged effects
	HostCalls   int           // calls of functions of parley_v1
}

// DefaultLimits is the limits of a plugin that states none.
var DefaultLimits = Limits{
	Memory:      64 << 20,
	Time:        30 * time.Second,
	Output:      64 << 10,
	Reply:       256 << 10,
	Effects:     1000,
	EffectBytes: 4 << 20,
	HostCalls:   100_000,
}

const pageSize = 64 << 10

// maxMemory is what a 32-bit linear memory can have.
const maxMemory = 65_536 * pageSize

func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	return Limits{
		Memory:      orDefault(l.Memory, d.Memory),
		Time:        orDefault(l.Time, d.Time),
		Fuel:        l.Fuel,
		Output:      orDefault(l.Output, d.Output),
		Reply:       orDefault(l.Reply, d.Reply),
		Effects:     orDefault(l.Effects, d.Effects),
		EffectBytes: orDefault(l.EffectBytes, d.EffectBytes),
		HostCalls:   orDefault(l.HostCalls, d.HostCalls),
	}
}

func orDefault[T int | int64 | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// check refuses limits that no module can run under.
func (l Limits) check() error {
	switch {
	case l.Memory < pageSize || l.Memory > maxMemory:
		return fmt.Errorf("limits.memory is %d bytes: it must be 64 KiB to 4 GiB", l.Memory)
	case l.Time < time.Millisecond:
		return fmt.Errorf("limits.time is %v: it must be at least 1 ms", l.Time)
	case l.Fuel > 1<<62:
		return fmt.Errorf("limits.fuel is %d: it must be at most %d", l.Fuel, uint64(1)<<62)
	case l.Output < 0 || l.Reply < 0 || l.Effects < 0 || l.EffectBytes < 0 || l.HostCalls < 0:
		return fmt.Errorf("limits.output, reply, effects, effect_bytes and host_calls must not be negative")
	}
	return nil
}

func (l Limits) pages() uint32 { return uint32(l.Memory / pageSize) }
