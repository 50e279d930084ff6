// Package redistest gives tests a real Redis of their own.
//
//   - [Shared] is one private redis-server for the whole test binary, started by
//     the first test that asks. Tests on it stay apart by [Namespace].
//   - [Start] is one more server for a single test that needs its own settings,
//     kills it, or flushes it; [StartCluster] is three masters on loopback.
//   - [StartEmbedded] is the in-process server of the embedded broker.
//   - [Proxy] stands between a client and a server and loses a chosen request
//     or reply, holds a reply back, stalls, or goes down.
//   - [Dump] writes a keyspace as text, to compare before and after.
//
// A missing redis-server fails the test with the remedy; nothing here ever
// skips. Every server listens on 127.0.0.1 only, keeps its files in a temporary
// folder, and dies with the test process, however that ends.
package redistest
