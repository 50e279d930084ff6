// Package redisbroker implements the roles of package broker on Redis Streams.
//
// There is one implementation: Lua scripts, one for each atomic transition (folder scripts, each with a contract in its
// header), and typed Go wrappers around them. The same scripts run on Redis 7, Valkey, a Cluster, and on the embedded
// in-process server that OpenEmbedded starts. docs/redis.md lists every key.
//
// All keys of a queue share the hash tag {namespace/queue}, so every transition inside a queue is one script on one slot.
// On a server that is no Cluster a commit also writes straight into other queues; between slots, and whenever the target
// refuses, messages go through the transmission queue.
package redisbroker
