package redisbroker

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/redistest"
)

// play is one case on one server.
type play struct {
	t       *testing.T
	b       *Broker
	clock   atomic.Int64
	ids     map[string]string // stream ids made from the server's clock → what stands for them
	now     map[string][]string
	digests map[string]string // of the entries that txhead answered
	stale   bool              // something ran since now was read
}

var plays atomic.Int64

// playNamespace is a name of its own for each case, all of one length: some stored texts hold it, and their lengths are shown.
func playNamespace() string { return fmt.Sprintf("play-%06d", plays.Add(1)) }

func newPlay(t *testing.T, url string) *play {
	p := &play{t: t, ids: map[string]string{}, digests: map[string]string{}, stale: true}
	p.clock.Store(1_000_000)
	b, err := Open(t.Context(), Options{URL: url, Namespace: playNamespace(), ClientName: "h", Now: p.clock.Load})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	p.b = b
	return p
}

func (p *play) setClock(s string) {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	p.clock.Store(ms)
}

// step runs one step; of a looked-at one it returns the reply and the changes.
func (p *play) step(look bool, line string, more []string) []string {
	if look && p.stale {
		p.now = p.keys()
	}
	reply, err := p.do(p.words(line), more)
	p.stale = true
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	if !look {
		if len(reply) > 0 && refusal.MatchString(reply[0]) {
			p.t.Fatalf("%s: %s", line, reply[0])
		}
		return nil
	}
	before := p.now
	p.now, p.stale = p.keys(), false
	var out []string
	for _, r := range reply {
		out = append(out, p.plain(r))
	}
	return append(out, changes(before, p.now)...)
}

// The names that stand for what is long. The handles are those of a conversation between queue number 1 and queue number 2.
var shorthand = [][2]string{
	{"$A1", "00000001-0000-4000-8000-000000000001"},
	{"$A2", "00000001-0000-4000-8000-000000000002"},
	{"$B1", "00000002-0000-8000-8000-000000000001"},
	{"$B2", "00000002-0000-8000-8000-000000000002"},
	{"$SB", "http://schemas.microsoft.com/SQL/ServiceBroker"},
}

// words splits a line at blanks; the end of a word in double quotes is a Go string.
func (p *play) words(line string) []string {
	for _, s := range shorthand {
		line = strings.ReplaceAll(line, s[0], s[1])
	}
	line = strings.ReplaceAll(line, "{ns", "{"+p.b.ns)
	for stands, id := range invert(p.ids) {
		line = strings.ReplaceAll(line, stands, id)
	}
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var w string
		w, line = p.word(line)
		out = append(out, w)
	}
	return out
}

// word takes the first word off a line.
func (p *play) word(line string) (word, rest string) {
	i := strings.IndexAny(line, " \"")
	if i < 0 || line[i] == ' ' {
		word, rest, _ = strings.Cut(line, " ")
		return word, rest
	}
	quoted, err := strconv.QuotedPrefix(line[i:])
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return line[:i] + text, line[i+len(quoted):]
}

func invert(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[v] = k
	}
	return out
}

var (
	refusal = regexp.MustCompile(`^reply (NOENT|FENCED|EXISTS|OFF|ERR|GONE|LOST|DUP|WAIT|EMPTY|refused)\b`)
	clockID = regexp.MustCompile(`\b[0-9]{13}-[0-9]+\b`)
	// Of these streams nothing else names an entry.
	clockStream = regexp.MustCompile(`^stream .*:(events|archive|rt:.*)$`)
	// The server's names are random, and the embedded one has none.
	runName = regexp.MustCompile(`^( *)run = .*$`)
	// The embedded server says otherwise that there is no id yet.
	noID = regexp.MustCompile(`(last-generated-id|last-delivered-id)( 0?)?$`)
)

// plain replaces what is long, and what another run would have otherwise. Ids are numbered in the order they were made.
func (p *play) plain(s string) string {
	s = strings.ReplaceAll(s, p.b.ns, "ns")
	for _, sh := range shorthand {
		s = strings.ReplaceAll(s, sh[1], sh[0])
	}
	found := clockID.FindAllString(s, -1)
	slices.SortFunc(found, func(a, b string) int {
		am, as, _ := strings.Cut(a, "-")
		bm, bs, _ := strings.Cut(b, "-")
		return cmp.Or(cmp.Compare(num(am), num(bm)), cmp.Compare(num(as), num(bs)))
	})
	for _, id := range found {
		if p.ids[id] == "" {
			p.ids[id] = fmt.Sprintf("<id%d>", len(p.ids)+1)
		}
	}
	return clockID.ReplaceAllStringFunc(s, func(id string) string { return p.ids[id] })
}

// keys reads every key of the queues: heading → lines.
func (p *play) keys() map[string][]string {
	text := redistest.Dump(p.t, p.b.rdb, "{"+p.b.ns+"/*")
	out := map[string][]string{}
	key, lines := "", strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "  ") {
			key = line
		} else if clockStream.MatchString(key) {
			lines[i] = clockID.ReplaceAllString(line, "*")
		}
	}
	text = p.plain(strings.Join(lines, "\n"))
	for line := range strings.SplitSeq(text, "\n") {
		line = runName.ReplaceAllString(noID.ReplaceAllString(line, "$1 0-0"), "${1}run = <server>")
		switch {
		case !strings.HasPrefix(line, "  "):
			key = line
			out[key] = []string{}
		case strings.HasPrefix(line, "    consumer "):
			// Whether a name that holds nothing is still listed differs between the servers. What it holds is pending.
		case strings.HasPrefix(line, "    pending "):
			line, _, _ = strings.Cut(strings.TrimSpace(line), " delivered ") // Redis's own count is used for nothing (M4)
			out[key] = append(out[key], line)
		default:
			out[key] = append(out[key], strings.TrimSpace(line))
		}
	}
	return out
}

// changes writes what was and is no more (-) and what is and was not (+), key by key; a list whole.
func changes(before, after map[string][]string) []string {
	var heads []string
	for k := range before {
		heads = append(heads, k)
	}
	for k := range after {
		if _, ok := before[k]; !ok {
			heads = append(heads, k)
		}
	}
	sort.Strings(heads)
	var out []string
	for _, k := range heads {
		if slices.Equal(before[k], after[k]) {
			continue
		}
		out = append(out, k)
		if strings.HasPrefix(k, "list ") {
			out = append(out, "  - "+strings.Join(before[k], " "), "  + "+strings.Join(after[k], " "))
			continue
		}
		out = append(out, missing("  - ", before[k], after[k])...)
		out = append(out, missing("  + ", after[k], before[k])...)
	}
	return out
}

func missing(mark string, have, from []string) []string {
	n := map[string]int{}
	for _, l := range from {
		n[l]++
	}
	var out []string
	for _, l := range have {
		if n[l]--; n[l] < 0 {
			out = append(out, mark+l)
		}
	}
	return out
}
