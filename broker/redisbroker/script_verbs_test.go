package redisbroker

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"parley/broker"
)

// do runs the verb of a step:
//
//	apply QUEUE[:SERVICE]…   apply definitions, all else by default
//	redis COMMAND…           one command
//	turn QUEUE READER …      the script turn, see turnWords; turns are printed unit by unit
//	plain QUEUE READER …     XREADGROUP and the script plain in one transaction, or without its XREADGROUP when alone is said; see plainly
//	receive QUEUE FLAGS LOCK GROUPS TOP GROUP CONVERSATION TOKEN…   printed message by message, as turns are
//	settle QUEUE CALL, with "+ effect UNIT KIND …" and "+ token TOKEN KIND", behind which may stand pause, random, error, reason, description
//	work QUEUE FLAGS PRODUCER COUNTER, with "+ effect UNIT KIND …"
//	chunk QUEUE STREAM FROM MOST BYTES
//	SCRIPT QUEUE ARGV…       any other script; the clock is put in front, and what a call leaves out behind: arrive has digest x and no
//	                         era, txdone the digest that txhead answered, txfail no gap
//
// A QUEUE is q, q/d (its dead-letter queue) or q/t (its transfer dead-letter queue).
func (p *play) do(w, more []string) ([]string, error) {
	switch w[0] {
	case "apply":
		return nil, p.apply(w[1:])
	case "redis":
		v, err := p.b.rdb.Do(p.t.Context(), anys(w[1:])...).Result()
		return []string{fmt.Sprint("reply ", v)}, err
	case "turn":
		v, err := p.b.run(p.t.Context(), "turn", p.key(w[1]), p.turnWords(w[1], w[2:], more)...)
		r := &reader{}
		s := r.text(v)
		return printTurn(s, r.bodies), err
	case "receive":
		v, err := p.b.run(p.t.Context(), "receive", p.key(w[1]), append([]any{p.b.now()}, anys(w[2:])...)...)
		r := &reader{}
		s := r.text(v)
		return printTurn(s, r.bodies), err
	case "settle":
		effects, n := p.effects(more)
		tokens, nt := p.tokens(more)
		args := append([]any{p.b.now(), "d", p.b.ns, w[2], nt, n}, effects...)
		return p.call("settle", w[1], append(args, tokens...))
	case "plain":
		return p.plainly(w[1], w[2:])
	case "work":
		effects, n := p.effects(more)
		args := append([]any{p.b.now(), w[2], p.b.ns, w[3], w[4], n}, effects...)
		return p.call("work", w[1], args)
	case "chunk": // it takes no clock
		return p.call("chunk", w[1], anys(w[2:]))
	}
	return p.call(w[0], w[1], append([]any{p.b.now()}, anys(p.complete(w))...))
}

// complete adds what a call leaves out.
func (p *play) complete(w []string) []string {
	args := w[2:]
	rest := map[string][]string{
		"arrive": append(make([]string, 16), "x", "", "0"), "txfail": make([]string, 4), "txdone": make([]string, 7),
	}[w[0]]
	for len(args) < len(rest) {
		v := rest[len(args)]
		if w[0] == "txdone" && len(args) == len(rest)-1 {
			v = p.digests[args[2]]
		}
		args = append(args, v)
	}
	return args
}

// plainly makes a turn of plain messages from words: free slots, plain refs, win, bytes, call as for a turn, count (instead of as
// many as free slots), and alone.
func (p *play) plainly(queue string, words []string) ([]string, error) {
	o := map[string]string{"bytes": "0", "call": "7"}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		o[k] = v
	}
	free, refs := list(o["free"]), list(o["plain"])
	args := []any{"evalsha", p.b.scripts["plain"].sha, 1, p.key(queue), p.b.now(), words[0], 10000, o["call"], p.last(queue, words[0], "", o), o["win"], o["bytes"], len(refs), len(free)}
	args = append(append(args, refs...), free...)
	r := &reader{b: p.b, name: words[0], prefix: strings.TrimSuffix(p.key(queue), "meta")}
	count := len(free)
	if _, alone := o["alone"]; alone {
		count = 0
	}
	a, err := r.readAhead(p.t.Context(), args, count)
	out := []string{"reply " + strings.ReplaceAll(a.said, "\n", " ")}
	for _, e := range a.entries {
		out = append(out, fmt.Sprintf("read %s %s %q", e.id, e.head, e.body))
	}
	if a.lost {
		out = append(out, "the stream has lost its group")
	}
	return out, err
}

