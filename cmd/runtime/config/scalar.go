package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Switch is on or off; true and false are accepted for the same.
type Switch bool

// UnmarshalYAML reads on, off, true or false.
func (s *Switch) UnmarshalYAML(n ast.Node) error {
	switch scalarText(n) {
	case "on", "true":
		*s = true
	case "off", "false":
		*s = false
	default:
		return wrong(n, "wants on or off (true or false), has %s", n)
	}
	return nil
}

// String is "on" or "off", as the documents spell it.
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// Size is a number of bytes, written with or without one of the units B, KiB, MiB and GiB.
type Size int64

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(n ast.Node) error {
	v, err := ParseSize(scalarText(n))
	if err != nil {
		return wrong(n, "%v", err)
	}
	*s = v
	return nil
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// ParseSize reads a size such as 64MiB, 512 KiB or 262144. It refuses a negative one, a fraction, and any other unit.
func ParseSize(text string) (Size, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(v) > math.MaxInt64/unit {
		return 0, fmt.Errorf("wants a size such as 64MiB, 512KiB or 262144, has %q", text)
	}
	return Size(int64(v) * unit), nil
}

// Duration is a span of time, written as 500ms, 5s, 1m30s, 2h or 7d.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	v, err := ParseDuration(scalarText(n))
	if err != nil {
		return wrong(n, "%v", err)
	}
	*d = Duration(v)
	return nil
}

// ParseDuration reads a duration as Go spells it, or a whole number of days with the unit d. It refuses a negative one and
// a number without a unit other than 0.
func ParseDuration(text string) (time.Duration, error) {
	refused := fmt.Errorf("wants a duration such as 500ms, 5s, 2h or 7d, has %q", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, refused
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, refused
	}
	return d, nil
}

// scalarText is the text of a plain value, "" for anything else.
func scalarText(n ast.Node) string {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return n.GetToken().Value
	case *ast.TagNode:
		return scalarText(v.Value)
	case *ast.AnchorNode:
		return scalarText(v.Value)
	}
	return ""
}

// wrong is an error at the place of n.
func wrong(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: n.GetToken()}
}
