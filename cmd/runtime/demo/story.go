package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// story is what is told, and which of its numbers were wrong.
type story struct {
	w       io.Writer
	err     error // the first of the writer
	checked int
	wrong   []string
}

// say writes one line.
func (s *story) say(format string, args ...any) {
	_, err := fmt.Fprintf(s.w, format+"\n", args...)
	if s.err == nil {
		s.err = err
	}
}

// head starts an act.
func (s *story) head(format string, args ...any) {
	s.say("")
	s.say(format, args...)
}

// note tells of trouble while clearing up.
func (s *story) note(what string, err error) {
	if err != nil {
		s.say("%s: %v", what, err)
	}
}

// check compares a number, or a text, with what it must be.
func (s *story) check(what string, got, want any) {
	s.checked++
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.wrong = append(s.wrong, fmt.Sprintf("%s is %v, not %v", what, got, want))
	}
}

// conclude tells whether all of it was right.
func (s *story) conclude(took time.Duration) error {
	if s.err != nil {
		return fmt.Errorf("the story could not be written: %w", s.err)
	}
	if len(s.wrong) > 0 {
		return fmt.Errorf("%d of %d checks failed: %s", len(s.wrong), s.checked, strings.Join(s.wrong, "; "))
	}
	s.head("All %d checks right, in %.1f s.", s.checked, took.Seconds())
	return s.err
}
