package redisbroker

import (
	goflag "flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/internal/redistest"
)

// The files of testdata/scripts play each script alone against a seeded namespace. A line of a file is
//
//	== title        a new case: an empty namespace, the clock at 1000000 ms
//	# text          a comment
//	@ ms            the clock, from here on
//	. verb args     a step that seeds
//	> verb args     the call that is looked at
//	+ effect …      one more effect, or unit, of the step above
//
// and behind each looked-at call, indented, its reply and how every key of the namespace's queues changed, as the real server
// and the embedded one both do. The verbs are in script_verbs_test.go.
var update = goflag.Bool("update", false, "write the answers in testdata/scripts anew, from the real server")

const scriptCases = "testdata/scripts"

func TestScripts(t *testing.T) {
	for _, name := range scriptNames {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(scriptCases, name+".txt")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("every script has a file of cases: %v", err)
			}
			if *update {
				got := playCases(t, redistest.Shared(t).URL(), string(text))
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				text = []byte(got)
			}
			compareCases(t, "the real server", playCases(t, redistest.Shared(t).URL(), string(text)), string(text))
			compareCases(t, "the embedded server", playCases(t, redistest.StartEmbedded(t).URL(), string(text)), string(text))
		})
	}
}

func compareCases(t *testing.T, server, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s does otherwise (-want +got):\n%s", server, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}

// playCases returns the text with the answers a server gives now.
func playCases(t *testing.T, url, text string) string {
	var out strings.Builder
	var p *play
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "    ") {
			continue // an old answer
		}
		out.WriteString(line + "\n")
		mark, rest, _ := strings.Cut(line, " ")
		switch mark {
		case "", "#":
		case "==":
			p = newPlay(t, url)
		case "@":
			p.setClock(rest)
		case ".", ">":
			var more []string
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+ ") {
				i++
				out.WriteString(lines[i] + "\n")
				more = append(more, lines[i][2:])
			}
			for _, answer := range p.step(mark == ">", rest, more) {
				out.WriteString("    " + answer + "\n")
			}
		default:
			t.Fatalf("line %d is not understood: %q", i+1, line)
		}
	}
	return out.String()
}

// TestScriptCasesReachEveryStatus holds the files to what the headers promise: each status in capitals, and each of the
// words of the scripts that answer in words, is the answer of a case.
func TestScriptCasesReachEveryStatus(t *testing.T) {
	words := map[string][]string{
		"arrive":    {"stored", "known", "dropped", "bounce", "skipped", "marked", "anew", "refused", "gap", "lost", "behind"},
		"configure": {"created", "altered"},
		"rebuild":   {"whole", "rebuilt"},
	}
	for _, name := range scriptNames {
		text, err := os.ReadFile(filepath.Join(scriptCases, name+".txt"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, status := range append(statusesOf(t, name), words[name]...) {
			if !regexp.MustCompile(`(?m)^    reply "?` + status + `\b`).Match(text) {
				t.Errorf("%s: no case is answered %s", name, status)
			}
		}
	}
}

// statusesOf returns the words in capitals of the part RETURNS of a script's header.
func statusesOf(t *testing.T, name string) []string {
	h := readHeader(t, name)
	return regexp.MustCompile(`\b[A-Z]{2,}\b`).FindAllString(h.returns, -1)
}
