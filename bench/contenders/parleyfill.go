package contenders

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"parley/bench/measure"
	"parley/broker"
)

// fillFunc makes n messages wait on source.
type fillFunc func(ctx context.Context, p *parley, n int) error

func fillPlain(ctx context.Context, p *parley, n int) error {
	return fillQueue(ctx, p, n, nil)
}

func fillSessions(ctx context.Context, p *parley, n int) error {
	return fillQueue(ctx, p, n, sessionNames())
}

func fillQueue(ctx context.Context, p *parley, n int, sessions []string) error {
	if err := p.define(ctx, false, parleySource, parleyTarget); err != nil {
		return err
	}
	return p.send(ctx, n, parleyFill, sessions)
}

// sessionNames are as long as the handles of dialogs.
func sessionNames() []string {
	names := make([]string, parleyConversations)
	for i := range names {
		names[i] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
	}
	return names
}

// send appends n messages, batch a call, with sessions round robin unless there are none.
func (p *parley) send(ctx context.Context, n, batch int, sessions []string) error {
	body := []byte(measure.Body())
	messages := make([]broker.Outgoing, 0, batch)
	for sent := 0; sent < n; {
		messages = messages[:0]
		for range min(batch, n-sent) {
			message := broker.Outgoing{Body: body}
			if len(sessions) > 0 {
				message.SessionID = sessions[sent%len(sessions)]
			}
			messages = append(messages, message)
			sent++
		}
		if _, err := p.broker.Send(ctx, parleySource, messages...); err != nil {
			return err
		}
	}
	return nil
}

// dialogFillers is how many clients send at once: a dialog message is a call of its own.
const dialogFillers = 16

// fillDialogs begins the dialogs and sends round robin, each client for dialogs of its own.
func fillDialogs(ctx context.Context, p *parley, n int) error {
	if err := p.define(ctx, true, parleySource, parleyTarget); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for filler := range dialogFillers {
		group.Go(func() error { return fillSome(ctx, p.addr, filler, n) })
	}
	return group.Wait()
}

// fillSome sends message i on dialog i modulo their number, for the dialogs of one filler.
func fillSome(ctx context.Context, addr string, filler, n int) error {
	client, err := openParley(ctx, addr)
	if err != nil {
		return err
	}
	defer client.Close()
	handles := map[int]string{}
	body := []byte(measure.Body())
	for i := range n {
		dialog := i % parleyConversations
		if dialog%dialogFillers != filler {
			continue
		}
		if handles[dialog] == "" {
			endpoint, err := client.broker.Begin(ctx, broker.Dialog{From: parleyCaller, To: parleyService})
			if err != nil {
				return err
			}
			handles[dialog] = endpoint.Handle
		}
		if _, err := client.broker.SendOn(ctx, handles[dialog], broker.Outgoing{Body: body}); err != nil {
			return err
		}
	}
	return nil
}
