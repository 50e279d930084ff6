package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// BenchmarkReceiveAndComplete is the command line that receives 1,000 messages and completes each by its token.
func BenchmarkReceiveAndComplete(b *testing.B) {
	server, ns := redistest.Shared(b).URL(), redistest.Namespace(b)
	command := func(line string) string {
		var out, errs bytes.Buffer
		if code := run(b.Context(), append(strings.Fields(line), "--redis", server, "--namespace", ns, "-o", "json"), &out, &errs, strings.NewReader("")); code != 0 {
			b.Fatalf("%s: exit %d: %s", line, code, errs.String())
		}
		return out.String()
	}
	file := b.TempDir() + "/f.yaml"
	if err := os.WriteFile(file, []byte("queues: [{name: q}]\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	command("apply -f " + file)
	for b.Loop() {
		b.StopTimer()
		command("send q --body hello --count 1000")
		b.StartTimer()
		if n := strings.Count(command("receive q --max 1000"), "\n"); n != 1000 {
			b.Fatalf("%d messages", n)
		}
	}
}
