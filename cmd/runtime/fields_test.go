package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/broker"
	"parley/host/guest"
	"parley/host/guest/meter"
)

var update = flag.Bool("update", false, "write testdata/fields.golden anew")

// examples has one value of every kind of line, all fields set.
func examples() []any {
	at := time.Date(2026, 1, 31, 2, 3, 4, 567_000_000, time.FixedZone("CET", 3600))
	message := broker.Message{
		SequenceNumber: 7, MessageID: "id-7", SessionID: "s", Type: "//shop/StockRequest", Conversation: "handle", Group: "group",
		MessageSeq: 3, Service: "//shop/Inventory", FarService: "//shop/Web", Contract: "//shop/Stock", Validation: "X", Priority: 5,
		Status: broker.StatusDead, EnqueuedAt: at, ExpiresAt: at.Add(time.Hour), ScheduledAt: at, DeliveryCount: 10, PoisonCount: 2,
		Properties: map[string]string{"event": "push", "a": "<b>&"}, Body: []byte(`{"qty":1} <&>`),
		Dead: &broker.DeadLetter{Reason: "MaxDeliveryCountExceeded", Description: "d", Source: "inventory", At: at, LastError: "Trap: unreachable", Parks: true},
	}
	dead := newMessageJSON(&message)
	plain := newMessageJSON(&broker.Message{SequenceNumber: 1, MessageSeq: -1, Status: broker.StatusLocked, EnqueuedAt: at, Body: []byte{0xff, 0}})
	plain.lockJSON = &lockJSON{"token", instant(at)}
	queue := broker.QueueInfo{
		QueueSettings: broker.DefaultQueue("inventory", true), Status: broker.QueueOff,
		Counts: broker.Counts{
			Ready: 1, Locked: 2, Deferred: 3, Scheduled: 4, Retrying: 5, DeadLetter: 6, Transmission: 7, TransferDeadLetter: 8, Retained: 9, Total: 45,
		},
		EntriesLost: 1, Open: 2, Ended: 3, Services: []string{"//shop/Inventory"}, Readers: 4, Bytes: 1234,
		Transmit: []broker.TransmitInfo{{Target: "//shop/Web", Waiting: 7, Status: "target queue disabled", NextTry: at}},
		Parked:   2, ParkedFirst: []broker.ParkedGroup{{SessionID: "s", DeadLetters: []int64{1, 2}, Waiting: 3}},
	}
	endpoint := broker.Endpoint{
		Handle: "handle", ConversationID: "conversation", Group: "group", Queue: "inventory", Service: "//shop/Inventory",
		FarService: "//shop/Web", FarHandle: "far", Contract: "//shop/Stock", Initiator: true, State: broker.StateConversing,
		Priority: 5, CreatedAt: at, ExpiresAt: at, TimerDue: at, TimerCron: "* * * * *", NextSend: 4, NextReceive: 2, Waiting: 1, InTransmission: 1,
	}
	rate := -1.5
	return []any{
		dead, plain, newQueueJSON(&queue), newEndpointJSON(&endpoint),
		newTimerJSON(&endpoint),
		retainedJSON{3, plain},
		newDialogJSON([]broker.DialogSide{
			{Endpoint: endpoint, QueueStatus: broker.QueueActive, Transit: []broker.Message{{MessageSeq: 2, Status: broker.StatusInTransit}}, TransmitStatus: "off", NextTry: at},
			{Endpoint: endpoint, QueueStatus: broker.QueueOff, ParkedBy: []int64{1}, Messages: []broker.Message{{
				SequenceNumber: 7, DeliveryCount: 5, PoisonCount: 5, LastError: "Trap: unreachable", EnqueuedAt: at,
				Properties: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
			}}},
		}),
		eventJSON{broker.Event{ID: "1-0", Type: "queue_disabled", Queue: "inventory", Time: at, Fields: map[string]string{"rollbacks": "5", "type": "x", "message_id": "id-7"}}},
		receiptJSON{SequenceNumber: 8, MessageID: "id-8"},
		receiptJSON{SequenceNumber: 8, MessageID: "id-8", Count: 2, Last: 9, DeadLetter: 7},
		settledJSON{"token", "renewed", instant(at)},
		changeJSON{"create", "queue", "inventory", "d"},
		purgedJSON{"inventory", 3},
		statusJSON{"inventory", "active"},
		differenceJSON{"inventory", "rule", "1", "2", "wrong"},
		newAuditedJSON(broker.AuditReport{Queues: 3, Messages: 304, Conversations: 2, Unsettled: []string{"web"}}),
		endedJSON{"handle", true},
		findingJSON{"eviction", "ok", "noeviction", ""},
		monitorJSON{instant(at), "inventory", "active", 4, countsJSON{Ready: 1}, &rate, newActivationJSON([]hostMonitor{
			{"one:1", broker.MonitorReport{Queue: "inventory", Plugin: "p", State: "NOTIFIED", MaxReaders: 4, Readers: 1, LastActivated: at}},
			{"two:2", broker.MonitorReport{
				Queue: "inventory", Plugin: "p", State: "RECEIVES_OCCURRING", Off: true, Paused: true, MaxReaders: 4, Readers: 2, Slots: 3, Running: 3,
				Waiting: 9, ReadersStarted: 5, ReadersStopped: 3, LimitReached: 1, Errors: 2, LeaseLosses: 1, Units: 10, Committed: 4, RolledBack: 3,
				DeadLettered: 2, Lost: 1, LastError: "x", LastActivated: at, LastEmpty: at,
			}},
		})},
		builtJSON{"p.wasm", "00", 8},
		newInspectJSON(&guest.Info{
			Digest: "00", Size: 8, Memory: meter.Memory{Min: 1, Max: 2}, Imports: []meter.Import{{Module: "parley_v1", Name: "log", Kind: meter.Func}},
			Exports: []meter.Export{{Name: "memory", Kind: meter.Mem}}, Limits: guest.DefaultLimits, Needs: []guest.Capability{guest.QueuePeek},
		}),
	}
}

// TestFieldNames keeps what scripts read: a name, a place or a form that changes shows as a difference here.
func TestFieldNames(t *testing.T) {
	var got bytes.Buffer
	for _, v := range examples() {
		if err := writeJSON(&got, v); err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/fields.golden"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("fields changed (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestActingLimit(t *testing.T) {
	q := broker.DefaultQueue("q", true)
	if got, want := acting(&q), (actingJSON{"poison_message_handling", 5}); got != want {
		t.Errorf("service queue: got %v, want %v", got, want)
	}
	q.MaxDelivery = 5
	if got, want := acting(&q), (actingJSON{"max_delivery_count", 5}); got != want {
		t.Errorf("a tie: got %v, want %v", got, want)
	}
	q = broker.DefaultQueue("q", false)
	if got, want := acting(&q), (actingJSON{"max_delivery_count", 10}); got != want {
		t.Errorf("plain queue: got %v, want %v", got, want)
	}
}
