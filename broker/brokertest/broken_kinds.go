package brokertest

import (
	"fmt"
	"strings"
	"time"

	"parley/broker"
)

// brokenKind is one kind of entry that others write straight into a stream.
type brokenKind struct {
	name   string
	fields []string // name and value of each field
}

// goodParts are the parts of a header that a plain message of one byte has: owner, length, conversation seq, expiry, enqueued, kind,
// message id, type, properties.
var goodParts = []string{"", "1", "", "", "1772366400000", "S", "id1", "", ""}

// header is goodParts with some of them replaced: index, value, index, value, …
func header(parts ...any) string {
	h := append([]string{}, goodParts...)
	for i := 0; i < len(parts); i += 2 {
		h[parts[i].(int)] = parts[i+1].(string)
	}
	return strings.Join(h, "|")
}

// brokenKinds are entries that no sender of ours wrote: broken in each part, and such as cannot be told from ours by their form. handle
// is that of an open conversation of the queue.
func brokenKinds(handle string) []brokenKind {
	other := handle[:35] + map[bool]string{true: "0", false: "1"}[handle[35] != '0']
	var kinds []brokenKind
	add := func(name string, fields ...string) { kinds = append(kinds, brokenKind{name, fields}) }
	one := func(name string, parts ...any) { add(name, header(parts...), "x") }
	dialog := func(name string, parts ...any) { one(name, append([]any{0, handle, 2, "0", 6, ""}, parts...)...) }

	one("the form of a plain message")
	one("the form of a session's message", 0, "s:a")
	dialog("the form of a dialog's next message")
	dialog("the form of an end of dialog", 5, "D", 7, broker.TypeEndDialog)
	dialog("the form of an error", 2, "", 5, "E", 7, broker.TypeError)
	dialog("the form of a timer", 2, "", 5, "T", 7, broker.TypeDialogTimer)
	add("the form of a dead letter", header()+"|||7|Mine|because|1772366400000|1|1|||plain", "x")
	add("the form of a dead letter that parks", header()+"|s:a||7|Mine|because|1772366400000|1|1||s:a|plain", "x")

	add("a field and a value", "foreign", "field")
	add("an empty field and an empty value", "", "")
	add("two fields", "a", "1", "b", "2")
	add("the same field twice", header(), "x", header(), "x")
	add("a message and one more field", header(), "x", "more", "y")
	add("bytes that are no text", "\xff\x00\xfe", "\x00\xff")
	add("line breaks", "a\nb\r\nc", "d\n")
	add("a long name", strings.Repeat("n", 70_000), "x")
	add("a long value", header(1, "100000"), strings.Repeat("v", 100_001))
	add("a hundred fields", strings.Split(strings.Repeat("k,v,", 99)+"k,v", ",")...)
	add("a netstring", "3:foo,", "3:bar,")
	add("a JSON object", `{"message":1}`, `{}`)

	add("no separators", "S", "x")
	for n := 1; n < len(goodParts); n++ {
		add(fmt.Sprintf("only the first %d parts", n), strings.Join(goodParts[:n], "|"), "x")
	}
	add("a part too many", header()+"|", "x")
	add("three parts too many", header()+"|a|b|c", "x")
	add("a byte order mark in front", "\ufeff"+header(), "x")
	add("a blank in front", " "+header(), "x")
	add("a line end behind", header()+"\n", "x")

	one("an owner that is no UUID", 0, "conversation")
	one("an owner in capitals", 0, strings.ToUpper(handle), 2, "0")
	one("an owner that is unknown", 0, other, 2, "0")
	one("an owner with a line break", 0, "s:a\nb")
	one("a session without a name", 0, "s:")
	one("a session with a broken escape", 0, "s:%Z1")
	one("an owner that is a group", 0, "g:"+handle)
	one("a lock name of a reader", 0, "r:host:1:1")

	for _, bad := range []string{"", "0", "2", "-1", "01", "1.0", "1e0", "0x1", "one", " 1", "9223372036854775808"} {
		one(fmt.Sprintf("the length %q", bad), 1, bad)
	}
	for _, bad := range []string{"abc", "-1", "1.5", "99999999999999999999", " "} {
		dialog(fmt.Sprintf("the conversation sequence %q", bad), 2, bad)
	}
	dialog("no conversation sequence", 2, "")
	one("a conversation sequence of a plain message", 2, "0")
	for _, bad := range []string{"abc", "-1", "1e3", "99999999999999999999", "nan", "1 "} {
		one(fmt.Sprintf("the expiry %q", bad), 3, bad)
	}
	one("an expiry that is over", 3, "1")
	for _, bad := range []string{"", "xyz", "-5", "99999999999999999999", "1.5"} {
		one(fmt.Sprintf("the time %q", bad), 4, bad)
	}
	for _, bad := range []string{"", "Z", "SS", "s", "\xff", "D", "E", "T", "M"} {
		one(fmt.Sprintf("the kind %q", bad), 5, bad)
	}
	one("no message id", 6, "")
	one("a message id with a broken escape", 6, "%ZZ")
	one("a message id that is no text", 6, "\xff\xff")
	one("no type and no id", 6, "", 7, "")
	one("a type with a broken escape", 7, "a%2")
	one("a type with bytes FF", 7, "//t/\xff\xff")
	one("a type that is a system's", 7, broker.TypeError)
	for _, bad := range []string{"a", "=", "=v", "a=1&", "&a=1", "a=1&&b=2", "a=%ZZ", "a=%", "%FF=1", "a=1&b", "a=\xff"} {
		one(fmt.Sprintf("the properties %q", bad), 8, bad)
	}
	one("the mark of a resubmitted message", 8, "parley.resubmitted=7")
	one("a property twice", 8, "a=1&a=2")
	return kinds
}

