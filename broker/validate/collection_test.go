package validate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/broker/validate/wellformed"
)

const (
	moneySchema = `<?xml version="1.0"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:money">
  <xs:simpleType name="amount"><xs:restriction base="xs:decimal"><xs:minInclusive value="0"/><xs:fractionDigits value="2"/></xs:restriction></xs:simpleType>
</xs:schema>`
	priceSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:m="urn:money" targetNamespace="urn:price" elementFormDefault="qualified">
  <xs:import namespace="urn:money"
             schemaLocation="http://example.com/never-fetched.xsd"/>
  <xs:element name="price" type="m:amount"/>
</xs:schema>`
)

func TestCollection(t *testing.T) {
	c, err := newCollection([][]byte{
		[]byte(priceSchema), []byte(moneySchema),
		[]byte(`<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:money"/>`),
		[]byte("\uFEFF" + `<schema xmlns="http://www.w3.org/2001/XMLSchema"><import namespace='urn:price'/></schema>`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(c.files)), []string{"all.xsd", "group2.xsd", "schema1.xsd", "schema2.xsd", "schema3.xsd", "schema4.xsd"}; !slices.Equal(got, want) {
		t.Fatalf("got the files %v, want %v", got, want)
	}
	price := string(c.files["schema1.xsd"])
	if want := `<xs:import schemaLocation="group2.xsd" namespace="urn:money"`; !strings.Contains(price, want) {
		t.Errorf("got %s, want %s in it", price, want)
	}
	if got, want := strings.Count(price, "\n"), strings.Count(priceSchema, "\n"); got != want {
		t.Errorf("got %d line feeds, want %d: errors would name other lines", got, want)
	}
	if strings.Contains(price, "never-fetched") {
		t.Error("the location of the import was kept")
	}
	for name, part := range map[string]string{
		"all.xsd":     `<include schemaLocation="schema4.xsd"/><import namespace="urn:price" schemaLocation="schema1.xsd"/><import namespace="urn:money" schemaLocation="group2.xsd"/>`,
		"group2.xsd":  ` targetNamespace="urn:money"><include schemaLocation="schema2.xsd"/><include schemaLocation="schema3.xsd"/>`,
		"schema4.xsd": `<import schemaLocation="schema1.xsd" namespace='urn:price'/>`,
	} {
		if !strings.Contains(string(c.files[name]), part) {
			t.Errorf("%s: got %s, want %s in it", name, c.files[name], part)
		}
		if err := wellformed.XML(c.files[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCollectionRefuses(t *testing.T) {
	const open = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`
	tests := []struct{ name, schema, says string }{
		{"not XML", "<a>\n<b></a>", "schema 1: XML, line 2, column 4"},
		{"a document type", `<!DOCTYPE x>` + open + `</xs:schema>`, "document type"},
		{"not a schema", `<a/>`, "root element is a"},
		{"a schema of something else", `<schema/>`, "root element is schema, not schema in the namespace"},
		{"an include", open + `<xs:include schemaLocation="a.xsd"/></xs:schema>`, "include is not supported"},
		{"a redefine", open + `<xs:redefine schemaLocation="a.xsd"/></xs:schema>`, "redefine is not supported"},
		{"an import of nothing", open + `<xs:import namespace="urn:x" schemaLocation="/etc/passwd"/></xs:schema>`, `"urn:x", which no document`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Compile(ValidXML, [][]byte{[]byte(test.schema)})
			if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q in it", err, test.says)
			}
		})
	}
}

func FuzzCollection(f *testing.F) {
	f.Add([]byte(priceSchema), []byte(moneySchema))
	f.Add([]byte(`<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:import id="a" schemaLocation = 'x' ></s:import></s:schema>`), []byte(moneySchema))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		c, err := newCollection([][]byte{first, second})
		if err != nil {
			return
		}
		for name, content := range c.files {
			if err := wellformed.XML(content); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, content)
			}
		}
	})
}
