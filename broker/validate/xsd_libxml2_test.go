//go:build libxml2

package validate

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	xsdvalidate "github.com/terminalstatic/go-xsd-validate"

	"parley/broker/validate/wellformed"
)

const shopSchema = `<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:o="urn:order" xmlns:m="urn:money" targetNamespace="urn:order" elementFormDefault="qualified">
  <xs:import namespace="urn:money"/>
  <xs:element name="order">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="customer" type="xs:string"/>
        <xs:choice>
          <xs:element name="card" type="o:card"/>
          <xs:element name="invoice" type="xs:date"/>
        </xs:choice>
        <xs:element name="line" type="o:line" maxOccurs="3"/>
      </xs:sequence>
      <xs:attribute name="id" type="xs:positiveInteger" use="required"/>
      <xs:attribute name="state" default="new"><xs:simpleType><xs:restriction base="xs:token"><xs:enumeration value="new"/><xs:enumeration value="paid"/></xs:restriction></xs:simpleType></xs:attribute>
    </xs:complexType>
    <xs:key name="lines"><xs:selector xpath="o:line"/><xs:field xpath="@sku"/></xs:key>
  </xs:element>
  <xs:simpleType name="card"><xs:restriction base="xs:string"><xs:pattern value="[0-9]{4}"/></xs:restriction></xs:simpleType>
  <xs:complexType name="line"><xs:simpleContent><xs:extension base="m:amount"><xs:attribute name="sku" type="xs:NCName" use="required"/></xs:extension></xs:simpleContent></xs:complexType>
</xs:schema>`

// order returns a body for shopSchema.
func order(attributes, children string) string {
	return `<order xmlns="urn:order" ` + attributes + `>` + children + `</order>`
}

func TestValidXML(t *testing.T) {
	v := compile(t, ValidXML, shopSchema, moneySchema, priceSchema)
	const customer, card, line = `<customer>Ada</customer>`, `<card>1234</card>`, `<line sku="a">1.50</line>`
	tests := []struct {
		name, body string
		want       []string
	}{
		{"valid", order(`id="1"`, customer+card+line), nil},
		{"valid, the other choice, all lines", order(`id="1" state="paid"`, customer+`<invoice>2026-11-29</invoice>`+line+`<line sku="b">0</line><line sku="c">12</line>`), nil},
		{"valid, prefixes", `<?xml version="1.0"?><x:order xmlns:x="urn:order" id="7"><x:customer/><x:card>0000</x:card><x:line sku="a">1</x:line></x:order>`, nil},
		{"another root of the collection", `<price xmlns="urn:price">1.25</price>`, nil},
		{"another root, wrong", `<price xmlns="urn:price">1.255</price>`, []string{"line 1, element price", "fractionDigits"}},
		{"an empty body", ``, []string{"matches no schema"}},
		{"malformed", order(`id="1"`, customer) + `<`, []string{"line 1, column"}},
		{"an entity bomb", bomb, []string{"document type"}},
		{"an unknown root", `<nothing/>`, []string{"element nothing", "No matching global declaration"}},
		{"the root in no namespace", strings.Replace(order(`id="1"`, customer+card+line), ` xmlns="urn:order"`, "", 1), []string{"No matching global declaration"}},
		{"a child in no namespace", order(`id="1"`, `<customer xmlns="">Ada</customer>`+card+line), []string{"element customer", "{urn:order}customer"}},
		{"the wrong order", order(`id="1"`, "\n"+card+customer+line), []string{"line 2, element card", "Expected is ( {urn:order}customer )"}},
		{"both choices", order(`id="1"`, customer+card+`<invoice>2026-11-29</invoice>`+line), []string{"element invoice", "not expected"}},
		{"no choice", order(`id="1"`, customer+line), []string{"Expected is one of"}},
		{"an element missing at the end", order(`id="1"`, customer+card), []string{"Missing child element"}},
		{"one too many", order(`id="1"`, customer+card+line+`<line sku="b">1</line><line sku="c">1</line><line sku="d">1</line>`), []string{"element line", "not expected"}},
		{"a required attribute missing", order(``, customer+card+line), []string{"element order", "'id' is required but missing"}},
		{"an attribute too many", order(`id="1" x="1"`, customer+card+line), []string{"'x' is not allowed"}},
		{"an attribute of the wrong type", order(`id="0"`, customer+card+line), []string{"positiveInteger"}},
		{"not in the enumeration", order(`id="1" state="lost"`, customer+card+line), []string{"enumeration"}},
		{"a pattern", order(`id="1"`, customer+`<card>12a4</card>`+line), []string{"element card", "pattern"}},
		{"a bound of an imported type", order(`id="1"`, customer+card+`<line sku="a">-1</line>`), []string{"minInclusive"}},
		{"no such date", order(`id="1"`, customer+`<invoice>2026-02-30</invoice>`+line), []string{"xs:date"}},
		{"a key twice", order(`id="1"`, customer+card+line+line), []string{"Duplicate key-sequence"}},
		{"text between elements", order(`id="1"`, customer+"loose"+card+line), []string{"Character content"}},
		{"a type named in the body", order(`id="1"`, customer+card+`<line xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="unknown" sku="a">1</line>`), []string{"element line"}},
		{"a schema location in the body is not followed", `<x xmlns="urn:x" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="urn:x /etc/passwd"/>`, []string{"No matching global declaration"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, v, test.body, test.want...) })
	}
	if v.Letter() != "X" {
		t.Errorf("got the letter %s, want X", v.Letter())
	}
}

