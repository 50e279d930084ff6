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

// Build compiles the main package in dir to the WebAssembly module out. The same sources and toolchain give the same
// bytes. An error of the compiler is returned with the compiler's own words; ErrNoToolchain when there is no go command.
func Build(ctx context.Context, dir, out string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("build plugin: %w", err)
	}
	if out, err = filepath.Abs(out); err != nil {
		return fmt.Errorf("build plugin: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return fmt.Errorf("build plugin: %w", err)
	}
	defer os.RemoveAll(temp)
	flags, err := prepare(ctx, dir, temp)
	if err != nil {
		return fmt.Errorf("build plugin %s: %w", dir, err)
	}
	return compile(ctx, dir, out, flags)
}

// ErrNoToolchain is returned when no go command is on PATH.
var ErrNoToolchain = errors.New("there is no go command on PATH: install Go, or give the compiled .wasm file")

func checkFolder(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("build plugin: %w", err)
	case !st.IsDir():
		return fmt.Errorf("build plugin: %s is no folder: give the folder of a Go main package", dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("build plugin: %s holds no Go files: give the folder of a Go main package", dir)
	}
	return nil
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
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoToolchain
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
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
