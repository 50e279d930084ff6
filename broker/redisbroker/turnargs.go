package redisbroker

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"parley/broker"
)

// resubmittedProp marks a message that came back from a dead-letter queue; its value is the number it had.
const resubmittedProp = "parley.resubmitted"

// turnCall gathers the vectors of one turn call; see the contract of scripts/turn.lua.
type turnCall struct {
	plain, refs, groups, dc, att, sys, hot []any
	effects, others                        []any
	neffects, nothers, bytes               int
	lanes, several                         bool     // some ref is of another lane than 5; some group has several refs
	ids                                    []string // of the messages that effects send
	order                                  []int    // settlement index of unit 1, 2, … as the script numbers them
}

// turnArgs makes the ARGV of a turn: commits as flat vectors, plain units first, then the rare outcomes one by one.
func (r *reader) turnArgs(ctx context.Context, req broker.TurnRequest, settle []broker.Settlement) ([]any, []int, error) {
	c := &turnCall{}
	if err := r.addCommits(ctx, c, settle, false); err != nil {
		return nil, nil, err
	}
	if err := r.addCommits(ctx, c, settle, true); err != nil {
		return nil, nil, err
	}
	for i := range settle {
		if settle[i].Verdict != broker.VerdictCommit {
			c.addOther(i, &settle[i])
		}
	}
	win, closed := r.kept(settle)
	free, empty := openSlots(req, closed)
	args := make([]any, 0, 23+len(free)+len(c.plain)+len(c.refs)+len(c.groups)+len(c.dc)+len(c.att)+len(c.sys)+len(c.effects)+len(c.others))
	ngroups := len(c.groups) / 2
	args = append(args, r.name, r.b.now(), r.lease.Milliseconds(), r.flags+c.flags()+r.wants(), max(1, req.Top), len(free), empty, win,
		escape(r.b.ns), c.bytes, len(c.plain), len(c.refs), ngroups, len(c.dc), len(c.att), len(c.sys), len(c.hot), c.neffects,
		c.nothers, "", "", r.callNumber(), r.lastNumber())
	args = append(args, free...)
	for _, v := range [][]any{c.plain, c.refs, c.groups, c.dc, c.att, c.sys, c.hot, c.effects, c.others} {
		args = append(args, v...)
	}
	return args, c.order, nil
}

// kept is the record of the units that stay held after the call, and the slots that one of them has for itself.
func (r *reader) kept(settle []broker.Settlement) (string, map[int]bool) {
	left := len(r.held)
	for i := range settle {
		if r.held[settle[i].Unit.ID] != nil {
			left--
		}
	}
	if left == 0 {
		return "", nil
	}
	settling := make(map[uint64]bool, len(settle))
	for i := range settle {
		settling[settle[i].Unit.ID] = true
	}
	var record []byte
	closed := map[int]bool{}
	for id, h := range r.held {
		if !settling[id] {
			record = appendRecord(record, h.unit)
			if h.alone {
				closed[h.unit.Slot] = true
			}
		}
	}
	return string(record), closed
}

// appendRecord adds the line of a unit to a reader's record: slot refs group.
func appendRecord(line []byte, u *broker.Unit) []byte {
	line = append(strconv.AppendInt(line, int64(u.Slot), 10), ' ')
	for i := range u.Messages {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, u.Messages[i].Ref...)
	}
	line = append(append(line, ' '), u.Group...)
	return append(line, '\n')
}

// flags tells the script which shortcuts the vectors allow, and gives the groups the form that goes with them.
func (c *turnCall) flags() string {
	f := ""
	if !c.lanes {
		f = "l"
	}
	if !c.several {
		f += "o"
		for i := range len(c.groups) / 2 {
			c.groups[i] = c.groups[2*i]
		}
		c.groups = c.groups[:len(c.groups)/2]
	}
	return f
}

// openSlots drops slots that an uncertain unit has for itself.
func openSlots(req broker.TurnRequest, closed map[int]bool) ([]any, int) {
	free := make([]any, 0, len(req.Free))
	empty := req.Empty
	for i, s := range req.Free {
		if closed[s] {
			if i < req.Empty {
				empty--
			}
			continue
		}
		free = append(free, s)
	}
	return free, empty
}

// addCommits adds the committed units that have a group, or those that have none.
func (r *reader) addCommits(ctx context.Context, c *turnCall, settle []broker.Settlement, grouped bool) error {
	for i := range settle {
		s := &settle[i]
		if s.Verdict != broker.VerdictCommit || (s.Unit.Group != "") != grouped {
			continue
		}
		c.order = append(c.order, i)
		h := r.held[s.Unit.ID]
		if h == nil {
			h = &held{unit: s.Unit}
		}
		c.bytes += h.bytes
		if grouped {
			c.groups = append(c.groups, &s.Unit.Group, len(s.Unit.Messages))
			c.several = c.several || len(s.Unit.Messages) > 1
			if r.runs[s.Unit.Group] >= hotRun {
				c.hot = append(c.hot, s.Unit.Group)
			}
		}
		for k := range s.Unit.Messages {
			c.addMessage(&s.Unit.Messages[k], h.atts, grouped)
		}
		if len(s.Effects) > 0 {
			if err := r.b.encodeEffects(ctx, c, len(c.order), r.queue, s.Unit, s.Effects); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMessage adds a consumed message. Pointers to strings cost no allocation where strings do.
func (c *turnCall) addMessage(m *broker.Message, atts, grouped bool) {
	c.lanes = c.lanes || strings.IndexByte(m.Ref, '/') >= 0
	if !grouped {
		c.plain = append(c.plain, &m.Ref)
	} else {
		c.refs = append(c.refs, &m.Ref)
	}
	if atts {
		c.att = append(c.att, m.Ref, "e"+m.Ref)
	}
	if m.Conversation == "" {
		return
	}
	sequenced := m.Kind == broker.KindApp || m.Kind == broker.KindEndDialog
	if _, again := m.Properties[resubmittedProp]; sequenced && !again {
		c.dc = append(c.dc, m.Conversation, m.MessageSeq+1)
	} else {
		c.sys = append(c.sys, m.Conversation)
	}
}

// addOther adds a unit that does not commit.
func (c *turnCall) addOther(i int, s *broker.Settlement) {
	kind, why := "R", s.FailReason
	if s.FailText != "" {
		why += ": " + s.FailText
	}
	pause := int64(-1)
	switch s.Verdict {
	case broker.VerdictDeadLetter:
		kind = "D"
		if s.Reason == asideReason && s.Description == asideReason {
			kind = "M"
		}
	case broker.VerdictRelease:
		kind = "G"
	default:
		if s.Pause >= 0 {
			pause = s.Pause.Milliseconds()
		}
	}
	c.nothers++
	c.others = append(c.others, kind, s.Unit.Group, len(s.Unit.Messages))
	for k := range s.Unit.Messages {
		c.others = append(c.others, s.Unit.Messages[k].Ref)
	}
	c.others = append(c.others, pause, strconv.FormatFloat(rand.Float64(), 'f', 4, 64), lossy(why), lossy(s.Reason), lossy(s.Description))
	c.order = append(c.order, i)
}
