package redisbroker

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// TestEveryCallPassesWhatTheHeaderNumbers reads the Go source: each call of a script whose arguments are fixed passes as many as its
// header numbers, and every script is called.
func TestEveryCallPassesWhatTheHeaderNumbers(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "script.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil {
					called[s] = true
				}
			case *ast.CallExpr:
				checkCall(t, name, n)
			}
			return true
		})
	}
	for _, name := range scriptNames {
		if !called[name] {
			t.Errorf("nothing calls the script %s", name)
		}
	}
}

// checkCall looks at run(ctx, name, key, args…) and its like.
func checkCall(t *testing.T, file string, call *ast.CallExpr) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"run", "repeat", "repeatStrings"}, fun.Sel.Name) || len(call.Args) < 3 {
		return
	}
	lit, ok := call.Args[1].(*ast.BasicLit)
	if !ok {
		return
	}
	name, err := strconv.Unquote(lit.Value)
	if err != nil || !slices.Contains(scriptNames, name) {
		t.Errorf("%s calls the script %s, which there is not", file, lit.Value)
		return
	}
	if slices.Contains(openEnded, name) {
		return
	}
	if got, want := len(call.Args)-3, len(argumentNumbers(readHeader(t, name))); got != want || call.Ellipsis.IsValid() {
		t.Errorf("%s passes %d arguments to %s, whose header numbers %d", file, got, name, want)
	}
}

// TestAScriptStaysInTheSlotOfItsKey plays all cases under MONITOR: every key that a script touches has the hash tag of the key it
// was given. Only calls with the flag d, which no Cluster gets, touch others, and those of the namespace.
func TestAScriptStaysInTheSlotOfItsKey(t *testing.T) {
	s := redistest.Shared(t)
	lines := monitor(t, s, func() {
		for _, name := range scriptNames {
			text, err := os.ReadFile(filepath.Join(scriptCases, name+".txt"))
			if err != nil {
				t.Error(err)
				continue
			}
			playCases(t, s.URL(), string(text))
		}
	})
	own, direct, calls := "", false, 0
	for _, l := range lines {
		w := monitorWords(l)
		if len(w) < 2 {
			continue
		}
		if !strings.Contains(l, " lua] ") {
			own = ""
			if name := strings.ToLower(w[0]); (name == "evalsha" || name == "eval") && len(w) > 4 {
				own, direct = tagOf(w[3]), slices.ContainsFunc(w[4:min(len(w), 9)], func(f string) bool { return isFlags(f) && strings.Contains(f, "d") })
				calls++
			}
			continue
		}
		for _, key := range keysOf(w) {
			if tag := tagOf(key); own != "" && tag != own && (!direct || namespaceOf(tag) != namespaceOf(own)) {
				t.Errorf("a script given {%s} touches %s: %s", own, key, l)
			}
		}
	}
	if calls < 300 {
		t.Errorf("saw only %d calls", calls)
	}
}

func isFlags(s string) bool { return regexp.MustCompile(`^[dsrleo]+$`).MatchString(s) }

func namespaceOf(tag string) string {
	ns, _, _ := strings.Cut(tag, "/")
	return ns
}

// tagOf returns what stands between the braces of a key.
func tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// keysOf returns the keys of a command.
func keysOf(w []string) []string {
	switch strings.ToUpper(w[0]) {
	case "TIME", "PUBLISH", "INFO":
		return nil
	case "XGROUP", "XINFO":
		return w[2:3]
	case "XREADGROUP":
		i := slices.IndexFunc(w, func(s string) bool { return strings.EqualFold(s, "STREAMS") })
		return w[i+1 : i+2]
	case "DEL", "UNLINK", "EXISTS":
		return w[1:]
	}
	return w[1:2]
}

// monitorWords splits a line of MONITOR: 17…12.34 [0 lua] "HGET" "key" …
func monitorWords(line string) []string {
	_, line, _ = strings.Cut(line, "] ")
	var out []string
	for line != "" {
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			return out
		}
		s, err := strconv.Unquote(q)
		if err != nil {
			return out
		}
		out, line = append(out, s), strings.TrimPrefix(line[len(q):], " ")
	}
	return out
}

// monitor returns the lines of MONITOR while f runs.
func monitor(t *testing.T, s *redistest.Server, f func()) []string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 16<<20)
	if !in.Scan() || in.Text() != "+OK" {
		t.Fatalf("MONITOR: %q, %v", in.Text(), in.Err())
	}
	const end = "monitor-ends"
	got := make(chan []string, 1)
	go func() {
		var lines []string
		for in.Scan() && !strings.Contains(in.Text(), end) {
			lines = append(lines, in.Text())
		}
		got <- lines
	}()
	f()
	if err := s.Client(t).Echo(t.Context(), end).Err(); err != nil {
		t.Fatal(err)
	}
	return <-got
}