func (p *play) call(script, queue string, args []any) ([]string, error) {
	v, err := p.b.run(p.t.Context(), script, p.key(queue), args...)
	if err != nil {
		return nil, err
	}
	words := toStrings(v)
	if script == "txhead" && words[0] == "ENTRY" {
		p.digests[words[1]] = words[2]
	}
	for i, s := range words {
		if s == "" || strings.ContainsAny(s, " \n") {
			words[i] = strconv.Quote(s)
		}
	}
	return []string{"reply " + strings.Join(words, " ")}, nil
}

func (p *play) key(queue string) string {
	name, sub, ok := strings.Cut(queue, "/")
	if ok {
		sub += ":"
	}
	return p.b.prefix(name) + sub + "meta"
}

func (p *play) apply(words []string) error {
	var d broker.Definitions
	for _, w := range words {
		q, s, serves := strings.Cut(w, ":")
		d.Queues = append(d.Queues, broker.DefaultQueue(q, serves))
		if serves {
			d.Services = append(d.Services, broker.Service{Name: s, Queue: q, Contracts: []string{broker.ContractDefault}})
		}
	}
	_, err := p.b.Apply(p.t.Context(), d, false)
	return err
}

func anys(w []string) []any {
	out := make([]any, len(w))
	for i, s := range w {
		out[i] = s
	}
	return out
}

// effects returns the vector of the effects among the lines more, and their number.
func (p *play) effects(more []string) (v []any, n int) {
	for _, m := range more {
		if w := p.words(m); w[0] == "effect" {
			v = append(v, anys(w[1:])...)
			n++
		}
	}
	return v, n
}

// tokens returns the vector of the tokens among the lines more, and their number.
func (p *play) tokens(more []string) (v []any, n int) {
	for _, m := range more {
		if w := p.words(m); w[0] == "token" {
			one := []any{"", "C", "-1", "0", "HandlerError: no", "", ""}
			copy(one, anys(w[1:]))
			v = append(v, one...)
			n++
		}
	}
	return v, n
}

// turnWords makes the ARGV of a turn from words: flags, lease, top, free slots (empty of them are empty), win (units still held),
// plain refs, units as refs@group, dc as handle:number, att and sys and hot members, from (a group or a group/conversation), call (its number), last (that of the call before, see last);
// and from the lines "effect …" and "other KIND GROUP REFS PAUSE RANDOM ERROR REASON DESCRIPTION".
func (p *play) turnWords(queue string, words, more []string) []any {
	o := map[string]string{"lease": "10000", "top": "1", "bytes": "0", "call": "7"}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		o[k] = v
	}
	refs, groups := units(o["units"])
	free, plain, dc := list(o["free"]), list(o["plain"]), list(strings.ReplaceAll(o["dc"], ":", ","))
	var att []any
	for _, r := range list(o["att"]) {
		att = append(att, r, "e"+r.(string))
	}
	sys, hot := list(o["sys"]), list(o["hot"])
	effects, neffects := p.effects(more)
	others, nothers := p.others(more)
	empty := o["empty"]
	if empty == "" {
		empty = strconv.Itoa(len(free))
	}
	group, conv, _ := strings.Cut(o["from"], "/")
	args := []any{
		words[0], p.b.now(), o["lease"], o["flags"], o["top"], len(free), empty, o["win"], p.b.ns, o["bytes"], len(plain), len(refs),
		len(groups) / 2, len(dc), len(att), len(sys), len(hot), neffects, nothers, group, conv, o["call"],
		p.last(queue, words[0], o["flags"], o),
	}
	for _, v := range [][]any{free, plain, refs, groups, dc, att, sys, hot, effects, others} {
		args = append(args, v...)
	}
	return args
}

