//go:build libxml2

package validate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	xsdvalidate "github.com/terminalstatic/go-xsd-validate"

	"parley/broker/validate/wellformed"
)

// start initialises libxml2 once for the life of the process.
var start = sync.OnceValue(xsdvalidate.Init)

// grammar is a compiled collection. libxml2's memory is freed when the grammar is collected.
type grammar struct {
	handler *xsdvalidate.XsdHandler
}

// compileXML compiles a collection with libxml2. Since libxml2 resolves imports through files only, the collection is
// laid out in a temporary directory while it is compiled.
func compileXML(schemas [][]byte) (func([]byte) *Error, error) {
	c, err := newCollection(schemas)
	if err != nil {
		return nil, err
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("start libxml2: %w", err)
	}
	dir, err := os.MkdirTemp("", "parley-schema-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, content := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	// Without the verbose option the library loses the reason.
	handler, err := xsdvalidate.NewXsdHandlerUrl(filepath.Join(dir, entry), xsdvalidate.ParsErrVerbose)
	if err != nil {
		reason := strings.ReplaceAll(strings.TrimSpace(err.Error()), dir+string(filepath.Separator), "")
		return nil, fmt.Errorf("%w: %s", ErrSchema, reason)
	}
	g := &grammar{handler: handler}
	runtime.AddCleanup(g, func(h *xsdvalidate.XsdHandler) { h.Free() }, handler)
	return g.check, nil
}

// check checks a body that is not empty.
func (g *grammar) check(body []byte) *Error {
	if len(body) > MaxXMLBytes {
		return &Error{Kind: ValidXML, Reason: fmt.Sprintf("%d bytes, at most %d are checked against a schema", len(body), MaxXMLBytes)}
	}
	// First in Go: it knows columns, and it keeps document types and bad bytes away from libxml2.
	if err := wellformed.XML(body); err != nil {
		return malformed(ValidXML, err)
	}
	err := g.handler.ValidateMem(body, xsdvalidate.ParsErrDefault)
	runtime.KeepAlive(g)
	var invalid xsdvalidate.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && len(invalid.Errors) > 0:
		first := invalid.Errors[0]
		return &Error{Kind: ValidXML, Position: fmt.Sprintf("line %d, element %s", first.Line, first.NodeName), Reason: strings.TrimSpace(first.Message)}
	}
	return &Error{Kind: ValidXML, Reason: "libxml2 refuses the document (a name above 50,000 or an attribute above 10,000,000 bytes?): " + err.Error()}
}
