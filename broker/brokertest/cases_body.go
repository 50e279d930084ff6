package brokertest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/broker"
)

func binaryBody(s *stage) {
	const sum = "c941553e3c5f10e58a21a31eb011614eac184ef80b8f411b806ab7b32d659558"
	body := []byte{0x00, 0xff, 0xfe, 0x0d, 0x0a, 0x80}
	check := func(what string, got []byte) {
		s.t.Helper()
		s.equal(what, fmt.Sprintf("%x %d", sha256.Sum256(got), len(got)), sum+" 6")
	}
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 2 })
	if _, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{Body: body, Properties: map[string]string{"k|\n%": "v\xff|\n"}}); err != nil {
		s.t.Fatal(err)
	}
	for round := range 2 {
		w := s.open(plainQueue, 1)
		for range 2 {
			u := w.receive().Units[0]
			check("handler sees", u.Messages[0].Body)
			s.equal("property", u.Messages[0].Properties["k|\n%"], "v\xff|\n")
			w.settle(failure(u))
		}
		w.close()
		d := s.dead(plainQueue)
		s.equal("dead letters", len(d), 1)
		check("dead letter", d[0].Body)
		if round == 0 {
			if _, err := s.h.Broker.Resubmit(s.ctx, plainQueue, d[0].SequenceNumber); err != nil {
				s.t.Fatalf("resubmit: %v", err)
			}
		}
	}
}

func sizeLimits(s *stage) {
	send := func(n int) error {
		_, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{Body: bytes.Repeat([]byte("x"), n)})
		return err
	}
	for _, n := range []int{0, 1, 262144} {
		if err := send(n); err != nil {
			s.t.Fatalf("send %d bytes: %v", n, err)
		}
	}
	for _, n := range []int{262145, 1 << 20} {
		s.wantErr(fmt.Sprint("send ", n, " bytes"), send(n), broker.ErrMessageSize)
	}
	_, err := s.h.Broker.Send(s.ctx, plainQueue, broker.Outgoing{Body: bytes.Repeat([]byte("x"), 262143), Properties: map[string]string{"k": "v"}})
	s.wantErr("own properties count too", err, broker.ErrMessageSize)
	s.equal("stored", s.queue(plainQueue).Counts.Ready, 3)
	w := s.open(plainQueue, 3)
	var big *broker.Unit
	for _, u := range w.receive().Units {
		if len(u.Messages[0].Body) == 262144 {
			big = u
		}
	}
	w.want(broker.DeadLettered, broker.Settlement{Unit: big, Verdict: broker.VerdictDeadLetter, Reason: "Big"})
	if _, err := s.h.Broker.Resubmit(s.ctx, plainQueue, big.Messages[0].SequenceNumber); err != nil {
		s.t.Fatalf("resubmit: %v", err)
	}
	s.equal("back", len(w.receive().Units), 1)
}

func longText(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 1 })
	for _, text := range []string{strings.Repeat("é", 20_000) + strings.Repeat("\nstack", 200_000), "a\xff\xfeb\x00c|d\ne"} {
		s.send(plainQueue, "m")
		w := s.open(plainQueue, 1)
		st := failure(w.one("m"))
		st.FailText = text
		w.want(broker.DeadLettered, st)
		w.close()
	}
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.MaxDelivery = 10 })
	s.send(plainQueue, "n")
	w := s.open(plainQueue, 1)
	w.want(broker.DeadLettered, broker.Settlement{
		Unit: w.one("n"), Verdict: broker.VerdictDeadLetter, Reason: strings.Repeat("é", 5000), Description: strings.Repeat("ü", 20_000) + "\xff",
	})
	d := s.dead(plainQueue)
	s.equal("dead letters", len(d), 3)
	for _, m := range d {
		for what, text := range map[string]string{"reason": m.Dead.Reason, "description": m.Dead.Description, "last error": m.Dead.LastError} {
			if n := utf8.RuneCountInString(text); n > broker.MaxReasonChars || !utf8.ValidString(text) {
				s.t.Fatalf("%s has %d characters, valid: %v", what, n, utf8.ValidString(text))
			}
		}
	}
	s.equal("mark of the first", contains(d[0].Dead.LastError, "truncated"), true)
	second := d[1].Dead.LastError
	s.equal(fmt.Sprintf("the second, %q", second), strings.HasPrefix(second, "HandlerError: a\ufffd") && contains(second, "c|d\ne"), true)
	s.equal("description is marked", contains(d[2].Dead.Description, "truncated") && contains(d[2].Dead.Description, "40001"), true)
}