// last is the number of the reader's last answered call: what last= says, else that of its record, as a reader knows it that lost no
// reply. A token has none.
func (p *play) last(queue, reader, flags string, o map[string]string) string {
	if n, said := o["last"]; said {
		return n
	}
	if strings.Contains(flags, "f") {
		return ""
	}
	record, _ := p.b.rdb.HGet(p.t.Context(), strings.TrimSuffix(p.key(queue), "meta")+"win", reader).Result()
	first, _, _ := strings.Cut(record, "\n")
	return cmp.Or(strings.TrimPrefix(first, "#"), "0")
}

func list(s string) []any {
	if s == "" {
		return nil
	}
	return anys(strings.Split(s, ","))
}

// units splits 1-0,2-0@g;3-0@h.
func units(s string) (refs, groups []any) {
	if s == "" {
		return nil, nil
	}
	for u := range strings.SplitSeq(s, ";") {
		r, g, _ := strings.Cut(u, "@")
		refs = append(refs, list(r)...)
		groups = append(groups, g, len(list(r)))
	}
	return refs, groups
}

func (p *play) others(more []string) (v []any, n int) {
	for _, m := range more {
		w := p.words(m)
		if w[0] != "other" {
			continue
		}
		r := list(w[3])
		v = append(v, w[1], w[2], len(r))
		v = append(v, r...)
		v = append(v, anys(w[4:])...)
		n++
	}
	return v, n
}

// printTurn writes the reply of a turn, its lines and its bodies, as one line for what it says and one for each message.
func printTurn(s string, bodies []any) []string {
	if !strings.Contains(s, "\n") {
		return []string{"reply " + s}
	}
	c := &cursor{s: s, bodies: bodies}
	out := []string{fmt.Sprintf("reply %s now %s again %s alone %s ready %s due %s", c.line(), c.line(), c.line(), c.line(), c.line(), c.line())}
	if c.line() == "1" {
		out[0] += " plain"
	}
	state := c.line() == "1"
	for range c.int() {
		out = append(out, "result "+c.line())
	}
	if sends := c.line(); sends != "" {
		out = append(out, "sent "+sends)
	}
	for range c.int() {
		slot, size := c.line(), c.line()
		if size == "" {
			out = append(out, fmt.Sprintf("plain in slot %s: %s %q %q", slot, c.line(), c.line(), c.body()))
			continue
		}
		if size[0] > '9' {
			out = append(out, fmt.Sprintf("one in slot %s of %q: %s state %q %q %q", slot, size, c.line(), c.line(), c.line(), c.body()))
			if state {
				out = append(out, printState(c)...)
			}
			continue
		}
		n, group := c.number(size), c.line()
		out = append(out, fmt.Sprintf("unit in slot %s of %q", slot, group))
		for range n {
			ref, counts, st, head := c.line(), c.line(), c.line(), c.line()
			out = append(out, strings.TrimRight(fmt.Sprintf("  %s counts %q state %q %s %q", ref, counts, st, head, c.body()), " "))
		}
		if state {
			out = append(out, printState(c)...)
		}
	}
	if c.s != "" { // with flag e
		for range c.int() {
			out = append(out, "endpoint "+c.line())
		}
	}
	if c.bad || c.s != "" {
		out = append(out, fmt.Sprintf("and what cannot be read: %q of %q", c.s, s))
	}
	return out
}

func printState(c *cursor) []string {
	var out []string
	for range c.int() {
		out = append(out, fmt.Sprintf("  kept %s = %q", c.line(), c.take(c.int())))
	}
	return out
}
