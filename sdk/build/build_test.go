package build

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package main

import "parley/sdk"

func init() { sdk.Handle(func(u *sdk.Unit) error { return u.Message(0).Reply(sdk.Outgoing{Body: extra()}) }) }

func main() {}
`

const extra = `package main

func extra() []byte { return []byte("extra") }
`

// files writes files to a folder outside of this module.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.wasm")
	if err := Build(t.Context(), dir, out); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01")) || !bytes.Contains(wasm, []byte("parley_handle")) {
		t.Fatalf("%d bytes that are no handler", len(wasm))
	}
	return wasm
}

// TestOutside: a folder outside of this module is built with the embedded SDK, with or without a go.mod, always to the
// same bytes, and is left as it was.
func TestOutside(t *testing.T) {
	loose := files(t, map[string]string{"main.go": source, "extra.go": extra})
	if !bytes.Equal(build(t, loose), build(t, files(t, map[string]string{"main.go": source, "extra.go": extra}))) {
		t.Error("the same sources in two folders give different bytes")
	}
	const mod = "module example.com/stock\n\ngo 1.24\n"
	module := files(t, map[string]string{"main.go": source, "extra.go": extra, "go.mod": mod, "go.work": "nonsense\n"})
	build(t, module)
	build(t, files(t, map[string]string{"main.go": source, "extra.go": extra, "go.mod": mod + "\nrequire parley v0.0.0\n"}))
	if text, err := os.ReadFile(filepath.Join(module, "go.mod")); err != nil || string(text) != mod {
		t.Errorf("go.mod was changed: %q, %v", text, err)
	}
	for dir, want := range map[string]int{loose: 2, module: 4} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
}

// TestOwnReplace: a module that says itself where parley is keeps its say.
func TestOwnReplace(t *testing.T) {
	own := t.TempDir()
	if err := writeSDK(own, own, make(map[string]string)); err != nil {
		t.Fatal(err)
	}
	build(t, files(t, map[string]string{
		"main.go": source, "extra.go": extra,
		"go.mod": "module example.com/stock\n\ngo 1.26\n\nrequire parley v0.0.0\n\nreplace parley => " + own + "\n",
	}))
}

// TestInside: a folder of this module is built where it is.
func TestInside(t *testing.T) { build(t, "../../plugins/examples/echo") }

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		dir  string
		want string
	}{
		{"missing", filepath.Join(t.TempDir(), "nowhere"), "it does not exist"},
		{"a file", "build.go", "it is no folder"},
		{"no Go files", files(t, map[string]string{"README.md": "x"}), "holds no Go files"},
		{"compiler error", files(t, map[string]string{"main.go": source}), "undefined: extra"},
	} {
		out := filepath.Join(t.TempDir(), "out.wasm")
		err := Build(t.Context(), c.dir, out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q on one line", c.name, err, c.want)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a module was written", c.name)
		}
	}
}

func TestNoToolchain(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Build(t.Context(), "../../plugins/examples/echo", filepath.Join(t.TempDir(), "out.wasm"))
	if !errors.Is(err, ErrNoToolchain) {
		t.Errorf("got %v", err)
	}
}
