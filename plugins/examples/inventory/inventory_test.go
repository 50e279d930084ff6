package main

import (
	"strings"
	"testing"

	"parley/broker"
	"parley/plugins/examples/internal/exampletest"
	"parley/sdk"
	"parley/sdk/abi"
)

// TestStory: withdrawals succeed until an order change makes the part obsolete; from then on one that was valid when it
// was sent rolls back every time, and the stock stays as it was.
func TestStory(t *testing.T) {
	g := exampletest.Group{
		Plugin: exampletest.Load(t, map[string]string{"stock": "gear-7=10 shaft-2=4", "reply_type": "//shop/StockReply"}),
		Handle: "c-1",
	}
	commit := func(body, reply string) {
		t.Helper()
		s := g.Run(t, "//shop/StockRequest", []byte(body), nil)
		if s.Verdict != broker.VerdictCommit {
			t.Fatalf("%s: %+v", body, s)
		}
		sent := exampletest.Sent(s.Effects)
		if reply == "" && len(sent) == 0 {
			return
		}
		if len(sent) != 1 || string(sent[0].Message.Body) != reply || sent[0].Message.Type != "//shop/StockReply" || sent[0].Conversation != "c-1" {
			t.Fatalf("%s: sent %+v, want %s", body, sent, reply)
		}
	}
	commit(`{"part":"shaft-2","quantity":3}`, `{"part":"shaft-2","granted":true,"left":1}`)
	commit(`{"part":"shaft-2","quantity":3}`, `{"part":"shaft-2","granted":false,"left":1}`)
	commit(`{"part":"gear-7","quantity":1}`, `{"part":"gear-7","granted":true,"left":9}`)
	commit(`{"part":"shaft-2","obsolete":true}`, "")
	for range 5 {
		s := g.Run(t, "//shop/StockRequest", []byte(`{"part":"shaft-2","quantity":1}`), nil)
		if s.Verdict != broker.VerdictRollback || !strings.Contains(s.FailText, "shaft-2: an order change made it obsolete") {
			t.Fatalf("%+v", s)
		}
	}
	commit(`{"part":"gear-7","quantity":9}`, `{"part":"gear-7","granted":true,"left":0}`)
	if string(g.State["left/shaft-2"]) != "1" {
		t.Errorf("state %q", g.State)
	}
}

func TestHandle(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       int32
		reason     string
	}{
		{"obsolete by configuration", `{"part":"bolt","quantity":1}`, abi.Rollback, ""},
		{"no JSON", `{`, abi.DeadLetter, "InvalidRequest"},
		{"no part", `{"quantity":1}`, abi.DeadLetter, "InvalidRequest"},
		{"nothing asked for", `{"part":"gear-7"}`, abi.DeadLetter, "InvalidRequest"},
		{"unknown part", `{"part":"moon","quantity":1}`, abi.Commit, ""},
	} {
		fake := sdk.Fake{
			Config:   map[string]string{"stock": "gear-7=10", "obsolete": "nut bolt"},
			Messages: []sdk.FakeMessage{{Conversation: "c", Body: []byte(c.body)}},
		}
		if out := fake.Run(handle); out.Result != c.want || out.Reason != c.reason {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
}

// TestSession: messages of a session share their stock and are answered in the log.
func TestSession(t *testing.T) {
	fake := sdk.Fake{Config: map[string]string{"stock": "gear-7=10"}}
	for range 2 {
		fake.Messages = []sdk.FakeMessage{{Session: "warehouse-1", Body: []byte(`{"part":"gear-7","quantity":4}`)}}
		if out := fake.Run(handle); out.Result != abi.Commit {
			t.Fatalf("%+v", out)
		}
	}
	out := fake.Run(handle)
	if len(out.Logs) != 1 || out.Logs[0] != `{"part":"gear-7","granted":false,"left":2}` {
		t.Errorf("%+v", out)
	}
}
