package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWrongNumberFails keeps the promise of the exit code.
func TestWrongNumberFails(t *testing.T) {
	var out bytes.Buffer
	s := story{w: &out}
	s.check("a number", int64(3), 3)
	if err := s.conclude(time.Second); err != nil {
		t.Errorf("a right number: %v", err)
	}
	s.check("another", 2, 3)
	if err := s.conclude(time.Second); err == nil || !strings.Contains(err.Error(), "another is 2, not 3") {
		t.Errorf("a wrong number: got %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestStoryThatCannotBeWrittenFails(t *testing.T) {
	s := story{w: broken{}}
	s.say("once")
	if err := s.conclude(time.Second); err == nil {
		t.Error("no error")
	}
}
