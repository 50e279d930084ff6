//go:build ignore

// Pack prints the official specification tests, as wazero ships them, in one line of JSON per .wast file with the modules in
// base64 inside:
//
//	go run testdata/spec/pack.go | bzip2 -9 > testdata/spec/suites.jsonl.bz2
//	go run testdata/spec/pack.go seeds | bzip2 -9 > testdata/spec/seeds.json.bz2
//
// The second form prints a share of the small modules, valid and invalid ones, as one JSON list: fuzz workers start with it.
//
// Commands on modules in the text format are left out: they test a parser of text.
package main

import (
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var suites = []string{"v1", "v2", "tail-call", "extended-const"}

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		log.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest")
	enc := json.NewEncoder(os.Stdout)
	if len(os.Args) > 1 {
		if err := enc.Encode(seeds(root)); err != nil {
			log.Fatal(err)
		}
		return
	}
	for _, suite := range suites {
		files, err := filepath.Glob(filepath.Join(root, suite, "testdata/*.json"))
		if err != nil || len(files) == 0 {
			log.Fatal("no files of ", suite, err)
		}
		for _, f := range files {
			if err := enc.Encode(script(suite, f)); err != nil {
				log.Fatal(err)
			}
		}
	}
	spectest := []any{map[string]any{"type": "module", "module": read(filepath.Join(root, "testdata/spectest.wasm"))}}
	if err := enc.Encode(map[string]any{"suite": "spectest", "commands": spectest}); err != nil {
		log.Fatal(err)
	}
}

func seeds(root string) (all [][]byte) {
	known := map[string]bool{}
	for _, suite := range suites {
		files, err := filepath.Glob(filepath.Join(root, suite, "testdata/*.wasm"))
		if err != nil || len(files) == 0 {
			log.Fatal("no modules of ", suite, err)
		}
		for _, f := range files {
			if b := read(f); len(b) < 4096 && !known[string(b)] {
				if known[string(b)] = true; len(known)%11 == 0 {
					all = append(all, b)
				}
			}
		}
	}
	return all
}

func script(suite, file string) map[string]any {
	var s map[string]any
	if err := json.Unmarshal(read(file), &s); err != nil {
		log.Fatal(file, err)
	}
	var kept []any
	for _, c := range s["commands"].([]any) {
		command := c.(map[string]any)
		if command["module_type"] == "text" {
			continue
		}
		if name, ok := command["filename"].(string); ok {
			command["module"] = read(filepath.Join(filepath.Dir(file), name))
		}
		kept = append(kept, command)
	}
	return map[string]any{"suite": suite, "source_filename": filepath.Base(file), "commands": kept}
}

func read(file string) []byte {
	b, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return b
}
