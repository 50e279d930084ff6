// Package build compiles Go plugin folders with the stock Go toolchain.
//
// A plugin inside the module parley is compiled where it is. One that lives elsewhere needs no download: the sources of the
// SDK are in this binary, and the compiler is shown them, by an overlay, as the plugin's module parley. The plugin's folder
// is never written to.
package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"parley/sdk"
)

// sdkModule is the module path that plugins import the SDK from.
const sdkModule = "parley"

// goVersion is the language version of the SDK.
const goVersion = "1.24"

// ErrNoToolchain is returned when no go command is on PATH.
var ErrNoToolchain = errors.New("there is no go command on PATH: install Go, or give the compiled .wasm file")

// Build compiles the main package in dir to the WebAssembly module out, which appears complete or not at all. For errors
// see Compile.
func Build(ctx context.Context, dir, out string) error {
	wasm, err := Compile(ctx, dir)
	if err != nil {
		return err
	}
	if err := replace(out, wasm); err != nil {
		return fmt.Errorf("%s cannot be written: %w", out, err)
	}
	return nil
}

// Compile compiles the main package in dir to a WebAssembly module. The same sources and toolchain give the same bytes. An
// error of the compiler is returned with the first of the compiler's own words, on one line; ErrNoToolchain when there is
// no go command.
func Compile(ctx context.Context, dir string) ([]byte, error) {
	root, err := folder(dir)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	flags, err := prepare(ctx, root, temp)
	if err != nil {
		return nil, fmt.Errorf("go.mod of plugin folder %s: %w", dir, err)
	}
	out := filepath.Join(temp, "plugin.wasm")
	if err := compile(ctx, root, out, flags); err != nil {
		return nil, fmt.Errorf("plugin folder %s does not compile: %w", dir, err)
	}
	return os.ReadFile(out)
}

// folder is the real path of dir, by which the toolchain tells modules.
func folder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("plugin folder %s: %w", dir, err)
	}
	root, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("plugin folder %s: it does not exist", dir)
	}
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return "", fmt.Errorf("plugin folder %s: it is no folder", dir)
	}
	if files, err := filepath.Glob(filepath.Join(root, "*.go")); err != nil || len(files) == 0 {
		return "", fmt.Errorf("plugin folder %s: it holds no Go files: give the folder of a Go main package", dir)
	}
	return root, nil
}

// replace writes a file so that nobody ever sees half of it.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when it was renamed
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// compile runs the Go toolchain in dir. Symbol tables stay out, function names stay in, for the sake of traps.
func compile(ctx context.Context, dir, out string, flags []string) error {
	args := append([]string{"build"}, flags...)
	args = append(args, "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-w", "-o", out, ".")
	return command(ctx, dir, args...)
}

func command(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return ErrNoToolchain
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New(firstLines(said.String(), err))
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

// prepare returns the flags to build the package in dir with. Everything it writes lies in temp.
func prepare(ctx context.Context, dir, temp string) (flags []string, err error) {
	mod, err := moduleFile(dir)
	if err != nil {
		return nil, err
	}
	root, text := dir, []byte("module parleyplugin\n\ngo "+goVersion+"\n")
	if mod != "" {
		root = filepath.Dir(mod)
		if text, err = os.ReadFile(mod); err != nil {
			return nil, err
		}
	}
	if modulePath(text) == sdkModule || replacesSDK(text) {
		return nil, nil
	}
	copied := filepath.Join(temp, "go.mod")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		return nil, err
	}
	if err := command(ctx, temp, "mod", "edit", "-require="+sdkModule+"@v0.0.0", "-replace="+sdkModule+"=./"+sdkFolder, copied); err != nil {
		return nil, err
	}
	overlay := map[string]string{filepath.Join(root, "go.mod"): copied}
	if err := writeSDK(filepath.Join(temp, sdkFolder), filepath.Join(root, sdkFolder), overlay); err != nil {
		return nil, err
	}
	return writeOverlay(filepath.Join(temp, "overlay.json"), overlay)
}

// sdkFolder is where the compiler believes the SDK to be, inside the plugin's module. A path that is the same everywhere
// makes the same bytes everywhere.
const sdkFolder = ".parley-sdk"

func writeOverlay(file string, replace map[string]string) (flags []string, err error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return []string{"-overlay=" + file}, os.WriteFile(file, text, 0o600)
}

// writeSDK writes the sources of the SDK as a module to dir, and lets the overlay show them under seen.
func writeSDK(dir, seen string, overlay map[string]string) error {
	write := func(name string, text []byte) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		overlay[filepath.Join(seen, filepath.FromSlash(name))] = to
		return os.WriteFile(to, text, 0o600)
	}
	err := fs.WalkDir(sdk.Sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := sdk.Sources.ReadFile(path)
		if err != nil {
			return err
		}
		return write("sdk/"+path, text)
	})
	if err != nil {
		return err
	}
	return write("go.mod", fmt.Appendf(nil, "module %s\n\ngo %s\n", sdkModule, goVersion))
}

// replacesSDK reports whether a go.mod says itself where the SDK is.
func replacesSDK(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "replace "))
		if len(fields) >= 3 && fields[0] == sdkModule && slices.Contains(fields, "=>") {
			return true
		}
	}
	return false
}

// moduleFile returns the go.mod that applies to dir, "" when there is none.
func moduleFile(dir string) (string, error) {
	for {
		file := filepath.Join(dir, "go.mod")
		_, err := os.Stat(file)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil
		}
		dir = up
	}
}

// modulePath is the path in the module line of a go.mod; "" when there is none.
func modulePath(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`)
		}
	}
	return ""
}
