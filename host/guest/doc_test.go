package guest

import (
	"os"
	"strings"
	"testing"

	"parley/broker"
)

// TestDocumentedHandler: the handler at the end of docs/abi.md is the one in testdata, and it does what the page says.
func TestDocumentedHandler(t *testing.T) {
	doc, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/copies.wat")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "\n")
	if !strings.Contains(string(doc), "```wat\n"+code+"```\n") {
		t.Error("docs/abi.md shows another handler than testdata/copies.wat")
	}
	r := attemptOf(t, load(t, wat(t, "copies"), Options{}), "hello")
	wantCommit(t, r)
	wantEffects(t, r.Settlement.Effects, []broker.Effect{{Kind: broker.EffectSendTo, Queue: "copies", Message: broker.Outgoing{Body: []byte("hello")}}})
}

// TestPictures: every memory picture of docs/abi.md is what happens.
func TestPictures(t *testing.T) {
	inv := dialogInvocation()
	inv.Unit.Messages = inv.Unit.Messages[:1]
	m := &inv.Unit.Messages[0]
	m.Type, m.Properties = "order", map[string]string{"event": "push"}
	for _, c := range []struct {
		before string
		name   string
		args   []uint64
		result int64
		after  string
	}{
		{"", "message_field", []uint64{0, 3, 4, 8}, 5, "????order????"},
		{"", "message_field", []uint64{0, 3, 4, 4}, 5, "????????"},
		{"", "message_number", []uint64{0, 1, 3}, 0, "???\x67\x12\x00\x00\x00\x00\x00\x00?"},
		{"event", "message_property", []uint64{0, 0, 5, 8, 4}, 4, "event???push?"},
		{"", "message_properties", []uint64{0, 0, 20}, 17, "\x05\x00\x00\x00event\x04\x00\x00\x00push???"},
		{"", "message_body", []uint64{0, 2, 6}, 6, "??\x00\xff\xfe\x0d\x0a\x80?"},
		{"AB", "dialog_begin", []uint64{0, 1, 1, 1, 0, 0, 0, 0, 0, 4, 36}, 36, "AB??" + newHandle + "?"},
		{"//??yes", "dialog_send", []uint64{0, 0, 0, 2, 0, 0, 4, 3}, 0, "//??yes?"},
		{"gone", "dialog_end_error", []uint64{0, 0, 127, 0, 4}, 0, "gone?"},
		{"left", "state_get", []uint64{0, 4, 5, 3}, 2, "left?10??"},
		{"left?9", "state_put", []uint64{0, 4, 5, 1}, 0, "left?9?"},
		{"jobs?hi", "queue_send", []uint64{0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2, 0, 0}, 0, "jobs?hi?"},
		{"@daily", "timer_cron", []uint64{0, 0, 0, 6, 0, 0}, 0, "@daily?"},
		{"g-9", "dialog_move", []uint64{0, 0, 0, 3}, 0, "g-9?"},
		{"jobs", "queue_peek", []uint64{0, 4, 0, 10}, 2, "jobs?"},
		{"jobs?c-7?gone", "conversation_end", []uint64{0, 4, 5, 3, 127, 9, 4}, 0, "jobs?c-7?gone?"},
		{"jobs", "queue_enable", []uint64{0, 4, 3}, 0, "jobs?"},
		{"Bad?gone", "dead_letter", []uint64{0, 3, 4, 4}, 0, "Bad?gone?"},
		{"hello", "log", []uint64{0, 0, 5}, 0, "hello?"},
		{"", "random", []uint64{1, 4}, 0, "?\x8f\x02\xd1\x6c?"},
		{"", "traceparent", []uint64{0, 55}, 55, inv.Traceparent + "?"},
	} {
		p := newProxy(t, Options{Capabilities: Capabilities(), Peeker: lookout{}}, inv)
		p.in.source = strings.NewReader("\x8f\x02\xd1\x6c")
		p.wipe()
		p.put(0, c.before)
		if n := p.call(c.name, c.args...); n != c.result {
			t.Errorf("%s%v returned %d, want %d", c.name, c.args, n, c.result)
		}
		p.want(0, c.after)
	}
}

// TestAbort: an assertion of AssemblyScript is a trap with its text.
func TestAbort(t *testing.T) {
	r := attemptOf(t, load(t, wat(t, "abort"), Options{}), "")
	wantRollback(t, r, broker.ReasonTrap, "abort: no é!")
}
