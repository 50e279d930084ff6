package main

import (
	"fmt"
	"slices"
	"strings"

	"parley/bench/contenders"
)

// row compares one workload of Parley with one of a contender.
type row struct {
	// flag is the name that -rows knows; rows share it when they share Parley's workload.
	flag string
	work string
	// ours and theirs name workloads; theirs is empty when the figure stands alone.
	ours, theirs string
	// limit is the worst ratio allowed: at least, or at most with upper. Without
	// theirs it bounds the figure itself.
	limit float64
	upper bool
}

// defaultRows leaves out what takes minutes: backlog, idle and timers.
const defaultRows = "plain,conversations,send,append,sends,latency,memory"

// allRows is the table of targets. Where it says bare, the workload's own
// description in the output says exactly which commands that means.
var allRows = []row{
	{flag: "plain", work: "plain queue", ours: contenders.ParleyPlain, theirs: contenders.Asynq, limit: 13},
	{flag: "plain", work: "plain queue", ours: contenders.ParleyPlain, theirs: contenders.Watermill, limit: 4},
	{flag: "plain", work: "plain queue", ours: contenders.ParleyPlain, theirs: contenders.BullMQDrain, limit: 8},
	{flag: "plain", work: "plain queue", ours: contenders.ParleyPlain, theirs: contenders.BareDrain, limit: 0.38},
	{flag: "conversations", work: "1,000 conversations", ours: contenders.ParleyConversations, theirs: contenders.Asynq, limit: 9},
	{flag: "conversations", work: "1,000 conversations", ours: contenders.ParleyConversations, theirs: contenders.BareDrain, limit: 0.27},
	{flag: "conversations", work: "1,000 sessions", ours: contenders.ParleySessions, theirs: contenders.Asynq, limit: 9},
	{flag: "conversations", work: "1,000 sessions", ours: contenders.ParleySessions, theirs: contenders.BareDrain, limit: 0.27},
	{flag: "send", work: "receive + one send", ours: contenders.ParleySend, theirs: contenders.AsynqSend, limit: 6.5},
	{flag: "send", work: "receive + one send", ours: contenders.ParleySend, theirs: contenders.BareSend, limit: 0.28},
	{flag: "append", work: "batched append, plain", ours: contenders.ParleyAppend, theirs: contenders.BareAppend, limit: 0.45},
	{flag: "append", work: "batched append, conversations", ours: contenders.ParleyAppendConversations, theirs: contenders.BareAppend, limit: 0.35},
	{flag: "sends", work: "32 concurrent single sends", ours: contenders.ParleySends, theirs: contenders.AsynqEnqueue, limit: 1},
	{flag: "durable", work: "32 concurrent single sends that a replica confirms", ours: contenders.ParleySendsDurable, theirs: contenders.ParleySends, limit: 0.2},
	{flag: "latency", work: "idle latency, p50", ours: contenders.ParleyLatency, theirs: contenders.BareLatency, limit: 3, upper: true},
	{flag: "memory", work: "memory, plain", ours: contenders.ParleyMemory, theirs: contenders.BareMemory, limit: 1.3, upper: true},
	{flag: "memory", work: "memory, conversation", ours: contenders.ParleyMemoryConversation, theirs: contenders.BareMemory, limit: 1.6, upper: true},
	{flag: "memory", work: "memory, filed behind a busy group", ours: contenders.ParleyMemoryFiled, theirs: contenders.BareMemory, limit: 2, upper: true},
	{flag: "backlog", work: "1,000,000 waiting against 10,000", ours: contenders.ParleyBacklogLarge, theirs: contenders.ParleyBacklogSmall, limit: 0.9},
	{flag: "idle", work: "10,000 idle queues, host CPU", ours: contenders.ParleyIdle, limit: 3, upper: true},
	{flag: "timers", work: "1,000,000 armed timers, host CPU", ours: contenders.ParleyTimersIdle, limit: 3, upper: true},
	{flag: "timers", work: "1,000 timers due at once", ours: contenders.ParleyTimersDue, limit: 1_000_000, upper: true},
	{flag: "timers", work: "memory, dialog with an armed timer", ours: contenders.ParleyMemoryTimers, theirs: contenders.ParleyMemoryDialogs, limit: 1.4, upper: true},
}

// chooseRows returns the rows that a comma-separated list of flags names; "all" names every one.
func chooseRows(list string) ([]row, error) {
	var known []string
	for _, row := range allRows {
		if !slices.Contains(known, row.flag) {
			known = append(known, row.flag)
		}
	}
	chosen := strings.Split(list, ",")
	if list == "all" {
		chosen = known
	}
	for i, name := range chosen {
		chosen[i] = strings.TrimSpace(name)
		if !slices.Contains(known, chosen[i]) {
			return nil, fmt.Errorf("-rows: no row %q; known are %s and all", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(allRows), func(r row) bool { return !slices.Contains(chosen, r.flag) }), nil
}

// needed returns the names of all workloads that rows speak of.
func needed(rows []row) map[string]bool {
	names := map[string]bool{}
	for _, row := range rows {
		names[row.ours] = true
		if row.theirs != "" {
			names[row.theirs] = true
		}
	}
	return names
}
