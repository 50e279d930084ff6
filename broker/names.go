package broker

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest names, in characters (EN-5, MT-1, DG-1).
const (
	MaxEntityName  = 260
	MaxServiceName = 256
	MaxTypeName    = 128
	MaxIDChars     = 128 // of message ids and session ids (SE-3)
)

const reserved = "@?#*{}"

// CheckQueueName returns nil or ErrName saying what is wrong with the name of a queue.
func CheckQueueName(name string) error {
	if err := checkName("queue", name, MaxEntityName); err != nil {
		return err
	}
	for seg := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(seg, segDeadLetter) || strings.EqualFold(seg, segTransfer) || strings.EqualFold(seg, segSubscriptions) {
			return ErrName.With("the queue name %q holds the reserved segment %q; choose another", name, seg)
		}
	}
	return nil
}

// CheckServiceName returns nil or ErrName for the name of a service.
func CheckServiceName(name string) error { return checkLoose("service", name, MaxServiceName) }

// CheckTypeName returns nil or ErrName for the name of a message type or contract, and for a session id.
func CheckTypeName(kind, name string) error { return checkLoose(kind, name, MaxTypeName) }

// CheckNamespace returns nil or ErrName for a namespace: like a queue's name, without slashes.
func CheckNamespace(name string) error {
	if strings.Contains(name, "/") {
		return ErrName.With("the namespace %q holds a slash", name)
	}
	return checkName("namespace", name, 64)
}

func checkName(kind, name string, longest int) error {
	if i := strings.IndexAny(name, reserved); i >= 0 {
		return ErrName.With("the %s name %q holds %q; none of %s is allowed", kind, name, name[i:i+1], strings.Join(strings.Split(reserved, ""), " "))
	}
	if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
		return ErrName.With("the %s name %q starts or ends with a slash", kind, name)
	}
	return checkLoose(kind, name, longest)
}

// checkLoose allows what service, type and contract names hold in the field (such as //shop/Stock).
func checkLoose(kind, name string, longest int) error {
	switch {
	case name == "":
		return ErrName.With("the %s name is empty", kind)
	case !utf8.ValidString(name):
		return ErrName.With("the %s name %q is not UTF-8", kind, name)
	case utf8.RuneCountInString(name) > longest:
		return ErrName.With("the %s name is longer than %d characters", kind, longest)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return ErrName.With("the %s name %q holds a control character", kind, name)
		}
	}
	return nil
}

// Truncate returns s as valid UTF-8 of at most MaxReasonChars characters. Invalid bytes become U+FFFD; a cut is marked with
// the original length in bytes (field case 16). It never cuts inside a character.
func Truncate(s string) string {
	v := strings.ToValidUTF8(s, "\uFFFD")
	v = strings.ReplaceAll(v, "\x00", "\uFFFD")
	if len(v) <= MaxReasonChars || utf8.RuneCountInString(v) <= MaxReasonChars {
		return v
	}
	mark := fmt.Sprintf("… (truncated, %d bytes)", len(s))
	keep := MaxReasonChars - utf8.RuneCountInString(mark)
	n := 0
	for i := range v {
		if n == keep {
			return v[:i] + mark
		}
		n++
	}
	return v
}
