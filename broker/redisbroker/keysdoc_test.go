package redisbroker

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestKeysAreDocumented: docs/redis.md names every key that a script or this package makes.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, cell := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, key := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cell[1], -1) {
			name, _, _ := strings.Cut(strings.TrimPrefix(key[1], "{ns}:"), "<")
			documented[name] = true
		}
	}
	seen := map[string]bool{}
	find := func(folder, suffix, pattern string) {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), suffix) || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(folder + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
				seen[m[1]] = true
			}
		}
	}
	find("scripts", ".lua", `\bP \.\. '([a-z:]+)'`)
	find("scripts/lib", ".lua", `\bP \.\. '([a-z:]+)'`)
	find(".", ".go", `nsKey\("([a-z:]+)"`)
	if len(seen) < 40 {
		t.Fatalf("only %d keys were found in the sources", len(seen))
	}
	for key := range seen {
		if key == "d:" || key == "t:" || key == "s:sys" { // sub-queues, and a lane
			continue
		}
		if !documented[key] {
			t.Errorf("docs/redis.md does not name the key %q", key)
		}
	}
}
