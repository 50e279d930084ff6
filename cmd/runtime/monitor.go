package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) monitorCommand() *cobra.Command {
	interval := time.Second
	var once, hosts bool
	cmd := &cobra.Command{
		Use:   "monitor [--interval D] [--once] [--hosts]",
		Short: "Watch the queues: counts, activation, and how fast each fills or drains",
		Long: `Watch the queues: counts, activation, and how fast each fills or drains.

ACTIVATION is the state of the queue's monitor: INACTIVE, nothing is ready; NOTIFIED, work waits and a reader was started;
RECEIVES_OCCURRING, readers receive. It is the liveliest of all hosts. "plugin cannot run" says that a plugin does not start, or gets no
answers of the broker: its messages wait uncounted, and it is tried again by itself; -o json says why. With --hosts there is a line for each host and queue, with
the counters since the host started.`,
		Args: exactly(),
		PreRunE: func(*cobra.Command, []string) error {
			if interval < 100*time.Millisecond {
				return usage("--interval wants at least 100ms, has %v", interval)
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, _ []string) error {
			m := monitor{app: a, cmd: cmd, client: c, hosts: hosts}
			if once {
				return m.pass(time.Now())
			}
			return m.run(interval)
		}),
	}
	cmd.Flags().Var(span{&interval}, "interval", "time between two looks")
	cmd.Flags().BoolVar(&once, "once", false, "look once and end")
	cmd.Flags().BoolVar(&hosts, "hosts", false, "show each host's queue monitors instead of the queues")
	return cmd
}

// monitor shows all queues again and again.
type monitor struct {
	app    *app
	cmd    *cobra.Command
	client *client
	hosts  bool             // show the monitors of hosts
	last   map[string]int64 // messages of each queue at the pass before
	at     time.Time        // of the pass before
}

// run makes a pass each interval until the command is interrupted, which is its ordinary end.
func (m *monitor) run(interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := m.pass(time.Now()); err != nil {
			if m.cmd.Context().Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-tick.C:
		case <-m.cmd.Context().Done():
			return nil
		}
	}
}

// pass shows every queue once.
func (m *monitor) pass(now time.Time) error {
	ctx := m.cmd.Context()
	reports, err := m.client.hosts.ListHosts(ctx)
	if err != nil {
		return err
	}
	if m.hosts {
		m.top(now)
		m.at = now
		return m.perHost(now, reports)
	}
	infos, err := allQueues(ctx, m.client)
	if err != nil {
		return err
	}
	m.top(now)
	active := byQueue(reports)
	p := m.app.rows(m.cmd, "QUEUE", "STATUS", "ACTIVATION", "RUNNING", "READERS", "READY", "LOCKED", "RETRYING", "SCHEDULED", "DEAD", "TRANSMISSION", "TOTAL", "PER SECOND")
	next := make(map[string]int64, len(infos))
	for i := range infos {
		q, n := &infos[i], infos[i].Counts
		next[q.Name] = n.Total
		rate := m.rate(q.Name, n.Total, now)
		j := monitorJSON{instant(now), q.Name, string(q.Status), q.Readers, countsJSON(n), rate, newActivationJSON(active[q.Name])}
		change := "-"
		if rate != nil {
			change = fmt.Sprintf("%+.1f", *rate)
		}
		state, running := any(nil), any(nil)
		if j.Activation != nil {
			state, running = j.Activation.stateText(), j.Activation.Running
		}
		p.row(j, q.Name, string(q.Status), state, running, q.Readers, n.Ready, n.Locked, n.Retrying, n.Scheduled, n.DeadLetter, n.Transmission, n.Total, change)
	}
	m.last, m.at = next, now
	return p.end("no queues in namespace " + m.client.opt.namespace)
}

// rate is how many messages a second the queue gained (or, below 0, lost) since the pass before; nil when unknown.
func (m *monitor) rate(queue string, total int64, now time.Time) *float64 {
	before, known := m.last[queue]
	seconds := now.Sub(m.at).Seconds()
	if !known || seconds <= 0 {
		return nil
	}
	r := float64(total-before) / seconds
	return &r
}

// top goes back to the upper left of a terminal; in a file the tables follow each other.
func (m *monitor) top(now time.Time) {
	w := m.cmd.OutOrStdout()
	if m.app.global.output == "json" {
		return
	}
	if isTerminal(w) {
		fmt.Fprint(w, "\x1b[H\x1b[2J")
	} else if !m.at.IsZero() {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "namespace %s at %s\n", m.client.opt.namespace, now.UTC().Format("15:04:05"))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
