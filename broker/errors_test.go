package broker

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestErrorsAreComparedByEntryNotByText(t *testing.T) {
	err := fmt.Errorf("receive: %w", ErrQueueDisabled.With("queue %q", "q"))
	if !errors.Is(err, ErrQueueDisabled) {
		t.Error("an entry with more text is not the entry")
	}
	if errors.Is(err, ErrSendRetention) {
		t.Error("an entry is another entry")
	}
	if got, want := err.Error(), `receive: 9617: the queue is off: queue "q"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ErrLockLost.Error()[:16], "MessageLockLost:"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if ErrQueueDisabled.Text != "the queue is off" {
		t.Error("With altered the catalogue")
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitDone},
		{errors.New("anything"), ExitFailed},
		{ErrName, ExitUsage},
		{fmt.Errorf("x: %w", ErrUnknownEntity.With("q")), ExitNotFound},
		{errors.Join(errors.New("first"), ErrUnreachable), ExitUnreachable},
		{ErrResubmitEnded, ExitConflict},
		{ErrMessageSize, ExitFailed},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

// TestTheCatalogueIsWhole reads errors.go: a name must lead to one entry, and each needs a reason, an exit code, a text, and a
// comment that says when it is returned.
func TestTheCatalogueIsWhole(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	seen, n := map[string]string{}, 0
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			n++
			checkEntry(t, s.(*ast.ValueSpec), seen)
		}
	}
	if n < 30 {
		t.Errorf("found only %d entries", n)
	}
}

func checkEntry(t *testing.T, v *ast.ValueSpec, seen map[string]string) {
	name := v.Names[0].Name
	if doc := v.Doc.Text(); !strings.HasPrefix(doc, name+" is returned ") {
		t.Errorf("%s: its comment does not begin with %q: %q", name, name+" is returned", doc)
	}
	got := map[string]string{}
	lit := v.Values[0].(*ast.UnaryExpr).X.(*ast.CompositeLit)
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		switch x := kv.Value.(type) {
		case *ast.BasicLit:
			got[kv.Key.(*ast.Ident).Name] = x.Value
		case *ast.Ident:
			got[kv.Key.(*ast.Ident).Name] = x.Name
		}
	}
	for _, f := range []string{"Reason", "Exit", "Text"} {
		if got[f] == "" {
			t.Errorf("%s has no %s", name, f)
		}
	}
	for _, f := range []string{"Reason", "Number"} {
		if got[f] == "" {
			continue
		}
		if other := seen[f+got[f]]; other != "" && !(f == "Reason" && name == "ErrCorrupt") {
			t.Errorf("%s and %s have the same %s", name, other, f)
		}
		seen[f+got[f]] = name
	}
}
