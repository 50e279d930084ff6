package contenders

import "parley/bench/measure"

// Names of the workloads of Parley.
const (
	ParleyPlain               = "parley-plain"
	ParleyConversations       = "parley-conversations"
	ParleySend                = "parley-send"
	ParleyAppend              = "parley-append"
	ParleyAppendConversations = "parley-append-conversations"
	ParleySends               = "parley-sends"
	ParleyLatency             = "parley-latency"
	ParleyMemory              = "parley-memory"
	ParleyMemoryConversation  = "parley-memory-conversation"
	ParleyMemoryFiled         = "parley-memory-filed"
	ParleyBacklogLarge        = "parley-backlog-1000000"
	ParleyBacklogSmall        = "parley-backlog-10000"
	ParleyIdle                = "parley-idle"
)

// ParleyConditions say how Parley runs in all its workloads.
var ParleyConditions = []string{
	"Parley: exporters off, limits on",
}

// Parley returns the workloads of Parley for so many messages at full speed.
func Parley(int) []measure.Workload { return nil }
