// Package brokertest is the conformance suite that every broker must pass.
//
// [Run] runs all of it against the brokers that a function makes: one test for each guarantee of the design, for each
// hole of the reader protocol, for each rule of the specification that the broker alone can break, for the field cases,
// and a randomised test that drives a broker against a small sequential model and checks the invariants of the protocol
// after every step. [Hunt] is that randomised test alone; [Catches] wants it to fail, for brokers with a fault planted on
// purpose.
//
// The suite knows no store. What it needs beyond the roles of package broker is in [Harness]: a clock, faults of the
// transport, and a look at what is stored.
package brokertest
