package cronspec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// at reads an RFC 3339 instant.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

// firing is one expected firing.
type firing struct {
	instant string
	moved   bool
}

func TestNext(t *testing.T) {
	tests := []struct {
		name, spec, zone, from string
		want                   []firing
	}{
		// Case 28, row by row, each with the firing of the day after to show that there is one only.
		{"Los Angeles skips two o'clock", "0 2 * * *", "America/Los_Angeles", "2025-03-08T12:00:00-08:00", []firing{{"2025-03-09T10:00:00Z", true}, {"2025-03-10T09:00:00Z", false}}},
		{"New York skips half past two", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", []firing{{"2026-03-08T07:00:00Z", true}, {"2026-03-09T06:30:00Z", false}}},
		{"Sao Paulo skips midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", []firing{{"2018-11-04T03:00:00Z", true}, {"2018-11-05T02:00:00Z", false}}},
		{"Lord Howe skips half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", []firing{{"2026-10-03T15:30:00Z", true}, {"2026-10-04T15:15:00Z", false}}},
		{"Sao Paulo at one exists", "0 0 1 4 11 *", "America/Sao_Paulo", "2018-11-03T23:00:00-03:00", []firing{{"2018-11-04T03:00:00Z", false}}},

		{"a repeated time fires once", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", []firing{{"2026-11-01T05:30:00Z", false}, {"2026-11-02T06:30:00Z", false}}},
		{"from inside the second pass nothing repeats", "*/10 1 * * *", "America/New_York", "2026-11-01T06:15:00Z", []firing{{"2026-11-02T06:00:00Z", false}}},
		{"a repeated midnight fires once", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z", []firing{{"2026-11-01T04:00:00Z", false}, {"2026-11-02T05:00:00Z", false}}},
		{"several times of a skipped hour are one firing", "*/10 2 * * *", "America/New_York", "2026-03-08T06:00:00Z", []firing{{"2026-03-08T07:00:00Z", true}, {"2026-03-09T06:00:00Z", false}}},
		{"a skipped time meets a planned one", "0 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z", []firing{{"2026-03-08T07:00:00Z", false}, {"2026-03-09T06:00:00Z", false}}},
		{"a skipped whole day fires after it", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", []firing{{"2011-12-30T10:00:00Z", true}, {"2012-12-29T22:00:00Z", false}}},

		{"every half hour keeps its rhythm when an hour repeats", "*/30 * * * *", "America/New_York", "2026-11-01T05:15:00Z", []firing{{"2026-11-01T05:30:00Z", false}, {"2026-11-01T06:00:00Z", false}, {"2026-11-01T06:30:00Z", false}, {"2026-11-01T07:00:00Z", false}}},
		{"every hour keeps its rhythm when an hour is skipped", "30 * * * *", "America/New_York", "2026-03-08T06:00:00Z", []firing{{"2026-03-08T06:30:00Z", false}, {"2026-03-08T07:30:00Z", false}}},
		{"@hourly in a zone that shifts by half an hour", "@hourly", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", []firing{{"2026-10-03T16:00:00Z", false}, {"2026-10-03T17:00:00Z", false}}},
		{"@every does not look at zones", "@every 1h", "America/New_York", "2026-11-01T04:30:00Z", []firing{{"2026-11-01T05:30:00Z", false}, {"2026-11-01T06:30:00Z", false}, {"2026-11-01T07:30:00Z", false}}},
		{"@every is never early", "@every 10s", "", "2026-01-01T00:00:00.9Z", []firing{{"2026-01-01T00:00:11Z", false}, {"2026-01-01T00:00:21Z", false}}},

		{"strictly after a firing", "0 2 * * *", "", "2026-01-01T02:00:00Z", []firing{{"2026-01-02T02:00:00Z", false}}},
		{"just before a firing", "0 2 * * *", "", "2026-01-01T01:59:59.999999999Z", []firing{{"2026-01-01T02:00:00Z", false}}},
		{"six fields", "*/15 * * * * *", "", "2026-01-01T00:00:00.5Z", []firing{{"2026-01-01T00:00:15Z", false}, {"2026-01-01T00:00:30Z", false}, {"2026-01-01T00:00:45Z", false}, {"2026-01-01T00:01:00Z", false}}},
		{"zone in the spec", "CRON_TZ=Europe/Stockholm 0 2 * * *", "", "2026-07-01T12:00:00Z", []firing{{"2026-07-02T00:00:00Z", false}}},
		{"zone in the spec, short", "TZ=Asia/Kathmandu 0 0 * * *", "", "2026-07-01T12:00:00Z", []firing{{"2026-07-01T18:15:00Z", false}}},
		{"names of days and months", "0 9 * jan-mar MON", "", "2026-01-01T00:00:00Z", []firing{{"2026-01-05T09:00:00Z", false}}},
		{"29 February across a century without one", "0 0 29 2 *", "", "2096-03-01T00:00:00Z", []firing{{"2104-02-29T00:00:00Z", false}}},
		{"the last day of a leap year beyond the zone's tables", "30 2 * * *", "America/New_York", "2040-12-30T12:00:00Z", []firing{{"2040-12-31T07:30:00Z", false}, {"2041-01-01T07:30:00Z", false}}},
		{"every hour, the last day of a leap year", "0 * * * *", "Australia/Sydney", "2040-12-31T12:30:00Z", []firing{{"2040-12-31T13:00:00Z", false}, {"2040-12-31T14:00:00Z", false}}},
		{"@midnight", "@midnight", "Europe/Stockholm", "2026-01-01T12:00:00Z", []firing{{"2026-01-01T23:00:00Z", false}}},
		{"a zone with seconds in its offset", "0 12 * * *", "Europe/Stockholm", "1850-01-01T00:00:00Z", []firing{{"1850-01-01T10:47:48Z", false}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse(test.spec, test.zone, at(t, "2026-01-01T00:00:00Z"))
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, test.from)
			for i, want := range test.want {
				got, moved := s.Next(now)
				if !got.Equal(at(t, want.instant)) || moved != want.moved {
					t.Fatalf("firing %d: got %s moved %t, want %s moved %t", i, got.Format(time.RFC3339Nano), moved, want.instant, want.moved)
				}
				now = got
			}
		})
	}
}

// A job that panics cannot stop a schedule (S8): the package holds no state between firings.
func TestNextAfterAJobPanicked(t *testing.T) {
	s, err := Parse("* * * * * *", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	now, runs := at(t, "2026-01-01T00:00:00Z"), 0
	run := func() {
		defer func() { _ = recover() }()
		runs++
		if runs == 1 {
			panic("the job of the first tick")
		}
	}
	for end := now.Add(4 * time.Second); now.Before(end); {
		now, _ = s.Next(now)
		run()
	}
	if runs != 4 {
		t.Errorf("got %d runs in 4 s, want 4", runs)
	}
}

// Only the library's parser and schedules are used, so the faults of its runner (S8) are not ours.
func TestOnlyParserAndSchedulesOfTheLibrary(t *testing.T) {
	allowed := []string{
		"NewParser", "SecondOptional", "Minute", "Hour", "Dom", "Month", "Dow", "Descriptor",
		"SpecSchedule", "ConstantDelaySchedule",
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "cron" {
				used++
				if !slices.Contains(allowed, selector.Sel.Name) {
					t.Errorf("%s uses cron.%s", file.Name(), selector.Sel.Name)
				}
			}
			return true
		})
	}
	if used == 0 {
		t.Error("found no use of the library: the test looks at the wrong files")
	}
}

func TestZeroScheduleNeverFires(t *testing.T) {
	if next, _ := (Schedule{}).Next(time.Now()); !next.IsZero() {
		t.Errorf("got %s, want the zero time", next)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, test := range []struct{ name, spec, zone string }{
		{"daily in a zone", "30 2 * * *", "America/New_York"},
		{"every 15 s", "*/15 * * * * *", "UTC"},
		{"interval", "@every 15s", ""},
	} {
		b.Run(test.name, func(b *testing.B) {
			s, err := Parse(test.spec, test.zone, time.Now())
			if err != nil {
				b.Fatal(err)
			}
			now := at(b, "2026-01-01T00:00:00Z")
			for b.Loop() {
				now, _ = s.Next(now)
			}
		})
	}
}