// brokenEntries holds the promise about what others write, for every kind, in every stream, between messages of ours.
var brokenEntries = []test{
	{"each kind, read in a plain turn", func(s *stage) { writeBroken(s, plainQueue, "s:5", readBroken) }},
	{"each kind, read in a turn", func(s *stage) { writeBroken(s, workQueue, "s:5", readBroken) }},
	{"each kind, before anything is sent", brokenFirst},
	{"each kind, never read", func(s *stage) { writeBroken(s, plainQueue, "s:5", sweepBroken) }},
	{"each kind in the lane of timers", func(s *stage) { writeBroken(s, workQueue, "s:sys", sweepBroken) }},
	{"each kind in the dead-letter queue", func(s *stage) { writeBroken(s, plainQueue, "d:s:5", sweepBroken) }},
	{"each kind in the transfer dead-letter queue", func(s *stage) { writeBroken(s, plainQueue, "t:s:5", sweepBroken) }},
	{"each kind, received with a lock token", func(s *stage) { writeBroken(s, plainQueue, "s:5", receiveBroken) }},
	{"numbers that were given elsewhere", brokenInHoles},
	{"numbers far away", brokenFarAway},
	{"twenty in one millisecond", brokenTogether},
	{"many at once", brokenMany},
	{"no mark of ours survives a purge", brokenPurged},
	{"lost group", brokenRebuilt},
	{"refused to be resubmitted", brokenResubmit},
	{"a counter that is wrong hides nothing", counterWrong},
}

// writeBroken writes every kind between good messages into a stream, lets read find them, and wants each in the dead-letter queue
// once, as it was, and everything else as if they had not been.
func writeBroken(s *stage, queue, stream string, read func(s *stage, queue string) []string) {
	h := s.begin()
	s.say(h, "d0")
	target := targetOf(s)
	kinds := brokenKinds(target)
	var want []string
	if queue == workQueue {
		want = append(want, "d0")
	}
	for i, k := range kinds {
		s.write(queue, stream, "*", k.fields...)
		if i%4 == 0 {
			id := fmt.Sprint("m", i)
			s.send(queue, id)
			want = append(want, id)
		}
	}
	got := read(s, queue)
	got = append(got, s.open(queue, 1).drain()...)
	s.equal("handled", got, want)
	s.brokenAre(queue, kinds)
	s.say(h, "d1")
	s.equal("goes on", s.open(workQueue, 1).drain(), map[bool]string{true: "[d1]", false: "[d0 d1]"}[queue == workQueue])
}

