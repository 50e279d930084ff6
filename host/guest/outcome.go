package guest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"parley/broker"
	"parley/host"
	"parley/host/guest/meter"
	"parley/sdk/abi"
)

// settle turns the number the handler answered into a settlement and reports whether the instance may be used again.
func (in *instance) settle(res *host.Result, answer int32) (keep bool) {
	s := &res.Settlement
	switch answer {
	case abi.Commit:
		s.Verdict, s.Effects = broker.VerdictCommit, in.effects
		return true
	case abi.DeadLetter:
		s.Verdict, s.Reason, s.Description = broker.VerdictDeadLetter, in.reason, in.description
		return false
	}
	text := in.failText
	if text == "" {
		text = fmt.Sprintf("the handler returned %d", answer)
		if in.refusal != "" {
			text += "; " + in.refusal
		}
	}
	in.rollback(res, broker.ReasonHandlerError, text)
	return false
}

func (in *instance) rollback(res *host.Result, reason, text string) {
	s := &res.Settlement
	if in.denied != "" && reason == broker.ReasonHandlerError {
		reason, text = broker.ReasonCapabilityDenied, fmt.Sprintf("the plugin lacks the capability %s: %s", in.denied, text)
	}
	s.Verdict, s.FailReason, s.FailText, s.Pause = broker.VerdictRollback, reason, text, in.pause
}

// settleError turns the error of a guest call into a settlement. The instance is never used again.
func (in *instance) settleError(res *host.Result, err error) {
	limits := &in.plugin.opts.Limits
	var exit *sys.ExitError
	switch {
	case errors.Is(err, errReleased):
		res.Settlement.Verdict = broker.VerdictRelease
	case errors.Is(err, errNoAnswer):
		res.Settlement.Verdict, res.Fault = broker.VerdictRelease, in.noAnswer()
	case errors.Is(err, meter.ErrDeadlineExceeded):
		in.rollback(res, broker.ReasonDeadlineExceeded, fmt.Sprintf("stopped after its time limit of %v", limits.Time))
	case errors.Is(err, meter.ErrFuelExhausted):
		in.rollback(res, broker.ReasonFuelExhausted, fmt.Sprintf("stopped after its limit of %d work units", limits.Fuel))
	case errors.Is(err, errStack):
		in.rollback(res, broker.ReasonStackOverflow, fmt.Sprintf("stack overflow: more than %d MiB of call stack", maxStack>>20))
	case errors.Is(err, errEffectLimit):
		in.rollback(res, broker.ReasonEffectLimit, fmt.Sprintf("at most %d effects of %d bytes may be staged", limits.Effects, limits.EffectBytes))
	case errors.Is(err, errHostCalls):
		in.rollback(res, broker.ReasonHostCallLimit, fmt.Sprintf("at most %d host calls may be made", limits.HostCalls))
	case errors.Is(err, errReplyLimit):
		in.rollback(res, broker.ReasonOutputLimit, fmt.Sprintf("a reply may have at most %d bytes", limits.Reply))
	case errors.As(err, &exit) && exit.ExitCode() == 0:
		res.Settlement.Verdict, res.Settlement.Effects = broker.VerdictCommit, in.effects
	case in.memory.refused:
		res.Trap = trapText(err)
		in.rollback(res, broker.ReasonMemoryLimit, fmt.Sprintf("it needs more memory than its limit of %s: %s", mib(limits.pages()), firstLine(res.Trap)))
	case exit != nil:
		in.rollback(res, broker.ReasonHandlerError, in.exitText(exit.ExitCode()))
	default:
		res.Trap = trapText(err)
		reason := broker.ReasonTrap
		if strings.HasPrefix(res.Trap, "stack overflow") {
			reason = broker.ReasonStackOverflow
		}
		text := firstLine(res.Trap)
		if said := lastWords(in.stderr.last(in.stderr.limit)); said != "" {
			text += ": " + said
		}
		in.rollback(res, reason, text)
	}
}

// noAnswer is the fault of an attempt that the broker's silence ended.
func (in *instance) noAnswer() error {
	if in.silence != "" {
		return fmt.Errorf("%w: %s", host.ErrNoAnswer, in.silence)
	}
	return fmt.Errorf("%w within its time limit of %v", host.ErrNoAnswer, in.plugin.opts.Limits.Time)
}

// exitText says with what code the guest exited and what it said at the end.
func (in *instance) exitText(code uint32) string {
	text := fmt.Sprintf("exit code %d", code)
	if in.failText != "" {
		return text + ": " + in.failText
	}
	if said := lastWords(in.stderr.last(in.stderr.limit)); said != "" {
		return text + ": " + said
	}
	return text
}

// lastWords is the end of what was printed, or a Go panic in it from its beginning: its trace would hide the message.
func lastWords(said string) string {
	for _, mark := range []string{"panic: ", "fatal error: "} {
		if i := strings.LastIndex("\n"+said, "\n"+mark); i >= 0 {
			said = said[i:]
			return strings.TrimSpace(strings.ToValidUTF8(said[:min(len(said), exitTail)], ""))
		}
	}
	said = strings.TrimSpace(said)
	return strings.ToValidUTF8(said[max(len(said)-exitTail, 0):], "")
}

const (
	exitTail  = 1024    // bytes of stderr in the error text of an exit
	trapLimit = 4 << 10 // bytes of a trap with its stack
)

// trapText is what wazero says about a trap, bounded and without its prefix.
func trapText(err error) string {
	text := strings.TrimPrefix(err.Error(), "wasm error: ")
	if len(text) > trapLimit {
		text = text[:trapLimit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// collect adds what the guest printed and logged to res.
func (in *instance) collect(res *host.Result) {
	res.Spans = in.closeSpans()
	if in.logs.empty() && in.stdout.total == 0 && in.stderr.total == 0 {
		return
	}
	now := in.now()
	res.Logs = in.logs.take(now)
	res.Logs = in.stdout.lines(res.Logs, now, levelStdout, "stdout")
	res.Logs = in.stderr.lines(res.Logs, now, levelStderr, "stderr")
}
