package sbxml

import (
	"errors"
	"strings"
	"testing"

	"parley/broker/validate/wellformed"
)

// The example of the Service Broker documentation, laid out as it is there.
const documented = `<?xml version="1.0"?>
<Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker">
<Code>12</Code>
<Description>
Unknown cost center "127-1000". Please check the cost center list
and resubmit the report.
</Description>
</Error>
`

const documentedText = `
Unknown cost center "127-1000". Please check the cost center list
and resubmit the report.
`

func TestDocumentedExample(t *testing.T) {
	code, text, err := Parse([]byte(documented))
	if code != 12 || text != documentedText || err != nil {
		t.Errorf("got %d, %q, %v, want 12, %q", code, text, err, documentedText)
	}
	// The documentation reformats its example for readability; what is written has no space between the elements.
	want := strings.ReplaceAll(strings.TrimSpace(documented), ">\n<", "><")
	if got := string(Encode(12, documentedText)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEncode(t *testing.T) {
	tests := []struct {
		name string
		code int
		text string
		want string
	}{
		{"a broker's error", -8489, "The lifetime is over.", `<Code>-8489</Code><Description>The lifetime is over.</Description>`},
		{"markup is escaped", 1, `<a b="1">&']]>`, `<Description>&lt;a b="1"&gt;&amp;']]&gt;</Description>`},
		{"an empty text", 1, "", `<Code>1</Code><Description></Description>`},
		{"a carriage return survives", 1, "a\r\n\tb", "<Description>a&#xD;\n\tb</Description>"},
		{"what XML cannot hold", 1, "a\x00\x1b\xff\uFFFEb", "<Description>a\uFFFD\uFFFD\uFFFD\uFFFDb</Description>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := string(Encode(test.code, test.text))
			if !strings.HasPrefix(got, `<?xml version="1.0"?><Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker"><Code>`) || !strings.HasSuffix(got, test.want+"</Error>") {
				t.Errorf("got %s, want %s at its end", got, test.want)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	tests := []struct {
		name, body string
		code       int
		text       string
	}{
		{"the other namespace", `<Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker/Error"><Code>-8489</Code><Description>x</Description></Error>`, -8489, "x"},
		{"no namespace", `<Error><Code>1</Code><Description>x</Description></Error>`, 1, "x"},
		{"prefixes", `<e:Error xmlns:e="u"><e:Code>1</e:Code><e:Description>x</e:Description></e:Error>`, 1, "x"},
		{"Message for Description", `<Error><Code>1</Code><Message>x</Message></Error>`, 1, "x"},
		{"the other order, space around the code", "<Error><Description>x</Description><Code>\n 2147483647 </Code></Error>", 2147483647, "x"},
		{"references, a CDATA section, a comment", `<Error><Code>1</Code><Description>&lt;a&#38;<!-- c --><![CDATA[<b>]]></Description></Error>`, 1, "<a&<b>"},
		{"unknown elements", `<Error><Extra><Code>9</Code></Extra><Code>1</Code><Description/></Error>`, 1, ""},
		{"a byte order mark", "\uFEFF<Error><Code>1</Code><Description>x</Description></Error>", 1, "x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, text, err := Parse([]byte(test.body))
			if code != test.code || text != test.text || err != nil {
				t.Errorf("got %d, %q, %v, want %d, %q", code, text, err, test.code, test.text)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, body, says string }{
		{"nothing", ``, "empty"},
		{"another root", `<Fault><Code>1</Code><Description>x</Description></Fault>`, "root element is Fault"},
		{"no code", `<Error><Description>x</Description></Error>`, "0 Code"},
		{"no text", `<Error><Code>1</Code></Error>`, "0 Description"},
		{"two codes", `<Error><Code>1</Code><Code>2</Code><Description>x</Description></Error>`, "2 Code"},
		{"both names of the text", `<Error><Code>1</Code><Description>x</Description><Message>y</Message></Error>`, "2 Description"},
		{"a code in words", `<Error><Code>twelve</Code><Description>x</Description></Error>`, `"twelve"`},
		{"a code too large", `<Error><Code>2147483648</Code><Description>x</Description></Error>`, "32-bit"},
		{"markup in the text", `<Error><Code>1</Code><Description>a<b/></Description></Error>`, "b inside Description"},
		{"a document type", `<!DOCTYPE Error [<!ENTITY a "b">]><Error><Code>1</Code><Description>&a;</Description></Error>`, "document type"},
		{"two documents", `<Error><Code>1</Code><Description>x</Description></Error><Error/>`, "second root"},
		{"too long", `<Error><Code>1</Code><Description>` + strings.Repeat("x", MaxBody) + `</Description></Error>`, "at most 262144"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, text, err := Parse([]byte(test.body))
			if !errors.Is(err, ErrNotError) || !strings.Contains(err.Error(), test.says) || code != 0 || text != "" {
				t.Errorf("got %d, %q, %v, want %q in the error", code, text, err, test.says)
			}
		})
	}
	var position *wellformed.Error
	if _, _, err := Parse([]byte("<Error>\n<Code>")); !errors.As(err, &position) || position.Line != 2 {
		t.Errorf("got %v, want a position in line 2", err)
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		TypeError:     "http://schemas.microsoft.com/SQL/ServiceBroker/Error",
		TypeEndDialog: "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog",
		"https://schemas.microsoft.com/SQL/ServiceBroker/Error":       TypeError,
		"https://schemas.microsoft.com/SQL/ServiceBroker/EndDialog":   TypeEndDialog,
		"https://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer": TypeDialogTimer,
		"https://schemas.microsoft.com/SQL/ServiceBroker/error":       "https://schemas.microsoft.com/SQL/ServiceBroker/error",
		"HTTPS://schemas.microsoft.com/SQL/ServiceBroker/Error":       "HTTPS://schemas.microsoft.com/SQL/ServiceBroker/Error",
		"https://example.com/Order":                                   "https://example.com/Order",
		"//shop/Order":                                                "//shop/Order",
		"":                                                            "",
	} {
		if got := Canonical(name); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", name, got, want)
		}
	}
	if IsSystem("https://schemas.microsoft.com/SQL/ServiceBroker/Error") || !IsSystem(TypeDialogTimer) {
		t.Error("IsSystem takes canonical names only")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(documented))
	f.Add(Encode(-9615, "<&>\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		code, text, err := Parse(body)
		if err != nil {
			if !errors.Is(err, ErrNotError) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if again, same, err := Parse(Encode(code, text)); again != code || same != text || err != nil {
			t.Fatalf("%q: %d, %q read back as %d, %q, %v", body, code, text, again, same, err)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add(12, documentedText)
	f.Add(-8489, "a\x00\xff]]>&#0;\r")
	f.Fuzz(func(t *testing.T, code int, text string) {
		if err := wellformed.XML(Encode(code, text)); err != nil {
			t.Fatalf("%d, %q: %v", code, text, err)
		}
	})
}
