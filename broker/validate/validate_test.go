package validate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// compile fails the test when the validator cannot be made.
func compile(t testing.TB, kind string, schemas ...string) Validator {
	t.Helper()
	documents := make([][]byte, len(schemas))
	for i, schema := range schemas {
		documents[i] = []byte(schema)
	}
	v, err := Compile(kind, documents)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check compares the result of a check: "" says that the body passes, else all parts must be in the error.
func check(t *testing.T, v Validator, body string, parts ...string) {
	t.Helper()
	err := v.Check([]byte(body))
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
		return
	}
	var own *Error
	if !errors.As(err, &own) || own.Kind != v.Kind() {
		t.Fatalf("got %v, want an *Error of kind %s", err, v.Kind())
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

const bomb = `<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><lolz>&b;</lolz>`

func TestCheck(t *testing.T) {
	tests := []struct {
		name, kind, schema, body string
		want                     []string
	}{
		{"none takes anything", None, "", "\xff\x00<", nil},
		{"none takes an empty body", None, "", "", nil},
		{"empty takes an empty body", Empty, "", "", nil},
		{"empty refuses a body", Empty, "", " ", []string{"must be empty and has 1 bytes"}},
		{"an empty body passes as well-formed XML (MT-7)", WellFormedXML, "", "", nil},
		{"well-formed XML", WellFormedXML, "", `<?xml version="1.0"?><a>x</a>`, nil},
		{"malformed XML", WellFormedXML, "", "<a>\n</b>", []string{"line 2, column 1", "</b> closes <a>"}},
		{"an XML bomb", WellFormedXML, "", bomb, []string{"line 1, column 1", "document type", "never expanded"}},
		{"an empty body passes as well-formed JSON", WellFormedJSON, "", "", nil},
		{"well-formed JSON", WellFormedJSON, "", `{"a": 1e999999999}`, nil},
		{"malformed JSON", WellFormedJSON, "", `{"a": }`, []string{"line 1, column 7", "invalid character '}'"}},
		{"an empty body matches no JSON schema", JSONSchema, `{}`, "", []string{"matches no schema"}},
		{"malformed JSON where a schema is applied", JSONSchema, `{}`, `{`, []string{"line 1, column 2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var schemas []string
			if test.schema != "" {
				schemas = append(schemas, test.schema)
			}
			check(t, compile(t, test.kind, schemas...), test.body, test.want...)
		})
	}
}

func TestNilAndEmptyBodiesAreTheSame(t *testing.T) {
	for _, kind := range []string{None, Empty, WellFormedXML, WellFormedJSON, JSONSchema} {
		var schemas []string
		if kind == JSONSchema {
			schemas = []string{`{}`}
		}
		v := compile(t, kind, schemas...)
		absent, empty := v.Check(nil), v.Check([]byte{})
		if (absent == nil) != (empty == nil) {
			t.Errorf("%s: nil gives %v, empty gives %v", kind, absent, empty)
		}
	}
}

func TestLetter(t *testing.T) {
	for kind, want := range map[string]string{"": "N", None: "N", Empty: "E", WellFormedXML: "X", WellFormedJSON: "N"} {
		if got := compile(t, kind).Letter(); got != want {
			t.Errorf("%q: got %s, want %s", kind, got, want)
		}
	}
	if got := compile(t, JSONSchema, `{}`).Letter(); got != "N" {
		t.Errorf("json_schema: got %s, want N", got)
	}
	var zero Validator
	if zero.Letter() != "N" || zero.Kind() != None || zero.Check([]byte("x")) != nil {
		t.Error("the zero Validator is not none")
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct {
		name, kind string
		schemas    []string
		want       error
		says       string
	}{
		{"an unknown kind", "xml", nil, ErrKind, `"xml"`},
		{"another case", "NONE", nil, ErrKind, `"NONE"`},
		{"a schema where none belongs", WellFormedXML, []string{"<a/>"}, ErrSchema, "takes none"},
		{"no schema", JSONSchema, nil, ErrSchema, "at least one"},
		{"no XML schema", ValidXML, nil, ErrSchema, "at least one"},
		{"too many schemas", JSONSchema, strings.Split(strings.Repeat("{} ", MaxSchemas), " "), ErrSchema, "65 documents"},
		{"too large", JSONSchema, []string{strings.Repeat(" ", MaxSchemaBytes+1)}, ErrSchema, "at most 4194304"},
		{"not JSON", JSONSchema, []string{"{}", `{"$id": "urn:b"`}, ErrSchema, "schema 2"},
		{"not a schema", JSONSchema, []string{`{"type": "strin"}`}, ErrSchema, "type"},
		{"a number", JSONSchema, []string{`12`}, ErrSchema, ""},
		{"a second schema without a name", JSONSchema, []string{`{}`, `{"type": "string"}`}, ErrSchema, "schema 2: it needs a $id"},
		{"the same name twice", JSONSchema, []string{`{}`, `{"$id": "urn:b"}`, `{"$id": "urn:b"}`}, ErrSchema, "schema 3"},
		{"a reference to the network", JSONSchema, []string{`{"$ref": "http://127.0.0.1:1/s.json"}`}, ErrSchema, "not among the schemas"},
		{"a reference to a file", JSONSchema, []string{`{"$ref": "file:///etc/passwd"}`}, ErrSchema, "not among the schemas"},
		{"a dialect from the network", JSONSchema, []string{`{"$schema": "http://127.0.0.1:1/dialect"}`}, ErrSchema, "not among the schemas"},
		{"a pattern that is not RE2", JSONSchema, []string{`{"pattern": "(?=a)"}`}, ErrSchema, "pattern"},
		{"a number out of bounds", JSONSchema, []string{`{"minimum": 1e1000000}`}, ErrSchema, "/minimum"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var schemas [][]byte
			for _, schema := range test.schemas {
				schemas = append(schemas, []byte(schema))
			}
			v, err := Compile(test.kind, schemas)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v with %q in it", err, test.want, test.says)
			}
			if v.Kind() != None {
				t.Errorf("got a validator of kind %s beside the error", v.Kind())
			}
		})
	}
}

const orderSchema = `{
	"type": "object",
	"required": ["id", "lines"],
	"properties": {
		"id": {"type": "string", "pattern": "^O-[0-9]+$"},
		"lines": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "urn:line"}},
		"total": {"multipleOf": 0.01, "exclusiveMaximum": 1000000}
	},
	"additionalProperties": false
}`

const lineSchema = `{"$id": "urn:line", "type": "object", "properties": {"qty": {"type": "integer", "minimum": 1}, "sub/~": {"$ref": "urn:line"}}}`

func TestJSONSchema(t *testing.T) {
	v := compile(t, JSONSchema, orderSchema, lineSchema)
	tests := []struct {
		name, body string
		want       []string
	}{
		{"matches", `{"id": "O-12", "lines": [{"qty": 2}], "total": 12.34}`, nil},
		{"a member is missing", `{"lines": [{}]}`, []string{": /: ", "missing property 'id'"}},
		{"a member too many", `{"id": "O-1", "lines": [{}], "x": 1}`, []string{"'x'"}},
		{"another type", `[]`, []string{"got array, want object"}},
		{"a pattern", `{"id": "12", "lines": [{}]}`, []string{"/id", "pattern"}},
		{"inside the other schema", `{"id": "O-1", "lines": [{}, {"qty": 0}]}`, []string{"/lines/1/qty", "minimum"}},
		{"a name that a pointer escapes", `{"id": "O-1", "lines": [{"sub/~": {"qty": "x"}}]}`, []string{"/lines/0/sub~1~0/qty", "integer"}},
		{"an integer written with a fraction", `{"id": "O-1", "lines": [{"qty": 2.0}]}`, nil},
		{"two equal items", `{"id": "O-1", "lines": [{"qty": 1}, {"qty": 1.0}]}`, []string{"/lines"}},
		{"not a multiple", `{"id": "O-1", "lines": [{}], "total": 0.001}`, []string{"/total"}},
		{"an exponent that would panic", `{"id": "O-1", "lines": [{}], "total": 1e9999999}`, []string{"/total", "exponent"}},
		{"a number that would take long", `{"id": "O-1", "lines": [{}], "total": ` + strings.Repeat("9", MaxNumber+1) + `}`, []string{"/total", "400"}},
		{"the largest number", `{"id": "O-1", "lines": [{}], "total": 1E-400}`, []string{"/total"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, v, test.body, test.want...) })
	}
}

