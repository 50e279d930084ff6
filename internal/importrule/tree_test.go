package importrule

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the module that these rules are for.
const module = "parley"

// source is one Go file, whatever its build constraints.
type source struct {
	path  string // from the module's root, with slashes
	dir   string // its folder, "." for the root
	test  bool   // a _test.go file
	lines int
	file  *ast.File
	fset  *token.FileSet
}

// imports are the paths that the file imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// at is the line of a node, for a message.
func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// parse reads one file's text.
func parse(t *testing.T, name string, text []byte) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{
		path:  name,
		dir:   path.Dir(name),
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(text, []byte("\n")),
		file:  file,
		fset:  fset,
	}
}

// example parses text as if it stood in the repository at name.
func example(t *testing.T, name, text string) source { return parse(t, name, []byte(text)) }

// root is the module's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// tree is every Go file of this module: no testdata, and nothing of modules that
// lie inside it, such as bench.
func tree(t *testing.T) []source {
	t.Helper()
	top := root(t)
	var files []source
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != top && skipped(p, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, p)
		files = append(files, parse(t, filepath.ToSlash(name), text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found %d Go files in %s: the walk is broken", len(files), top)
	}
	return files
}

func skipped(dir, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// under reports whether a path is prefix or lies below it.
func under(p, prefix string) bool {
	return p == prefix || strings.HasPrefix(p, prefix+"/")
}
