package wellformed

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestJSONAccepts(t *testing.T) {
	for _, body := range []string{
		`null`, `true`, `-0.5e+10`, `""`, `"[[[\"{"`, `{}`, `[]`, " {\"a\": [1, \"b\"], \"a\": null}\r\n", `"\ud800"`, `"å"`,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
	} {
		if err := JSON([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	tests := []struct{ name, body, position, says string }{
		{"nothing", ``, "line 1, column 1", "empty"},
		{"white space only", " \n", "line 2, column 1", "unexpected end"},
		{"a comma too many", "{\n\"a\": 1,}", "line 2, column 8", "invalid character '}'"},
		{"single quotes", `{'a': 1}`, "line 1, column 2", "invalid character"},
		{"two values", `1 2`, "line 1, column 3", "after top-level value"},
		{"a comment", `{} // x`, "line 1, column 4", "after top-level value"},
		{"NaN", `NaN`, "line 1, column 1", "invalid character 'N'"},
		{"a leading zero", `01`, "line 1, column 2", "after top-level value"},
		{"a control character in a string", "\"a\tb\"", "line 1, column 3", "in string literal"},
		{"a value cut off", `{"a": [1`, "line 1, column 9", "unexpected end"},
		{"a string cut off", `"abc`, "line 1, column 5", "unexpected end"},
		{"a byte order mark", "\uFEFF{}", "line 1, column 1", "byte order mark"},
		{"bytes that are not UTF-8", "{\"a\": \"\n\xc3\"}", "line 2, column 1", "0xC3 is not UTF-8"},
		{"too deep", strings.Repeat(`{"a":[`, MaxDepth/2) + "[", "line 1, column 769", "more than 256 deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { refused(t, JSON([]byte(test.body)), test.position, test.says) })
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, 2.5e3, "b\u00e5"], "c": null}`, `[[[[`, "\"\xff\"", ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := JSON(body)
		if err == nil && !json.Valid(body) {
			t.Fatalf("%q: accepted, but not JSON", body)
		}
		var own *Error
		if err != nil && (!errors.As(err, &own) || own.Line < 1 || own.Column < 1 || own.Reason == "") {
			t.Fatalf("%q: %v", body, err)
		}
	})
}
