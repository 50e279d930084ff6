//go:build !libxml2

package validate

import (
	"errors"
	"testing"
)

func TestWithoutXMLSchema(t *testing.T) {
	if _, err := Compile(ValidXML, [][]byte{[]byte(moneySchema)}); !errors.Is(err, ErrNoXMLSchema) {
		t.Errorf("got %v, want %v", err, ErrNoXMLSchema)
	}
}
