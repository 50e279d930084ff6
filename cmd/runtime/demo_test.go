package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"demo"}, &out, &errs, strings.NewReader(""))
	if code != 0 || errs.String() != "" {
		t.Fatalf("exit %d, stderr %q\n%s", code, errs.String(), out.String())
	}
	for _, want := range []string{
		"235 sorted", "40 dead letters", "rolled back 5 times in a row → queue inventory is OFF, 1 event", "Error 127: Unable to process message.",
		"38 NoRepository", "last error FuelExhausted", "triaged 235 → 236", "└─ process inventory", "differences found: 0", "checks right",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story does not tell %q", want)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 50 {
		t.Errorf("the story has %d lines: more than a screen", lines)
	}
}
