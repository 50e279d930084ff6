package broker

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// is fails when err is not the entry want of the catalogue; nil means no error.
func is(t *testing.T, what string, err error, want *Error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("%s: got %v, want no error", what, err)
		}
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestCheckContract(t *testing.T) {
	for _, c := range []struct {
		what     string
		messages map[string]Direction
		want     *Error
	}{
		{"the initiator may begin", map[string]Direction{"a": ByInitiator, "b": ByTarget}, nil},
		{"any side may begin", map[string]Direction{"a": ByAny}, nil},
		{"nobody could begin", map[string]Direction{"a": ByTarget}, ErrContractEmpty},
		{"no types", nil, ErrContractEmpty},
		{"an unknown side", map[string]Direction{"a": "both"}, ErrInvalid},
	} {
		is(t, c.what, CheckContract(Contract{Name: "c", Messages: c.messages}), c.want)
	}
	is(t, "the built-in one", CheckContract(DefaultContract()), nil)
}

func TestCheckDirection(t *testing.T) {
	c := Contract{Name: "c", Messages: map[string]Direction{"ask": ByInitiator, "answer": ByTarget, "note": ByAny}}
	for _, x := range []struct {
		typ       string
		initiator bool
		want      *Error
	}{
		{"ask", true, nil},
		{"ask", false, ErrInitiatorOnly},
		{"answer", true, ErrTargetOnly},
		{"answer", false, nil},
		{"note", true, nil},
		{"note", false, nil},
		{"other", true, ErrTypeNotInContract},
		{TypeDefault, false, ErrTypeNotInContract},
	} {
		is(t, x.typ, CheckDirection(c, x.initiator, x.typ), x.want)
	}
	is(t, "the built-in type in the built-in contract", CheckDirection(DefaultContract(), false, TypeDefault), nil)
}

func TestCheckLifetime(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want *Error
	}{
		{0, nil},
		{time.Second, nil},
		{2147483647 * time.Second, nil},
		{Forever, nil},
		{time.Second - 1, ErrLifetime},
		{-time.Second, ErrLifetime},
		{2147483647*time.Second + 1, ErrLifetime},
	} {
		is(t, c.d.String(), CheckLifetime(c.d), c.want)
	}
}

func TestCheckEndingCountsCharacters(t *testing.T) {
	is(t, "3,000 characters", CheckEnding(Ending{Code: 1, Text: strings.Repeat("ü", MaxErrorText)}), nil)
	is(t, "3,001 characters", CheckEnding(Ending{Code: 1, Text: strings.Repeat("ü", MaxErrorText+1)}), ErrErrorTextLong)
}
