package cronspec

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	_ "time/tzdata" // so that a host without zone files knows the same zones
)

// zoneName is the alphabet of the IANA database.
var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// splitZone takes a TZ= or CRON_TZ= prefix off words and returns the zone's name, "UTC" when there is none.
func splitZone(words []string, timeZone string) (string, []string, error) {
	name := timeZone
	if len(words) > 0 {
		prefix, value, found := strings.Cut(words[0], "=")
		if found && (prefix == "TZ" || prefix == "CRON_TZ") {
			switch {
			case value == "":
				return "", nil, fmt.Errorf("%w: %s names no zone", ErrZone, words[0])
			case len(words) == 1:
				return "", nil, fmt.Errorf("%w: nothing follows %s", ErrSpec, words[0])
			case name != "" && name != value:
				return "", nil, fmt.Errorf("%w: the spec says %s, the time zone setting %s", ErrZone, value, name)
			}
			name, words = value, words[1:]
		}
	}
	if name == "" {
		name = "UTC"
	}
	return name, words, nil
}

// loadZone returns the named zone. It refuses the names whose meaning depends on the host's own files.
func loadZone(name string) (*time.Location, error) {
	switch {
	case !zoneName.MatchString(name):
		return nil, fmt.Errorf("%w: %q is not the name of an IANA zone such as Europe/Stockholm", ErrZone, name)
	case name == "Local", name == "localtime", name == "posixrules", name == "Factory",
		strings.HasPrefix(name, "posix/"), strings.HasPrefix(name, "right/"):
		return nil, fmt.Errorf("%w: %q is not the same on every host; name an IANA zone such as Europe/Stockholm", ErrZone, name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is not in the IANA database", ErrZone, name)
	}
	return zone, nil
}
