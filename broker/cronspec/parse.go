package cronspec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// MaxSpec is the longest accepted spec, in bytes, zone prefix included.
const MaxSpec = 256

// horizon is how far ahead a spec must be able to fire, in years.
const horizon = 5

var (
	// ErrSpec is returned by Parse for a spec that is not one of the accepted forms. The text says which part and why.
	ErrSpec = errors.New("the cron spec is refused")
	// ErrZone is returned by Parse for a time zone that is unknown, differs from host to host, or is given twice.
	ErrZone = errors.New("the time zone is refused")
	// ErrNever is returned by Parse for a spec that cannot fire within the next five years.
	ErrNever = errors.New("the cron spec cannot fire within 5 years")
	// ErrTooOften is returned by Parse for an interval below one second.
	ErrTooOften = errors.New("the interval is shorter than 1 s")
)

// library takes fields only: prefixes and @every are read here, since its handling of them is unsafe.
var library = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a spec in a time zone; an empty timeZone means UTC. The zone may instead stand in the spec, as TZ= or
// CRON_TZ=; both must agree when both are given. now is the present, from which the five years count: this package reads no
// clock. Errors wrap ErrSpec, ErrZone, ErrNever or ErrTooOften.
func Parse(spec, timeZone string, now time.Time) (Schedule, error) {
	if err := checkText(spec); err != nil {
		return Schedule{}, err
	}
	words := strings.Fields(spec)
	name, words, err := splitZone(words, timeZone)
	if err != nil {
		return Schedule{}, err
	}
	zone, err := loadZone(name)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{spec: strings.Join(words, " "), zone: zone}
	if len(words) == 0 {
		return Schedule{}, fmt.Errorf("%w: it is empty", ErrSpec)
	}
	if words[0] == "@every" {
		s.every, err = parseEvery(words[1:])
	} else {
		s.plan, err = parsePlan(words)
	}
	if err != nil {
		return Schedule{}, err
	}
	if s.every == 0 {
		next, _ := s.Next(now)
		if next.IsZero() || next.After(now.AddDate(horizon, 0, 0)) {
			return Schedule{}, fmt.Errorf("%w: %q names a date that does not come", ErrNever, s.spec)
		}
	}
	return s, nil
}

// checkText keeps everything but printable ASCII, space and tab from the rest of the package.
func checkText(spec string) error {
	if len(spec) > MaxSpec {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrSpec, len(spec), MaxSpec)
	}
	for i, r := range spec {
		if r != '\t' && (r < ' ' || r > '~') {
			return fmt.Errorf("%w: character %q at byte %d; only ASCII letters, digits, spaces and * , - / ? @ are allowed", ErrSpec, r, i)
		}
	}
	return nil
}

// parseEvery reads the duration of @every, which the library would cut to whole seconds and raise to one second.
func parseEvery(words []string) (time.Duration, error) {
	if len(words) != 1 {
		return 0, fmt.Errorf("%w: @every takes one duration, such as @every 1h30m", ErrSpec)
	}
	d, err := time.ParseDuration(words[0])
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: @every %s: not a duration such as 90s or 1h30m", ErrSpec, words[0])
	case d < time.Second:
		return 0, fmt.Errorf("%w: @every %s", ErrTooOften, words[0])
	case d%time.Second != 0:
		return 0, fmt.Errorf("%w: @every %s: only whole seconds are allowed", ErrSpec, words[0])
	case d > horizon*365*24*time.Hour:
		return 0, fmt.Errorf("%w: @every %s is longer than that", ErrNever, words[0])
	}
	return d, nil
}

// parsePlan reads fields or a descriptor into a plan on the clock without changes.
func parsePlan(words []string) (*cron.SpecSchedule, error) {
	spec := strings.Join(words, " ")
	if err := checkWords(words); err != nil {
		return nil, err
	}
	parsed, err := library.Parse(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %s", ErrSpec, spec, err)
	}
	plan, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a calendar spec", ErrSpec, spec)
	}
	plan.Location = time.UTC
	return plan, nil
}
