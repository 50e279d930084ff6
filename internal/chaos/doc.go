// Command chaos loads real hosts with numbered conversations while one thing after the other goes wrong around them, and proves that no
// message was lost, doubled, handled out of its order or left behind.
//
//	go run ./internal/chaos                     every scenario, 40 s each, as a table
//	go run ./internal/chaos -for 5s -only cut   those whose names hold "cut", 5 s each
//	go run ./internal/chaos -list               their names
//
// Each scenario has a server, two hosts as processes of the released command, and producers. The plugin ledger (testdata/ledger) keeps in the
// state of each conversation which number comes next, and tells the queue done of every message in the same transaction, so what
// the plugin saw and what it did are both checked. A scenario fails when a message is lost that Redis still had, when one is
// doubled, out of order, or left behind a minute after the last fault, when a queue goes OFF, when a message is dead-lettered, or when
// audit finds a difference. The exit code is 1 then.
package main
