package meter_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/host/guest/meter"
)

// TestDocumentSaysWhatTheCodeDoes compares docs/metering.md with the cost table and with the modules of its worked example, which
// another test compares with what Rewrite gives.
func TestDocumentSaysWhatTheCodeDoes(t *testing.T) {
	b, err := os.ReadFile("../../../docs/metering.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(b)
	for _, c := range meter.Costs() {
		if row := fmt.Sprintf("| %s | %d | %s |", c.Name, c.Units, c.Reason); !strings.Contains(document, row) {
			t.Errorf("docs/metering.md lacks the row\n%s", row)
		}
	}
	for _, name := range []string{"loop.wat", "loop.want.wat"} {
		example, err := forms.ReadFile("testdata/forms/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(example), "(module") // a comment may come before
		if !strings.Contains(document, "(module"+strings.TrimRight(text, "\n")) {
			t.Errorf("docs/metering.md lacks the text of %s", name)
		}
	}
	for _, name := range []string{meter.CounterExport, meter.CheckpointModule + "." + meter.CheckpointName} {
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("docs/metering.md does not name %s", name)
		}
	}
}
