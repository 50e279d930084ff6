package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley/broker"
)

// maxBytes is the greatest size of a file: far above any real one, and it bounds what a parser may spend.
const maxBytes = 4 << 20

// Load reads and checks the file at path. Its error is an ErrInvalid that names the file, and the line where there is one.
func Load(path string) (*File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxBytes {
		return nil, broker.ErrInvalid.With("%s: the file has %d bytes, at most %d are read", path, info.Size(), maxBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, broker.ErrInvalid.With("%s: the configuration file cannot be read: %v", path, err)
	}
	f, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Parse reads and checks data. name stands in front of errors, and its folder is where relative paths start.
func Parse(name string, data []byte) (f *File, err error) {
	// The parser is somebody else's: whatever bytes make it panic are a refused file, not a crash.
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, broker.ErrInvalid.With("%s: the file is not YAML (%v)", name, r)
		}
	}()
	root, err := parser.ParseBytes(data, 0)
	if err != nil {
		if twice := typeTwice(name, data); twice != nil {
			return nil, twice
		}
		return nil, located(name, err)
	}
	if len(root.Docs) > 1 && root.Docs[1].Body != nil {
		return nil, refuse(name, root.Docs[1].Body.GetToken().Position.Line, "a second document: one file holds one")
	}
	f = &File{name: name, root: root, dir: filepath.Dir(name)}
	if err := yaml.UnmarshalWithOptions(data, f, yaml.Strict()); err != nil {
		return nil, located(name, err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// Path makes a path of the file relative to the file's folder, as source: and schemas: are meant.
func (f *File) Path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

// Refuse names the file and the line of the value path leads to (keys and indexes) in err. An entry of the catalogue that is
// a refused value stays that entry, and so does an error that is no matter of the file, such as a cancelled context; any
// other becomes ErrInvalid.
func (f *File) Refuse(err error, path ...any) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	line := f.line(path...)
	var e *broker.Error
	if errors.As(err, &e) && e.Exit == broker.ExitUsage {
		c := *e
		c.Text = fmt.Sprintf("%s:%d: %s", f.name, line, strings.TrimPrefix(e.Text, broker.ErrInvalid.Text+": "))
		return &c
	}
	return refuse(f.name, line, "%v", err)
}

func refuse(name string, line int, format string, args ...any) error {
	return broker.ErrInvalid.With("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
}

// located turns an error of the YAML package into ours, with its line and without its picture of the source.
func located(name string, err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) || ye.GetToken() == nil {
		return broker.ErrInvalid.With("%s: %v", name, err)
	}
	text := ye.GetMessage()
	var unknown *yaml.UnknownFieldError
	var kind *yaml.TypeError
	var node *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unknown):
		text = strings.Replace(text, "unknown field", "unknown key", 1)
	case errors.As(err, &kind):
		text = "wants " + kindName(kind.DstType) + ", has " + kindName(kind.SrcType)
	case errors.As(err, &node):
		text = fmt.Sprintf("wants a %s, has a %s", node.Expected.YAMLName(), node.Actual.YAMLName())
	}
	return refuse(name, ye.GetToken().Position.Line, "%s", text)
}

// kindName says what kind of value a Go type stands for, in YAML's words.
func kindName(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a sequence"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Interface:
		return "a value"
	}
	return "a number"
}

// line finds the line of the value that path leads to (keys and indexes), or of the deepest part of it that is there.
func (f *File) line(path ...any) int {
	if len(f.root.Docs) == 0 || f.root.Docs[0].Body == nil {
		return 1
	}
	n := f.root.Docs[0].Body
	line := n.GetToken().Position.Line
	for _, step := range path {
		n = child(n, step)
		if n == nil {
			return line
		}
		line = firstLine(n)
	}
	return line
}

// typeTwice finds a contract that lists a message type twice (CT-2), which the YAML package knows as a key given twice only.
func typeTwice(name string, data []byte) error {
	root, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil || len(root.Docs) == 0 {
		return nil
	}
	contracts, ok := child(root.Docs[0].Body, "contracts").(*ast.SequenceNode)
	if !ok {
		return nil
	}
	for _, contract := range contracts.Values {
		messages, ok := child(contract, "messages").(*ast.MappingNode)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, pair := range messages.Values {
			key := pair.Key.GetToken()
			if seen[key.Value] {
				twice := *broker.ErrContractDuplicate
				twice.Text = fmt.Sprintf("%s:%d: %s: %q", name, key.Position.Line, twice.Text, key.Value)
				return &twice
			}
			seen[key.Value] = true
		}
	}
	return nil
}

// firstLine is where n begins: a mapping's own token is its first colon.
func firstLine(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position.Line
	}
	return n.GetToken().Position.Line
}

func child(n ast.Node, step any) ast.Node {
	switch v := n.(type) {
	case *ast.MappingNode:
		for _, pair := range v.Values {
			if key, ok := step.(string); ok && pair.Key.GetToken().Value == key {
				return pair.Value
			}
		}
	case *ast.SequenceNode:
		if i, ok := step.(int); ok && i < len(v.Values) {
			return v.Values[i]
		}
	case *ast.AnchorNode:
		return child(v.Value, step)
	case *ast.TagNode:
		return child(v.Value, step)
	}
	return nil
}
