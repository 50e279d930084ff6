package main

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/broker"
)

// What scripts read. Field names and their order are stated here only; testdata/fields.golden holds an example of each.

// messageJSON is one line of peek, receive, dialog receive and deadletter list.
type messageJSON struct {
	SequenceNumber        int64             `json:"sequence_number"`
	MessageID             string            `json:"message_id"`
	SessionID             string            `json:"session_id"`
	MessageType           string            `json:"message_type"`
	ConversationHandle    string            `json:"conversation_handle"`
	ConversationGroupID   string            `json:"conversation_group_id"`
	MessageSequenceNumber int64             `json:"message_sequence_number"` // -1: not in a sequence
	ServiceName           string            `json:"service_name"`
	FarServiceName        string            `json:"far_service_name"`
	Contract              string            `json:"contract"`
	Validation            string            `json:"validation"`
	Priority              int               `json:"priority"`
	Status                string            `json:"status"`
	EnqueuedTime          instant           `json:"enqueued_time"`
	ExpiresAt             instant           `json:"expires_at"`
	ScheduledTime         instant           `json:"scheduled_time"`
	DeliveryCount         int               `json:"delivery_count"`
	RollbackCount         int               `json:"rollback_count"`
	LastError             string            `json:"last_error"` // of the last failed attempt; filled in by peek and deadletter list
	Properties            map[string]string `json:"properties"`
	Body                  *string           `json:"body,omitempty"` // absent when it is not UTF-8
	BodyBase64            string            `json:"body_base64"`
	*deadJSON
	*lockJSON
}

// deadJSON is what a message has more in a dead-letter queue.
type deadJSON struct {
	Reason           string    `json:"reason"`
	Description      string    `json:"description"`
	Source           string    `json:"source"`
	DeadLetteredTime instant   `json:"dead_lettered_time"`
	RawFields        []rawJSON `json:"raw_fields,omitempty"` // of what was no message, in order: name and value of each
	Parks            bool      `json:"parks,omitempty"`      // it holds up its conversation or session (on_dead_letter: park)
}

// rawJSON is one field of an entry that was no message.
type rawJSON struct {
	Name  []byte `json:"name_base64"`
	Value []byte `json:"value_base64"`
}

// rawFields pairs the names and values of the raw fields.
func rawFields(raw [][]byte) []rawJSON {
	var out []rawJSON
	for i := 1; i < len(raw); i += 2 {
		out = append(out, rawJSON{raw[i-1], raw[i]})
	}
	return out
}

// lockJSON is what a message has more that was received and not settled.
type lockJSON struct {
	LockToken   string  `json:"lock_token"`
	LockedUntil instant `json:"locked_until"`
}

// instant prints as RFC 3339 with milliseconds in UTC, and as null when it is zero.
type instant time.Time

// MarshalJSON implements json.Marshaler.
func (t instant) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(time.Time(t).UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}

func newMessageJSON(m *broker.Message) messageJSON {
	j := messageJSON{
		SequenceNumber: m.SequenceNumber, MessageID: m.MessageID, SessionID: m.SessionID, MessageType: m.Type,
		ConversationHandle: m.Conversation, ConversationGroupID: m.Group, MessageSequenceNumber: m.MessageSeq,
		ServiceName: m.Service, FarServiceName: m.FarService, Contract: m.Contract, Validation: m.Validation,
		Priority: m.Priority, Status: string(m.Status), EnqueuedTime: instant(m.EnqueuedAt), ExpiresAt: instant(m.ExpiresAt),
		ScheduledTime: instant(m.ScheduledAt), DeliveryCount: m.DeliveryCount, RollbackCount: m.PoisonCount, LastError: m.LastError,
		Properties: m.Properties, BodyBase64: base64.StdEncoding.EncodeToString(m.Body),
	}
	if j.Properties == nil {
		j.Properties = map[string]string{}
	}
	if utf8.Valid(m.Body) {
		body := string(m.Body)
		j.Body = &body
	}
	if d := m.Dead; d != nil {
		j.deadJSON, j.LastError = &deadJSON{d.Reason, d.Description, d.Source, instant(d.At), rawFields(d.Raw), d.Parks}, d.LastError
	}
	return j
}

// queueJSON is queue show, and one line of queue list.
type queueJSON struct {
	Name           string         `json:"name"`
	Status         string         `json:"status"`
	Counts         countsJSON     `json:"counts"`
	Retention      bool           `json:"retention"`
	Archive        bool           `json:"archive"`
	Poison         poisonJSON     `json:"poison_message_handling"`
	MaxDelivery    int            `json:"max_delivery_count"`
	Retry          retryJSON      `json:"retry"`
	LockDuration   string         `json:"lock_duration"`
	MaxMessageSize int            `json:"max_message_size"`
	DefaultTTL     string         `json:"default_message_time_to_live"`
	DeadLetterTTL  bool           `json:"dead_lettering_on_message_expiration"`
	OnDeadLetter   string         `json:"on_dead_letter"`
	AutoEnd        bool           `json:"auto_end"`
	Durable        int            `json:"durable"`
	PriorityAging  string         `json:"priority_aging"`
	Acting         actingJSON     `json:"acting_limit"`
	Services       []string       `json:"services"`
	Readers        int            `json:"readers"`
	Bytes          int64          `json:"bytes"`
	EntriesLost    int64          `json:"entries_lost"`
	Open           int64          `json:"open_conversations"`
	Ended          int64          `json:"ended_conversations"`
	Transmission   []transmitJSON `json:"transmission"`
	ParkedGroups   int64          `json:"parked_groups"`
	Parked         []parkedJSON   `json:"parked"` // the first of them
}

