package main

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// failure is what ends a scenario at once.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

// tb lets the helpers of tests start and stop servers outside of a test. The methods that they do not use are those of a nil
// testing.TB.
type tb struct {
	testing.TB
	ctx      context.Context
	name     string
	cleanups []func()
}

func (t *tb) Helper()                  {}
func (t *tb) Name() string             { return t.name }
func (t *tb) Context() context.Context { return t.ctx }
func (t *tb) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
func (t *tb) Logf(string, ...any)      {}
func (t *tb) Fatal(a ...any)           { panic(failure{fmt.Sprint(a...)}) }
func (t *tb) Fatalf(f string, a ...any) {
	panic(failure{fmt.Sprintf(f, a...)})
}

func (t *tb) TempDir() string {
	dir, err := os.MkdirTemp("", "parley-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// end undoes everything, the last first.
func (t *tb) end() {
	for len(t.cleanups) > 0 {
		f := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		f()
	}
}
