package cronspec

import "time"

// A wall is what the clock of a zone shows, written as a UTC time so that arithmetic on it knows no clock changes.

// period is a stretch of real time in which the zone's offset from UTC stays the same: [start, end).
type period struct {
	offset     time.Duration
	start, end time.Time // zero: without bound
}

// periodAt returns the period that holds t.
func periodAt(t time.Time, zone *time.Location) period {
	local := t.In(zone)
	_, seconds := local.Zone()
	start, end := local.ZoneBounds()
	if !end.IsZero() && !t.Before(end) {
		// Beyond its tables ZoneBounds cuts periods at the end of the year, and gives a leap year 365 days, so that on
		// its last day the end is in the past.
		end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return period{offset: time.Duration(seconds) * time.Second, start: start.UTC(), end: end.UTC()}
}

// wall returns what the clock shows at t.
func (p period) wall(t time.Time) time.Time { return t.Add(p.offset) }

// instant returns when the clock would show wall under this period's offset, inside the period or not.
func (p period) instant(wall time.Time) time.Time { return wall.Add(-p.offset) }

// holds reports whether the period goes on beyond t.
func (p period) holds(t time.Time) bool { return p.end.IsZero() || t.Before(p.end) }

// farthest is more than any zone's distance from UTC plus any jump of a zone's clock (a whole day in Samoa, 2011).
const farthest = 48 * time.Hour

// place returns when the zone's clock first shows wall; if it never does, the first instant after the skip and true.
func place(wall time.Time, zone *time.Location) (at time.Time, skipped bool) {
	p := periodAt(wall.Add(-farthest), zone)
	for !p.holds(p.instant(wall)) {
		p = periodAt(p.end, zone)
	}
	at = p.instant(wall)
	if !p.start.IsZero() && at.Before(p.start) {
		return p.start, true
	}
	return at, false
}

// reached returns the latest reading the zone's clock has shown up to t. It differs from what it shows at t only while a
// stretch of the clock repeats, where everything up to the moment it was put back has been shown already.
func reached(t time.Time, zone *time.Location) time.Time {
	p := periodAt(t, zone)
	now := p.wall(t)
	if p.start.IsZero() {
		return now
	}
	before := periodAt(p.start.Add(-time.Nanosecond), zone)
	if last := before.wall(p.start).Add(-time.Nanosecond); last.After(now) {
		return last
	}
	return now
}

// nextPlanned is Next for a spec that names hours. Placing never reverses the order of two readings, so the first planned
// reading beyond what the clock has reached is the first firing after after.
func (s Schedule) nextPlanned(after time.Time) (time.Time, bool) {
	wall := s.nextWall(reached(after, s.zone))
	for ; !wall.IsZero(); wall = s.nextWall(wall) {
		at, skipped := place(wall, s.zone)
		if at.After(after) {
			return at, skipped && !s.plannedAt(at)
		}
	}
	return time.Time{}, false
}

// plannedAt reports whether the spec names the reading of the clock at t, a whole second.
func (s Schedule) plannedAt(t time.Time) bool {
	wall := periodAt(t, s.zone).wall(t)
	return s.nextWall(wall.Add(-time.Nanosecond)).Equal(wall)
}

// nextInRhythm is Next for a spec that fires in every hour: the clock's readings count each time they are shown, and
// those that are skipped do not.
func (s Schedule) nextInRhythm(after time.Time) time.Time {
	p := periodAt(after, s.zone)
	from := p.wall(after)
	for {
		wall := s.nextWall(from)
		if wall.IsZero() {
			return wall
		}
		if at := p.instant(wall); p.holds(at) {
			return at
		}
		end := p.end
		p = periodAt(end, s.zone)
		from = p.wall(end).Add(-time.Nanosecond)
	}
}
