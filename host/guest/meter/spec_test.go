package meter_test

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"parley/host/guest/meter"
)

//go:embed testdata/spec/suites.jsonl.bz2
var suitesPacked []byte

// script is one .wast file of the specification tests.
type script struct {
	Suite    string    `json:"suite"`
	File     string    `json:"source_filename"`
	Commands []command `json:"commands"`
}

// command is one command of a script, as wast2json writes it, with the module inside.
type command struct {
	Type   string `json:"type"`
	Line   int    `json:"line"`
	Name   string `json:"name"`
	As     string `json:"as"`
	Module []byte `json:"module"`
	Text   string `json:"text"`
	Action struct {
		Type   string  `json:"type"`
		Module string  `json:"module"`
		Field  string  `json:"field"`
		Args   []value `json:"args"`
	} `json:"action"`
	Expected []value `json:"expected"`
}

var scripts = sync.OnceValue(func() (all []script) {
	lines := bufio.NewScanner(bzip2.NewReader(bytes.NewReader(suitesPacked)))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var s script
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
	return all
})

var suiteFeatures = map[string]api.CoreFeatures{
	"v1":             api.CoreFeaturesV1,
	"v2":             api.CoreFeaturesV2,
	"tail-call":      api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall,
	"extended-const": api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst,
}

func plain(wasm []byte) ([]byte, error) { return wasm, nil }

func metered(wasm []byte) ([]byte, error) {
	m, err := meter.Rewrite(wasm, meter.Options{})
	return m.Bytes, err
}

// scriptShare: one script of so many is run. All but under the race detector, which makes the suite take minutes and finds nothing
// in a single goroutine.
var scriptShare = 1

// TestSpecificationSuite runs the official tests through the rewriter. Each command must do what the specification says; the
// tests pass without the rewriter as well, so a failure is the rewriter's.
func TestSpecificationSuite(t *testing.T) {
	for mode, prepare := range map[string]func([]byte) ([]byte, error){"plain": plain, "metered": metered} {
		for engine, config := range engines {
			t.Run(mode+"/"+engine, func(t *testing.T) {
				t.Parallel()
				done := map[string]int{}
				for i, s := range scripts() {
					if s.Suite != "spectest" && i%scriptShare == 0 {
						runScript(t, s, config(), prepare, done)
					}
				}
				t.Log(done)
				if scriptShare > 1 {
					return
				}
				for kind, least := range map[string]int{
					"module": 2390, "assert_return": 61_000, "assert_trap": 2870, "assert_exhaustion": 30, "assert_invalid": 3190,
					"assert_malformed": 250, "assert_unlinkable": 150,
				} {
					if done[kind] < least {
						t.Errorf("got %d %s commands, want at least %d", done[kind], kind, least)
					}
				}
			})
		}
	}
}

// interpreter of one script.
type specRun struct {
	ctx         context.Context
	runtime     wazero.Runtime
	prepare     func([]byte) ([]byte, error)
	named       map[string]api.Module
	last        api.Module
	checkpoints int
}

func runScript(t *testing.T, s script, config wazero.RuntimeConfig, prepare func([]byte) ([]byte, error), done map[string]int) {
	t.Helper()
	r := newSpecRun(t, config.WithCoreFeatures(suiteFeatures[s.Suite]), prepare)
	defer r.runtime.Close(r.ctx)
	for i, c := range s.Commands {
		as := ""
		if i+1 < len(s.Commands) && s.Commands[i+1].Type == "register" {
			as = s.Commands[i+1].As
		}
		if err := r.run(c, as); err != nil {
			t.Errorf("%s/%s line %d, %s: %v", s.Suite, s.File, c.Line, c.Type, err)
		}
		done[c.Type]++
	}
	done["checkpoint"] += r.checkpoints
}

func newSpecRun(t *testing.T, config wazero.RuntimeConfig, prepare func([]byte) ([]byte, error)) *specRun {
	t.Helper()
	r := &specRun{ctx: context.Background(), prepare: prepare, named: map[string]api.Module{}}
	r.runtime = wazero.NewRuntimeWithConfig(r.ctx, config)
	var account meter.Meter
	account.Begin(0, 1000, time.Time{})
	exportCheckpoint(t, r.ctx, r.runtime, func(api.Module) *meter.Meter { r.checkpoints++; return &account })
	all := scripts()
	if err := r.instantiate(all[len(all)-1].Commands[0].Module, "spectest"); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *specRun) instantiate(wasm []byte, name string) error {
	wasm, err := r.prepare(wasm)
	if err != nil {
		return err
	}
	m, err := r.runtime.InstantiateWithConfig(r.ctx, wasm, wazero.NewModuleConfig().WithName(name))
	if err == nil {
		r.last = m
	}
	return err
}

func (r *specRun) run(c command, as string) error {
	switch c.Type {
	case "register": // done with the module before
		return nil
	case "module":
		err := r.instantiate(c.Module, as)
		r.named[c.Name] = r.last
		return err
	case "assert_return", "action":
		return r.act(c)
	case "assert_trap", "assert_exhaustion":
		_, err := r.invoke(c)
		if want := trapText(c.Text); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got error %v, want %q", err, want)
		}
		return nil
	case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
		last := r.last
		err := r.instantiate(c.Module, "")
		r.last = last
		// wazero keeps the functions of a module whose element segment does not fit, and so does not fail here (linking.wast).
		if c.Type == "assert_uninstantiable" && c.Text == "out of bounds table access" {
			return err
		}
		if err == nil {
			return errors.New("got no error")
		}
		return nil
	}
	return errors.New("unknown command")
}

func (r *specRun) act(c command) error {
	var got []uint64
	var err error
	if c.Action.Type == "get" {
		got = []uint64{r.module(c).ExportedGlobal(c.Action.Field).Get()}
	} else if got, err = r.invoke(c); err != nil {
		return err
	}
	return equalValues(got, c.Expected)
}

func (r *specRun) module(c command) api.Module {
	if c.Action.Module != "" {
		return r.named[c.Action.Module]
	}
	return r.last
}

func (r *specRun) invoke(c command) ([]uint64, error) {
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits()...)
	}
	return r.module(c).ExportedFunction(c.Action.Field).Call(r.ctx, args...)
}

// trapText is what wazero says where the specification says text.
func trapText(text string) string {
	switch {
	case text == "indirect call type mismatch", text == "indirect call":
		return "indirect call type mismatch"
	case text == "undefined element", text == "undefined", text == "out of bounds table access", strings.HasPrefix(text, "uninitialized"):
		return "invalid table access"
	case text == "call stack exhausted":
		return "stack overflow"
	}
	return text
}
