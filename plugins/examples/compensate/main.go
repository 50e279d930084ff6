// Command compensate withdraws parts and books each withdrawal in a ledger. When the far side gives up it walks back through the
// messages it has processed, which retention keeps, and books each withdrawal back, the last one first.
package main

import (
	"encoding/json"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

// withdrawal is the body of a request.
type withdrawal struct {
	Part     string `json:"part"`
	Quantity int    `json:"quantity"`
}

// entry is a line of the ledger.
type entry struct {
	Entry string `json:"entry"` // withdrawn or returned
	withdrawal
}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		var err error
		switch m.Kind() {
		case sdk.Application:
			err = withdraw(u, m)
		case sdk.ErrorKind:
			err = compensate(u, m.Conversation())
		case sdk.EndDialog: // the far side is content: what was withdrawn stays withdrawn
			err = m.Conversation().End()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func withdraw(u *sdk.Unit, m sdk.Message) error {
	w, err := parse(m)
	if err != nil {
		return sdk.DeadLetter("InvalidRequest", err.Error())
	}
	if err := book(u, "withdrawn", w); err != nil {
		return err
	}
	return m.Reply(sdk.Outgoing{Type: u.Config("reply_type"), Body: m.Body()})
}

// compensate undoes what was done for each message of the conversation, backwards. Only messages that were received (0) have been
// processed: those that wait (1), the Error itself among them, have had no effect yet, and those that were sent (3) are answers.
func compensate(u *sdk.Unit, c sdk.Conversation) error {
	rows, err := c.Retained()
	if err != nil {
		return err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		r := rows[i]
		if r.Kept() != 0 || r.Kind() != sdk.Application {
			continue
		}
		w, err := parse(r.Message)
		if err != nil {
			return err
		}
		if err := book(u, "returned", w); err != nil {
			return err
		}
	}
	return c.End() // and with it goes all that was kept
}

func parse(m sdk.Message) (w withdrawal, err error) {
	err = json.Unmarshal(m.Body(), &w)
	return w, err
}

func book(u *sdk.Unit, what string, w withdrawal) error {
	line, err := json.Marshal(entry{what, w})
	if err != nil {
		return err
	}
	return u.Send(u.Config("ledger"), sdk.Outgoing{Body: line, Session: u.Message(0).Conversation().Handle()})
}
