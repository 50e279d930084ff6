package guest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"parley/broker"
	"parley/host"
	"parley/sdk/abi"
)

// replyType is the config key that names the message type of a command's replies.
const replyType = "reply_type"

// runCommand makes one attempt with a WASI command: one fresh instance for each message of the unit, its body on stdin, its
// metadata in the environment. What it writes to stdout is the reply on the message's conversation. The first message that
// fails rolls the whole unit back.
func (p *Plugin) runCommand(ctx context.Context, inv *host.Invocation) (res host.Result) {
	res.Settlement = broker.Settlement{Unit: inv.Unit, Verdict: broker.VerdictCommit}
	left := p.opts.Limits.Time
	for i := range inv.Unit.Messages {
		one := p.runMessage(ctx, inv, &inv.Unit.Messages[i], left)
		left -= one.Elapsed
		one.Settlement.Effects = append(res.Settlement.Effects, one.Settlement.Effects...)
		one.Logs = append(res.Logs, one.Logs...)
		one.Spans = append(res.Spans, one.Spans...)
		one.Fuel += res.Fuel
		one.Elapsed += res.Elapsed
		res = one
		if res.Settlement.Verdict != broker.VerdictCommit {
			res.Settlement.Effects = nil
			break
		}
	}
	if len(res.Logs) > 0 {
		p.logs.write(ctx, inv, res.Logs)
	}
	return res
}

// runMessage runs the command for one message, in the time that is left of the limit; what an instance needs to start is not part of it.
func (p *Plugin) runMessage(ctx context.Context, inv *host.Invocation, m *broker.Message, left time.Duration) host.Result {
	in, err := p.instantiate(ctx, inv, p.deadline(), func(cfg wazero.ModuleConfig) wazero.ModuleConfig {
		return environment(cfg, inv, m, p.opts.Config)
	})
	if err != nil {
		return in.giveUp(inv, err)
	}
	defer in.close()
	var res host.Result
	replies := m.Conversation != "" && (m.Kind == broker.KindApp || m.Kind == broker.KindDialogTimer || m.Kind == 0)
	if replies {
		in.stdout.limit = p.opts.Limits.Reply
	}
	in.stdin = m.Body
	main := in.module.ExportedFunction(abi.Start)
	in.calls = callStack(main)
	in.begin(ctx, p.opts.Limits.Fuel, mono()+int64(left))
	err = main.CallWithStack(&in.call, nil)
	res.Fuel, res.Elapsed = in.end()
	res.Settlement.Unit = inv.Unit
	if err != nil {
		in.settleError(&res, err)
	} else {
		in.settle(&res, abi.Commit)
	}
	if replies {
		in.reply(&res, m)
		in.stdout.reset()
	}
	in.collect(&res)
	return res
}

// reply stages what the command wrote to stdout, when it commits.
func (in *instance) reply(res *host.Result, m *broker.Message) {
	if res.Settlement.Verdict != broker.VerdictCommit || in.stdout.total == 0 {
		return
	}
	if in.stdout.total > int64(in.plugin.opts.Limits.Reply) {
		in.settleError(res, errReplyLimit)
		res.Settlement.Effects = nil
		return
	}
	e := broker.Effect{Kind: broker.EffectSend, Conversation: m.Conversation}
	e.Message.Type = in.plugin.opts.Config[replyType]
	e.Message.Body = slices.Clone(in.stdout.kept())
	n, stop := in.stageReply(e)
	switch {
	case stop != nil:
		in.settleError(res, stop)
	case n < 0:
		in.rollback(res, broker.ReasonHandlerError, fmt.Sprintf("the reply is refused: %s", in.refusal))
	}
	if stop != nil || n < 0 {
		res.Settlement.Effects = nil
		return
	}
	res.Settlement.Effects = in.effects
}

// stageReply stages outside of a guest call, where there is no guest to stop: what would have stopped it is returned.
func (in *instance) stageReply(e broker.Effect) (n int64, stop error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			stop = r
		default:
			stop = fmt.Errorf("%v", r)
		}
	}()
	return in.stage(e), nil
}

// environment tells the command about its message.
func environment(cfg wazero.ModuleConfig, inv *host.Invocation, m *broker.Message, config map[string]string) wazero.ModuleConfig {
	vars := map[string]string{
		"PARLEY_QUEUE":           inv.Queue,
		"PARLEY_ATTEMPT":         strconv.Itoa(inv.Attempt),
		"PARLEY_MESSAGE_ID":      m.MessageID,
		"PARLEY_MESSAGE_TYPE":    m.Type,
		"PARLEY_MESSAGE_KIND":    kindName(m.Kind),
		"PARLEY_SEQUENCE_NUMBER": strconv.FormatInt(m.SequenceNumber, 10),
		"PARLEY_DELIVERY_COUNT":  strconv.Itoa(m.DeliveryCount),
		"PARLEY_SESSION_ID":      m.SessionID,
		"PARLEY_CONVERSATION":    m.Conversation,
		"PARLEY_GROUP":           m.Group,
		"PARLEY_SERVICE":         m.Service,
		"PARLEY_FAR_SERVICE":     m.FarService,
		"PARLEY_CONTRACT":        m.Contract,
		"TRACEPARENT":            inv.Traceparent,
	}
	for k, v := range m.Properties {
		vars["PARLEY_PROPERTY_"+variable(k)] = v
	}
	for k, v := range config {
		vars["PARLEY_CONFIG_"+variable(k)] = v
	}
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		if v := vars[k]; v != "" && !strings.ContainsRune(v, 0) {
			cfg = cfg.WithEnv(k, v)
		}
	}
	return cfg
}

// variable makes the name of an environment variable of any text: letters in upper case, digits, the rest underscores.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
