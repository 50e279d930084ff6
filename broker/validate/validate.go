package validate

import (
	"errors"
	"fmt"

	"parley/broker/validate/wellformed"
)

// The kinds of validation of a message type.
const (
	None           = "none"
	Empty          = "empty"
	WellFormedXML  = "well_formed_xml"
	ValidXML       = "valid_xml"
	WellFormedJSON = "well_formed_json"
	JSONSchema     = "json_schema"
)

// Bounds.
const (
	MaxSchemas     = 64       // documents of one message type
	MaxSchemaBytes = 4 << 20  // of them together
	MaxXMLBytes    = 64 << 20 // of a body checked against an XML schema
	MaxNumber      = 400      // characters of a JSON number, and size of its exponent, where a schema is applied
)

var (
	// ErrKind is returned by Compile for an unknown kind.
	ErrKind = errors.New("unknown kind of validation")
	// ErrSchema is returned by Compile for schemas that are missing, superfluous, too large or wrong. The text says which
	// one and why.
	ErrSchema = errors.New("the schema is refused")
	// ErrNoXMLSchema is returned by Compile for valid_xml in a binary built without the tag libxml2.
	ErrNoXMLSchema = errors.New("this binary was built without XML Schema (build tag libxml2)")
)

// Error says why a body failed. Service Broker's codes: 9615 at the target or 9616 at the initiator where the validator's
// letter is X, else 8430.
type Error struct {
	Kind     string // of the validation
	Position string // line and column, or element and line, or a JSON pointer; "" when the whole body is meant
	Reason   string
}

// Error returns kind, position and reason on one line.
func (e *Error) Error() string {
	if e.Position == "" {
		return fmt.Sprintf("%s: %s", e.Kind, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", e.Kind, e.Position, e.Reason)
}

// Validator checks bodies. The zero Validator accepts any, as kind none does. A Validator is immutable and safe for
// concurrent use.
type Validator struct {
	kind  string
	check func(body []byte) *Error // nil for none; not called for an empty body
}

// Compile makes the validator of a kind; the empty kind is none. Only valid_xml and json_schema take schemas, at least
// one. Errors wrap ErrKind, ErrSchema or ErrNoXMLSchema. The schemas are not kept.
func Compile(kind string, schemas [][]byte) (Validator, error) {
	if kind == "" {
		kind = None
	}
	v := Validator{kind: kind}
	if err := checkSchemas(kind, schemas); err != nil {
		return Validator{}, err
	}
	var err error
	switch kind {
	case None:
	case Empty:
		v.check = func(body []byte) *Error {
			return &Error{Kind: Empty, Reason: fmt.Sprintf("the body must be empty and has %d bytes", len(body))}
		}
	case WellFormedXML:
		v.check = func(body []byte) *Error { return malformed(WellFormedXML, wellformed.XML(body)) }
	case WellFormedJSON:
		v.check = func(body []byte) *Error { return malformed(WellFormedJSON, wellformed.JSON(body)) }
	case ValidXML:
		v.check, err = compileXML(schemas)
	case JSONSchema:
		v.check, err = compileJSON(schemas)
	}
	if err != nil {
		return Validator{}, err
	}
	return v, nil
}

// checkSchemas checks the kind, and the number and size of its schemas.
func checkSchemas(kind string, schemas [][]byte) error {
	switch kind {
	case None, Empty, WellFormedXML, WellFormedJSON:
		if len(schemas) > 0 {
			return fmt.Errorf("%w: %s takes none", ErrSchema, kind)
		}
		return nil
	case ValidXML, JSONSchema:
	default:
		return fmt.Errorf("%w: %q is not %s, %s, %s, %s, %s or %s", ErrKind, kind, None, Empty, WellFormedXML, ValidXML, WellFormedJSON, JSONSchema)
	}
	size := 0
	for _, schema := range schemas {
		size += len(schema)
	}
	switch {
	case len(schemas) == 0:
		return fmt.Errorf("%w: %s needs at least one", ErrSchema, kind)
	case len(schemas) > MaxSchemas:
		return fmt.Errorf("%w: %d documents, at most %d are allowed", ErrSchema, len(schemas), MaxSchemas)
	case size > MaxSchemaBytes:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrSchema, size, MaxSchemaBytes)
	}
	return nil
}

// Kind returns the kind the validator was compiled for.
func (v Validator) Kind() string {
	if v.kind == "" {
		return None
	}
	return v.kind
}

// Letter returns what a queue shows in its column validation: N, E or X.
func (v Validator) Letter() string {
	switch v.kind {
	case Empty:
		return "E"
	case WellFormedXML, ValidXML:
		return "X"
	}
	return "N"
}

// Check returns nil for a body the kind accepts, else an *Error. A nil body and an empty one are the same.
func (v Validator) Check(body []byte) error {
	if v.check == nil {
		return nil
	}
	if len(body) == 0 {
		if v.kind == ValidXML || v.kind == JSONSchema {
			return &Error{Kind: v.kind, Reason: "an empty body matches no schema"}
		}
		return nil
	}
	if err := v.check(body); err != nil {
		return err
	}
	return nil
}

// malformed turns an error of package wellformed into an Error of a kind.
func malformed(kind string, err error) *Error {
	if err == nil {
		return nil
	}
	var at *wellformed.Error
	if !errors.As(err, &at) {
		return &Error{Kind: kind, Reason: err.Error()}
	}
	return &Error{Kind: kind, Position: fmt.Sprintf("line %d, column %d", at.Line, at.Column), Reason: at.Reason}
}
