// Command github-triage reads webhook bodies of GitHub and sorts them.
//
// A body with a repository goes, reduced to four fields, to the queue triaged. One without is dead-lettered, so that
// somebody may look. One that is no JSON is an error: it is tried again and ends where the queue's settings say.
package main

import (
	"encoding/json"
	"fmt"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

// webhook is what matters of a body. Decoding into a small struct costs a third of decoding into a map.
type webhook struct {
	Action     string `json:"action"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Sender struct {
		Login string `json:"login"`
	} `json:"sender"`
}

type triaged struct {
	Event      string `json:"event"`
	Action     string `json:"action"`
	Repository string `json:"repository"`
	Sender     string `json:"sender"`
}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		var hook webhook
		if err := json.Unmarshal(m.Body(), &hook); err != nil {
			return fmt.Errorf("the body is no webhook: %w", err)
		}
		event := m.Property("event")
		if hook.Repository.FullName == "" {
			return sdk.DeadLetter("NoRepository", fmt.Sprintf("event %q has no repository", event))
		}
		body, err := json.Marshal(triaged{event, hook.Action, hook.Repository.FullName, hook.Sender.Login})
		if err != nil {
			return err
		}
		if err := u.Send("triaged", sdk.Outgoing{Type: m.Type(), Body: body}); err != nil {
			return err
		}
	}
	return nil
}
