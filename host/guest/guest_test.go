package guest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/broker"
	"parley/host"
	"parley/sdk/build"
)

// built holds the guests of this test binary, each compiled once.
var built struct {
	sync.Mutex
	dir string
	mod map[string]func() ([]byte, error)
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guest-test-")
	if err != nil {
		panic(err)
	}
	built.dir, built.mod = dir, make(map[string]func() ([]byte, error))
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// goGuest is the module of a Go plugin folder.
func goGuest(t testing.TB, folder string) []byte {
	t.Helper()
	built.Lock()
	get, ok := built.mod[folder]
	if !ok {
		out := filepath.Join(built.dir, filepath.Base(folder)+".wasm")
		get = sync.OnceValues(func() ([]byte, error) {
			if err := build.Build(context.Background(), folder, out); err != nil {
				return nil, err
			}
			return os.ReadFile(out)
		})
		built.mod[folder] = get
	}
	built.Unlock()
	wasm, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

//go:generate sh -c "for f in testdata/*.wat; do wat2wasm $DOLLAR{f} -o $DOLLAR{f%.wat}.wasm; done"

// wat is a small module of testdata; its text lies beside it (go generate needs wabt).
func wat(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// load makes a plugin that is closed at the end of the test.
func load(t testing.TB, wasm []byte, opts Options) *Plugin {
	t.Helper()
	if opts.CacheDir == "" {
		opts.CacheDir = filepath.Join(built.dir, "cache")
	}
	p, err := Load(t.Context(), wasm, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// effects is a broker's opinion about effects: by default it has none.
type effects struct {
	check func(ctx context.Context, e *broker.Effect) error
}

const newHandle = "00000001-0000-4000-8000-000000000001"

func (e effects) NewHandle(string) (string, error) { return newHandle, nil }

func (e effects) CheckEffect(ctx context.Context, _ *broker.Unit, eff *broker.Effect) error {
	if e.check == nil {
		return nil
	}
	return e.check(ctx, eff)
}

// invocation is a first attempt at messages, which are of one group when the first has one.
func invocation(messages ...broker.Message) *host.Invocation {
	unit := &broker.Unit{ID: 1, Messages: messages}
	if len(messages) > 0 && messages[0].Group != "" {
		unit.Group = "g:" + messages[0].Group
	}
	return &host.Invocation{Queue: "orders", Unit: unit, Attempt: 1, Now: time.Now, Effects: effects{}}
}

func plain(body string) broker.Message {
	return broker.Message{Type: broker.TypeDefault, Kind: broker.KindApp, MessageID: "m1", MessageSeq: -1, SequenceNumber: 7, Priority: 5, Body: []byte(body)}
}
