package main

import (
	"time"

	"parley/broker"
	"parley/host"
)

// hostMonitor is the queue monitor of one host.
type hostMonitor struct {
	host string
	broker.MonitorReport
}

// byQueue sorts the monitors of all hosts by queue.
func byQueue(reports []broker.HostReport) map[string][]hostMonitor {
	m := map[string][]hostMonitor{}
	for _, h := range reports {
		for _, r := range h.Monitors {
			m[r.Queue] = append(m[r.Queue], hostMonitor{h.Name, r})
		}
	}
	return m
}

// activationJSON is the activation of one queue on all hosts.
type activationJSON struct {
	State    string            `json:"state"` // the liveliest of its monitors
	Running  int               `json:"running"`
	Recess   string            `json:"recess"` // why a plugin cannot handle messages; "": all can
	Monitors []hostMonitorJSON `json:"monitors"`
}

// hostMonitorJSON is one line of monitor --hosts. Counters count from the start of the host.
type hostMonitorJSON struct {
	Host            string  `json:"host"`
	Name            string  `json:"name"` // of the queue
	Plugin          string  `json:"plugin"`
	State           string  `json:"state"`
	QueueOff        bool    `json:"queue_off"`
	Paused          bool    `json:"paused"`
	MaxQueueReaders int     `json:"max_queue_readers"`
	Readers         int     `json:"readers"`
	Slots           int     `json:"slots"`
	Running         int     `json:"running"`
	Waiting         int64   `json:"waiting"`
	ReadersStarted  int64   `json:"readers_started"`
	ReadersStopped  int64   `json:"readers_stopped"`
	LimitReached    int64   `json:"limit_reached"`
	Errors          int64   `json:"errors"`
	LeaseLosses     int64   `json:"lease_losses"`
	Attempts        int64   `json:"attempts"`
	Committed       int64   `json:"committed"`
	RolledBack      int64   `json:"rolled_back"`
	DeadLettered    int64   `json:"dead_lettered"`
	Lost            int64   `json:"lost"`
	Recess          string  `json:"recess"`
	RecessEnds      instant `json:"recess_ends_time"`
	LastError       string  `json:"last_error"`
	LastActivated   instant `json:"last_activated_time"`
	LastEmpty       instant `json:"last_empty_time"`
}

func newHostMonitorJSON(m *hostMonitor) hostMonitorJSON {
	return hostMonitorJSON{
		m.host, m.Queue, m.Plugin, m.State, m.Off, m.Paused, m.MaxReaders, m.Readers, m.Slots, m.Running, m.Waiting, m.ReadersStarted,
		m.ReadersStopped, m.LimitReached, m.Errors, m.LeaseLosses, m.Units, m.Committed, m.RolledBack, m.DeadLettered, m.Lost, m.Recess, instant(m.RecessEnds), m.LastError,
		instant(m.LastActivated), instant(m.LastEmpty),
	}
}

// newActivationJSON is nil when no host has a monitor.
func newActivationJSON(monitors []hostMonitor) *activationJSON {
	if len(monitors) == 0 {
		return nil
	}
	rank := map[string]int{string(host.Inactive): 1, string(host.Notified): 2, string(host.ReceivesOccurring): 3}
	var a activationJSON
	for i := range monitors {
		m := &monitors[i]
		if rank[m.State] > rank[a.State] {
			a.State = m.State
		}
		a.Running += m.Running
		a.Monitors = append(a.Monitors, newHostMonitorJSON(m))
		if a.Recess == "" {
			a.Recess = m.Recess
		}
	}
	return &a
}

// perHost shows every monitor of every host.
func (m *monitor) perHost(now time.Time, reports []broker.HostReport) error {
	p := m.app.rows(m.cmd, "HOST", "QUEUE", "PLUGIN", "STATE", "MAX", "READERS", "RUNNING", "STARTED", "LIMITED", "ERRORS", "LOST",
		"ATTEMPTS", "COMMITTED", "ROLLED BACK", "DEAD", "LAST ACTIVATED", "LAST EMPTY", "LAST ERROR")
	for _, h := range reports {
		for _, r := range h.Monitors {
			j := newHostMonitorJSON(&hostMonitor{h.Name, r})
			p.row(struct {
				Time instant `json:"time"`
				hostMonitorJSON
			}{instant(now), j}, h.Name, r.Queue, r.Plugin, stateText(&r), r.MaxReaders, r.Readers, r.Running, r.ReadersStarted, r.LimitReached,
				r.Errors, r.Lost, r.Units, r.Committed, r.RolledBack, r.DeadLettered, r.LastActivated, r.LastEmpty, r.LastError)
		}
	}
	return p.end("no host publishes a queue monitor in namespace " + m.client.opt.namespace)
}

// stateText says beside the state why nothing is started.
func stateText(m *broker.MonitorReport) string {
	switch {
	case m.Off:
		return m.State + " (queue off)"
	case m.Paused:
		return m.State + " (activation off)"
	case m.Recess != "":
		return m.State + " (plugin cannot run)"
	}
	return m.State
}

// stateText says beside the state that a plugin cannot handle messages.
func (a *activationJSON) stateText() string {
	return stateText(&broker.MonitorReport{State: a.State, Recess: a.Recess})
}