// Two documents of one namespace, in a circle of imports with a document of none.
func TestValidXMLJoinsNamespaces(t *testing.T) {
	v := compile(t, ValidXML,
		`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a"><xs:import/><xs:element name="a"><xs:complexType><xs:sequence><xs:element ref="plain"/></xs:sequence></xs:complexType></xs:element></xs:schema>`,
		`<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a"><simpleType name="small"><restriction base="byte"/></simpleType></schema>`,
		`<schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:a="urn:a"><import namespace="urn:a" schemaLocation="x"/><element name="plain" type="a:small"/></schema>`,
	)
	check(t, v, `<a xmlns="urn:a"><plain xmlns="">127</plain></a>`)
	check(t, v, `<plain>-128</plain>`)
	check(t, v, `<a xmlns="urn:a"><plain xmlns="">128</plain></a>`, "element plain")
	check(t, v, `<plain>x</plain>`, "element plain", "not a valid value")
}

func TestCompileXMLRefuses(t *testing.T) {
	const open = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`
	for name, test := range map[string]struct{ schema, says string }{
		"an unknown type":     {open + "\n" + `<xs:element name="a" type="xs:nothing"/></xs:schema>`, "element decl. 'a', attribute 'type'"},
		"an ambiguous model":  {open + `<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="b" minOccurs="0"/><xs:element name="b"/></xs:sequence></xs:complexType></xs:element></xs:schema>`, "not determinist"},
		"a pattern":           {open + `<xs:simpleType name="a"><xs:restriction base="xs:string"><xs:pattern value="["/></xs:restriction></xs:simpleType></xs:schema>`, "pattern"},
		"an element twice":    {open + `<xs:element name="a"/><xs:element name="a"/></xs:schema>`, "already"},
		"a misplaced element": {open + `<xs:sequence/></xs:schema>`, "content is not valid"},
	} {
		_, err := Compile(ValidXML, [][]byte{[]byte(test.schema)})
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q in it", name, err, test.says)
		}
		if err != nil && strings.Contains(err.Error(), "/") && strings.Contains(err.Error(), "parley-schema-") {
			t.Errorf("%s: the temporary directory shows: %v", name, err)
		}
	}
}

func TestValidXMLIsBounded(t *testing.T) {
	v := compile(t, ValidXML, `<schema xmlns="http://www.w3.org/2001/XMLSchema"><element name="a" type="string"/></schema>`)
	check(t, v, `<a>`+strings.Repeat("x", 11_000_000)+`</a>`)
	check(t, v, `<a b="`+strings.Repeat("x", 11_000_000)+`"/>`, "libxml2 refuses")
	check(t, v, `<`+strings.Repeat("x", 60_000)+`/>`, "libxml2 refuses")
	check(t, v, `<a>`+strings.Repeat("x", MaxXMLBytes)+`</a>`, "at most 67108864")
}

// One Validator serves many goroutines, each with its own errors, while others are made and dropped.
func TestValidXMLConcurrently(t *testing.T) {
	v := compile(t, ValidXML, shopSchema, moneySchema)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			bad := fmt.Sprintf("<card>w%dx</card>", worker)
			for range 200 {
				if err := v.Check([]byte(order(`id="1"`, `<customer/><card>1234</card><line sku="a">1</line>`))); err != nil {
					t.Errorf("valid: %v", err)
				}
				err := v.Check([]byte(order(`id="1"`, `<customer/>`+bad+`<line sku="a">1</line>`)))
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("'w%dx'", worker)) {
					t.Errorf("worker %d: %v", worker, err)
				}
			}
			for range 10 {
				if _, err := Compile(ValidXML, [][]byte{[]byte(moneySchema)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// What package wellformed accepts, libxml2 accepts too: it never has the last word without a position.
func FuzzWellFormedAgainstLibxml2(f *testing.F) {
	if err := start(); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`<a/>`, `<?xml version="1.0"?><p:a xmlns:p="u" b='1'>&lt;<![CDATA[x]]><?q r?></p:a>`, "\uFEFF<a><!-- --></a>", `<a xml:lang="sv" xmlns:b="c" b:d="&#xA;"/>`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if wellformed.XML(body) != nil {
			return
		}
		document, err := xsdvalidate.NewXmlHandlerMem(body, xsdvalidate.ParsErrVerbose)
		if err != nil {
			t.Fatalf("%q: libxml2 refuses what we accept: %v", body, err)
		}
		document.Free()
	})
}

func FuzzValidXML(f *testing.F) {
	v := compile(f, ValidXML, shopSchema, moneySchema)
	f.Add([]byte(order(`id="1"`, `<customer/><card>1234</card><line sku="a">1</line>`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		var own *Error
		if err := v.Check(body); err != nil && (!errors.As(err, &own) || own.Reason == "") {
			t.Fatalf("%q: %v", body, err)
		}
	})
}
