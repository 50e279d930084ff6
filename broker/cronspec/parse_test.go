package cronspec

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		spec, zone string
		want       error
		says       string
	}{
		{"", "", ErrSpec, "empty"},
		{" \t ", "", ErrSpec, "empty"},
		{"* * * *", "", ErrSpec, "4 fields"},
		{"* * * * * * *", "", ErrSpec, "7 fields"},
		{"60 * * * *", "", ErrSpec, "above maximum"},
		{"* 24 * * *", "", ErrSpec, "above maximum"},
		{"* * 0 * *", "", ErrSpec, "below minimum"},
		{"* * * 13 *", "", ErrSpec, "above maximum"},
		{"* * * * 7", "", ErrSpec, "above maximum"},
		{"5-1 * * * *", "", ErrSpec, "beyond end"},
		{"1,,2 * * * *", "", ErrSpec, `minute "1,,2"`},
		{", * * * *", "", ErrSpec, "minute"},
		{"*-5 * * * *", "", ErrSpec, `"*-5"`},
		{"+5 * * * *", "", ErrSpec, `"+5"`},
		{"*/0 * * * *", "", ErrSpec, "step 0"},
		{"*/61 * * * *", "", ErrSpec, "step 61"},
		{"*/9223372036854775807 * * * *", "", ErrSpec, "minute"},
		{"0 0 L * *", "", ErrSpec, `"L"`},
		{"0 0 * * 5#2", "", ErrSpec, "day of week"},
		{"0 0 * xyz *", "", ErrSpec, "xyz"},
		{"0 0 *\n* *", "", ErrSpec, "character"},
		{"0 0 * * \u0661", "", ErrSpec, "character"},
		{"0 0 * * \xff", "", ErrSpec, "character"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", ErrSpec, "at most 256"},
		{"@reboot", "", ErrSpec, "@daily"},
		{"@daily 5", "", ErrSpec, "@daily 5"},
		{"@Daily", "", ErrSpec, "@Daily"},
		{"@", "", ErrSpec, "@every"},
		{"@every", "", ErrSpec, "one duration"},
		{"@every 1h 2h", "", ErrSpec, "one duration"},
		{"@every soon", "", ErrSpec, "soon"},
		{"@every 1.5s", "", ErrSpec, "whole seconds"},
		{"@every NaN", "", ErrSpec, "NaN"},
		{"@every 0s", "", ErrTooOften, "0s"},
		{"@every -1h", "", ErrTooOften, "-1h"},
		{"@every 999ms", "", ErrTooOften, "999ms"},
		{"@every 50000h", "", ErrNever, "50000h"},
		{"0 0 30 2 *", "", ErrNever, "does not come"},
		{"0 0 31 4,6,9,11 *", "", ErrNever, "does not come"},
		{"TZ=UTC", "", ErrSpec, "nothing follows"},
		{"CRON_TZ=UTC", "", ErrSpec, "nothing follows"},
		{"TZ= * * * * *", "", ErrZone, "names no zone"},
		{"TZ=Mars/Olympus * * * * *", "", ErrZone, "IANA database"},
		{"TZ=../etc/passwd * * * * *", "", ErrZone, "IANA zone"},
		{"TZ=UTC TZ=UTC * * * * *", "", ErrSpec, "second"},
		{"TZ=UTC * * * * *", "Europe/Stockholm", ErrZone, "Europe/Stockholm"},
		{"* * * * *", "Local", ErrZone, "every host"},
		{"* * * * *", "right/UTC", ErrZone, "every host"},
		{"* * * * *", "Europe/Stock holm", ErrZone, "IANA zone"},
		{"* * * * *", "/etc/localtime", ErrZone, "IANA zone"},
	}
	for _, test := range tests {
		t.Run(test.spec+" in "+test.zone, func(t *testing.T) {
			_, err := Parse(test.spec, test.zone, time.Now())
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v with %q in it", err, test.want, test.says)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	tests := []struct{ spec, zone, text, zoneText string }{
		{"0 2 * * *", "", "0 2 * * *", "UTC"},
		{"  0\t2 *  * * ", "Europe/Stockholm", "0 2 * * *", "Europe/Stockholm"},
		{"0 2 ? * mon-fri", "", "0 2 ? * mon-fri", "UTC"},
		{"5/15 1,2,3-5/2 * JAN,feb 0", "", "5/15 1,2,3-5/2 * JAN,feb 0", "UTC"},
		{"*/60 * * * *", "", "*/60 * * * *", "UTC"},
		{"@every  1h30m", "", "@every 1h30m", "UTC"},
		{"@every 1s", "Asia/Tokyo", "@every 1s", "Asia/Tokyo"},
		{"TZ=Etc/GMT+5 @daily", "", "@daily", "Etc/GMT+5"},
		{"TZ=Asia/Tokyo @daily", "Asia/Tokyo", "@daily", "Asia/Tokyo"},
		{"@weekly", "America/Argentina/Buenos_Aires", "@weekly", "America/Argentina/Buenos_Aires"},
	}
	for _, test := range tests {
		s, err := Parse(test.spec, test.zone, time.Now())
		if err != nil || s.String() != test.text || s.Zone() != test.zoneText {
			t.Errorf("%q: got %q in %s, %v, want %q in %s", test.spec, s, s.Zone(), err, test.text, test.zoneText)
		}
	}
}

// The five years count from the present, so 29 February is refused only when the next one is too far away.
func TestFiveYearsCountFromNow(t *testing.T) {
	if _, err := Parse("0 0 29 2 *", "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Errorf("in 2026: %v", err)
	}
	if _, err := Parse("0 0 29 2 *", "", time.Date(2097, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, ErrNever) {
		t.Errorf("in 2097: got %v, want %v", err, ErrNever)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0 2 * * *", "*/15 * * * * *", "@every 1h", "@daily", "TZ=UTC", "CRON_TZ=Asia/Tokyo 0 0 29 2 *", "1,2-5/3 ? * jan mon"} {
		f.Add(seed, "America/New_York", int64(1772960400))
		f.Add(seed, "", int64(0))
	}
	f.Fuzz(func(t *testing.T, spec, zone string, unix int64) {
		s, err := Parse(spec, zone, time.Now())
		if err != nil {
			return
		}
		// Within the years 1970-2400.
		after := time.Unix(max(0, unix%13_569_465_600), 0)
		next, _ := s.Next(after)
		if !next.After(after) || next.Nanosecond() != 0 {
			t.Fatalf("%q in %q: Next(%s) = %s", spec, zone, after.UTC(), next)
		}
		if again, err := Parse(s.String(), s.Zone(), time.Now()); err != nil || again.String() != s.String() {
			t.Fatalf("%q does not read back: %q, %v", s, again, err)
		}
	})
}
