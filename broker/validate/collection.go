package validate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"parley/broker/validate/wellformed"
)

// schemaNamespace is that of XML Schema itself.
const schemaNamespace = "http://www.w3.org/2001/XMLSchema"

// entry is the file of a collection that leads to all others.
const entry = "all.xsd"

// collection is a schema collection laid out as files that refer to each other by name only.
type collection struct {
	files map[string][]byte
}

// document is one schema of a collection.
type document struct {
	file    string
	target  string // its target namespace
	imports []importTag
}

// importTag is the start tag of an import: where it stands and which namespace it wants.
type importTag struct {
	start, end int
	namespace  string
}

// newCollection reads the documents and rewrites their imports to the files that hold the wanted namespaces.
func newCollection(schemas [][]byte) (*collection, error) {
	documents := make([]document, len(schemas))
	groups := map[string][]string{} // files of each namespace
	var order []string
	for i, schema := range schemas {
		if err := wellformed.XML(schema); err != nil {
			return nil, fmt.Errorf("%w: schema %d: %w", ErrSchema, i+1, err)
		}
		d, err := readSchema(schema)
		if err != nil {
			return nil, fmt.Errorf("%w: schema %d: %w", ErrSchema, i+1, err)
		}
		d.file = fmt.Sprintf("schema%d.xsd", i+1)
		documents[i] = d
		if !slices.Contains(order, d.target) {
			order = append(order, d.target)
		}
		groups[d.target] = append(groups[d.target], d.file)
	}
	c := &collection{files: map[string][]byte{}}
	homes := c.addGroups(order, groups)
	for i, d := range documents {
		rewritten, err := rewrite(schemas[i], d, homes)
		if err != nil {
			return nil, fmt.Errorf("%w: schema %d: %w", ErrSchema, i+1, err)
		}
		c.files[d.file] = rewritten
	}
	c.addEntry(order, groups, homes)
	return c, nil
}

// addGroups returns the one file that stands for each namespace; where several documents share it, that file joins them.
func (c *collection) addGroups(order []string, groups map[string][]string) map[string]string {
	homes := map[string]string{}
	for i, namespace := range order {
		files := groups[namespace]
		if len(files) == 1 {
			homes[namespace] = files[0]
			continue
		}
		var b bytes.Buffer
		b.WriteString(`<schema xmlns="` + schemaNamespace + `"`)
		if namespace != "" {
			b.WriteString(` targetNamespace="` + attribute(namespace) + `"`)
		}
		b.WriteString(`>`)
		for _, file := range files {
			b.WriteString(`<include schemaLocation="` + file + `"/>`)
		}
		b.WriteString(`</schema>`)
		homes[namespace] = fmt.Sprintf("group%d.xsd", i+1)
		c.files[homes[namespace]] = b.Bytes()
	}
	return homes
}

// addEntry writes the file that brings all namespaces together.
func (c *collection) addEntry(order []string, groups map[string][]string, homes map[string]string) {
	var b bytes.Buffer
	b.WriteString(`<schema xmlns="` + schemaNamespace + `">`)
	for _, file := range groups[""] {
		b.WriteString(`<include schemaLocation="` + file + `"/>`)
	}
	for _, namespace := range order {
		if namespace != "" {
			b.WriteString(`<import namespace="` + attribute(namespace) + `" schemaLocation="` + homes[namespace] + `"/>`)
		}
	}
	b.WriteString(`</schema>`)
	c.files[entry] = b.Bytes()
}

// readSchema reads what the collection must know of a document, which is known to be well-formed.
func readSchema(schema []byte) (document, error) {
	mark := []byte("\uFEFF")
	skip := 0
	if bytes.HasPrefix(schema, mark) {
		skip = len(mark)
	}
	decoder := xml.NewDecoder(bytes.NewReader(schema[skip:]))
	var d document
	for depth := 0; ; {
		start := skip + int(decoder.InputOffset())
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err != nil {
			return d, err
		}
		switch t := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			end := skip + int(decoder.InputOffset())
			if err := d.element(t, depth, start, end); err != nil {
				return d, err
			}
			depth++
		}
	}
}

// element notes the target namespace of the root and the imports below it.
func (d *document) element(t xml.StartElement, depth, start, end int) error {
	isSchema := t.Name.Space == schemaNamespace
	switch {
	case depth == 0 && (!isSchema || t.Name.Local != "schema"):
		return fmt.Errorf("the root element is %s, not schema in the namespace %s", t.Name.Local, schemaNamespace)
	case depth == 0:
		d.target = value(t, "targetNamespace")
	case depth != 1 || !isSchema:
	case t.Name.Local == "import":
		d.imports = append(d.imports, importTag{start, end, value(t, "namespace")})
	case t.Name.Local == "include" || t.Name.Local == "redefine" || t.Name.Local == "override":
		return fmt.Errorf("%s is not supported: put the other document into the collection, documents of one namespace are joined", t.Name.Local)
	}
	return nil
}

// value returns an attribute without a namespace, or "".
func value(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// location finds the schemaLocation of an import's start tag.
var location = regexp.MustCompile(`[ \t\r\n]schemaLocation[ \t\r\n]*=[ \t\r\n]*(?:"[^"]*"|'[^']*')`)

// rewrite points the imports of a document to the files of the collection. Lines keep their numbers.
func rewrite(schema []byte, d document, homes map[string]string) ([]byte, error) {
	var b bytes.Buffer
	last := 0
	for _, tag := range d.imports {
		file, found := homes[tag.namespace]
		if !found {
			return nil, fmt.Errorf("it imports the namespace %q, which no document of the collection has", tag.namespace)
		}
		b.Write(schema[last:tag.start])
		text := location.ReplaceAllStringFunc(string(schema[tag.start:tag.end]), func(old string) string {
			return strings.Repeat("\n", strings.Count(old, "\n"))
		})
		name := strings.IndexAny(text, " \t\r\n/>")
		b.WriteString(text[:name] + ` schemaLocation="` + file + `"` + text[name:])
		last = tag.end
	}
	b.Write(schema[last:])
	return b.Bytes(), nil
}

// attribute escapes a text for an attribute in double quotes.
func attribute(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return "" // a strings.Builder takes every write
	}
	return b.String()
}
