package pluginbuild

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/broker"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	dir, broken := t.TempDir(), t.TempDir()
	write(t, filepath.Join(broken, "main.go"), "package main\n\nfunc main() { return 5 }\n")
	write(t, filepath.Join(dir, "file"), "")
	for name, tc := range map[string]struct{ dir, want string }{
		"a folder that is not there":    {filepath.Join(dir, "none"), "it does not exist"},
		"a file":                        {filepath.Join(dir, "file"), "it is no folder"},
		"a folder without Go files":     {dir, "it holds no Go files"},
		"a program that does not build": {broken, "does not compile: ./main.go:3:22: too many return values"},
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

func TestModuleThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	err := Build(t.Context(), dir, filepath.Join(dir, "none", "p.wasm"))
	if !errors.Is(err, broker.ErrInvalid) || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("got %v, want ErrInvalid that says so", err)
	}
}

func TestEndedContext(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compile(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
