package broker

import (
	"math"
	"time"
	"unicode/utf8"
)

// DefaultContract is the built-in contract: the built-in type, sent by either side (CT-6).
func DefaultContract() Contract {
	return Contract{Name: ContractDefault, Messages: map[string]Direction{TypeDefault: ByAny}}
}

// CheckContract returns ErrContractEmpty when no type may be sent by the initiator (CT-2), or ErrInvalid for an unknown
// direction.
func CheckContract(c Contract) error {
	usable := false
	for typ, d := range c.Messages {
		switch d {
		case ByInitiator, ByAny:
			usable = true
		case ByTarget:
		default:
			return ErrInvalid.With("contract %q, message type %q: sent by %q; use initiator, target or any", c.Name, typ, d)
		}
	}
	if !usable {
		return ErrContractEmpty.With("contract %q", c.Name)
	}
	return nil
}

// CheckDirection is the sender's side check of a SEND (CT-7): nil, ErrTypeNotInContract, ErrTargetOnly or ErrInitiatorOnly.
func CheckDirection(c Contract, initiator bool, typ string) error {
	d, ok := c.Messages[typ]
	switch {
	case !ok:
		return ErrTypeNotInContract.With("type %q, contract %q", typ, c.Name)
	case initiator && d == ByTarget:
		return ErrTargetOnly.With("type %q, contract %q", typ, c.Name)
	case !initiator && d == ByInitiator:
		return ErrInitiatorOnly.With("type %q, contract %q", typ, c.Name)
	}
	return nil
}

// MaxLifetime is the greatest lifetime of a dialog that has one (DG-10).
const MaxLifetime = math.MaxInt32 * time.Second

// CheckLifetime returns ErrLifetime for a lifetime that is negative, below one second, or above MaxLifetime and not Forever.
func CheckLifetime(d time.Duration) error {
	if d == 0 || d == Forever || (d >= time.Second && d <= MaxLifetime) {
		return nil
	}
	return ErrLifetime.With("%v; use 1s to 2147483647s, or forever", d)
}

// MaxErrorText is the greatest length of an END WITH ERROR description, in characters (EC-1).
const MaxErrorText = 3000

// CheckEnding returns nil, ErrErrorCode, ErrErrorText or ErrErrorTextLong (EC-1).
func CheckEnding(e Ending) error {
	switch {
	case e.Code == 0 && e.Text == "":
		return nil
	case e.Code <= 0 || e.Code > math.MaxInt32:
		return ErrErrorCode.With("%d", e.Code)
	case e.Text == "":
		return ErrErrorText
	case utf8.RuneCountInString(e.Text) > MaxErrorText:
		return ErrErrorTextLong.With("%d characters", utf8.RuneCountInString(e.Text))
	}
	return nil
}
