// Package validate checks message bodies on arrival, as their message type declares.
//
// The kinds, what they accept, and what an empty body (NULL in Service Broker, MT-7) means to them:
//
//	kind              letter  accepts                                             an empty body
//	none              N       anything                                            passes
//	empty             E       the empty body                                      passes
//	well_formed_xml   X       one XML document, see package wellformed            passes
//	valid_xml         X       the same, valid against the schema collection       fails: it matches no schema
//	well_formed_json  N       one JSON value, see package wellformed              passes
//	json_schema       N       the same, valid against the first schema            fails: it matches no schema
//
// The letter is what a queue shows in its column validation. Service Broker knows three; JSON, our extension, shows N,
// since to a reader by that column it is plain bytes.
//
// XML schema collections. The documents of a collection belong together: an import is resolved by namespace within the
// collection, whatever its schemaLocation says, and include, redefine and override are refused because all documents of
// one namespace are joined anyway. The root of a body must be a global element of any of them. XML Schema 1.0 is checked
// by libxml2, which needs cgo: only a binary built with the tag libxml2 can compile valid_xml, any other refuses it with
// ErrNoXMLSchema. Schema locations named in bodies are not followed.
//
// JSON schemas. The first document is the schema; the others are found through their $id. The dialect is that of
// $schema, 2020-12 without one. Nothing is ever loaded from files or the network. Patterns are RE2, so none is slow.
//
// Bounds: at most MaxSchemas documents of together at most MaxSchemaBytes; bodies for valid_xml of at most MaxXMLBytes;
// the depth and attribute bounds of package wellformed; JSON numbers of at most MaxNumber characters with an exponent
// within ±MaxNumber where a schema is applied.
package validate
