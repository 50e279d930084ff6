package wellformed

import (
	"encoding/xml"
	"strings"
)

const (
	xmlNamespace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace = "http://www.w3.org/2000/xmlns/"
)

// element is an open element: its name as written, and what its declarations hide until it closes.
type element struct {
	name   string
	hidden []binding
}

// binding is a namespace prefix and what it stood for; a prefix that stood for nothing is not bound.
type binding struct {
	prefix, namespace string
	bound             bool
}

// written returns a name as it stands in the document.
func written(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

// startElement checks a start tag and opens the element.
func (d *document) startElement(t xml.StartElement) error {
	name := written(t.Name)
	switch {
	case len(d.open) == 0 && d.root:
		return d.fail(d.start, "a second root element <%s>", name)
	case len(d.open) == MaxDepth:
		return d.fail(d.start, "nested more than %d deep", MaxDepth)
	case len(t.Attr) > MaxAttributes:
		return d.fail(d.start, "<%s> has more than %d attributes", name, MaxAttributes)
	}
	d.root = true
	if offset := tightAttribute(d.raw()); offset >= 0 {
		return d.fail(d.start+offset, "white space is needed between attributes of <%s>", name)
	}
	if err := d.references(); err != nil {
		return err
	}
	hidden, err := d.declare(t)
	if err != nil {
		return err
	}
	d.open = append(d.open, element{name: name, hidden: hidden})
	return d.names(t)
}

// endElement checks that an end tag closes the innermost element.
func (d *document) endElement(t xml.EndElement) error {
	name := written(t.Name)
	if len(d.open) == 0 {
		return d.fail(d.start, "</%s> closes nothing", name)
	}
	last := len(d.open) - 1
	if d.open[last].name != name {
		return d.fail(d.start, "</%s> closes <%s>", name, d.open[last].name)
	}
	for _, b := range d.open[last].hidden {
		if b.bound {
			d.scope[b.prefix] = b.namespace
		} else {
			delete(d.scope, b.prefix)
		}
	}
	d.open = d.open[:last]
	return nil
}

// declare puts the prefixes that t declares into scope and returns what they hide. A prefix declared twice is an
// attribute that occurs twice, which names refuses.
func (d *document) declare(t xml.StartElement) (hidden []binding, err error) {
	for _, a := range t.Attr {
		prefix := ""
		switch {
		case a.Name.Space == "xmlns":
			prefix = a.Name.Local
		case a.Name.Space != "" || a.Name.Local != "xmlns":
			continue
		}
		if reason := refuseDeclaration(prefix, a.Value); reason != "" {
			return nil, d.fail(d.start, "%s", reason)
		}
		namespace, bound := d.scope[prefix]
		hidden = append(hidden, binding{prefix, namespace, bound})
		d.scope[prefix] = a.Value
	}
	return hidden, nil
}

// refuseDeclaration says which rule of XML namespaces a declaration breaks, or "".
func refuseDeclaration(prefix, namespace string) string {
	switch {
	case prefix == "xmlns":
		return "the prefix xmlns may not be declared"
	case (prefix == "xml") != (namespace == xmlNamespace):
		return "the prefix xml and its namespace belong to each other"
	case namespace == xmlnsNamespace:
		return "the namespace of xmlns may not be declared"
	case prefix != "" && namespace == "":
		return "the prefix " + prefix + " is declared with an empty namespace"
	}
	return ""
}

// names checks that the names of t are qualified names with declared prefixes, and that no attribute occurs twice.
func (d *document) names(t xml.StartElement) error {
	if t.Name.Space == "xmlns" {
		return d.fail(d.start, "an element may not have the prefix xmlns")
	}
	if _, err := d.namespace(t.Name, true); err != nil {
		return err
	}
	seen := make(map[xml.Name]bool, len(t.Attr))
	for _, a := range t.Attr {
		space, err := d.namespace(a.Name, false)
		if err != nil {
			return err
		}
		expanded := xml.Name{Space: space, Local: a.Name.Local}
		if seen[expanded] {
			return d.fail(d.start, "<%s> has the attribute %s twice", written(t.Name), written(a.Name))
		}
		seen[expanded] = true
	}
	return nil
}

// namespace returns the namespace of a name in scope. The decoder has checked the whole of name, colon
// included, but not that what follows the colon begins like a name.
func (d *document) namespace(name xml.Name, isElement bool) (string, error) {
	if strings.Contains(name.Local, ":") || (name.Space != "" && !beginsName(name.Local)) {
		return "", d.fail(d.start, "the name %q is not a qualified name", written(name))
	}
	switch {
	case name.Space == "xml":
		return xmlNamespace, nil
	case name.Space == "xmlns":
		return xmlnsNamespace, nil
	case name.Space == "" && !isElement:
		return "", nil
	}
	if namespace, bound := d.scope[name.Space]; bound || name.Space == "" {
		return namespace, nil
	}
	return "", d.fail(d.start, "the namespace prefix %q is not declared", name.Space)
}

// tightAttribute returns the offset of an attribute that follows the one before it without white space, or -1. The
// decoder has checked the rest of the tag's grammar.
func tightAttribute(tag []byte) int {
	quote := byte(0)
	for i, c := range tag {
		switch {
		case quote != 0 && c == quote:
			quote = 0
			if i+1 < len(tag) && !isSpace(tag[i+1]) && tag[i+1] != '>' && tag[i+1] != '/' {
				return i + 1
			}
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	return -1
}
