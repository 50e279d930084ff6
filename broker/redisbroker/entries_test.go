package redisbroker

import (
	"fmt"
	"strings"
	"testing"
)

// bulk writes a string as the server does.
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func TestReadEntries(t *testing.T) {
	one := "*2\r\n" + bulk("1-0") + "*2\r\n" + bulk("|3|||1|S|m||") + bulk("a\r\n")
	two := "*2\r\n" + bulk("2-0") + "*2\r\n" + bulk("|0|||1|S|m||") + bulk("")
	for _, c := range []struct {
		name, reply, want, refused string
		fails                      bool
	}{
		{name: "protocol 2", reply: "*1\r\n*2\r\n" + bulk("k") + "*2\r\n" + one + two, want: "1-0 |3|||1|S|m|| a\r\n;2-0 |0|||1|S|m|| ;"},
		{name: "protocol 3", reply: "%1\r\n" + bulk("k") + "*1\r\n" + one, want: "1-0 |3|||1|S|m|| a\r\n;"},
		{name: "nothing, protocol 2", reply: "*-1\r\n"},
		{name: "nothing, protocol 3", reply: "_\r\n"},
		{name: "refused", reply: "-NOGROUP No such key\r\n", refused: "NOGROUP No such key"},
		{name: "two streams", reply: "*2\r\n*2\r\n" + bulk("k") + "*0\r\n*2\r\n" + bulk("l") + "*0\r\n", fails: true},
		{name: "four fields", reply: "*1\r\n*2\r\n" + bulk("k") + "*1\r\n*2\r\n" + bulk("1-0") + "*4\r\n" + strings.Repeat(bulk("x"), 4), fails: true},
		{name: "cut", reply: "*1\r\n*2\r\n" + bulk("k") + "*2\r\n" + one, fails: true},
		{name: "more behind", reply: "%1\r\n" + bulk("k") + "*1\r\n" + one + "+", fails: true},
		{name: "a number too large", reply: "%1\r\n" + bulk("k") + "*999999999\r\n", fails: true},
		{name: "empty", reply: "", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, refused, err := readEntries([]byte(c.reply))
			got := ""
			for _, e := range entries {
				got += fmt.Sprintf("%s %s %s;", e.id, e.head, e.body)
			}
			if got != c.want || refused != c.refused || (err != nil) != c.fails {
				t.Errorf("got %q, refused %q, %v", got, refused, err)
			}
			if err != nil && !maybeDone(err) {
				t.Errorf("%v would not be repaired by resume", err)
			}
		})
	}
}

// FuzzReadEntries: a reply may be anything; what is read lies inside of it.
func FuzzReadEntries(f *testing.F) {
	f.Add([]byte("*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$2\r\n|0\r\n$0\r\n\r\n"))
	f.Add([]byte("%1\r\n$1\r\nk\r\n*0\r\n"))
	f.Add([]byte("-NOGROUP x\r\n"))
	f.Add([]byte("*-1\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		entries, _, err := readEntries(reply)
		if err != nil && len(entries) > 0 {
			t.Error("entries beside an error")
		}
		n := 0
		for _, e := range entries {
			n += len(e.id) + len(e.head) + len(e.body)
		}
		if n > len(reply) {
			t.Errorf("%d bytes out of %d", n, len(reply))
		}
	})
}
