package redisbroker

import (
	"slices"

	"parley/broker"
	"parley/broker/validate"
)

// checker validates bodies of one message type (MT-3).
type checker struct {
	letter string
	xml    bool
	check  func(body []byte) error
}

func newChecker(t broker.MessageType) (checker, error) {
	v, err := validate.Compile(t.Validation, t.Schemas)
	if err != nil {
		return checker{}, err
	}
	xml := t.Validation == "well_formed_xml" || t.Validation == "valid_xml"
	return checker{letter: v.Letter(), xml: xml, check: v.Check}, nil
}

// arrival is the check on arrival that the receiving side makes (CT-8, MT-4): the code and text of the Error that bounces, or "".
// Both sides share the namespace's definitions, so it is made where the body is at hand: at the sender's commit or by the
// transmitter.
func (d *directory) arrival(ep *epInfo, m *broker.Outgoing) (code, text string) {
	if ep == nil {
		return "", ""
	}
	typ := m.Type
	if typ == "" {
		typ = broker.TypeDefault
	}
	if ep.role == "I" {
		d.mu.RLock()
		s, ok := d.services[ep.far]
		d.mu.RUnlock()
		if ok && !slices.Contains(s.Contracts, ep.contract) {
			return "-8408", "Target service '" + ep.far + "' does not support contract '" + ep.contract + "'."
		}
	}
	return d.invalid(typ, m.Body, ep.role == "T")
}

// invalid returns the negative code and the text of the Error that bounces, or "" when body is fit for its type. initiator says
// which side receives it (MT-4).
func (d *directory) invalid(typ string, body []byte, toInitiator bool) (code, text string) {
	d.mu.RLock()
	c, ok := d.checks[typ]
	d.mu.RUnlock()
	if !ok {
		return "", ""
	}
	err := c.check(body)
	if err == nil {
		return "", ""
	}
	code = "-8430"
	if c.xml {
		code = "-9615"
		if toInitiator {
			code = "-9616"
		}
	}
	return code, broker.Truncate("The message of type '" + typ + "' failed validation: " + err.Error())
}
