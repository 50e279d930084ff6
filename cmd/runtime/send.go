package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
)

// What one call to the broker carries when --count asks for many, and the most that is read as a body: far above any limit
// a queue may have, so that the broker is the one to refuse it.
const (
	sendBatch    = 200
	sendBytes    = 1 << 20
	maxBodyBytes = 128 << 20
)

func (a *app) sendCommand() *cobra.Command {
	var m outgoing
	var out broker.Outgoing
	var count int
	cmd := &cobra.Command{
		Use:   "send ENTITY [--body S | --body-file F | -]",
		Short: "Send a message to a queue",
		Long: `Send a message to a queue. The body is --body, or the file --body-file ("-" is standard input), or empty.

With --count the same message is sent so many times; what is printed then names the first, and the last by its number.`,
		Args: between(1, "ENTITY", "-"),
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			if count < 1 {
				return usage("--count wants a number from 1 on, has %d", count)
			}
			if count > 1 && m.id != "" {
				return usage("--id with --count: two messages cannot have the same id")
			}
			out, err = m.message(cmd, args[1:])
			return err
		},
		RunE: a.action(func(cmd *cobra.Command, c *client, args []string) error {
			r, err := sendMany(cmd.Context(), c, args[0], out, count)
			if err != nil {
				return err
			}
			return a.object(cmd, r, "sequence number", r.SequenceNumber, "message id", r.MessageID, "count", count)
		}),
	}
	f := cmd.Flags()
	m.flags(cmd)
	f.StringVar(&m.id, "id", "", "message id (default: a new one)")
	f.StringVar(&m.session, "session", "", "session id: messages of one session are handled in order, one after the other")
	f.Var(span{&m.ttl}, "ttl", "time to live, counted from when it may be received (default: for ever)")
	f.Var(span{&m.delay}, "delay", "may be received only so long after it was accepted")
	f.StringVar(&m.at, "at", "", "may be received only from this instant on, such as 2026-01-31T02:00:00Z")
	f.IntVar(&count, "count", 1, "how many times to send it")
	return cmd
}

// outgoing is the flags that describe a message.
type outgoing struct {
	body, file, kind, id, session, at string
	props                             []string
	ttl, delay                        time.Duration
}

// flags adds the flags that send and dialog send have in common.
func (o *outgoing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.body, "body", "", "the body as text")
	f.StringVar(&o.file, "body-file", "", `file with the body; "-" is standard input`)
	f.StringVar(&o.kind, "type", "", "message type (default "+broker.TypeDefault+")")
	f.StringArrayVar(&o.props, "prop", nil, "a property, as key=value; may be given many times")
}

// message builds the message; rest is what follows the entity or handle: nothing, or "-" for standard input.
func (o *outgoing) message(cmd *cobra.Command, rest []string) (broker.Outgoing, error) {
	m := broker.Outgoing{MessageID: o.id, SessionID: o.session, Type: o.kind, TTL: o.ttl, Delay: o.delay}
	if len(rest) > 0 {
		if rest[0] != "-" {
			return m, usage("%q is one argument too many: give the body with --body or --body-file", rest[0])
		}
		if o.file != "" {
			return m, usage("both --body-file and - are given: give one")
		}
		o.file = "-"
	}
	if o.at != "" {
		at, err := time.Parse(time.RFC3339Nano, o.at)
		if err != nil {
			return m, usage("--at wants an instant such as 2026-01-31T02:00:00Z, has %q", o.at)
		}
		if o.delay != 0 {
			return m, usage("both --delay and --at are given: give one")
		}
		m.At = at
	}
	for _, p := range o.props {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return m, usage("--prop wants key=value, has %q", p)
		}
		if m.Properties == nil {
			m.Properties = map[string]string{}
		}
		m.Properties[k] = v
	}
	body, err := o.readBody(cmd)
	m.Body = body
	return m, err
}

func (o *outgoing) readBody(cmd *cobra.Command) ([]byte, error) {
	if o.file == "" {
		return []byte(o.body), nil
	}
	if o.body != "" {
		return nil, usage("both --body and --body-file are given: give one")
	}
	in := cmd.InOrStdin()
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, usage("--body-file: %v", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBodyBytes+1))
	if err != nil {
		return nil, usage("the body cannot be read: %v", err)
	}
	if len(body) > maxBodyBytes {
		return nil, broker.ErrMessageSize.With("the body has more than %d bytes", maxBodyBytes)
	}
	return body, nil
}

// sendMany sends count copies of m, in order, a batch a call.
func sendMany(ctx context.Context, c *client, queue string, m broker.Outgoing, count int) (receiptJSON, error) {
	batch := max(1, min(sendBatch, sendBytes/(m.Size()+1)))
	var r receiptJSON
	for sent := 0; sent < count; {
		msgs := make([]broker.Outgoing, min(batch, count-sent))
		for i := range msgs {
			msgs[i] = m
		}
		receipts, err := c.Send(ctx, queue, msgs...)
		if err != nil {
			if sent > 0 {
				err = errors.Join(fmt.Errorf("%d of %d messages were sent before", sent, count), err)
			}
			return r, err
		}
		if sent == 0 {
			r = receiptJSON{SequenceNumber: receipts[0].SequenceNumber, MessageID: receipts[0].MessageID}
		}
		sent += len(msgs)
		if count > 1 {
			r.Count, r.Last = sent, receipts[len(receipts)-1].SequenceNumber
		}
	}
	return r, nil
}
