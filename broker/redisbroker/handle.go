package redisbroker

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"parley/broker"
)

// NewHandle implements broker.Readers: <queue number>-xxxx-4xxx-…, see scripts/rare/dialog.lua.
func (b *Broker) NewHandle(queue string) (string, error) {
	b.dir.mu.RLock()
	e, ok := b.dir.queues[queue]
	b.dir.mu.RUnlock()
	if !ok {
		return "", broker.ErrUnknownEntity.With("there is no queue %q", queue)
	}
	u, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("make a conversation handle: %w", err)
	}
	return e.Number + u.String()[8:], nil
}

// CheckEffect implements broker.Readers.
func (b *Broker) CheckEffect(ctx context.Context, unit *broker.Unit, eff *broker.Effect) error {
	switch eff.Kind {
	case broker.EffectSendTo:
		e, err := b.queueEntry(ctx, eff.Queue)
		if err != nil {
			return err
		}
		return checkOutgoing(&eff.Message, e.Settings.MaxMessageSize)
	case broker.EffectSend:
		return b.checkSend(ctx, unit, eff)
	case broker.EffectBegin:
		return b.checkBegin(ctx, eff)
	case broker.EffectEnd:
		return broker.CheckEnding(broker.Ending{Code: eff.Code, Text: eff.Text, Cleanup: eff.Cleanup})
	case broker.EffectTimer:
		_, err := b.encodeTimer(ctx, b.nsKey(""), eff)
		return err
	case broker.EffectMove:
		return checkGroup(eff.Group)
	case broker.EffectCommandEnd:
		return b.checkCommandEnd(ctx, eff)
	case broker.EffectCommandEnable:
		_, err := b.queueEntry(ctx, eff.Queue)
		return err
	case broker.EffectDeadLetter:
		return checkSingle(unit, eff)
	case broker.EffectPutState, broker.EffectDeleteState:
		if unit != nil && unit.Group == "" {
			return broker.ErrNoState
		}
	}
	return nil
}

// checkSend finds out at staging time what can be known: the state at hand-out, the size, the contract.
func (b *Broker) checkSend(ctx context.Context, unit *broker.Unit, eff *broker.Effect) error {
	queue, err := b.queueOfHandle(ctx, eff.Conversation)
	if err != nil {
		return err
	}
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return err
	}
	if err := checkOutgoing(&eff.Message, e.Settings.MaxMessageSize); err != nil {
		return err
	}
	info, err := b.endpointInfo(ctx, b.prefix(queue), []string{eff.Conversation}, lookTimeout)
	if err != nil {
		return err
	}
	ep := info[eff.Conversation]
	if unit != nil && unit.EndpointState != "" && holds(unit, eff.Conversation) && !unit.EndpointState.CanSend() {
		return broker.ErrConversationEnded.With("conversation %s is in state %s", eff.Conversation, unit.EndpointState)
	}
	if ep == nil { // begun in this very unit: the script checks it
		return nil
	}
	return b.checkContract(ep.contract, ep.role == "I", eff.Message.Type)
}

// checkContract is the sender's side check (CT-7, CT-9).
func (b *Broker) checkContract(contract string, initiator bool, typ string) error {
	if typ == "" {
		typ = broker.TypeDefault
	}
	b.dir.mu.RLock()
	c, ok := b.dir.contract[contract]
	b.dir.mu.RUnlock()
	if !ok {
		c = broker.DefaultContract()
	}
	return broker.CheckDirection(c, initiator, typ)
}

// checkGroup refuses what is no name of a conversation group. It must hold before a group is written: the records of a queue are
// texts with separators.
func checkGroup(group string) error {
	if !validHandle(group) {
		return broker.ErrInvalid.With("conversation group %q: use a UUID in lower case", group)
	}
	return nil
}

func (b *Broker) checkCommandEnd(ctx context.Context, eff *broker.Effect) error {
	if _, err := b.queueEntry(ctx, eff.Queue); err != nil {
		return err
	}
	queue, err := b.queueOfHandle(ctx, eff.Conversation)
	if err != nil {
		return err
	}
	if queue != eff.Queue {
		return broker.ErrForeignConversation.With("conversation %s belongs to queue %q", eff.Conversation, queue)
	}
	return broker.CheckEnding(broker.Ending{Code: eff.Code, Text: eff.Text})
}

func (b *Broker) checkBegin(ctx context.Context, eff *broker.Effect) error {
	s, ok, err := b.service(ctx, eff.From)
	if err != nil {
		return err
	}
	if !ok {
		return broker.ErrUnknownService.With("FROM SERVICE %q", eff.From)
	}
	if eff.Conversation != "" {
		if q, err := b.queueOfHandle(ctx, eff.Conversation); err != nil || q != s.Queue {
			return broker.ErrForeignConversation.With("service %q belongs to queue %q", eff.From, s.Queue)
		}
	}
	if err := broker.CheckServiceName(eff.To); err != nil {
		return err
	}
	if eff.Group != "" {
		if err := checkGroup(eff.Group); err != nil {
			return err
		}
	}
	if eff.Contract != "" && eff.Contract != broker.ContractDefault {
		b.dir.mu.RLock()
		_, ok := b.dir.contract[eff.Contract]
		b.dir.mu.RUnlock()
		if !ok {
			return broker.ErrUnknownContract.With("%q", eff.Contract)
		}
	}
	return broker.CheckLifetime(eff.Lifetime)
}

func holds(u *broker.Unit, conversation string) bool {
	for i := range u.Messages {
		if u.Messages[i].Conversation == conversation {
			return true
		}
	}
	return false
}
