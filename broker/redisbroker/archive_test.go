package redisbroker

import (
	"fmt"
	"testing"

	"parley/broker"
)

// kept plays a dialog of which work, which retains, has received m0 and not m1, and has sent r0 and r1. It returns both handles.
func (l *lab) kept(t *testing.T) (near, far string) {
	t.Helper()
	near = l.begin(t)
	l.say(t, near, "m0")
	e, err := l.b.Endpoint(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	far = e.FarHandle
	got, err := l.b.Receive(t.Context(), "work", broker.ReceiveOptions{Max: 1, Top: 1, Conversation: far})
	if err != nil || len(got) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
	if _, err := l.b.Settle(t.Context(), "work", got[0].Token, broker.Settlement{Unit: got[0].Unit}); err != nil {
		t.Fatal(err)
	}
	l.say(t, far, "r0", "r1")
	l.say(t, near, "m1")
	return near, far
}

// archived is the rows of the archive of work, as conversation, text and status.
func (l *lab) archived(t *testing.T) string {
	t.Helper()
	rows, err := l.b.rdb.XRange(t.Context(), l.b.prefix("work")+"archive", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, x := range rows {
		text += fmt.Sprintf("%s %s=%s\n", x.Values["conversation_handle"], x.Values["body"], x.Values["status"])
	}
	return text
}

func TestRT_12_END_moves_what_is_kept_to_the_archive(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		l.retain(t, true)
		near, far := l.kept(t)
		_, other := l.kept(t)
		want := ""
		wantArchive := func(what string) {
			t.Helper()
			if got := l.archived(t); got != want {
				t.Fatalf("%s the archive holds\n%swant\n%s", what, got, want)
			}
		}
		l.end(t, near, 0)
		wantArchive("after the far side's END")
		l.end(t, far, 0)
		rows := func(handle string) string { return fmt.Sprintf("%[1]s m0=0\n%[1]s r0=3\n%[1]s r1=3\n", handle) } // m1 was never received
		want = rows(far)
		wantArchive("after END")
		if n := l.b.rdb.Exists(t.Context(), l.b.prefix("work")+"rt:"+far).Val(); n != 0 {
			t.Error("the rows that were moved are still kept as well")
		}
		if info, err := l.b.Queue(t.Context(), "work"); err != nil || info.Counts.Retained != 3 {
			t.Fatalf("retained by the other: %d, %v", info.Counts.Retained, err)
		}
		l.end(t, other, 12)
		want += rows(other)
		wantArchive("after END WITH ERROR of the other")
		if info, err := l.b.Queue(t.Context(), "work"); err != nil || info.Counts.Retained != 0 {
			t.Fatalf("retained after both: %d, %v", info.Counts.Retained, err)
		}
	})
}

func TestRT_12_without_an_archive_END_deletes_what_is_kept(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		l.retain(t, false)
		_, far := l.kept(t)
		l.end(t, far, 0)
		if got := l.archived(t); got != "" {
			t.Errorf("archived:\n%s", got)
		}
		if n := l.b.rdb.Exists(t.Context(), l.b.prefix("work")+"rt:"+far).Val(); n != 0 {
			t.Error("the rows are still kept")
		}
	})
}

// retain switches the retention of work on, and its archive if asked to.
func (l *lab) retain(t *testing.T, archive bool) {
	t.Helper()
	q := broker.DefaultQueue("work", true)
	q.Retention, q.Archive = true, archive
	l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{q}})
}

func (l *lab) end(t *testing.T, handle string, code int) {
	t.Helper()
	e := broker.Ending{Code: code}
	if code != 0 {
		e.Text = "it broke"
	}
	if err := l.b.End(t.Context(), handle, e, 0); err != nil {
		t.Fatal(err)
	}
}
