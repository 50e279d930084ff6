package host

import "time"

// Trimmer is what a Runner may implement that keeps instances which wait for work. The host trims it to one instance when
// a queue's last reader closes, and to none when the queue has stayed idle for a minute, so that a burst leaves no memory
// behind, and an idle plugin costs nothing but its compiled code.
type Trimmer interface {
	// Trim closes instances that wait until at most keep are left. It is safe for concurrent use, also with Run.
	Trim(keep int)
}

// keepWarm is how long an idle queue keeps its last instance: starting one takes milliseconds.
const keepWarm = time.Minute

func (p *plugin) trim(keep int) {
	if t, ok := p.runner.(Trimmer); ok {
		t.Trim(keep)
	}
}

// closed notes that a reader is gone. After the last one only a warm instance stays. Readers that found nothing do not
// count: sweeps may open one now and then.
func (m *monitor) closed() {
	units := m.count.units.Load()
	m.mu.Lock()
	last := len(m.readers) == 0 && units != m.handed
	if last {
		m.warm, m.idleFrom, m.handed = true, time.Now(), units
	}
	m.mu.Unlock()
	if last {
		m.runner.Load().trim(1)
	}
}

// cool lets the warm instance of a queue go that has been idle for long.
func (m *monitor) cool(now time.Time) {
	m.mu.Lock()
	due := m.warm && len(m.readers) == 0 && now.Sub(m.idleFrom) >= keepWarm
	if due {
		m.warm = false
	}
	m.mu.Unlock()
	if due {
		m.runner.Load().trim(0)
	}
}
