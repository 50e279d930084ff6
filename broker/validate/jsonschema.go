package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/broker/validate/wellformed"
)

// base is where the documents of a collection live for the compiler; nothing is ever fetched from there.
const base = "schema:///"

// nowhere is the loader of everything that is not in the collection.
type nowhere struct{}

// Load refuses.
func (nowhere) Load(string) (any, error) {
	return nil, errors.New("it is not among the schemas, and nothing is loaded from elsewhere")
}

// compileJSON compiles the first schema, with the others at hand.
func compileJSON(schemas [][]byte) (func([]byte) *Error, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(nowhere{})
	for i, schema := range schemas {
		document, failed := decodeJSON(schema)
		if failed != nil {
			return nil, fmt.Errorf("%w: schema %d: %w", ErrSchema, i+1, failed)
		}
		url := base + strconv.Itoa(i)
		if object, ok := document.(map[string]any); ok && i > 0 {
			id, ok := object["$id"].(string)
			if !ok || id == "" {
				return nil, fmt.Errorf("%w: schema %d: it needs a $id, or nothing can refer to it", ErrSchema, i+1)
			}
			url = id
		}
		if err := compiler.AddResource(url, document); err != nil {
			return nil, fmt.Errorf("%w: schema %d: %w", ErrSchema, i+1, err)
		}
	}
	compiled, err := compiler.Compile(base + "0")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return func(body []byte) *Error { return applyJSON(compiled, body) }, nil
}

// applyJSON checks a body against a compiled schema and reports the first thing that does not match.
func applyJSON(schema *jsonschema.Schema, body []byte) *Error {
	value, failed := decodeJSON(body)
	if failed != nil {
		return failed
	}
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var mismatch *jsonschema.ValidationError
	if !errors.As(err, &mismatch) {
		return &Error{Kind: JSONSchema, Reason: err.Error()}
	}
	for len(mismatch.Causes) > 0 {
		mismatch = mismatch.Causes[0]
	}
	pointer := ""
	for _, name := range mismatch.InstanceLocation {
		pointer += "/" + pointerEscape.Replace(name)
	}
	reason := mismatch.Error()
	if unit := mismatch.DetailedOutput(); unit.Error != nil {
		reason = unit.Error.String() // without the schema's address
	}
	return &Error{Kind: JSONSchema, Position: whole(pointer), Reason: reason}
}

// whole writes the empty pointer, which means the whole document, so that it can be seen.
func whole(pointer string) string {
	if pointer == "" {
		return "/"
	}
	return pointer
}

// decodeJSON decodes a checked document without rounding its numbers.
func decodeJSON(document []byte) (any, *Error) {
	if err := wellformed.JSON(document); err != nil {
		return nil, malformed(JSONSchema, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, &Error{Kind: JSONSchema, Reason: err.Error()}
	}
	return value, checkNumbers(value, "")
}

// checkNumbers refuses the numbers that the schema library, which computes exactly, would take too long over or panic on.
func checkNumbers(value any, pointer string) *Error {
	switch v := value.(type) {
	case json.Number:
		if !isSmall(string(v)) {
			return &Error{Kind: JSONSchema, Position: whole(pointer), Reason: fmt.Sprintf("a number of more than %d characters, or an exponent beyond ±%d", MaxNumber, MaxNumber)}
		}
	case []any:
		for i, element := range v {
			if err := checkNumbers(element, pointer+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			if err := checkNumbers(member, pointer+"/"+pointerEscape.Replace(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointerEscape writes a member's name as a token of a JSON pointer.
var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// isSmall reports whether a JSON number is within the bounds.
func isSmall(number string) bool {
	if len(number) > MaxNumber {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && exponent >= -MaxNumber && exponent <= MaxNumber
}
