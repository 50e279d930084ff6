// Package tracing makes a span of every delivery attempt, and metrics of all of them. It is the only importer of the
// OpenTelemetry SDK.
//
// Span shapes. An attempt is a CONSUMER span "process <queue>". The first attempt is the child of its producer; a later
// one is the root of a new trace with links to the producer and to the attempt before, and so is the first attempt of a
// resubmitted dead letter. Below it: "guest <plugin>" with the guest's own spans, "settle <queue>", and one PRODUCER span
// "send <destination>" for each message the handler staged, if it committed. A producer outside of a handler makes the
// same PRODUCER span through Telemetry.Produce. Status Error means that the outcome is final: dead-lettered, or the queue
// turned off. Every attempt carries parley.outcome.
//
// Ids. The ids of an attempt's span are a hash of the namespace, the queue, the message and the attempt's number, so any
// host can link to the attempt before without anything being stored. An attempt that was given back uncounted gets ids of
// its own, since the next one has the same number.
//
// Properties. The context travels in the message properties traceparent and tracestate, as W3C says, in lower case.
//
// Delivery never waits for this package: an ended attempt goes into a bounded queue, one goroutine makes spans of it, and
// what does not fit, or cannot be exported, is counted and dropped.
package tracing
