package redisbroker

import (
	"strings"
	"testing"

	"parley/broker"
)

// What it costs to receive and settle messages by their tokens grows with their number, not with its square.
func TestSettlingCostsInProportion(t *testing.T) {
	s, b := ownServer(t)
	c := s.Client(t)
	cost := func(n int) (calls int64) {
		msgs := make([]broker.Outgoing, n)
		for i := range msgs {
			msgs[i].Body = []byte("x")
		}
		if _, err := b.Send(t.Context(), "q", msgs...); err != nil {
			t.Fatal(err)
		}
		if err := c.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := b.Receive(t.Context(), "q", broker.ReceiveOptions{Max: n})
		if err != nil || len(got) != n {
			t.Fatalf("%d of %d messages, %v", len(got), n, err)
		}
		settled := make([]broker.TokenSettlement, n)
		for i, d := range got {
			settled[i] = broker.TokenSettlement{Token: d.Token, Settlement: broker.Settlement{Unit: d.Unit, Verdict: broker.VerdictCommit}}
		}
		results, err := b.SettleMany(t.Context(), "q", settled)
		if err != nil || len(results) != n {
			t.Fatalf("%d of %d results, %v", len(results), n, err)
		}
		for _, r := range results {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		info, err := c.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(info) {
			if _, v, ok := strings.Cut(line, ":calls="); ok {
				v, _, _ = strings.Cut(v, ",")
				calls += num(v)
			}
		}
		return calls
	}
	few, many := cost(100), cost(1000)
	if many > 12*few {
		t.Errorf("100 messages cost %d commands, 1,000 cost %d", few, many)
	}
	t.Logf("100 messages cost %d commands, 1,000 cost %d", few, many)
}
