//go:build !libxml2

package redisbroker

import (
	"encoding/json"
	"testing"

	"parley/broker"
)

// TestANamespaceWithXMLSchemaNeedsTheReleasedBuild: a binary without XML Schema says so instead of calling the record broken.
func TestANamespaceWithXMLSchemaNeedsTheReleasedBuild(t *testing.T) {
	schema := `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a"/></xs:schema>`
	record, err := json.Marshal(broker.MessageType{Name: "//t/a", Validation: "valid_xml", Schemas: [][]byte{[]byte(schema)}})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, &directory{}, broker.ErrNotAvailable, map[string]string{"m///t/a": string(record)})
}
