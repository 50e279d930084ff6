package cronspec

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// searchWindows bounds how often the library's five-year search is repeated, so that a 29 February is found across a
// century that has none.
const searchWindows = 3

// Schedule says when a spec fires. The zero Schedule never fires. A Schedule is immutable and safe for concurrent use.
type Schedule struct {
	spec  string
	zone  *time.Location
	every time.Duration      // above 0 for an interval
	plan  *cron.SpecSchedule // else; its location is UTC, the clock without changes
}

// String returns the spec as it was given, without a zone prefix and with single spaces.
func (s Schedule) String() string { return s.spec }

// Zone returns the name of the IANA time zone the spec is read in, UTC when none was given.
func (s Schedule) Zone() string {
	if s.zone == nil {
		return "UTC"
	}
	return s.zone.String()
}

// Next returns the first firing instant strictly after after, in UTC and on a whole second. It returns the zero time
// when there is none, which for a Schedule made by Parse happens only beyond the year 9999. moved is true when the
// planned wall-clock time does not exist on that day and the firing was put at the first valid instant after it.
//
// An interval fires at the first whole second that is at least the interval after after.
func (s Schedule) Next(after time.Time) (next time.Time, moved bool) {
	after = after.UTC()
	switch {
	case s.every > 0:
		return s.nextInterval(after), false
	case s.plan == nil:
		return time.Time{}, false
	case s.everyHour():
		next = s.nextInRhythm(after)
	default:
		next, moved = s.nextPlanned(after)
	}
	if next.Year() > 9999 {
		return time.Time{}, false
	}
	return next, moved
}

// Following returns the instant after a run that was planned for planned, when the clock shows now. An interval goes on from the planned
// instant, so that it does not drift. When that is over too, since nobody ran it for so long, or has not come, since the clock was set
// back, the next run is the next valid one from now: what was missed is not made up for.
func (s Schedule) Following(planned, now time.Time) time.Time {
	if s.every > 0 && !planned.After(now) {
		if next := planned.Add(s.every); next.After(now) {
			return next.UTC()
		}
	}
	next, _ := s.Next(now)
	return next
}

// TooFar reports whether a run that is armed for armed is further away than the spec allows when the clock shows now: it was armed before
// the clock was set back.
func (s Schedule) TooFar(armed, now time.Time) bool {
	next, _ := s.Next(now)
	return !next.IsZero() && armed.After(next)
}

// Interval returns the interval of an @every, 0 of a calendar.
func (s Schedule) Interval() time.Duration { return s.every }

// nextInterval rounds up where the library rounds down, so that an interval armed inside a second is never early.
func (s Schedule) nextInterval(after time.Time) time.Time {
	next := cron.ConstantDelaySchedule{Delay: s.every}.Next(after)
	if next.Sub(after) < s.every {
		next = next.Add(time.Second)
	}
	return next
}

// everyHour reports whether the spec fires in each of the 24 hours of a day it fires on.
func (s Schedule) everyHour() bool {
	return bits.OnesCount64(s.plan.Hour&(1<<24-1)) == 24
}

// nextWall returns the first planned reading of the clock after wall, both written as UTC, or the zero time.
func (s Schedule) nextWall(wall time.Time) time.Time {
	for range searchWindows {
		if next := s.plan.Next(wall); !next.IsZero() {
			return next
		}
		wall = wall.AddDate(5, 0, 0)
	}
	return time.Time{}
}
