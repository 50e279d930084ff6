// Command inventory withdraws parts from stock. It is the story that poison messages are explained with: a withdrawal that
// was valid when it was sent, and that a change of the order has made impossible before it arrived.
package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

// request is a withdrawal, or an order change that makes a part obsolete.
type request struct {
	Part     string `json:"part"`
	Quantity int    `json:"quantity"`
	Obsolete bool   `json:"obsolete"`
}

type reply struct {
	Part    string `json:"part"`
	Granted bool   `json:"granted"`
	Left    int    `json:"left"`
}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if m.Kind() != sdk.Application {
			continue // the far side is gone; the state of its group goes with the conversation
		}
		var r request
		if err := json.Unmarshal(m.Body(), &r); err != nil {
			return sdk.DeadLetter("InvalidRequest", err.Error())
		}
		if r.Part == "" || !r.Obsolete && r.Quantity <= 0 {
			return sdk.DeadLetter("InvalidRequest", "a request needs a part and a quantity above 0")
		}
		if err := apply(u, m, r); err != nil {
			return err
		}
	}
	return nil
}

func apply(u *sdk.Unit, m sdk.Message, r request) error {
	if r.Obsolete {
		return u.Put("obsolete/"+r.Part, []byte{1})
	}
	gone, err := obsolete(u, r.Part)
	if err != nil {
		return err
	}
	if gone {
		// The request is in order and so is the plugin. It can never succeed all the same, so it comes back each time.
		return fmt.Errorf("part %s: an order change made it obsolete, nothing can be withdrawn", r.Part)
	}
	left, err := stock(u, r.Part)
	if err != nil {
		return err
	}
	granted := left >= r.Quantity
	if granted {
		left -= r.Quantity
		if err := u.Put("left/"+r.Part, []byte(strconv.Itoa(left))); err != nil {
			return err
		}
	}
	return answer(u, m, reply{r.Part, granted, left})
}

// obsolete reports whether an order change, in the group's state or in the configuration, has removed the part.
func obsolete(u *sdk.Unit, part string) (bool, error) {
	for _, p := range strings.Fields(u.Config("obsolete")) {
		if p == part {
			return true, nil
		}
	}
	_, found, err := u.Get("obsolete/" + part)
	return found, err
}

// stock is how many of part are left: what the group's state says, else what the configuration says.
func stock(u *sdk.Unit, part string) (int, error) {
	kept, found, err := u.Get("left/" + part)
	if err != nil {
		return 0, err
	}
	if found {
		return strconv.Atoi(string(kept))
	}
	for _, entry := range strings.Fields(u.Config("stock")) {
		if name, n, ok := strings.Cut(entry, "="); ok && name == part {
			return strconv.Atoi(n)
		}
	}
	return 0, nil
}

// answer replies on the dialog. A plain message has nobody to answer.
func answer(u *sdk.Unit, m sdk.Message, r reply) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if m.Conversation().Handle() == "" {
		u.Log(sdk.Info, string(body))
		return nil
	}
	return m.Reply(sdk.Outgoing{Type: u.Config("reply_type"), Body: body})
}
