package redisbroker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/broker"
)

// encodeEffects adds the effects of unit number u to the call; the forms are those of scripts/rare/effects.lua.
func (b *Broker) encodeEffects(ctx context.Context, c *turnCall, u int, queue string, unit *broker.Unit, effects []broker.Effect) error {
	var handles []string
	for i := range effects {
		if effects[i].Kind == broker.EffectSend {
			handles = append(handles, effects[i].Conversation)
		}
	}
	var info map[string]*epInfo
	if len(handles) > 0 {
		var err error
		if info, err = b.endpointInfo(ctx, b.prefix(queue), handles, callTimeout); err != nil {
			return err
		}
	}
	for i := range effects {
		if overruled(effects, i) {
			continue
		}
		if id := effects[i].Message.MessageID; id != "" {
			c.ids = append(c.ids, id)
		}
		if effects[i].Kind == broker.EffectBegin { // later effects of this unit may be on it
			info = withBegun(info, &effects[i])
		}
		args, err := b.encodeEffect(ctx, b.prefix(queue), &effects[i], unit, info)
		if err != nil {
			return err
		}
		c.effects = append(c.effects, u)
		c.effects = append(c.effects, args...)
		c.neffects++
	}
	return nil
}

// withBegun adds what will never change of a dialog that this very unit begins.
func withBegun(info map[string]*epInfo, e *broker.Effect) map[string]*epInfo {
	if info == nil {
		info = map[string]*epInfo{}
	}
	contract := e.Contract
	if contract == "" {
		contract = broker.ContractDefault
	}
	info[e.Conversation] = &epInfo{role: "I", service: e.From, far: e.To, contract: contract}
	return info
}

func (b *Broker) encodeEffect(ctx context.Context, prefix string, e *broker.Effect, unit *broker.Unit, info map[string]*epInfo) ([]any, error) {
	group := ""
	if unit != nil {
		group = unit.Group
	}
	switch e.Kind {
	case broker.EffectSend:
		code, text := b.dir.arrival(info[e.Conversation], &e.Message)
		return []any{"S", e.Conversation, encodeRest(&e.Message, e.Message.MessageID), e.Message.Body, code, text}, nil
	case broker.EffectSendTo:
		return b.encodeSendTo(e), nil
	case broker.EffectBegin:
		return encodeBegin(e), nil
	case broker.EffectEnd:
		code := ""
		if e.Code != 0 {
			code = strconv.Itoa(e.Code)
		}
		return []any{"E", e.Conversation, code, strings.ToValidUTF8(e.Text, "\uFFFD"), flag(e.Cleanup)}, nil
	case broker.EffectTimer:
		return b.encodeTimer(ctx, prefix, e)
	case broker.EffectCancelTimer:
		return []any{"X", e.Conversation}, nil
	case broker.EffectMove:
		return []any{"M", e.Conversation, "g:" + e.Group}, nil
	case broker.EffectCommandEnd:
		return []any{"C", escape(e.Queue), "end", e.Conversation, strconv.Itoa(e.Code), strings.ToValidUTF8(e.Text, "\uFFFD"), ""}, nil
	case broker.EffectCommandEnable:
		return []any{"C", escape(e.Queue), "enable", "", "", "", strconv.FormatInt(e.Epoch, 10)}, nil
	case broker.EffectDeadLetter:
		if err := checkSingle(unit, e); err != nil {
			return nil, err
		}
		return []any{"D", unit.Messages[e.Index].Ref, lossy(e.Reason), lossy(e.Text)}, nil
	case broker.EffectPutState:
		return []any{"P", group, escape(e.Key), e.Value}, nil
	case broker.EffectDeleteState:
		return []any{"Z", group, escape(e.Key)}, nil
	}
	return nil, broker.ErrNotAvailable.With("effect %d", e.Kind)
}

// overruled reports whether effect i makes a dead letter of a message of which a later one does: the last says why.
func overruled(effects []broker.Effect, i int) bool {
	if effects[i].Kind != broker.EffectDeadLetter {
		return false
	}
	return slices.ContainsFunc(effects[i+1:], func(e broker.Effect) bool {
		return e.Kind == broker.EffectDeadLetter && e.Index == effects[i].Index
	})
}

// checkSingle checks that the message of an EffectDeadLetter is one of the unit.
func checkSingle(unit *broker.Unit, e *broker.Effect) error {
	if unit == nil || e.Index < 0 || e.Index >= len(unit.Messages) {
		return broker.ErrUnknownMessage.With("message %d of the unit", e.Index)
	}
	return nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func (b *Broker) encodeSendTo(e *broker.Effect) []any {
	m := &e.Message
	id := m.MessageID
	if id == "" {
		id = b.newMessageID()
	}
	owner := ""
	if m.SessionID != "" {
		owner = "s:" + escape(m.SessionID)
	}
	if owner == "" && m.TTL == 0 && m.Delay == 0 {
		return []any{"q", escape(e.Queue), encodeRest(m, id), m.Body}
	}
	return []any{"Q", escape(e.Queue), owner, msArg(m.TTL), msArg(m.Delay), encodeRest(m, id), m.Body}
}

func encodeBegin(e *broker.Effect) []any {
	group := e.Group
	if group == "" {
		group = e.Conversation
	}
	contract := e.Contract
	if contract == "" {
		contract = broker.ContractDefault
	}
	life := e.Lifetime
	if life == 0 {
		life = broker.DefaultLifetime
	}
	ms := ""
	if life != broker.Forever {
		ms = strconv.FormatInt(life.Milliseconds(), 10)
	}
	return []any{"B", e.Conversation, escape(e.From), escape(e.To), escape(contract), "g:" + group, ms, ""}
}

// encodeTimer gives a delay as +ms, counted by the script on Redis's clock, and what a cron spec says as in scripts/rare/instant.lua.
func (b *Broker) encodeTimer(ctx context.Context, prefix string, e *broker.Effect) ([]any, error) {
	if e.Cron == "" {
		if e.After < 0 || e.After > broker.MaxLifetime {
			return nil, broker.ErrTimerValue.With("%v; use 0s to 2147483647s", e.After)
		}
		if e.After == 0 {
			return []any{"X", e.Conversation}, nil
		}
		return []any{"T", e.Conversation, "+" + strconv.FormatInt(ceilMS(e.After), 10), ""}, nil
	}
	first, err := b.firstInstant(ctx, prefix, e.Cron, e.Zone)
	if err != nil {
		return nil, err
	}
	return []any{"T", e.Conversation, first, escape(e.Cron) + "|" + escape(e.Zone)}, nil
}

func ceilMS(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// effectError turns a script's refusal into an error of the catalogue.
func effectError(code string) error {
	for _, e := range []*broker.Error{
		broker.ErrConversationEnded, broker.ErrUnknownConversation, broker.ErrConversationState, broker.ErrSendRetention, broker.ErrUnknownService,
		broker.ErrGroupService, broker.ErrTimerBeyondLifetime, broker.ErrTimerState, broker.ErrMoveState, broker.ErrMoveTarget,
	} {
		if code == strconv.Itoa(e.Number) {
			return e
		}
	}
	switch code {
	case broker.ErrGroupLocked.Reason:
		return broker.ErrGroupLocked
	case broker.ErrUnknownEntity.Reason:
		return broker.ErrUnknownEntity.With("a queue that a handler sends to")
	case broker.ErrParked.Reason:
		return broker.ErrParked
	case broker.ErrNoState.Reason:
		return broker.ErrNoState
	case "LOST":
		return broker.ErrLockLost
	}
	return fmt.Errorf("the broker refused an effect: %s", code)
}
