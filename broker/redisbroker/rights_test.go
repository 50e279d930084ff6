package redisbroker

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"parley/broker"
	"parley/internal/redistest"
)

// subcommands are the commands whose right is given by subcommand.
var subcommands = []string{"xgroup", "xinfo", "script", "client", "cluster", "config"}

// TestTheNeedsNameAllThatScriptsCall derives the commands from the text of every script and part, so that a new one cannot be forgotten.
func TestTheNeedsNameAllThatScriptsCall(t *testing.T) {
	called := map[string]string{}
	err := fs.WalkDir(scriptFiles, "scripts", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := scriptFiles.ReadFile(path)
		collectCalls(called, path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	collectCalls(called, "undefine", undefine)
	if len(called) < 40 {
		t.Fatalf("only %d commands were found in the scripts: the search is wrong", len(called))
	}
	wantNeeded(t, called)
}

var scriptCall = regexp.MustCompile(`\bp?call_?\('(\w+)'(?:, '(\w+)')?|\bp?call_?\(([^'\n][^\n]*)`)

func collectCalls(called map[string]string, path, text string) {
	for _, m := range scriptCall.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(m[1])
		if name == "" { // a command whose name is not written down would escape
			called["a command by a variable: "+m[3]] = path
			continue
		}
		if slices.Contains(subcommands, name) {
			name += "|" + strings.ToLower(m[2])
		}
		called[name] = path
	}
}

func wantNeeded(t *testing.T, called map[string]string) {
	t.Helper()
	var have []string
	for _, n := range slices.Concat(needs, wishes, clusterNeeds) {
		name, _, _ := strings.Cut(n, " ")
		have = append(have, name)
	}
	for name, where := range called {
		if !slices.Contains(have, name) {
			t.Errorf("%s calls %s, which connect does not ask for: add it to needs", where, name)
		}
	}
}

// commandOf are the commands of those methods of the client that are not called like them.
var commandOf = map[string][]string{
	"clusterinfo": {"cluster|info"}, "configget": {"config|get"}, "hscannovalues": {"hscan"}, "scriptload": {"script|load"}, "txpipelined": {"multi", "exec"},
	"xinfogroups": {"xinfo|groups"}, "xpendingext": {"xpending"}, "xrangen": {"xrange"}, "xrevrangen": {"xrevrange"}, "zrangewithscores": {"zrange"},
	"psubscribe": {"subscribe"}, "evalsharo": {"evalsha"}, "xinfostream": {"xinfo|stream"}, "zrangebyscorewithscores": {"zrangebyscore"},
	"pipelined": nil, "pipeline": nil, "process": nil, "do": nil, "close": nil, "addhook": nil, "watch": {"watch"}, "poolstats": nil,
}

// TestTheNeedsNameAllThatTheClientCalls derives the commands from the methods of the client that the code of this package calls, and from
// the commands that it makes itself.
func TestTheNeedsNameAllThatTheClientCalls(t *testing.T) {
	client := reflect.TypeFor[redis.UniversalClient]()
	called := map[string]string{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				collectMethod(called, client, name, c)
			}
			return true
		})
	}
	if len(called) < 25 {
		t.Fatalf("only %d commands were found in the code: the search is wrong", len(called))
	}
	wantNeeded(t, called)
}

// collectMethod notes what a call of a method of the client, or of redis.NewCmd, sends.
func collectMethod(called map[string]string, client reflect.Type, file string, c *ast.CallExpr) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 || !isContext(c.Args[0]) {
		return
	}
	if sel.Sel.Name == "NewCmd" || sel.Sel.Name == "NewRawCmd" {
		if lit, ok := c.Args[1].(*ast.BasicLit); ok && strings.Trim(lit.Value, `"`) != "hello" { // which everybody may
			called[strings.ToLower(strings.Trim(lit.Value, `"`))] = file
		}
		return
	}
	if _, ok := client.MethodByName(sel.Sel.Name); !ok || !ofClient(sel.X) {
		return
	}
	method := strings.ToLower(sel.Sel.Name)
	commands, special := commandOf[method]
	if !special {
		commands = []string{method}
	}
	for _, name := range commands {
		called[name] = file
	}
}

func isContext(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name == "ctx" || x.Name == "bounded" || x.Name == "bye"
	case *ast.CallExpr:
		return true // context.Background()
	}
	return false
}

// ofClient reports whether an expression is the client, a pipeline, or one node's client, as they are called here.
func ofClient(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"rdb", "pipe", "p", "c", "cc", "sub", "conn"}, x.Name)
	case *ast.SelectorExpr:
		return x.Sel.Name == "rdb" || x.Sel.Name == "sub"
	}
	return false
}

// least makes a user who may do what Parley needs in a namespace, and nothing else.
func least(t testing.TB, s *redistest.Server, ns string, words ...string) (url string, rights Rights) {
	t.Helper()
	rights, err := LeastRights(Options{URL: s.URL(), Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	return s.User(t, ns, append(strings.Fields(rights.Line())[3:], words...)...), rights
}

// TestConnectNamesEachRightThatIsMissing takes one right after the other away.
func TestConnectNamesEachRightThatIsMissing(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	name := redistest.Namespace(t)
	for _, n := range []string{name, "shop[1]"} {
		url, rights := least(t, s, n)
		if err := tryOpen(t, url, n); err != nil {
			t.Fatalf("with all rights: %v", err)
		}
		if n != name {
			continue
		}
		for _, c := range rights.Commands {
			s.User(t, n, "-"+c)
			wantMissing(t, tryOpen(t, url, n), n, "+"+c)
			s.User(t, n, "+"+c)
		}
		for _, k := range rights.Keys {
			others := slices.DeleteFunc(slices.Clone(rights.Keys), func(o string) bool { return o == k })
			s.User(t, n, "resetkeys", "~"+others[0])
			wantMissing(t, tryOpen(t, url, n), n, "~"+k)
			s.User(t, n, "%R~"+k)
			wantMissing(t, tryOpen(t, url, n), n, "~"+k)
			s.User(t, n, "~"+k)
		}
		s.User(t, n, "resetchannels")
		wantMissing(t, tryOpen(t, url, n), n, "&"+rights.Channels[0])
		s.User(t, n, "&"+rights.Channels[0])
		if err := tryOpen(t, url, n); err != nil {
			t.Errorf("with all rights given back: %v", err)
		}
	}
	if keys := admin.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("connecting left the keys %v", keys)
	}
}

func tryOpen(t *testing.T, url, ns string) error {
	t.Helper()
	b, err := Open(t.Context(), Options{URL: url, Namespace: ns})
	if err == nil {
		_ = b.Close()
	}
	return err
}

// wantMissing wants an error that names the right, and the line that gives it.
func wantMissing(t *testing.T, err error, user, word string) {
	t.Helper()
	if !errors.Is(err, broker.ErrRights) || broker.ExitCode(err) != broker.ExitUnreachable {
		t.Errorf("without %s: got %v", word, err)
		return
	}
	if want := "ACL SETUSER " + user + " " + word; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("without %s: %q does not end in %q", word, err, want)
	}
}
