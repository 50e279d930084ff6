package contenders

import (
	"fmt"

	"parley/bench/measure"
)

// Names of the workloads of the peers and of bare Redis.
const (
	BareDrain    = "bare"
	BareSend     = "bare+xadd"
	BareAppend   = "bare-append"
	BareSends    = "bare-sends"
	BareLatency  = "bare-latency"
	BareMemory   = "bare-memory"
	Asynq        = "asynq"
	AsynqSend    = "asynq+enqueue"
	AsynqEnqueue = "asynq-enqueue"
	Watermill    = "watermill"
	BullMQDrain  = "bullmq"
)

// The slower a contender, the fewer messages it gets: shares of the messages
// that bare Redis and Parley drain, so that all run for about as long.
const (
	asynqShare     = 0.16
	asynqSendShare = 0.10
	watermillShare = 0.32
	bullmqShare    = 0.12
	sendsShare     = 0.40
	leastMessages  = 64
	// latencyShare makes 1,000 samples of 100,000 messages.
	latencyShare = 0.01
)

// Peers returns the workloads that Parley is measured against, for so many
// messages at full speed.
func Peers(messages int, bullmq *BullMQ) []measure.Workload {
	return append(bareWorkloads(messages), peerWorkloads(messages, bullmq)...)
}

func share(messages int, part float64) int {
	return max(leastMessages, int(float64(messages)*part))
}

func bareWorkloads(messages int) []measure.Workload {
	drain := fmt.Sprintf("%d readers, each XREADGROUP COUNT %d, then one pipeline with one XACK and one XDEL of all its ids; "+
		"entries have 1 field, the body", bareReaders, bareBatch)
	return []measure.Workload{
		{
			Name: BareDrain, Kind: measure.Rate, Count: messages, Open: openBare(false),
			Does: drain,
		},
		{
			Name: BareSend, Kind: measure.Rate, Count: messages, Open: openBare(true),
			Does: drain + "; the pipeline also has one XADD a message to a second stream, 1 field, the body",
		},
		{
			Name: BareAppend, Kind: measure.Rate, Count: messages, Open: openBareAppend(0),
			Does: fmt.Sprintf("1 goroutine, pipelines of %d XADD, 1 field, the body", bareBatch),
		},
		{
			Name: BareSends, Kind: measure.Rate, Count: share(messages, sendsShare), Open: openBareAppend(asynqSenders),
			Does: fmt.Sprintf("%d goroutines, one XADD a round trip, 1 field, the body", asynqSenders),
		},
		{
			Name: BareLatency, Kind: measure.Latency, Count: share(messages, latencyShare), Open: openBareLatency,
			Does: fmt.Sprintf("XADD until an XREADGROUP COUNT 1 that was blocked returns, then XACK and XDEL; %s of rest before each", idlePause),
		},
		{
			Name: BareMemory, Kind: measure.Memory, Count: messages, Open: openBareWaiting,
			Does: "stream entries of 1 field, the body, default stream node size",
		},
	}
}

func peerWorkloads(messages int, bullmq *BullMQ) []measure.Workload {
	return []measure.Workload{
		{
			Name: Asynq, Kind: measure.Rate, Count: share(messages, asynqShare), Open: openAsynq(false),
			Does: fmt.Sprintf("asynq, concurrency %d, native handler that does nothing, %d connections", asynqConcurrency, asynqPool),
		},
		{
			Name: AsynqSend, Kind: measure.Rate, Count: share(messages, asynqSendShare), Open: openAsynq(true),
			Does: fmt.Sprintf("asynq, concurrency %d, native handler that enqueues the payload on a second queue (not atomic)", asynqConcurrency),
		},
		{
			Name: AsynqEnqueue, Kind: measure.Rate, Count: share(messages, asynqShare), Open: openAsynqEnqueue,
			Does: fmt.Sprintf("asynq Enqueue from %d goroutines, one task a call", asynqSenders),
		},
		{
			Name: Watermill, Kind: measure.Rate, Count: share(messages, watermillShare), Open: openWatermill,
			Does: fmt.Sprintf("watermill-redisstream, %d subscribers in one consumer group, native handler that acks; "+
				"reads COUNT 1, 3 fields an entry, never deletes an entry", watermillSubscribers),
		},
		{
			Name: BullMQDrain, Kind: measure.Rate, Count: share(messages, bullmqShare), Open: bullmq.open,
			Does: fmt.Sprintf("BullMQ %s on node, 1 worker, concurrency %d, empty handler, removeOnComplete", bullmqVersion, bullmqConcurrency),
		},
	}
}
