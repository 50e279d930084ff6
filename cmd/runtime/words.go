package main

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// plural is n and its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orForever(d time.Duration) string {
	if d == 0 {
		return "for ever"
	}
	return d.String()
}

// durableText is how many replicas a queue waits for.
func durableText(n int) string {
	switch n {
	case 0:
		return "off"
	case 1:
		return "1 replica confirms"
	}
	return fmt.Sprintf("%d replicas confirm", n)
}

// orNever is an instant of which there may be none.
func orNever(t time.Time) any {
	if t.IsZero() {
		return "never"
	}
	return t
}

// bodyText is a whole body for people.
func bodyText(body []byte) string {
	if !utf8.Valid(body) {
		return fmt.Sprintf("(%d bytes, not text: use -o json)", len(body))
	}
	return string(body)
}
