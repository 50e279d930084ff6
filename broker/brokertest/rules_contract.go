package brokertest

import (
	"fmt"
	"strings"
	"time"

	"parley/broker"
)

// The contract of these tests, and its message types.
const (
	askContract = "//t/Ask"
	askType     = "//t/ask"    // by the initiator, well-formed XML
	answerType  = "//t/answer" // by the target, well-formed XML
	noteType    = "//t/note"   // by any, anything
	bellType    = "//t/bell"   // by any, empty
	jsonType    = "//t/json"   // by any, well-formed JSON
	shapeType   = "//t/shape"  // by any, JSON of a schema
	askSvc      = "//t/Answers"
	strictSvc   = "//t/Strict" // lists no contract: it can only initiate
)

// contractRules are the rules about message types (MT) and contracts (CT).
var contractRules = []test{
	{"TestT_SN_1_contract_8431_8432_8434", refusedByContract},
	{"TestT_SN_1_8433_no_body_and_an_empty_one_are_the_same", func(s *stage) {
		c := s.ask()
		for _, typ := range []string{bellType, askType, noteType} {
			for _, body := range [][]byte{nil, {}} {
				if _, err := s.h.Broker.SendOn(s.ctx, c, broker.Outgoing{Type: typ, Body: body}); err != nil {
					s.t.Fatalf("%s with the body %#v: %v", typ, body, err)
				}
				s.equal(typ+" arrives without a body", fmt.Sprintf("%q", s.drainAll(workQueue)), `[""]`)
			}
		}
	}},
	{"TestT_SN_5_invalid_XML_bounces", invalidXML},
	{"TestT_SN_6_contracts_that_are_refused", refusedContracts},
	{"TestMT_4_codes_of_every_validation", validationCodes},
	{"TestMT_4_a_handlers_invalid_message_bounces_too", func(s *stage) {
		s.contract()
		s.send(homeQueue, "p")
		w := s.open(homeQueue, 1)
		h, err := s.h.Broker.NewHandle(homeQueue)
		if err != nil {
			s.t.Fatal(err)
		}
		w.commit(w.one("p"), broker.Effect{Kind: broker.EffectBegin, Conversation: h, From: homeSvc, To: askSvc, Contract: askContract},
			broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: typed(askType, "<a>")})
		w.close()
		s.equal("target", s.drainAll(workQueue), "[]")
		s.equal("codes", s.errorCodes(homeQueue), "[-9615]")
	}},
	{"TestMT_4_what_waited_for_transmission_bounces_on_arrival", parkedInvalid},
	{"TestMT_7_no_body_is_fit_for_XML", func(s *stage) {
		c := s.ask()
		s.sayTyped(c, askType, "")
		s.equal("received", len(s.drainAll(workQueue)), 1)
	}},
	{"TestMT_an_XML_bomb_bounces", func(s *stage) {
		var bomb strings.Builder
		bomb.WriteString("<!DOCTYPE a [<!ENTITY e0 'x'>")
		for i := range 30 {
			bomb.WriteString("<!ENTITY e" + numbered("", 31)[i+1] + " '" + strings.Repeat("&e"+numbered("", 31)[i]+";", 10) + "'>")
		}
		bomb.WriteString("]><a>&e30;</a>")
		began := time.Now()
		c := s.ask()
		s.sayTyped(c, askType, bomb.String())
		if took := time.Since(began); took > 5*time.Second {
			s.t.Fatalf("the check of a bomb took %v", took)
		}
		s.equal("codes", s.errorCodes(homeQueue), "[-9615]")
		s.equal("target", s.drainAll(workQueue), "[]")
	}},
	{"TestCT_3_a_contract_is_immutable", func(s *stage) {
		s.contract()
		c := broker.Contract{Name: askContract, Messages: map[string]broker.Direction{askType: broker.ByAny}}
		_, err := s.h.Broker.Apply(s.ctx, broker.Definitions{Contracts: []broker.Contract{c}}, false)
		s.wantErr("altered contract", err, broker.ErrImmutable)
		s.contract() // the same again is no change
	}},
	{"TestCT_4_a_contract_limits_neither_order_nor_count", func(s *stage) {
		c := s.ask()
		for _, typ := range []string{noteType, askType, askType, noteType, bellType} {
			s.sayTyped(c, typ, "")
		}
		s.equal("received", len(s.drainAll(workQueue)), 5)
	}},
	{"TestCT_8_a_contract_that_the_target_does_not_list", func(s *stage) {
		s.contract()
		for _, to := range []string{workSvc, strictSvc} {
			c := s.beginWith(to, askContract)
			s.sayTyped(c, askType, "<a/>")
			s.equal("codes from "+to, s.errorCodes(homeQueue), "[-8408]")
			s.equal("state", s.endpoint(c).State, broker.StateError)
		}
		s.equal("target", s.drainAll(workQueue), "[]")
	}},
	{"TestCT_9_nobody_sends_a_system_type", func(s *stage) {
		c := s.ask()
		d := s.begin()
		for _, typ := range []string{broker.TypeError, broker.TypeEndDialog, broker.TypeDialogTimer, strings.Replace(broker.TypeError, "http:", "https:", 1)} {
			for _, h := range []string{c, d} {
				_, err := s.h.Broker.SendOn(s.ctx, h, typed(typ, ""))
				s.wantErr("send of "+typ, err, broker.ErrTypeNotInContract)
			}
		}
	}},
	{"TestDG_1_unknown_service_and_contract", func(s *stage) {
		_, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: "//t/Nobody", To: workSvc})
		s.wantErr("from an unknown service", err, broker.ErrUnknownService)
		_, err = s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Contract: "//t/None"})
		s.wantErr("unknown contract", err, broker.ErrUnknownContract)
	}},
}