// targetOf is the target's handle of the only conversation.
func targetOf(s *stage) string {
	for h := range s.snapshot(workQueue).Conversations {
		return h
	}
	s.t.Fatal("there is no conversation")
	return ""
}

// brokenAre wants the dead letters of queue to be those kinds, each once, with a number of its own, and the queue at rest.
func (s *stage) brokenAre(queue string, kinds []brokenKind) {
	s.t.Helper()
	s.sweep(queue)
	found, numbers := map[string]int{}, map[int64]bool{}
	for _, d := range s.dead(queue) {
		found[fmt.Sprintf("%q", d.Dead.Raw)]++
		s.equal("reason", d.Dead.Reason, broker.ReasonMalformedEnvelope)
		if numbers[d.SequenceNumber] {
			s.t.Errorf("two dead letters have the number %d", d.SequenceNumber)
		}
		numbers[d.SequenceNumber] = true
	}
	for _, k := range kinds {
		raw := make([][]byte, len(k.fields))
		for i := range raw {
			raw[i] = []byte(k.fields[i])
		}
		key := fmt.Sprintf("%q", raw)
		if found[key]--; found[key] < 0 {
			s.t.Errorf("%s: not in the dead-letter queue as it was written", k.name)
		}
	}
	for key, n := range found {
		if n > 0 {
			s.t.Errorf("%d times too often in the dead-letter queue: %.200s", n, key)
		}
	}
	s.equal("status", s.queue(queue).Status, broker.QueueActive)
	s.equal("counts", s.queue(queue).Counts, broker.Counts{DeadLetter: int64(len(kinds)), Total: int64(len(kinds))})
	s.equal("bytes", s.queue(queue).Bytes, 0)
	s.sound(queue)
}

// sound wants no violation and no difference in queue.
func (s *stage) sound(queue string) {
	s.t.Helper()
	s.snapshot(queue)
	rep, err := s.h.Broker.Audit(s.ctx, queue)
	if err != nil || len(rep.Differences) > 0 || len(rep.Unsettled) > 0 {
		s.t.Errorf("audit of %s: %+v, %v", queue, rep, err)
	}
}

// write adds an entry to a stream of queue as others do.
func (s *stage) write(queue, stream, id string, fields ...string) {
	s.t.Helper()
	if err := s.h.Write(queue, stream, id, fields...); err != nil {
		s.t.Fatalf("write %s to %s of %s: %v", id, stream, queue, err)
	}
}

// sweep looks at queue until it is quiet.
func (s *stage) sweep(queue string) {
	s.t.Helper()
	for range 100 {
		work, err := s.h.Broker.Sweep(s.ctx, []string{queue})
		if err != nil {
			s.t.Fatalf("sweep of %s: %v", queue, err)
		}
		if len(work) == 0 {
			return
		}
		if n := s.queue(queue).Counts.Ready; n > 0 {
			return
		}
		w := s.open(queue, 1)
		w.none()
		w.close()
	}
	s.t.Fatalf("there is always work on %s", queue)
}

func readBroken(s *stage, queue string) []string { return s.open(queue, 3).drain() }

func sweepBroken(s *stage, queue string) []string {
	s.sweep(queue)
	peeked, err := s.h.Broker.Peek(s.ctx, queue, 0, 1000)
	if err != nil {
		s.t.Fatalf("peek: %v", err)
	}
	for _, m := range peeked {
		if m.Type != broker.TypeDefault {
			s.t.Errorf("peeked %+v", m)
		}
	}
	return nil
}

func receiveBroken(s *stage, queue string) []string {
	var order []string
	for {
		list, err := s.h.Broker.Receive(s.ctx, queue, broker.ReceiveOptions{Max: 3, Lock: time.Minute})
		if err != nil {
			s.t.Fatalf("receive: %v", err)
		}
		if len(list) == 0 {
			return order
		}
		for _, d := range list {
			order = append(order, unitNames(d.Unit)...)
			if _, err := s.h.Broker.Settle(s.ctx, queue, d.Token, broker.Settlement{Verdict: broker.VerdictCommit}); err != nil {
				s.t.Fatalf("settle: %v", err)
			}
		}
	}
}
