package pluginbuild

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/broker"
)

const source = `package main

import "parley/sdk"

func init() { sdk.Handle(func(*sdk.Unit) error { return nil }) }

func main() {}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPluginOutsideTheRepository builds a plugin that has no module, and one that has its own, from the embedded sdk.
func TestPluginOutsideTheRepository(t *testing.T) {
	for name, gomod := range map[string]string{
		"without a module":  "",
		"with its own":      "module example.com/mine\n\ngo 1.26\n",
		"that requires us":  "module example.com/mine\n\ngo 1.26\n\nrequire parley v0.0.0\n",
		"with a go.work up": "module example.com/mine\n\ngo 1.26\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "main.go"), source)
			if gomod != "" {
				write(t, filepath.Join(dir, "go.mod"), gomod)
			}
			if strings.Contains(name, "go.work") {
				write(t, filepath.Join(dir, "go.work"), "nonsense\n")
			}
			out := filepath.Join(t.TempDir(), "p.wasm")
			if err := Build(t.Context(), dir, out); err != nil {
				t.Fatal(err)
			}
			code, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(code, []byte("\x00asm\x01\x00\x00\x00")) {
				t.Errorf("the module starts with %x", code[:8])
			}
			if !bytes.Contains(code, []byte("parley_handle")) {
				t.Error("the module does not export parley_handle")
			}
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if e.Name() != "main.go" && e.Name() != "go.mod" && e.Name() != "go.work" {
					t.Errorf("the build left %s in the plugin's folder", e.Name())
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	broken := t.TempDir()
	write(t, filepath.Join(broken, "main.go"), "package main\n\nfunc main() { return 5 }\n")
	write(t, filepath.Join(dir, "file"), "")
	for name, tc := range map[string]struct{ dir, want string }{
		"a folder that is not there":    {filepath.Join(dir, "none"), "it does not exist"},
		"a file":                        {filepath.Join(dir, "file"), "it is no folder"},
		"a folder without Go files":     {dir, "does not compile"},
		"a program that does not build": {broken, "too many return values"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "p.wasm")
			err := Build(t.Context(), tc.dir, out)
			if !errors.Is(err, broker.ErrInvalid) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want ErrInvalid with %q on one line", err, tc.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a refused build left a file")
			}
		})
	}
}
