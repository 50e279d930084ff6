package redisbroker

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/broker"
)

func TestDecode(t *testing.T) {
	b := &Broker{}
	const h = "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	at := time.UnixMilli(1772366400000).UTC()
	for _, c := range []struct {
		what, ref, head, body string
		want                  broker.Message
	}{
		{
			"a plain message with everything", "7-0", "|5||1772366400000|1772366400000|S|m%7C1|//t/Ask|a%3D=1&b=2%26", "hello",
			broker.Message{
				Ref: "7-0", SequenceNumber: 7, MessageID: "m|1", Kind: broker.KindApp, Type: "//t/Ask", MessageSeq: -1, Priority: 5, Validation: "N",
				EnqueuedAt: at, ExpiresAt: at, Properties: map[string]string{"a=": "1", "b": "2&"}, Body: []byte("hello"),
			},
		},
		{
			"a message of a session", "8-0", "s:eu%20north|0|||1772366400000|S|m2||", "",
			broker.Message{Ref: "8-0", SequenceNumber: 8, MessageID: "m2", SessionID: "eu north", Kind: broker.KindApp, Type: broker.TypeDefault, MessageSeq: -1, Priority: 5, Validation: "N", EnqueuedAt: at, Body: []byte{}},
		},
		{
			"a dialog message without an id of its own", "9-0/7", h + "|1|3||1772366400000|S|||", "x",
			broker.Message{Ref: "9-0/7", SequenceNumber: 9, MessageID: h + "/9", Kind: broker.KindApp, Type: broker.TypeDefault, Conversation: h, MessageSeq: 3, Priority: 5, Validation: "N", EnqueuedAt: at, Body: []byte("x")},
		},
		{
			"a timer", "10-0/t", h + "|0|||1772366400000|T||http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer|", "",
			broker.Message{Ref: "10-0/t", SequenceNumber: 10, MessageID: h + "/10", Kind: broker.KindDialogTimer, Type: broker.TypeDialogTimer, Conversation: h, MessageSeq: -1, Priority: 5, Validation: "E", EnqueuedAt: at, Body: []byte{}},
		},
		{
			"an error", "11-0/e", h + "|3|||1772366400000|E||http://schemas.microsoft.com/SQL/ServiceBroker/Error|", "<E>",
			broker.Message{Ref: "11-0/e", SequenceNumber: 11, MessageID: h + "/11", Kind: broker.KindError, Type: broker.TypeError, Conversation: h, MessageSeq: -1, Priority: 5, Validation: "X", EnqueuedAt: at, Body: []byte("<E>")},
		},
		{
			"a dead letter", "2-0", "|4|||1772366400000|S|m5||k=v|" + h + "|3|41|MaxDeliveryCountExceeded|too%20often|1772366400000|10|4|HandlerError:%20no|g:" + h + "|shop/orders", "body",
			broker.Message{
				Ref: "2-0", SequenceNumber: 41, MessageID: "m5", Kind: broker.KindApp, Type: broker.TypeDefault, Conversation: h, Group: h, MessageSeq: 3, Priority: 5,
				Validation: "N", Status: broker.StatusDead, EnqueuedAt: at, DeliveryCount: 10, PoisonCount: 4, Properties: map[string]string{"k": "v"}, Body: []byte("body"),
				Dead: &broker.DeadLetter{Reason: "MaxDeliveryCountExceeded", Description: "too often", At: at, LastError: "HandlerError: no", Source: "shop/orders"},
			},
		},
	} {
		got, ok := b.decode(c.ref, c.head, []byte(c.body))
		if !ok {
			t.Errorf("%s: not taken for one of ours", c.what)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
}

func TestDecodeRefusesWhatIsNotOurs(t *testing.T) {
	b := &Broker{}
	for what, c := range map[string][2]string{
		"an ordinary field name":             {"field", "x"},
		"no header at all":                   {"", ""},
		"too few fields":                     {"|1||||S|a", "x"},
		"no kind":                            {"|1|||||a||", "x"},
		"a kind of two letters":              {"|1||||SS|a||", "x"},
		"a length that is not the body's":    {"|2||||S|a||", "x"},
		"a length that is no number":         {"|x||||S|a||", "x"},
		"some, not all, fields of the dead":  {"|1||||S|a|||o||7|R|D|1|2", "x"},
		"a length below 0 and an empty body": {"|-1||||S|a||", ""},
	} {
		m, ok := b.decode("5-0", c[0], []byte(c[1]))
		if ok || m.SequenceNumber != 5 || string(m.Body) != c[1] {
			t.Errorf("%s: got %+v, %v; want it refused, its number and body kept", what, m, ok)
		}
	}
}

func TestEncodedRestDecodesToTheSame(t *testing.T) {
	b := &Broker{}
	for _, m := range []broker.Outgoing{
		{},
		{MessageID: "id", Type: "//a/B"},
		{Type: broker.TypeDefault, Properties: map[string]string{"tenant": "", "traceparent": "00-1-2-03"}},
		{MessageID: "|&=%,\n{}", Type: "a|b", Properties: map[string]string{"k|\n%": "v\xff|\n", "z": "å"}},
	} {
		head := "|0|||1000|S|" + encodeRest(&m, m.MessageID)
		got, ok := b.decode("1-0", head, nil)
		want := m.Type
		if want == "" {
			want = broker.TypeDefault
		}
		if !ok || got.MessageID != m.MessageID || got.Type != want || !cmp.Equal(got.Properties, m.Properties) {
			t.Errorf("%+v: got %+v, %v from %q", m, got, ok, head)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""},
		{"orders/eu", "orders/eu"},
		{"å", "å"},
		{"a b", "a%20b"},
		{"%|&=,{}", "%25%7C%26%3D%2C%7B%7D"},
		{"\n\x00\x7f", "%0A%00%7F"},
	} {
		if got := escape(c[0]); got != c[1] {
			t.Errorf("escape(%q): got %q, want %q", c[0], got, c[1])
		}
		if got := unescape(c[1]); got != c[0] {
			t.Errorf("unescape(%q): got %q, want %q", c[1], got, c[0])
		}
	}
	for _, broken := range []string{"%", "%2", "%zz", "a%2", "%%"} {
		if got := unescape(broken); got != broken {
			t.Errorf("unescape(%q): got %q, want it kept", broken, got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a b", "%7C", "|\n{}\x7f\xff", "%%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := escape(s)
		if got := unescape(e); got != s {
			t.Errorf("got %q back, want %q", got, s)
		}
		if i := strings.IndexFunc(e, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("|&=,{}", r) }); i >= 0 {
			t.Errorf("%q holds a reserved byte at %d", e, i)
		}
		unescape(s) // whatever is stored must not end the process
	})
}

func FuzzHeader(f *testing.F) {
	f.Add("|5||1772366400000|1772366400000|S|m1||k=v", []byte("hello"), "7-0")
	f.Add("s:a|0|||1|S|m||", []byte(nil), "8-0/t")
	f.Add("|4|||1|S|m||k=v|o|3|41|R|D|1|10|4|e|g:g|q", []byte("body"), "2-0")
	f.Add("|4|||1|S|m||k=v|o", []byte("body"), "")
	f.Fuzz(func(t *testing.T, head string, body []byte, ref string) {
		b := &Broker{}
		m, ok := b.decode(ref, head, body)
		if !bytes.Equal(m.Body, body) || m.Ref != ref {
			t.Error("body or reference altered")
		}
		h, parsed := parseHeader(head)
		if ok && (!parsed || m.Kind != broker.Kind(h.kind[0]) || m.Type == "") {
			t.Errorf("got %+v from %q", m, head)
		}
		if ok && bodyLen(head) != len(body) {
			t.Errorf("the header says %d bytes, the body has %d", bodyLen(head), len(body))
		}
	})
}
