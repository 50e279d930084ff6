package cronspec

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// changes are instants around which clocks change, one per kind of change.
var changes = []struct{ zone, at string }{
	{"America/New_York", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	{"America/Sao_Paulo", "2018-02-18T02:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"Europe/Dublin", "2026-10-25T01:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Asia/Kathmandu", "2026-01-01T00:00:00Z"},
}

// expected lists by brute force, minute by minute, the firings of "minute hour * * *" in (from, to]: each planned reading
// of the clock fires at the first minute that shows it, or, if none does, at the first minute that shows a later one.
func expected(minute, hour int, zone *time.Location, from, to time.Time) []string {
	const day = "2006-01-02T15:04"
	seen := map[string]bool{}
	start := from.Add(-72 * time.Hour)
	last := start.In(zone).Format(day)
	var fires []string
	for t := start; !t.After(to); t = t.Add(time.Minute) {
		local := t.In(zone)
		shows := local.Format(day)
		if seen[shows] {
			continue
		}
		seen[shows] = true
		if shows <= last {
			continue
		}
		// Readings between last and shows were skipped; this one is shown.
		walk, err := time.Parse(day, last)
		if err != nil {
			panic(err)
		}
		due := false
		for walk = walk.Add(time.Minute); walk.Format(day) <= shows; walk = walk.Add(time.Minute) {
			due = due || (walk.Minute() == minute && walk.Hour() == hour)
		}
		last = shows
		if due && t.After(from) {
			fires = append(fires, t.UTC().Format(time.RFC3339))
		}
	}
	return fires
}

func TestNextAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		minute := rapid.IntRange(0, 59).Draw(t, "minute")
		hour := rapid.IntRange(0, 23).Draw(t, "hour")
		shift := rapid.IntRange(-40, 10).Draw(t, "shift")
		zone, err := time.LoadLocation(change.zone)
		if err != nil {
			t.Fatal(err)
		}
		instant, err := time.Parse(time.RFC3339, change.at)
		if err != nil {
			t.Fatal(err)
		}
		from := instant.Add(time.Duration(shift) * time.Hour)
		to := from.Add(72 * time.Hour)
		s, err := Parse(fmt.Sprintf("%d %d * * *", minute, hour), change.zone, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for next, _ := s.Next(from); !next.After(to); next, _ = s.Next(next) {
			got = append(got, next.Format(time.RFC3339))
		}
		if want := expected(minute, hour, zone, from, to); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s in %s from %s:\n got %v\nwant %v", s, change.zone, from.Format(time.RFC3339), got, want)
		}
	})
}