func TestJSONSchemaDialect(t *testing.T) {
	old := compile(t, JSONSchema, `{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true}`)
	check(t, old, `1`, "exclusive")
	check(t, old, `2`)
	check(t, compile(t, JSONSchema, `false`), `1`, "false")
}

// A Validator does not keep the schemas it was made from, and does not change the body.
func TestNothingIsShared(t *testing.T) {
	schema := []byte(`{"type": "string"}`)
	v, err := Compile(JSONSchema, [][]byte{schema})
	if err != nil {
		t.Fatal(err)
	}
	copy(schema, bytes.Repeat([]byte("x"), len(schema)))
	body := []byte(`"a"`)
	if err := v.Check(body); err != nil || string(body) != `"a"` {
		t.Errorf("got %v, body %s", err, body)
	}
}

func FuzzJSONSchema(f *testing.F) {
	f.Add([]byte(orderSchema), []byte(`{"id": "O-12", "lines": [{"qty": 2}], "total": 12.34}`))
	f.Add([]byte(`{"$ref": "#"}`), []byte(`1e400`))
	f.Add([]byte(`{"$defs": {"a": {"anyOf": [{"$dynamicRef": "#b"}, {"uniqueItems": true}]}}, "$ref": "#/$defs/a"}`), []byte(`[1, 1.0]`))
	f.Fuzz(func(t *testing.T, schema, body []byte) {
		v, err := Compile(JSONSchema, [][]byte{schema})
		if err != nil {
			if !errors.Is(err, ErrSchema) {
				t.Fatalf("%q: %v", schema, err)
			}
			return
		}
		var own *Error
		if err := v.Check(body); err != nil && (!errors.As(err, &own) || own.Reason == "") {
			t.Fatalf("%q, %q: %v", schema, body, err)
		}
	})
}
