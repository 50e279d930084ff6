package contenders

import (
	"context"
	"fmt"
	"slices"

	"parley/bench/measure"
)

// Names of the workloads of Parley.
const (
	ParleyPlain               = "parley-plain"
	ParleyConversations       = "parley-conversations"
	ParleySessions            = "parley-sessions"
	ParleySend                = "parley-send"
	ParleyAppend              = "parley-append"
	ParleyAppendConversations = "parley-append-conversations"
	ParleySends               = "parley-sends"
	ParleySendsDurable        = "parley-sends-durable"
	ParleyLatency             = "parley-latency"
	ParleyMemory              = "parley-memory"
	ParleyMemoryConversation  = "parley-memory-conversation"
	ParleyMemoryFiled         = "parley-memory-filed"
	ParleyBacklogLarge        = "parley-backlog-1000000"
	ParleyBacklogSmall        = "parley-backlog-10000"
	ParleyIdle                = "parley-idle"
	ParleyTimersIdle          = "parley-timers-armed"
	ParleyTimersDue           = "parley-timers-due"
	ParleyMemoryDialogs       = "parley-memory-dialogs"
	ParleyMemoryTimers        = "parley-memory-timers"
)

const (
	// parleySlots slots, two readers of half of them each, hold up to 4 units: 64 in flight.
	parleySlots         = 16
	parleyConversations = 1000
	parleyFill          = 500
	parleyQueues        = 10_000
)

// ParleyConditions say how Parley runs in all its workloads.
var ParleyConditions = []string{
	"Parley: a whole host in this process, with its housekeeping and real lease; Go plugins built with the SDK, metered, " +
		"with every limit at its default; exporters off; queues with default settings; every message has its id and is settled exactly once",
	fmt.Sprintf("Parley: max_queue_readers %d, so 2 readers of %d slots; handlers as fast as these get 4 units a slot: 64 in flight", parleySlots, parleySlots/2),
}

// Parley returns the workloads of Parley for so many messages at full speed.
func Parley(messages int, guests *Guests) []measure.Workload {
	return slices.Concat(parleyDrains(messages, guests), parleyOthers(messages, guests), parleyTimers(messages, guests))
}

func parleyDrains(messages int, guests *Guests) []measure.Workload {
	drain := func(name, does, plugin string, n int, fill fillFunc) measure.Workload {
		return measure.Workload{
			Name: name, Kind: measure.Rate, Count: n, Does: does + "; until the last commit is acknowledged",
			Open: func(ctx context.Context, addr string) (measure.Side, error) {
				return openParleyDrain(ctx, addr, guests, plugin, fill)
			},
		}
	}
	const noop = ", Go plugin that reads type and body"
	return []measure.Workload{
		drain(ParleyPlain, "plain messages"+noop, guestNoop, messages, fillPlain),
		drain(ParleyConversations, fmt.Sprintf("%d dialogs, round robin, each in order under its group's lock%s", parleyConversations, noop),
			guestNoop, messages, fillDialogs),
		drain(ParleySessions, fmt.Sprintf("%d sessions, round robin, each in order under its lock%s", parleyConversations, noop),
			guestNoop, messages, fillSessions),
		drain(ParleySend, "plain messages, Go plugin that sends each body to a second queue, in the same transaction as the receive",
			guestForward, messages, fillPlain),
		drain(ParleyBacklogLarge, "plain messages"+noop, guestNoop, 1_000_000, fillPlain),
		drain(ParleyBacklogSmall, "plain messages"+noop, guestNoop, 10_000, fillPlain),
	}
}

func parleyOthers(messages int, guests *Guests) []measure.Workload {
	return []measure.Workload{
		{
			Name: ParleyAppend, Kind: measure.Rate, Count: messages, Open: openParleyAppend(nil),
			Does: fmt.Sprintf("1 goroutine, Send of %d plain messages a call", bareBatch),
		},
		{
			Name: ParleyAppendConversations, Kind: measure.Rate, Count: messages, Open: openParleyAppend(sessionNames()),
			Does: fmt.Sprintf("1 goroutine, Send of %d messages a call, of %d sessions round robin", bareBatch, parleyConversations),
		},
		{
			Name: ParleySends, Kind: measure.Rate, Count: share(messages, sendsShare), Open: openParleySends,
			Does: fmt.Sprintf("Send from %d goroutines, one message a call", asynqSenders),
		},
		{
			Name: ParleySendsDurable, Kind: measure.Rate, Count: share(messages, sendsShare), Open: openParleyDurable,
			Does: fmt.Sprintf("Send from %d goroutines, one message a call, to a queue with durable 1; the replica on the same machine", asynqSenders),
		},
		{
			Name: ParleyLatency, Kind: measure.Latency, Count: share(messages, latencyShare), Open: openParleyLatency(guests),
			Does: fmt.Sprintf("Send until the host calls the plugin, on a queue whose reader sleeps; %s of rest before each", idlePause),
		},
		{
			Name: ParleyMemory, Kind: measure.Memory, Count: messages, Open: openParleyWaiting(fillPlain),
			Does: "plain messages that wait, counters and structures included",
		},
		{
			Name: ParleyMemoryConversation, Kind: measure.Memory, Count: messages, Open: openParleyWaiting(fillDialogs),
			Does: fmt.Sprintf("messages that wait on %d dialogs, both endpoints of each included", parleyConversations),
		},
		{
			Name: ParleyMemoryFiled, Kind: measure.Memory, Count: messages, Open: openParleyFiled,
			Does: "messages of one session that wait behind a unit of the same session, each filed in its backlog",
		},
		{
			Name: ParleyIdle, Kind: measure.Idle, Count: parleyQueues, Open: openParleyIdle(guests),
			Does: fmt.Sprintf("a host with a plugin on each of %d empty queues, for %s after it has looked at all", parleyQueues, idleSpan),
		},
	}
}
