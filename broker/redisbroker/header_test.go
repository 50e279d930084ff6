package redisbroker

import (
	"regexp"
	"strings"
	"testing"
)

// scriptHeader is the contract in the first lines of a script.
type scriptHeader struct {
	purpose, keys, argv, returns string
	libs                         []string
}

// readHeader reads the comment lines at the top of scripts/<name>.lua. Parts begin with their word and go on over the next lines.
func readHeader(t *testing.T, name string) scriptHeader {
	t.Helper()
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	var h scriptHeader
	at := &h.purpose
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if !ok {
			break
		}
		word := regexp.MustCompile(`^(lib|KEYS|ARGV|RETURNS)\b`).FindString(line)
		switch word {
		case "lib":
			h.libs = strings.Fields(strings.TrimPrefix(line, "lib:"))
			continue
		case "KEYS":
			at = &h.keys
		case "ARGV":
			at = &h.argv
		case "RETURNS":
			at = &h.returns
		}
		*at += " " + strings.TrimSpace(strings.TrimPrefix(line, word))
	}
	return h
}