// parkedJSON is a group that dead letters hold up (on_dead_letter: park).
type parkedJSON struct {
	SessionID   string  `json:"session_id"`
	Group       string  `json:"conversation_group_id"`
	DeadLetters []int64 `json:"dead_letters"`
	Waiting     int64   `json:"waiting"`
}

type countsJSON struct {
	Ready              int64 `json:"ready"`
	Locked             int64 `json:"locked"`
	Deferred           int64 `json:"deferred"`
	Scheduled          int64 `json:"scheduled"`
	Retrying           int64 `json:"retrying"`
	DeadLetter         int64 `json:"dead_letter"`
	Transmission       int64 `json:"transmission"`
	TransferDeadLetter int64 `json:"transfer_dead_letter"`
	Retained           int64 `json:"retained"`
	Total              int64 `json:"total"`
}

type poisonJSON struct {
	Status    string `json:"status"`
	Rollbacks int    `json:"rollbacks"`
	Scope     string `json:"scope"`
}

type retryJSON struct {
	Initial    string  `json:"initial"`
	Max        string  `json:"max"`
	Multiplier float64 `json:"multiplier"`
	Jitter     float64 `json:"jitter"`
}

// actingJSON says which of the two limits a failing message meets first.
type actingJSON struct {
	Rule string `json:"rule"` // poison_message_handling or max_delivery_count
	At   int    `json:"at"`
}

type transmitJSON struct {
	Target  string  `json:"target"`
	Waiting int64   `json:"waiting"`
	Status  string  `json:"status"` // "": not tried yet
	NextTry instant `json:"next_try"`
}

func newQueueJSON(q *broker.QueueInfo) queueJSON {
	j := queueJSON{
		Name: q.Name, Status: string(q.Status), Counts: countsJSON(q.Counts), Retention: q.Retention, Archive: q.Archive,
		Poison:       poisonJSON{onOff(q.Poison.On), q.Poison.Rollbacks, q.Poison.Scope},
		MaxDelivery:  q.MaxDelivery,
		Retry:        retryJSON{q.Retry.Initial.String(), q.Retry.Max.String(), q.Retry.Multiplier, q.Retry.Jitter},
		LockDuration: q.LockDuration.String(), MaxMessageSize: q.MaxMessageSize, DefaultTTL: q.DefaultTTL.String(),
		DeadLetterTTL: q.DeadLetterTTL, OnDeadLetter: q.OnDeadLetter, AutoEnd: q.AutoEnd, Durable: q.Durable, PriorityAging: q.PriorityAging.String(),
		Acting: acting(&q.QueueSettings), Services: append([]string{}, q.Services...), Readers: q.Readers, Bytes: q.Bytes,
		EntriesLost: q.EntriesLost, Open: q.Open, Ended: q.Ended, Transmission: []transmitJSON{}, ParkedGroups: q.Parked, Parked: []parkedJSON{},
	}
	for _, g := range q.ParkedFirst {
		j.Parked = append(j.Parked, parkedJSON(g))
	}
	for _, t := range q.Transmit {
		j.Transmission = append(j.Transmission, transmitJSON{t.Target, t.Waiting, t.Status, instant(t.NextTry)})
	}
	return j
}

