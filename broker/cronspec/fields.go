package cronspec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// descriptors are the named calendar specs; @every is read apart.
var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// fieldNames and fieldSizes go with six fields; a spec of five has no seconds.
var (
	fieldNames = [6]string{"second", "minute", "hour", "day of month", "month", "day of week"}
	fieldSizes = [6]int{60, 60, 24, 31, 12, 7}
)

// item is one element of a field's list. It is narrower than the library's grammar, which reads "*-5" as "*", "+5" as
// "5", and an empty list as "never".
var item = regexp.MustCompile(`^(?:[*?]|(?:[0-9]{1,2}|[A-Za-z]{3})(?:-(?:[0-9]{1,2}|[A-Za-z]{3}))?)(?:/([0-9]{1,5}))?$`)

// checkWords refuses whatever the library would misread.
func checkWords(words []string) error {
	if strings.HasPrefix(words[0], "@") {
		if len(words) > 1 || !slices.Contains(descriptors, words[0]) {
			return fmt.Errorf("%w: %q is not one of %s, or @every DURATION", ErrSpec, strings.Join(words, " "), strings.Join(descriptors, ", "))
		}
		return nil
	}
	if len(words) != 5 && len(words) != 6 {
		return fmt.Errorf("%w: %d fields; 5 (minute hour day month weekday) or 6 (seconds first) are needed", ErrSpec, len(words))
	}
	first := 6 - len(words)
	for i, word := range words {
		if err := checkField(word, fieldNames[first+i], fieldSizes[first+i]); err != nil {
			return err
		}
	}
	return nil
}

// checkField checks the items of one field.
func checkField(field, name string, size int) error {
	for part := range strings.SplitSeq(field, ",") {
		match := item.FindStringSubmatch(part)
		if match == nil {
			return fmt.Errorf("%w: %s %q: %q is not *, N, N-M, or one of these with /STEP", ErrSpec, name, field, part)
		}
		if match[1] == "" {
			continue
		}
		// At most five digits, so Atoi cannot fail.
		if step, _ := strconv.Atoi(match[1]); step < 1 || step > size {
			return fmt.Errorf("%w: %s %q: step %s is outside 1-%d", ErrSpec, name, field, match[1], size)
		}
	}
	return nil
}
