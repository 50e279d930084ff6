package abi

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented: docs/abi.md names every function with its parameters and result, every error code with its number, and
// nothing else of that kind.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, f := range Functions {
		params := strings.ReplaceAll(strings.ReplaceAll(f.Params, " ", ", "), ":", " ")
		if want := "### " + f.Name + "(" + params + ") → " + f.Result + "\n"; !strings.Contains(doc, want) {
			t.Errorf("docs/abi.md has no heading %q", want)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^### \w+\(`).FindAllString(doc, -1)); n != len(Functions) {
		t.Errorf("docs/abi.md documents %d functions, there are %d", n, len(Functions))
	}
	for i := 1; i <= Errnos; i++ {
		no := Errno(-i)
		name, text, _ := strings.Cut(no.Error(), ": ")
		if name != no.Name() || text == "" {
			t.Errorf("code %d has the name %q and the text %q", no, no.Name(), no.Error())
		}
		if !regexp.MustCompile(`\| ` + name + ` \| -` + strings.TrimPrefix(itoa(i), "-") + ` \|`).MatchString(doc) {
			t.Errorf("docs/abi.md has no row for %s, -%d", name, i)
		}
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestErrnoOutOfTable(t *testing.T) {
	for _, no := range []Errno{0, 1, Errno(-Errnos - 1), -1 << 31} {
		if no.Name() != "" || !strings.Contains(no.Error(), "ABI error") {
			t.Errorf("%d: %q, %q", int32(no), no.Name(), no.Error())
		}
	}
}

func TestPropertyList(t *testing.T) {
	list := AppendProperty(AppendProperty(nil, "a", "1"), "", "")
	if want := []byte("\x01\x00\x00\x00a\x01\x00\x00\x001\x00\x00\x00\x00\x00\x00\x00\x00"); !bytes.Equal(list, want) {
		t.Errorf("got %q", list)
	}
	var got []string
	if !ParseProperties(list, func(n, v []byte) { got = append(got, string(n)+"="+string(v)) }) {
		t.Error("it was refused")
	}
	if strings.Join(got, " ") != "a=1 =" {
		t.Errorf("got %q", got)
	}
	for cut := 1; cut < len(list); cut++ {
		if cut == 10 {
			continue // exactly the first property
		}
		if ParseProperties(list[:cut], func(_, _ []byte) {}) {
			t.Errorf("the first %d bytes were accepted", cut)
		}
	}
	if ParseProperties([]byte("\xff\xff\xff\xffa"), func(_, _ []byte) {}) {
		t.Error("a length beyond the list was accepted")
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x01\x00\x00\x001"))
	f.Fuzz(func(t *testing.T, list []byte) {
		var again []byte
		ok := ParseProperties(list, func(n, v []byte) { again = AppendProperty(again, string(n), string(v)) })
		if ok && !bytes.Equal(again, list) {
			t.Errorf("%q was read as %q", list, again)
		}
	})
}

func TestLookup(t *testing.T) {
	if f, ok := Lookup("now"); !ok || f.Result != "i64" {
		t.Errorf("%+v, %v", f, ok)
	}
	if _, ok := Lookup("teleport"); ok {
		t.Error("a function that is not there was found")
	}
}