// contract defines the contract of these tests: workQueue serves it as askSvc.
func (s *stage) contract() {
	s.t.Helper()
	schema := `{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}`
	s.apply(broker.Definitions{
		MessageTypes: []broker.MessageType{
			{Name: askType, Validation: "well_formed_xml"},
			{Name: answerType, Validation: "well_formed_xml"},
			{Name: noteType, Validation: "none"},
			{Name: bellType, Validation: "empty"},
			{Name: jsonType, Validation: "well_formed_json"},
			{Name: shapeType, Validation: "json_schema", Schemas: [][]byte{[]byte(schema)}},
		},
		Contracts: []broker.Contract{{Name: askContract, Messages: map[string]broker.Direction{
			askType: broker.ByInitiator, answerType: broker.ByTarget, noteType: broker.ByAny, bellType: broker.ByAny,
			jsonType: broker.ByAny, shapeType: broker.ByAny,
		}}},
		Services: []broker.Service{
			{Name: askSvc, Queue: workQueue, Contracts: []string{askContract}},
			{Name: strictSvc, Queue: workQueue},
		},
	})
}

// ask begins a dialog on the contract of these tests.
func (s *stage) ask() string {
	s.t.Helper()
	s.contract()
	return s.beginWith(askSvc, askContract)
}

func (s *stage) beginWith(to, contract string) string {
	s.t.Helper()
	e, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: to, Contract: contract})
	if err != nil {
		s.t.Fatalf("begin dialog to %s on %s: %v", to, contract, err)
	}
	return e.Handle
}

// typed is a message of that type.
func typed(typ, body string) broker.Outgoing { return broker.Outgoing{Type: typ, Body: []byte(body)} }

func (s *stage) sayTyped(handle, typ, body string) {
	s.t.Helper()
	if _, err := s.h.Broker.SendOn(s.ctx, handle, typed(typ, body)); err != nil {
		s.t.Fatalf("send %s on %s: %v", typ, handle, err)
	}
}

// between is what stands in text after the first before and in front of the next after.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

func refusedByContract(s *stage) {
	c := s.ask()
	send := func(h, typ string) error {
		_, err := s.h.Broker.SendOn(s.ctx, h, typed(typ, ""))
		return err
	}
	s.wantErr("a type that is not in the contract", send(c, "//t/other"), broker.ErrTypeNotInContract)
	s.wantErr("the default type", send(c, ""), broker.ErrTypeNotInContract)
	s.wantErr("initiator sends the target's type", send(c, answerType), broker.ErrTargetOnly)
	s.equal("nothing was sent", []any{s.endpoint(c).State, s.endpoint(c).NextSend}, "[SO 0]")
	s.sayTyped(c, askType, "")
	u := s.open(workQueue, 1).receive().Units[0]
	h := u.Messages[0].Conversation
	s.wantErr("target sends the initiator's type", send(h, askType), broker.ErrInitiatorOnly)
	s.equal("nothing was sent", s.endpoint(h).NextSend, 0)
	for typ, want := range map[string]error{"//t/other": broker.ErrTypeNotInContract, askType: broker.ErrInitiatorOnly, answerType: nil} {
		err := s.h.Broker.CheckEffect(s.ctx, u, &broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: typed(typ, "")})
		s.equal("a handler stages "+typ, err == want || broker.ExitCode(err) == broker.ExitCode(want), true)
		if want != nil {
			s.wantErr("a handler stages "+typ, err, want)
		}
	}
	s.sayTyped(h, answerType, "<a/>")
	s.sayTyped(h, noteType, "x")
	s.equal("the survivors", s.drainAll(homeQueue), "[<a/> x]")
}

