package guest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/broker"
)

// cacheFiles is the files of a compile cache.
func cacheFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestCaseS13BrokenCache: a compile cache with files cut short is repaired, also when two hosts share it (wasm-cache-dir).
func TestCaseS13BrokenCache(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, file string)
	}{
		{"zero bytes", func(t *testing.T, file string) { truncate(t, file, 0) }},
		{"three bytes", func(t *testing.T, file string) { truncate(t, file, 3) }},
		{"half", func(t *testing.T, file string) {
			st, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			truncate(t, file, st.Size()/2)
		}},
		{"a changed byte", func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 0xff
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a folder in its place", func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			wantCommit(t, attemptOf(t, load(t, wat(t, "trouble"), Options{CacheDir: dir}), "b"))
			if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("the cache directory: %v, %v", st.Mode(), err)
			}
			files := cacheFiles(t, dir)
			if len(files) != 1 {
				t.Fatalf("the cache holds %v", files)
			}
			good, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(t, files[0])
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					p := load(t, wat(t, "trouble"), Options{CacheDir: dir})
					if r := attemptOf(t, p, "b"); r.Settlement.Verdict != broker.VerdictCommit {
						t.Errorf("%+v", r.Settlement)
					}
				})
			}
			wg.Wait()
			if b, err := os.ReadFile(files[0]); err != nil || len(b) != len(good) {
				t.Errorf("the entry was not repaired: %d bytes, want %d (%v)", len(b), len(good), err)
			}
		})
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

// TestCacheOthersMayWrite: native code is not run from a directory that others may write to.
func TestCacheOthersMayWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Load(t.Context(), wat(t, "empty"), Options{CacheDir: dir})
	if !errors.Is(err, broker.ErrInvalid) || !strings.Contains(err.Error(), "chmod 700 "+dir) {
		t.Errorf("got %v", err)
	}
}
