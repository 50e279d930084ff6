package wellformed

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestXMLAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"one empty element":               `<a/>`,
		"a declaration":                   `<?xml version="1.0"?><a></a>`,
		"a full declaration":              `<?xml version='1.0' encoding="utf-8" standalone='no' ?>` + "\n<a/>",
		"a byte order mark":               "\uFEFF" + `<?xml version="1.0" encoding="UTF-8"?><a/>`,
		"comments and instructions":       "<!-- c --> <?pi x?><a><?pi?><!----></a>\n<!-- d -->\n",
		"references":                      `<a b="&lt;&#x41;&#65;&quot;">&amp;&#10;&#x10FFFF;</a>`,
		"a CDATA section":                 `<a><![CDATA[<b>&nope;&#0;]]></a>`,
		"namespaces":                      `<p:a xmlns:p="urn:p" xmlns="urn:d" b="1" p:b="2"><c xmlns=""/></p:a>`,
		"the prefix xml":                  `<a xml:lang="sv" xmlns:xml="http://www.w3.org/XML/1998/namespace"/>`,
		"a prefix declared again":         `<p:a xmlns:p="urn:1"><p:b xmlns:p="urn:2"/><p:c/></p:a>`,
		"white space before the tag ends": "<a b='1' \n/>",
		"names beyond ASCII":              `<Förråd артикул="ä"/>`,
		"nested as deep as allowed":       strings.Repeat("<a>", MaxDepth) + strings.Repeat("</a>", MaxDepth),
	} {
		if err := XML([]byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestXMLRefuses(t *testing.T) {
	bomb := `<?xml version="1.0"?>` + "\n" + `<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">]><lolz>&lol2;</lolz>`
	tests := []struct{ name, body, position, says string }{
		{"nothing", ``, "line 1, column 1", "empty"},
		{"white space only", " \n ", "line 2, column 2", "no root element"},
		{"text only", `hello`, "line 1, column 1", "outside the root"},
		{"an entity bomb", bomb, "line 2, column 1", "document type declaration"},
		{"an external entity", `<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>`, "line 1, column 1", "document type declaration"},
		{"an unfinished DOCTYPE", `<!DOCTYPE a [`, "line 1, column 1", "document type declaration"},
		{"a DOCTYPE inside", `<a><!ENTITY x "y"></a>`, "line 1, column 4", "document type declaration"},
		{"an unknown entity", `<a>&nbsp;</a>`, "line 1", "entity"},
		{"two roots", `<a/><b/>`, "line 1, column 5", "second root element <b>"},
		{"text after the root", "<a/>\nx", "line 1, column 5", "outside the root"},
		{"a CDATA section after the root", `<a/><![CDATA[ ]]>`, "line 1, column 5", "outside the root"},
		{"a reference after the root", `<a/>&#32;`, "line 1, column 5", "outside the root"},
		{"an element not closed", "<a>\n<b>", "line 2, column 4", "<b> is not closed"},
		{"crossed elements", `<a><b></a></b>`, "line 1, column 7", "</a> closes <b>"},
		{"an end tag too many", `<a/></a>`, "line 1, column 5", "closes nothing"},
		{"a tag cut off", `<a b="`, "line 1, column 7", "unexpected EOF"},
		{"an attribute without quotes", `<a b=1/>`, "line 1", "unquoted"},
		{"an attribute without a value", `<a b/>`, "line 1", "attribute name without ="},
		{"an attribute twice", `<a b="1" b="2"/>`, "line 1, column 1", "attribute b twice"},
		{"an attribute twice by namespace", `<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>`, "line 1, column 1", "attribute q:b twice"},
		{"a prefix declared twice", `<a xmlns:p="u" xmlns:p="v"/>`, "line 1, column 1", "attribute xmlns:p twice"},
		{"attributes without space", `<a b="1"c="2"/>`, "line 1, column 9", "white space"},
		{"< in an attribute", `<a b="<"/>`, "line 1", "unescaped <"},
		{"a prefix not declared", `<a><p:b/></a>`, "line 1, column 4", `prefix "p" is not declared`},
		{"a prefix out of scope", `<a><p:b xmlns:p="u"/><p:c/></a>`, "line 1, column 22", `prefix "p" is not declared`},
		{"an attribute prefix not declared", `<a p:b=""/>`, "line 1, column 1", `prefix "p" is not declared`},
		{"two colons", `<a:b:c xmlns:a="u"/>`, "line 1", ""},
		{"a leading colon", `<:a/>`, "line 1, column 1", "qualified name"},
		{"a digit after the colon", `<a:1 xmlns:a="u"/>`, "line 1, column 1", "qualified name"},
		{"an empty namespace for a prefix", `<a xmlns:p=""/>`, "line 1, column 1", "empty namespace"},
		{"xml bound elsewhere", `<a xmlns:xml="urn:x"/>`, "line 1, column 1", "prefix xml"},
		{"xmlns declared", `<a xmlns:xmlns="urn:x"/>`, "line 1, column 1", "xmlns may not"},
		{"an element named xmlns", `<xmlns:a/>`, "line 1, column 1", "prefix xmlns"},
		{"]]> in text", `<a>]]></a>`, "line 1", "]]>"},
		{"-- in a comment", `<a><!-- -- --></a>`, "line 1", "--"},
		{"a control character in a comment", "<a><!-- \x01 --></a>", "line 1, column 9", "U+0001"},
		{"a reference to NUL", `<a>&#0;</a>`, "line 1", ""},
		{"a reference to a surrogate", `<a>x&#xD800;</a>`, "line 1, column 5", "&#xD800; is not a character"},
		{"the same in an attribute", `<a b="&#xDFFF;"/>`, "line 1, column 7", "&#xDFFF; is not a character"},
		{"bytes that are not UTF-8", "<a>\n\xff</a>", "line 2, column 1", "0xFF is not UTF-8"},
		{"UTF-16", "\xff\xfe<\x00a\x00/\x00>\x00", "line 1, column 1", "not UTF-8"},
		{"another encoding", `<?xml version="1.0" encoding="ISO-8859-1"?><a/>`, "line 1", `"ISO-8859-1" is not supported`},
		{"version 1.1", `<?xml version="1.1"?><a/>`, "line 1", "version"},
		{"a declaration without version", `<?xml encoding="UTF-8"?><a/>`, "line 1, column 1", "XML declaration"},
		{"a declaration in the wrong order", `<?xml version="1.0" standalone="yes" encoding="UTF-8"?><a/>`, "line 1, column 1", "XML declaration"},
		{"a declaration later", ` <?xml version="1.0"?><a/>`, "line 1, column 2", "very start"},
		{"a declaration twice", `<?xml version="1.0"?><?xml version="1.0"?><a/>`, "line 1, column 22", "very start"},
		{"a declaration in capitals", `<?XML version="1.0"?><a/>`, "line 1, column 1", "very start"},
		{"an instruction without space", `<?a+b?><a/>`, "line 1, column 1", "white space"},
		{"too deep", strings.Repeat("<a>", MaxDepth+1), "line 1, column 769", "more than 256 deep"},
		{"too many attributes", `<a b` + strings.Repeat(`="" b`, MaxAttributes) + `=""/>`, "line 1, column 1", "more than 256 attributes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { refused(t, XML([]byte(test.body)), test.position, test.says) })
	}
}

// refused checks that err is an *Error with that position and reason.
func refused(t *testing.T, err error, position, says string) {
	t.Helper()
	var own *Error
	if !errors.As(err, &own) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if text := err.Error() + " "; !strings.Contains(text, position) || !strings.Contains(text, says) {
		t.Errorf("got %q, want %q and %q in it", text, position, says)
	}
}

// A body that tries to make the check slow takes time in proportion to its size.
func TestXMLIsLinear(t *testing.T) {
	head := strings.Repeat(`<a xmlns:p="u">`, MaxDepth-1)
	body := head + strings.Repeat(`<p:b p:c="&#65;"/>`, 100_000) + strings.Repeat("</a>", MaxDepth-1)
	start := time.Now()
	if err := XML([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%d bytes took %s", len(body), took)
	}
}

func FuzzXML(f *testing.F) {
	for _, seed := range []string{`<a/>`, `<?xml version="1.0"?><p:a xmlns:p="u" b='1'>&lt;<![CDATA[x]]></p:a>`, `<!DOCTYPE a [<!ENTITY b "c">]><a/>`, "\uFEFF<a><!-- --><?p q?></a>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := XML(body)
		var own *Error
		if err != nil && (!errors.As(err, &own) || own.Line < 1 || own.Column < 1 || own.Reason == "") {
			t.Fatalf("%q: %v", body, err)
		}
		// A document stays one when a comment is appended, and stops being one with a second root.
		if err == nil && (XML(append(body[:len(body):len(body)], "<!-- -->"...)) != nil || XML(append(body[:len(body):len(body)], "<b/>"...)) == nil) {
			t.Fatalf("%q: accepted, but not as one document", body)
		}
	})
}

func BenchmarkXML(b *testing.B) {
	body := []byte(`<order xmlns="urn:o">` + strings.Repeat(`<item id="12" name="screw">text &amp; more</item>`, 200) + `</order>`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := XML(body); err != nil {
			b.Fatal(err)
		}
	}
}
