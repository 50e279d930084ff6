// Package build compiles Go plugin folders with the stock Go toolchain.
//
// A plugin inside the module parley is compiled where it is. One that lives elsewhere needs no download: the sources of the
// SDK are in this binary, and the build gives them to the plugin as its module parley. Its folder is never written to.
package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	place, flags, err := prepare(ctx, dir, temp)
	if err != nil {
		return fmt.Errorf("build plugin %s: %w", dir, err)
	}
	return compile(ctx, place, out, flags)
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

// prepare returns the folder to build in and the flags to build with. Everything it writes lies in temp.
func prepare(ctx context.Context, dir, temp string) (place string, flags []string, err error) {
	mod, err := moduleFile(dir)
	switch {
	case err != nil:
		return "", nil, err
	case mod == "":
		return prepareLoose(dir, temp)
	}
	text, err := os.ReadFile(mod)
	if err != nil {
		return "", nil, err
	}
	if modulePath(text) == sdkModule {
		return dir, nil, nil
	}
	return prepareModule(ctx, dir, mod, text, temp)
}

// prepareLoose copies a folder without a go.mod and gives it one.
func prepareLoose(dir, temp string) (string, []string, error) {
	source := filepath.Join(temp, sdkModule)
	if err := writeSDK(source); err != nil {
		return "", nil, err
	}
	place := filepath.Join(temp, "plugin")
	if err := os.CopyFS(place, os.DirFS(dir)); err != nil {
		return "", nil, err
	}
	text := fmt.Sprintf("module parleyplugin\n\ngo %s\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", goVersion, sdkModule, sdkModule, source)
	return place, nil, os.WriteFile(filepath.Join(place, "go.mod"), []byte(text), 0o600)
}

// prepareModule builds a folder of another module in place, with a go.mod of its own that knows where the SDK is. A module
// that replaces parley already keeps what it says.
func prepareModule(ctx context.Context, dir, mod string, text []byte, temp string) (string, []string, error) {
	if strings.Contains(string(text), sdkModule+" =>") || strings.Contains(string(text), sdkModule+" v0.0.0 =>") {
		return dir, nil, nil
	}
	source := filepath.Join(temp, sdkModule)
	if err := writeSDK(source); err != nil {
		return "", nil, err
	}
	copied := filepath.Join(temp, "go.mod")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		return "", nil, err
	}
	sums, err := os.ReadFile(strings.TrimSuffix(mod, ".mod") + ".sum")
	if err == nil {
		err = os.WriteFile(filepath.Join(temp, "go.sum"), sums, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	err = command(ctx, temp, "mod", "edit", "-require="+sdkModule+"@v0.0.0", "-replace="+sdkModule+"="+source, copied)
	return dir, []string{"-modfile=" + copied}, err
}

// writeSDK writes the sources of the SDK as a module to dir.
func writeSDK(dir string) error {
	err := fs.WalkDir(sdk.Sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := sdk.Sources.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "sdk", filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("module %s\n\ngo %s\n", sdkModule, goVersion)
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600)
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
