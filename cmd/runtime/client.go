package main

import (
	"parley/broker"
)

// client is the roles of the broker that commands use. Only connect makes one, besides tests.
type client struct {
	broker.Sender
	broker.Receiver
	broker.Peeker
	broker.Dialogs
	broker.DialogVerbs
	broker.DialogInspector
	dead  broker.DeadLetters
	admin broker.Admin
	audit broker.Auditor
	hosts broker.Hosts

	// What a host needs.
	readers broker.Readers
	waker   broker.Waker
	keeper  broker.Keeper
	rights  broker.RightsWatcher

	opt   connectOptions
	close func()
}

// connectOptions says which broker to connect to.
type connectOptions struct {
	url           string // may hold a password: never printed
	namespace     string
	allowEviction bool
	log           func(msg string, args ...any) // takes the broker's warnings; nil: nobody does
}
