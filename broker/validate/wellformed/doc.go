// Package wellformed checks that a message body is well-formed XML or JSON, strictly and within bounds, and says where
// and why when it is not.
//
// XML. Bodies are XML 1.0 with namespaces, in UTF-8, with or without a byte order mark. The tokens come from
// encoding/xml in strict mode; what that decoder lets through is checked here: exactly one root element and nothing but
// comments, processing instructions and white space around it; an XML declaration only at the very start; no attribute
// twice, by name or by namespace; white space between attributes; every namespace prefix declared; no character outside
// XML's range, written out or as a reference; no byte that is not UTF-8. A document type declaration is refused whole,
// with or without an internal subset, so there are no entities but the five of XML itself and nothing can be expanded
// (XML bombs) or fetched (external entities).
//
// JSON. Bodies are one RFC 8259 value in UTF-8 without a byte order mark. Members with equal names are allowed, as the
// RFC allows them.
//
// Bounds. Elements, arrays and objects nest at most MaxDepth deep; an element has at most MaxAttributes attributes. The
// size of the body is its queue's business. Time and memory are linear in the size of the body.
package wellformed
