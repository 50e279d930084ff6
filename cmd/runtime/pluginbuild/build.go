// Package pluginbuild compiles a Go plugin folder to a WebAssembly module with the stock Go toolchain.
//
// A plugin inside this repository sees the sdk beside it. Any other plugin needs neither a network nor a checkout: the sdk
// that is embedded in the binary is laid out in a temporary folder and takes the place of its module "parley".
package pluginbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"parley/broker"
	"parley/sdk"
)

// ownModule is the module path of the sdk.
const ownModule = "parley"

// Build compiles the Go package in dir and writes the module to out, at once when it is complete. The same source gives
// the same bytes. Errors are ErrInvalid: dir is no Go package folder, it does not compile, or there is no Go toolchain.
func Build(ctx context.Context, dir, out string) error {
	code, err := Compile(ctx, dir)
	if err != nil {
		return err
	}
	return replace(out, code)
}

// Compile is Build with the module as its result.
func Compile(ctx context.Context, dir string) ([]byte, error) {
	work, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	module := filepath.Join(work, "plugin.wasm")
	if err := compile(ctx, dir, work, module); err != nil {
		return nil, err
	}
	return os.ReadFile(module)
}

func compile(ctx context.Context, dir, work, out string) error {
	dir, err := folder(dir)
	if err != nil {
		return err
	}
	tool, err := toolchain()
	if err != nil {
		return err
	}
	flags, err := resolve(ctx, tool, dir, work)
	if err != nil {
		return err
	}
	// Paths and the state of the repository would change the digest of a module whose source did not change.
	args := append([]string{"build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-o", out}, flags...)
	if err := goTool(ctx, tool, dir, append(args, ".")...); err != nil {
		return broker.ErrInvalid.With("%s does not compile: %v", dir, err)
	}
	return nil
}

func folder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	// The toolchain tells modules by real paths.
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", broker.ErrInvalid.With("plugin folder %s: it does not exist", dir)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", broker.ErrInvalid.With("plugin folder %s: it is no folder", dir)
	}
	return real, nil
}

// toolchain finds the go command.
func toolchain() (string, error) {
	if tool, err := exec.LookPath("go"); err == nil {
		return tool, nil
	}
	return "", broker.ErrInvalid.With("building a plugin from source needs the Go toolchain: put go on PATH, or name a .wasm file")
}

// resolve returns the flags with which the plugin's imports of parley/sdk are found.
func resolve(ctx context.Context, tool, dir, work string) ([]string, error) {
	root := moduleRoot(dir)
	if root != "" {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err != nil {
			return nil, err
		}
		if modulePath(text) == ownModule {
			return nil, nil
		}
	}
	if err := layOut(filepath.Join(work, "sdk")); err != nil {
		return nil, err
	}
	mod := filepath.Join(work, "go.mod")
	if err := goMod(root, work); err != nil {
		return nil, err
	}
	edit := []string{"mod", "edit", "-require=" + ownModule + "@v0.0.0", "-replace=" + ownModule + "=" + filepath.Join(work, "sdk"), mod}
	if err := goTool(ctx, tool, work, edit...); err != nil {
		return nil, broker.ErrInvalid.With("go.mod of %s: %v", dir, err)
	}
	if root != "" {
		return []string{"-mod=mod", "-modfile=" + mod}, nil
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(dir, "go.mod"): mod}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "overlay.json")
	return []string{"-overlay=" + file}, os.WriteFile(file, overlay, 0o600)
}

// goMod puts go.mod and go.sum of the plugin, or of one that has none, into the work folder.
func goMod(root, work string) error {
	text, sum := []byte("module parley.invalid/plugin\n\ngo 1.26\n"), []byte(nil)
	if root != "" {
		var err error
		if text, err = os.ReadFile(filepath.Join(root, "go.mod")); err != nil {
			return err
		}
		if sum, err = os.ReadFile(filepath.Join(root, "go.sum")); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(work, "go.sum"), sum, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "go.mod"), text, 0o600)
}

// layOut writes the embedded sdk as a module.
func layOut(dir string) error {
	err := fs.WalkDir(sdk.Sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "_test.go") {
			return err
		}
		to := filepath.Join(dir, "sdk", filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := sdk.Sources.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+ownModule+"\n\ngo 1.26\n"), 0o600)
}

// moduleRoot is the nearest folder from dir upwards that holds a go.mod, "" if there is none.
func moduleRoot(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && !info.IsDir() {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func modulePath(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(rest), `"`)
		}
	}
	return ""
}

// goTool runs the go command for WebAssembly; its error is what the command said.
func goTool(ctx context.Context, tool, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s", firstLines(said.String(), err))
	}
	return nil
}

// shownLines is how much of the compiler's complaint an error of one line can hold.
const shownLines = 4

func firstLines(said string, err error) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return err.Error()
	}
	if more := len(lines) - shownLines; more > 0 {
		lines = append(lines[:shownLines], fmt.Sprintf("and %d lines more", more))
	}
	return strings.Join(lines, "; ")
}

// replace writes a file so that nobody ever sees half of it.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return broker.ErrInvalid.With("%s cannot be written: %v", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if e := f.Chmod(0o644); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}
