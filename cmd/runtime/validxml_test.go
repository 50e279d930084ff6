//go:build libxml2

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trips is a contract whose types are XML of a collection of two schemas, one of which imports the other.
func trips(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"trip.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:m="urn:money" targetNamespace="urn:trip" elementFormDefault="qualified">
  <xs:import namespace="urn:money"/>
  <xs:element name="trip"><xs:complexType><xs:sequence>
    <xs:element name="to" type="xs:string"/><xs:element name="cost" type="m:amount"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>`,
		"money.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:money">
  <xs:simpleType name="amount"><xs:restriction base="xs:decimal"><xs:minInclusive value="0"/></xs:restriction></xs:simpleType>
</xs:schema>`,
		"f.yaml": `
queues: [{name: desk}, {name: trips}]
message_types:
  - {name: //trip/Ask, validation: valid_xml, schemas: [trip.xsd, money.xsd]}
contracts:
  - {name: //trip/Plan, messages: {//trip/Ask: any}}
services:
  - {name: //trip/Desk, queue: desk}
  - {name: //trip/Office, queue: trips, contracts: [//trip/Plan]}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "f.yaml")
}

const (
	goodTrip = `<trip xmlns="urn:trip"><to>Oslo</to><cost>12.50</cost></trip>`
	badTrip  = `<trip xmlns="urn:trip"><to>Oslo</to><cost>-1</cost></trip>` // well-formed, and against the imported schema
)

// beginTrip begins a dialog on the contract.
func (s shell) beginTrip() string {
	s.t.Helper()
	return s.must("dialog", "begin", "--from", "//trip/Desk", "--to", "//trip/Office", "--contract", "//trip/Plan").object(s.t)["conversation_handle"].(string)
}

// wantBounce wants one Error with that code, whose text says why, on a conversation that it leaves in ER.
func (s shell) wantBounce(handle, code string) {
	s.t.Helper()
	got := s.receive(handle)
	body := got["body"].(string)
	if !strings.HasSuffix(got["message_type"].(string), "/Error") || !strings.Contains(body, "<Code>"+code+"</Code>") ||
		!strings.Contains(body, "element cost") || !strings.Contains(body, "minInclusive") {
		s.t.Errorf("the sender received %v, want an Error %s that names the element and the rule", got, code)
	}
	if got := s.must("dialog", "show", handle).object(s.t)["state"]; got != "ER" {
		s.t.Errorf("the sender's side is %v, want ER", got)
	}
}

// TestValidXMLBounces: a body that its schema collection refuses comes back to whichever side sent it, also after it waited for a
// queue to be turned on. What the schemas allow arrives.
func TestValidXMLBounces(t *testing.T) {
	s := newShell(t)
	file := trips(t)
	s.must("apply", "-f", file)
	h := s.beginTrip()
	s.must("dialog", "send", h, "--type", "//trip/Ask", "--body", goodTrip)
	far := s.must("dialog", "show", h).object(t)["far_side"].(map[string]any)["conversation_handle"].(string)
	if got := s.receive(far); got["body"] != goodTrip || got["validation"] != "X" {
		t.Errorf("the office received %v", got)
	}
	s.must("dialog", "send", h, "--type", "//trip/Ask", "--body", badTrip)
	s.wantBounce(h, "-9615")
	s.wantCount("trips", "total", 0)

	answered := s.beginTrip()
	s.must("dialog", "send", answered, "--type", "//trip/Ask", "--body", goodTrip)
	far = s.must("dialog", "show", answered).object(t)["far_side"].(map[string]any)["conversation_handle"].(string)
	s.must("dialog", "send", far, "--type", "//trip/Ask", "--body", badTrip)
	s.wantBounce(far, "-9616") // it overtakes what waits
	s.wantCount("desk", "total", 0)

	parked := s.beginTrip()
	s.must("queue", "disable", "trips")
	s.must("dialog", "send", parked, "--type", "//trip/Ask", "--body", badTrip)
	s.must("queue", "enable", "trips")
	p := s.start("serve", "-f", file) // a host moves on what waits
	p.ready()
	s.wantBounce(parked, "-9615")
	if r := p.end(); r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
	s.must("audit")
}
