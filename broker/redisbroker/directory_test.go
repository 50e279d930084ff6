package redisbroker

import (
	"errors"
	"strings"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// TestADirectoryThatCannotBeReadIsReadAgain: what was understood of it so far is not taken for all of it.
func TestADirectoryThatCannotBeReadIsReadAgain(t *testing.T) {
	d := &directory{}
	refused(t, d, broker.ErrCorrupt, map[string]string{"m///t/a": "{"})
}

// refused has a directory read records that it cannot.
func refused(t *testing.T, d *directory, want error, all map[string]string) {
	t.Helper()
	if err := d.fill("7", all); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if d.version != "" || d.queues != nil {
		t.Errorf("version %q with %d queues is kept", d.version, len(d.queues))
	}
}

// TestABrokenDirectoryReplacesNothing that was known.
func TestABrokenDirectoryReplacesNothing(t *testing.T) {
	d := &directory{}
	if err := d.fill("6", map[string]string{"q/a": `{"Number":"00000001"}`, "s///A": `{"Name":"//A","Queue":"a"}`}); err != nil {
		t.Fatal(err)
	}
	if err := d.fill("7", map[string]string{"q/b": `{"Number":"00000002"}`, "s///A": "{"}); !errors.Is(err, broker.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if d.version != "6" || d.queues["a"].Number != "00000001" || len(d.queues) != 1 || d.services["//A"].Queue != "a" {
		t.Errorf("version %q, queues %v, services %v: want those from before", d.version, d.queues, d.services)
	}
}

// TestAKnownDirectoryServesWhileItCannotBeRefreshed: staging goes on, says so once, and sees what is new when it can look again. What is not known
// is an error that says that nobody answered, not that it does not exist.
func TestAKnownDirectoryServesWhileItCannotBeRefreshed(t *testing.T) {
	p, _, l := behindProxy(t)
	var said []string
	o := &lab{opt: Options{URL: p.URL(), Namespace: "r", Log: func(msg string, _ ...any) { said = append(said, msg) }}}
	b := o.open(t)
	to := func(queue string) error {
		return b.CheckEffect(t.Context(), &broker.Unit{}, &broker.Effect{Kind: broker.EffectSendTo, Queue: queue})
	}
	begin := &broker.Effect{Kind: broker.EffectBegin, From: "//A", To: "//B"}
	p.Down()
	for range 3 {
		b.dir.stale()
		if err := to("q"); err != nil {
			t.Errorf("a send to a known queue: %v", err)
		}
		if err := b.CheckEffect(t.Context(), &broker.Unit{}, begin); err != nil {
			t.Errorf("a dialog of a known service: %v", err)
		}
		if err := to("other"); !broker.Unanswered(err) {
			t.Errorf("a send to an unknown queue: %v, want that nobody answered", err)
		}
	}
	p.Up()
	l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("other", false)}})
	redistest.Eventually(t, "the new queue is seen", func() bool { return to("other") == nil })
	b.dir.stale()
	if err := to("q"); err != nil {
		t.Error(err)
	}
	if got := strings.Join(said, "; "); strings.Count(got, "cannot be refreshed") != 1 || strings.Count(got, "can be refreshed again") != 1 {
		t.Errorf("said %q", got)
	}
}