func invalidXML(s *stage) {
	c := s.ask()
	for i, body := range []string{"<a><b></a>", "no xml", "<a/><b/>", "<a>\x00</a>", "<a>&undefined;</a>"} {
		if i > 0 {
			c = s.beginWith(askSvc, askContract)
		}
		s.sayTyped(c, askType, body)
		s.equal("target's queue", len(s.snapshot(workQueue).Messages), 0)
		s.equal("target's endpoints", len(s.snapshot(workQueue).Conversations), 0)
		s.equal("sender's state", s.endpoint(c).State, broker.StateError)
		s.equal("codes", s.errorCodes(homeQueue), "[-9615]")
		_, err := s.h.Broker.SendOn(s.ctx, c, typed(askType, "<a/>"))
		s.wantErr("send after the bounce", err, broker.ErrConversationEnded)
	}
	s.equal("poison", s.queue(workQueue).Status, broker.QueueActive)
}

func refusedContracts(s *stage) {
	for name, c := range map[string]broker.Contract{
		"target only": {Name: "//t/Deaf", Messages: map[string]broker.Direction{noteType: broker.ByTarget}},
		"empty":       {Name: "//t/Deaf"},
	} {
		_, err := s.h.Broker.Apply(s.ctx, broker.Definitions{Contracts: []broker.Contract{c}}, false)
		s.wantErr(name, err, broker.ErrContractEmpty)
	}
	_, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Contract: "//t/Deaf"})
	s.wantErr("it was not created", err, broker.ErrUnknownContract)
	one := broker.Contract{Name: "//t/Fine", Messages: map[string]broker.Direction{noteType: broker.ByAny}}
	s.apply(broker.Definitions{Contracts: []broker.Contract{one}})
}

func validationCodes(s *stage) {
	s.contract()
	for _, x := range []struct {
		typ, good, bad, code string
		toInitiator          bool
	}{
		{askType, "<a/>", "<a>", "-9615", false},
		{answerType, "<a/>", "<a>", "-9616", true},
		{bellType, "", "x", "-8430", false},
		{bellType, "", "x", "-8430", true},
		{jsonType, `{"a": 1}`, `{"a": 1`, "-8430", false},
		{shapeType, `{"n": 1}`, `{"n": "one"}`, "-8430", true},
		{noteType, "any\x00thing", "", "", false},
	} {
		c := s.beginWith(askSvc, askContract)
		s.sayTyped(c, noteType, "first")
		w := s.open(workQueue, 1)
		u := w.one("first")
		w.commit(u)
		w.close()
		from, own, far := c, homeQueue, workQueue
		if x.toInitiator {
			from, own, far = u.Messages[0].Conversation, workQueue, homeQueue
		}
		s.sayTyped(from, x.typ, x.good)
		s.equal("good "+x.typ, s.drainAll(far), []string{x.good})
		if x.code == "" {
			continue
		}
		s.sayTyped(from, x.typ, x.bad)
		s.equal("bad "+x.typ, s.drainAll(far), "[]")
		s.equal("code of "+x.typ, s.errorCodes(own), []string{x.code})
	}
}

func parkedInvalid(s *stage) {
	c := s.ask()
	s.status(workQueue, broker.QueueOff)
	s.sayTyped(c, askType, "<a/>")
	s.sayTyped(c, askType, "<a>")
	s.equal("sent", s.endpoint(c).State, broker.StateConversing)
	s.status(workQueue, broker.QueueActive)
	s.transmitAll(homeQueue)
	s.equal("target", s.drainAll(workQueue), "[<a/>]")
	s.equal("codes", s.errorCodes(homeQueue), "[-9615]")

	late := s.beginWith("//t/Late", askContract) // nobody serves it yet
	other := s.beginWith("//t/Later", askContract)
	s.sayTyped(late, askType, "<a>")
	s.sayTyped(other, askType, "<a/>")
	s.apply(broker.Definitions{Services: []broker.Service{
		{Name: "//t/Late", Queue: workQueue, Contracts: []string{askContract}},
		{Name: "//t/Later", Queue: workQueue, Contracts: []string{broker.ContractDefault}},
	}})
	s.transmitAll(homeQueue)
	s.equal("target", s.drainAll(workQueue), "[]")
	s.equal("states", []broker.State{s.endpoint(late).State, s.endpoint(other).State}, "[ER ER]")
	codes := s.errorCodes(homeQueue)
	if len(codes) != 2 || !contains(strings.Join(codes, " "), "-9615") || !contains(strings.Join(codes, " "), "-8408") {
		s.t.Fatalf("codes %v, want -9615 and -8408", codes)
	}
}
