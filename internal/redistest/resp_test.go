package redistest

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// respValues are one value of every RESP type, well formed.
var respValues = []string{
	"+OK\r\n", "-ERR no\r\n", ":7\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
	"$3\r\na\nb\r\n", "$0\r\n\r\n", "$-1\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n",
	"*0\r\n", "*-1\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "~1\r\n:1\r\n",
	"%1\r\n+k\r\n:1\r\n", ">2\r\n+message\r\n+x\r\n", "|1\r\n+ttl\r\n:1\r\n+OK\r\n",
}

func TestReadValueTakesExactlyOneValue(t *testing.T) {
	for _, value := range respValues {
		r := bufio.NewReader(strings.NewReader(value + "+next\r\n"))
		got, err := readValue(r, nil)
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if diff := cmp.Diff(value, string(got)); diff != "" {
			t.Errorf("value (-want +got):\n%s", diff)
		}
		next, err := readValue(r, nil)
		if err != nil || string(next) != "+next\r\n" {
			t.Errorf("after %q: got %q, %v, want the next value", value, next, err)
		}
	}
}

// FuzzReadValue holds the reader to the bytes it was given: what it takes is what
// stood first, and it fails only when the value is broken or cut short.
func FuzzReadValue(f *testing.F) {
	for _, value := range respValues {
		f.Add([]byte(value + "+next\r\n"))
		f.Add([]byte(value[:len(value)-1]))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bufio.NewReader(bytes.NewReader(sent))
		got, err := readValue(r, nil)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(sent, got) {
			t.Errorf("of %q: got %q, want its beginning", sent, got)
		}
		rest, err := io.ReadAll(r)
		if err != nil || len(got)+len(rest) != len(sent) {
			t.Errorf("of %q: took %q and left %q", sent, got, rest)
		}
		again, err := readValue(bufio.NewReader(bytes.NewReader(got)), nil)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("%q alone: got %q, %v, want itself", got, again, err)
		}
	})
}

func TestReadRequestGivesItsWords(t *testing.T) {
	const sent = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\na\r\nb\r\n\r\n"
	raw, words, err := readRequest(bufio.NewReader(strings.NewReader(sent)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"SET", "k", "a\r\nb\r\n"}, words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if string(raw) != sent {
		t.Errorf("bytes: got %q, want %q", raw, sent)
	}
}
