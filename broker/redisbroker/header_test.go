package redisbroker

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// scriptHeader is the contract in the first lines of a script.
type scriptHeader struct {
	purpose, keys, argv, returns string
	libs                         []string
}

// readHeader reads the comment lines at the top of scripts/<name>.lua. Parts begin with their word and go on over the next lines.
func readHeader(t *testing.T, name string) scriptHeader {
	t.Helper()
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	var h scriptHeader
	at := &h.purpose
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if !ok {
			break
		}
		word := regexp.MustCompile(`^(lib|KEYS|ARGV|RETURNS)\b`).FindString(line)
		switch word {
		case "lib":
			h.libs = scriptParts(string(text))
			continue
		case "KEYS":
			at = &h.keys
		case "ARGV":
			at = &h.argv
		case "RETURNS":
			at = &h.returns
		}
		*at += " " + strings.TrimSpace(strings.TrimPrefix(line, word))
	}
	_, inner, _ := cutInner(string(text))
	h.libs = append(h.libs, inner...)
	return h
}

// allParts returns the names of the files of scripts/lib and scripts/rare.
func allParts(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, dir := range []string{"scripts/lib", "scripts/rare"} {
		files, err := scriptFiles.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f.Name(), ".lua"))
		}
	}
	return names
}

func TestEveryScriptIsKnownAndHasItsContract(t *testing.T) {
	files, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".lua"); ok {
			names = append(names, name)
		}
	}
	if d := cmp.Diff(names, scriptNames); d != "" {
		t.Errorf("scriptNames and the files differ (-files +scriptNames):\n%s", d)
	}
	for _, name := range names {
		h := readHeader(t, name)
		if !strings.HasPrefix(h.purpose, " "+name+": ") {
			t.Errorf("%s: its first line is not %q and its purpose", name, "-- "+name+": ")
		}
		if !strings.HasPrefix(h.keys, " 1: meta of the ") || h.argv == "" || h.returns == "" {
			t.Errorf("%s: KEYS, ARGV or RETURNS is missing: %+v", name, h)
		}
		if numbers := argumentNumbers(h); !slices.IsSorted(numbers) || len(numbers) > 0 && numbers[len(numbers)-1] != len(numbers) {
			t.Errorf("%s: the numbers of its ARGV are not 1, 2, …: %v", name, numbers)
		}
	}
}

// argumentNumbers returns the numbers that the part ARGV of a header explains.
func argumentNumbers(h scriptHeader) []int {
	var out []int
	for _, m := range regexp.MustCompile(`(?:^|\s)(\d+): `).FindAllStringSubmatch(h.argv, -1) {
		n, _ := strconv.Atoi(m[1])
		out = append(out, n)
	}
	return out
}

// openEnded are the scripts whose last numbered arguments are followed by as many more as those say.
var openEnded = []string{"append", "configure", "plain", "receive", "repair", "resume", "schedule", "settle", "turn", "work"}

func TestScriptsReadNoArgumentThatTheirHeaderDoesNotNumber(t *testing.T) {
	for _, name := range scriptNames {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		h := readHeader(t, name)
		last := len(argumentNumbers(h))
		for _, m := range regexp.MustCompile(`ARGV\[(\d+)\]`).FindAllStringSubmatch(string(text), -1) {
			if n, _ := strconv.Atoi(m[1]); n > last {
				t.Errorf("%s reads ARGV[%d]; its header numbers %d", name, n, last)
			}
		}
	}
}

// perhaps is how a script names what only some scripts have.
var perhaps = regexp.MustCompile(`\brare\.(\w+)`)

// TestEveryPartOfAScriptIsNeeded leaves out one part at a time: then a name must be missing that another part, or the script itself,
// uses.
func TestEveryPartOfAScriptIsNeeded(t *testing.T) {
	for _, name := range scriptNames {
		parts := readHeader(t, name).libs
		all := undefined(t, name, parts)
		for _, part := range parts {
			less := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == part })
			fresh := slices.DeleteFunc(undefined(t, name, less), func(g string) bool { return slices.Contains(all, g) })
			if len(fresh) == 0 {
				t.Errorf("%s lists the part %s and needs nothing of it", name, part)
			}
		}
	}
}

func TestEveryPartBelongsToAScript(t *testing.T) {
	used := map[string]bool{}
	for _, name := range scriptNames {
		for _, part := range readHeader(t, name).libs {
			used[part] = true
		}
	}
	for _, part := range allParts(t) {
		if !used[part] {
			t.Errorf("no script lists the part %s", part)
		}
	}
}

// undefined lists the names that a script and these parts use and none of them defines.
func undefined(t *testing.T, name string, parts []string) []string {
	t.Helper()
	var src strings.Builder
	for _, part := range append(parts[:len(parts):len(parts)], "../"+name) {
		text, err := scriptFiles.ReadFile(path.Join("scripts/lib", part+".lua"))
		if err != nil {
			text, err = scriptFiles.ReadFile(path.Join("scripts/rare", part+".lua"))
		}
		if err != nil {
			t.Fatal(err)
		}
		src.WriteString(perhaps.ReplaceAllString(string(text), "$1") + "\n")
	}
	read, set := globals(compileLua(t, name, src.String()))
	return slices.DeleteFunc(read, func(g string) bool { return slices.Contains(set, g) || slices.Contains(luaNames, g) })
}

// luaNames are the globals of Redis's Lua that scripts use.
var luaNames = strings.Fields("redis cjson KEYS ARGV string table math ipairs pairs next type tonumber tostring unpack error setmetatable rawget")

func compileLua(t *testing.T, name, src string) *lua.FunctionProto {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(src), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return proto
}

// TestNoScriptTouchesAGlobal compiles every script as it is loaded: a global that neither Lua nor Redis has is a name that is
// misspelt, or of a part that is missing or stands too late.
func TestNoScriptTouchesAGlobal(t *testing.T) {
	for _, name := range scriptNames {
		src, err := scriptSource(name)
		if err != nil {
			t.Fatal(err)
		}
		read, set := globals(compileLua(t, name, src))
		for _, g := range append(read, set...) {
			if !slices.Contains(luaNames, g) {
				t.Errorf("%s touches the global %s", name, g)
			}
		}
	}
}

// globals lists the names that a function and those inside of it read as globals, and those they set, each once.
func globals(p *lua.FunctionProto) (read, set []string) {
	for _, code := range p.Code {
		switch int(code >> 26) {
		case lua.OP_GETGLOBAL:
			read = append(read, p.Constants[code&0x3ffff].String())
		case lua.OP_SETGLOBAL:
			set = append(set, p.Constants[code&0x3ffff].String())
		}
	}
	for _, inner := range p.FunctionPrototypes {
		r, s := globals(inner)
		read, set = append(read, r...), append(set, s...)
	}
	return sorted(read), sorted(set)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
