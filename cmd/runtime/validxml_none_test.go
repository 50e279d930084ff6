//go:build !libxml2

package main

import "testing"

// TestValidXMLNeedsTheReleasedBuild: a binary that cannot check a schema says so when it is told of one, and takes no message that it
// could not check.
func TestValidXMLNeedsTheReleasedBuild(t *testing.T) {
	s := newShell(t)
	dir := writeFile(t, "s.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a"/></xs:schema>`)
	file := writeFile(t, "f.yaml", "message_types:\n  - {name: //t/a, validation: valid_xml, schemas: ["+dir+"]}\n")
	s.refused(2, []string{"apply", "-f", file}, "//t/a", "libxml2")
}
