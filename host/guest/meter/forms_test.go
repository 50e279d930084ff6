package meter_test

import (
	"bytes"
	"embed"
	"strings"
	"testing"

	"parley/host/guest/meter"
)

// forms holds pairs of modules: x.wasm and x.want.wasm, what it must become. testdata/build.sh makes them from the .wat files.
//
//go:embed testdata/forms
var forms embed.FS

func TestEachInsertedFormIsExactlyAsWritten(t *testing.T) {
	files, err := forms.ReadDir("testdata/forms")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".want.wasm")
		if !ok {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			got, err := meter.Rewrite(form(t, name), meter.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := form(t, name+".want"); !bytes.Equal(got.Bytes, want) {
				t.Errorf("got  %x\nwant %x", got.Bytes, want)
			}
		})
	}
	if cases < 5 {
		t.Errorf("got %d cases, want at least 5", cases)
	}
}

func form(t testing.TB, name string) []byte {
	t.Helper()
	b, err := forms.ReadFile("testdata/forms/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	return b
}
