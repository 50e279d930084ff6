package demo

import (
	"context"
	"strings"
)

// spanTree shows the trace of the withdrawal that was granted.
func (d *demo) spanTree(ctx context.Context) error {
	if err := d.tel.Flush(ctx); err != nil {
		return err
	}
	traces := d.tree.Traces(d.grantID)
	d.check("traces of the granted withdrawal", len(traces), 1)
	d.head("7. Every delivery attempt is an OpenTelemetry span; this is the trace of act 2:")
	for _, id := range traces {
		var b strings.Builder
		if err := d.tree.Print(&b, id); err != nil {
			return err
		}
		text := strings.TrimRight(b.String(), "\n")
		for line := range strings.Lines(text) {
			d.say("   %s", strings.TrimRight(line, "\n"))
		}
		for _, span := range []string{"process " + inventory, "guest " + inventory, "settle " + inventory} {
			d.check("spans named "+span, strings.Count(text, span), 1)
		}
	}
	return nil
}

// audit walks all keys and compares them with the counters.
func (d *demo) audit(ctx context.Context) error {
	rep, err := d.b.Audit(ctx)
	if err != nil {
		return err
	}
	found := rep.Differences
	d.head("8. Audit of %d queues: every accepted message is in exactly one place; differences found: %d", rep.Queues, len(found))
	for _, f := range found {
		d.say("   %s: %s: want %s, got %s", f.Queue, f.Rule, f.Want, f.Got)
	}
	d.check("differences in the audit", len(found), 0)
	d.check("queues that the audit could not compare", len(rep.Unsettled), 0)
	return nil
}
