package redisbroker

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/broker"
)

const keysPage = "../../docs/redis.md"

// TestThePageNamesEveryKey compares the keys that scripts and Go use with the tables of docs/redis.md, both ways.
func TestThePageNamesEveryKey(t *testing.T) {
	page, err := os.ReadFile(keysPage)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			said[keyStem(key[1])] = true
		}
	}
	used := keysInUse(t)
	for key := range used {
		if !said[key] {
			t.Errorf("%s is used and not in a table of %s", key, keysPage)
		}
	}
	for _, key := range []string{"meta", "lock", "b:", "st:", "tx:", "cv", "{ns}:entities", "{ns}:host:"} {
		if !used[key] {
			t.Errorf("%s is not found in the source: this test looks wrongly", key)
		}
	}
}

// keyStem cuts what varies off a key: b:<group>:t is b:, d:… is d:.
func keyStem(key string) string {
	key, _, _ = strings.Cut(key, "<")
	key, _, _ = strings.Cut(key, "…")
	return key
}

// keysInUse finds the keys in the text of the scripts and of the Go files.
func keysInUse(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for _, dir := range []string{"scripts", "scripts/lib", "scripts/rare", "."} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(dir + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`P \.\. '([a-z]+:?)|[pP]refix(?:\(\w+\))? ?\+ ?"([a-z]+:?)`).FindAllStringSubmatch(string(text), -1) {
				out[m[1]+m[2]] = true
			}
			for _, m := range regexp.MustCompile(`nsKey\("(\w+:?)`).FindAllStringSubmatch(string(text), -1) {
				out["{ns}:"+m[1]] = true
			}
		}
	}
	return out
}

// TestTheExampleOfThePage decodes the entry that the page explains.
func TestTheExampleOfThePage(t *testing.T) {
	page, err := os.ReadFile(keysPage)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`1\) "([\d-]+)"\n +2\) 1\) "([^"]+)"\n +2\) "([^"]+)"`).FindStringSubmatch(string(page))
	if m == nil {
		t.Fatal("the page has no example")
	}
	got, ok := (&Broker{}).decode(m[1], m[2], []byte(m[3]))
	if !ok || got.SequenceNumber != 42 || got.MessageSeq != 3 || got.MessageID != "o-17" || got.Type != "//shop/Order" || got.Kind != broker.KindApp {
		t.Errorf("got %+v, %v", got, ok)
	}
	if got.Properties["tenant"] != "a&b" || got.EnqueuedAt.Format("2006-01-02 15:04") != "2026-03-01 12:00" || !got.ExpiresAt.IsZero() {
		t.Errorf("got %+v", got)
	}
	if !validHandle(got.Conversation) || got.Conversation[14] != '8' {
		t.Errorf("%s is no target's handle", got.Conversation)
	}
	if props := encodeProps(got.Properties); !strings.HasSuffix(m[2], "|"+props) {
		t.Errorf("the properties would be written as %s", props)
	}
}
