// Command ledger is the plugin of the chaos runner: it keeps, in the state of each conversation, which number comes next, and tells the
// queue done of every message in the same transaction.
package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

// handle takes bodies of the form "<conversation> <number> <sent, ms> <milliseconds of work>", padded or not.
func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if m.Kind() != sdk.Application {
			continue
		}
		f := strings.Fields(string(m.Body()))
		if len(f) < 4 {
			return fmt.Errorf("body %.40q has %d words, want 4", m.Body(), len(f))
		}
		if ms, err := strconv.Atoi(f[3]); err == nil && ms > 0 {
			time.Sleep(time.Duration(ms) * time.Millisecond)
		}
		if err := enter(u, m, f); err != nil {
			return err
		}
	}
	return nil
}

func enter(u *sdk.Unit, m sdk.Message, f []string) error {
	if m.Group() == "" && m.Session() == "" {
		return u.Send("done", sdk.Outgoing{Body: []byte(f[0] + " " + f[1] + " " + f[2] + " plain")})
	}
	v, _, err := u.Get("next")
	if err != nil {
		return err
	}
	next, _ := strconv.Atoi(string(v)) // absent: 0
	n, err := strconv.Atoi(f[1])
	if err != nil {
		return err
	}
	kind := "next"
	switch {
	case n < next:
		kind = "again"
	case n > next:
		kind = "gap"
	}
	if err := u.Put("next", []byte(strconv.Itoa(max(n+1, next)))); err != nil {
		return err
	}
	return u.Send("done", sdk.Outgoing{Session: f[0], Body: []byte(f[0] + " " + f[1] + " " + f[2] + " " + kind)})
}
