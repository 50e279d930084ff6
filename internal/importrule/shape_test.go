package importrule

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Files are meant to stay below the first length; the second one fails.
const (
	longFile    = 400
	tooLongFile = 450
)

// nameless are package names that say nothing about what is inside.
var nameless = []string{"util", "utils", "common", "types", "models", "helpers", "misc"}

func badNames(files []source) []string {
	var bad []string
	for _, f := range files {
		if slices.Contains(nameless, strings.TrimSuffix(f.file.Name.Name, "_test")) {
			bad = append(bad, fmt.Sprintf("%s: package %s names no thing: name it after what it holds", f.path, f.file.Name.Name))
		}
	}
	return bad
}

func longFiles(files []source, limit int) []string {
	var long []string
	for _, f := range files {
		if !f.test && f.lines > limit {
			long = append(long, fmt.Sprintf("%s has %d lines, more than %d: one noun or one loop a file", f.path, f.lines, limit))
		}
	}
	return long
}

// undocumented are packages, exported names and methods without a comment. A
// comment on a group of constants or variables serves all of it.
func undocumented(files []source) []string {
	var bad []string
	hasComment, example := map[string]bool{}, map[string]string{}
	for _, f := range files {
		if f.test {
			continue
		}
		hasComment[f.dir] = hasComment[f.dir] || f.file.Doc != nil
		example[f.dir] = f.path
		for _, decl := range f.file.Decls {
			for _, name := range bare(decl) {
				bad = append(bad, fmt.Sprintf("%s: %s is exported and has no comment", f.at(name), name.Name))
			}
		}
	}
	for dir, ok := range hasComment {
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: package %s has no package comment", example[dir], dir))
		}
	}
	slices.Sort(bad)
	return bad
}

// bare are the exported names of one declaration that have no comment.
func bare(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && receiverExported(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			names = append(names, bareSpec(spec, d.Doc != nil)...)
		}
		return names
	}
	return nil
}

func bareSpec(spec ast.Spec, group bool) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		var names []*ast.Ident
		if s.Name.IsExported() && !group && s.Doc == nil && s.Comment == nil {
			names = append(names, s.Name)
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() {
			names = append(names, bareMethods(i)...)
		}
		return names
	case *ast.ValueSpec:
		if group || s.Doc != nil || s.Comment != nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(s.Names), func(n *ast.Ident) bool { return !n.IsExported() })
	}
	return nil
}

// bareMethods are an interface's methods without the contract that a caller and
// an implementer need.
func bareMethods(i *ast.InterfaceType) []*ast.Ident {
	var names []*ast.Ident
	for _, m := range i.Methods.List {
		if len(m.Names) > 0 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
			names = append(names, m.Names[0])
		}
	}
	return names
}

// receiverExported is true for functions and for methods of exported types.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

func TestShape(t *testing.T) {
	files := tree(t)
	for _, problem := range slices.Concat(badNames(files), undocumented(files), longFiles(files, tooLongFile)) {
		t.Error(problem)
	}
	for _, note := range longFiles(files, longFile) {
		t.Log(note)
	}
}

func TestBadNamesAndLengthsAreFound(t *testing.T) {
	long := example(t, "host/long.go", "package host\n"+strings.Repeat("\n", tooLongFile))
	if got := longFiles([]source{long}, tooLongFile); len(got) != 1 {
		t.Errorf("file of %d lines: got %q, want one problem", long.lines, got)
	}
	if got := badNames([]source{example(t, "host/util/x.go", "package util\n")}); len(got) != 1 {
		t.Errorf("package util: got %q, want one problem", got)
	}
}

func TestMissingCommentsAreFound(t *testing.T) {
	const doc = "// Package p is documented.\npackage p\n"
	for _, tc := range []struct {
		name, text string
		want       int
	}{
		{"package", "package p\n", 1},
		{"function", doc + "func F() {}\n", 1},
		{"documented function", doc + "// F does.\nfunc F() {}\n", 0},
		{"unexported function", doc + "func f() {}\n", 0},
		{"method of an exported type", doc + "// T is.\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}\n", 1},
		{"method of an unexported type", doc + "type t struct{}\nfunc (t) M() {}\n", 0},
		{"type", doc + "type T int\n", 1},
		{"interface method", doc + "// T is.\ntype T interface{ M() }\n", 1},
		{"constant", doc + "const C, d = 1, 2\n", 1},
		{"constants under one comment", doc + "// Kinds.\nconst (\n\tA = 1\n\tB = 2\n)\n", 0},
		{"constant with a comment behind it", doc + "const (\n\tA = 1 // first\n\tB = 2\n)\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := undocumented([]source{example(t, "host/x.go", tc.text)}); len(got) != tc.want {
				t.Errorf("got %q, want %d", got, tc.want)
			}
		})
	}
}
