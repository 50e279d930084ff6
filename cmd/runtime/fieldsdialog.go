package main

import (
	"strings"

	"parley/broker"
)

// timerJSON is dialog timer.
type timerJSON struct {
	ConversationHandle string  `json:"conversation_handle"`
	TimerDue           instant `json:"timer_due"` // null: no timer
	TimerCron          string  `json:"timer_cron"`
}

func newTimerJSON(e *broker.Endpoint) timerJSON {
	return timerJSON{e.Handle, instant(e.TimerDue), e.TimerCron}
}

// retainedJSON is one line of dialog retained: a message whose status is the documented number.
type retainedJSON struct {
	Status int `json:"status"` // 0 received, 1 ready to receive, 3 sent
	messageJSON
}

// dialogJSON is dialog show: the side that was asked for, the other, and the worst of both.
type dialogJSON struct {
	sideJSON
	FarSide   *sideJSON `json:"far_side"` // null: not known or gone
	Attempts  int       `json:"attempts"` // of the most often failed message that waits
	LastError string    `json:"last_error"`
	TraceID   string    `json:"trace_id"`
}

// sideJSON is one side of a conversation with what waits for it and because of it.
type sideJSON struct {
	endpointJSON
	QueueStatus  string        `json:"queue_status"`
	ParkedBy     []int64       `json:"parked_by"` // dead letters that hold it up (on_dead_letter: park)
	Messages     []waitingJSON `json:"messages"`
	Transmission sentJSON      `json:"transmission"`
}

// sentJSON is what a side sent that waits in the transmission queue.
type sentJSON struct {
	Waiting  int64         `json:"waiting"`
	Status   string        `json:"status"`
	NextTry  instant       `json:"next_try"`
	Messages []waitingJSON `json:"messages"`
}

type waitingJSON struct {
	SequenceNumber        int64   `json:"sequence_number"`
	MessageSequenceNumber int64   `json:"message_sequence_number"`
	MessageID             string  `json:"message_id"`
	MessageType           string  `json:"message_type"`
	Status                string  `json:"status"`
	EnqueuedTime          instant `json:"enqueued_time"`
	DeliveryCount         int     `json:"delivery_count"`
	RollbackCount         int     `json:"rollback_count"`
	LastError             string  `json:"last_error"`
	TraceID               string  `json:"trace_id"`
}

func newDialogJSON(sides []broker.DialogSide) dialogJSON {
	j := dialogJSON{sideJSON: newSideJSON(&sides[0])}
	if len(sides) > 1 {
		far := newSideJSON(&sides[1])
		j.FarSide = &far
	}
	for i := range sides {
		for _, list := range [][]broker.Message{sides[i].Messages, sides[i].Transit} {
			for k := range list {
				j.worst(&list[k])
			}
		}
	}
	return j
}

// worst notes m if it failed more often than those before.
func (j *dialogJSON) worst(m *broker.Message) {
	if j.TraceID == "" || m.DeliveryCount > j.Attempts {
		j.TraceID = traceID(m)
	}
	if m.LastError != "" && (j.LastError == "" || m.DeliveryCount > j.Attempts) {
		j.LastError = m.LastError
	}
	j.Attempts = max(j.Attempts, m.DeliveryCount)
}

func newSideJSON(s *broker.DialogSide) sideJSON {
	return sideJSON{
		newEndpointJSON(&s.Endpoint), string(s.QueueStatus), append([]int64{}, s.ParkedBy...), newWaitingJSON(s.Messages),
		sentJSON{s.InTransmission, s.TransmitStatus, instant(s.NextTry), newWaitingJSON(s.Transit)},
	}
}

func newWaitingJSON(messages []broker.Message) []waitingJSON {
	list := make([]waitingJSON, 0, len(messages))
	for i := range messages {
		m := &messages[i]
		list = append(list, waitingJSON{
			m.SequenceNumber, m.MessageSeq, m.MessageID, m.Type, string(m.Status), instant(m.EnqueuedAt), m.DeliveryCount, m.PoisonCount,
			m.LastError, traceID(m),
		})
	}
	return list
}

// traceID is the trace that m belongs to, by its traceparent; "" without one.
func traceID(m *broker.Message) string {
	if parts := strings.Split(m.Properties["traceparent"], "-"); len(parts) >= 4 && len(parts[1]) == 32 {
		return parts[1]
	}
	return ""
}
