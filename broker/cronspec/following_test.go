package cronspec

import (
	"testing"
	"time"
)

func TestFollowing(t *testing.T) {
	for _, test := range []struct{ name, spec, planned, now, want string }{
		{"an interval, on time", "@every 5s", "12:00:05Z", "12:00:05Z", "12:00:10Z"},
		{"an interval, late: it does not drift", "@every 5s", "12:00:05Z", "12:00:05.7Z", "12:00:10Z"},
		{"an interval, late to the next run", "@every 5s", "12:00:05Z", "12:00:09.999Z", "12:00:10Z"},
		{"an interval that was overdue goes from now", "@every 5s", "12:00:05Z", "12:00:10Z", "12:00:15Z"},
		{"an interval after an hour's stop", "@every 5s", "12:00:05Z", "13:00:00.2Z", "13:00:06Z"},
		{"an interval whose planned instant has not come: the clock was set back", "@every 5s", "12:00:05Z", "11:00:00Z", "11:00:05Z"},
		{"a calendar, on time", "*/20 * * * * *", "12:00:20Z", "12:00:20.3Z", "12:00:40Z"},
		{"a calendar makes up for nothing", "*/20 * * * * *", "12:00:20Z", "12:05:01Z", "12:05:20Z"},
		{"a calendar after the clock was set back", "*/20 * * * * *", "12:00:20Z", "11:00:01Z", "11:00:20Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := at(t, "2026-03-01T"+test.now)
			s, err := Parse(test.spec, "", now)
			if err != nil {
				t.Fatal(err)
			}
			want := at(t, "2026-03-01T"+test.want)
			got := s.Following(at(t, "2026-03-01T"+test.planned), now)
			if !got.Equal(want) {
				t.Errorf("got %s, want %s", got.Format(time.RFC3339Nano), want.Format(time.RFC3339Nano))
			}
			if s.TooFar(got, now) {
				t.Error("what follows is further away than the spec allows")
			}
			if !s.TooFar(got, now.Add(-time.Hour)) {
				t.Error("an hour earlier it is not too far away")
			}
		})
	}
}