// acting tells which limit acts first; on a tie the dead-letter wins, since it frees the queue.
func acting(q *broker.QueueSettings) actingJSON {
	if q.Poison.On && q.Poison.Rollbacks < q.MaxDelivery {
		return actingJSON{"poison_message_handling", q.Poison.Rollbacks}
	}
	return actingJSON{"max_delivery_count", q.MaxDelivery}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// endpointJSON is dialog begin, dialog show, and one line of dialog list.
type endpointJSON struct {
	ConversationHandle  string  `json:"conversation_handle"`
	ConversationID      string  `json:"conversation_id"`
	ConversationGroupID string  `json:"conversation_group_id"`
	State               string  `json:"state"` // two letters
	StateDescription    string  `json:"state_description"`
	Queue               string  `json:"queue"`
	ServiceName         string  `json:"service_name"`
	FarServiceName      string  `json:"far_service_name"`
	FarHandle           string  `json:"far_conversation_handle"`
	Contract            string  `json:"contract"`
	IsInitiator         bool    `json:"is_initiator"`
	Priority            int     `json:"priority"`
	CreatedTime         instant `json:"created_time"`
	ExpiresAt           instant `json:"expires_at"`
	ClosedTime          instant `json:"closed_time"`
	TimerDue            instant `json:"timer_due"`
	TimerCron           string  `json:"timer_cron"`
	NextSend            int64   `json:"next_send"`
	NextReceive         int64   `json:"next_receive"`
	Waiting             int64   `json:"waiting"`
	InTransmission      int64   `json:"in_transmission"`
}

func newEndpointJSON(e *broker.Endpoint) endpointJSON {
	return endpointJSON{
		ConversationHandle: e.Handle, ConversationID: e.ConversationID, ConversationGroupID: e.Group, State: string(e.State),
		StateDescription: e.State.Description(), Queue: e.Queue, ServiceName: e.Service, FarServiceName: e.FarService,
		FarHandle: e.FarHandle, Contract: e.Contract, IsInitiator: e.Initiator, Priority: e.Priority,
		CreatedTime: instant(e.CreatedAt), ExpiresAt: instant(e.ExpiresAt), ClosedTime: instant(e.ClosedAt),
		TimerDue: instant(e.TimerDue), TimerCron: e.TimerCron, NextSend: e.NextSend, NextReceive: e.NextReceive,
		Waiting: e.Waiting, InTransmission: e.InTransmission,
	}
}

// eventJSON is one line of events: type, queue, time and id, then the event's own fields in alphabetical order.
type eventJSON struct{ broker.Event }

// MarshalJSON implements json.Marshaler.
func (e eventJSON) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	add := func(key string, v any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		val, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(val)
		return nil
	}
	own := []any{"type", e.Type, "queue", e.Queue, "time", instant(e.Time), "id", e.ID}
	for i := 0; i < len(own); i += 2 {
		if err := add(own[i].(string), own[i+1]); err != nil {
			return nil, err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Fields)) {
		if slices.Contains([]string{"type", "queue", "time", "id"}, k) {
			continue
		}
		if err := add(k, e.Fields[k]); err != nil {
			return nil, err
		}
	}
	return []byte("{" + b.String() + "}"), nil
}

// receiptJSON is send, dialog send, and one line of deadletter resubmit.
type receiptJSON struct {
	SequenceNumber int64  `json:"sequence_number"`
	MessageID      string `json:"message_id"`
	Count          int    `json:"count,omitempty"`                       // with --count above 1: how many were sent
	Last           int64  `json:"last_sequence_number,omitempty"`        // with --count above 1: of the last of them
	DeadLetter     int64  `json:"dead_letter_sequence_number,omitempty"` // of a resubmit: the number it had before
}

// settledJSON is settle.
type settledJSON struct {
	LockToken   string  `json:"lock_token"`
	Outcome     string  `json:"outcome"` // completed, abandoned, dead_lettered, queue_disabled or renewed
	LockedUntil instant `json:"locked_until"`
}

// changeJSON is one line of apply.
type changeJSON struct {
	Action string `json:"action"` // create, alter or none
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// purgedJSON is queue purge and deadletter purge.
type purgedJSON struct {
	Path   string `json:"path"`
	Purged int64  `json:"purged"`
}

// statusJSON is queue enable, disable and delete.
type statusJSON struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// differenceJSON is one line of audit.
type differenceJSON struct {
	Queue string `json:"queue"`
	Rule  string `json:"rule"`
	Want  string `json:"want"`
	Got   string `json:"got"`

	Outcome string `json:"outcome"` // wrong, or repaired
}

// auditedJSON is the last line of audit: what it compared, and what came of it.
type auditedJSON struct {
	Queues        int64    `json:"queues"`
	Messages      int64    `json:"messages"`
	Conversations int64    `json:"conversations"`
	Differences   int      `json:"differences"`
	Repaired      int      `json:"repaired"`
	Unsettled     []string `json:"unsettled"`
}

func newAuditedJSON(r broker.AuditReport) auditedJSON {
	return auditedJSON{r.Queues, r.Messages, r.Conversations, len(r.Differences), len(r.Repaired), append([]string{}, r.Unsettled...)}
}

func differenceRow(d broker.Difference, outcome string) differenceJSON {
	return differenceJSON{d.Queue, d.Rule, d.Want, d.Got, outcome}
}

// findingJSON is one line of doctor.
type findingJSON struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warning or error
	Value  string `json:"value"`
	Advice string `json:"advice"`
}

// endedJSON is dialog end.
type endedJSON struct {
	ConversationHandle string `json:"conversation_handle"`
	Ended              bool   `json:"ended"`
}

// monitorJSON is one line of monitor.
type monitorJSON struct {
	Time      instant    `json:"time"`
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	Readers   int        `json:"readers"`
	Counts    countsJSON `json:"counts"`
	PerSecond *float64   `json:"total_change_per_second"` // null at the first look

	Activation *activationJSON `json:"activation"` // null: no host activates a plugin on it
}
