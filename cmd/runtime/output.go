package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// printer prints what a command found: JSON documents one a line, or a table for people. Its first error sticks and is
// what end returns.
type printer struct {
	w    io.Writer
	json bool
	live bool // every row is written at once: for output that never ends
	head []string
	tab  *tabwriter.Writer
	rows int
	err  error
}

// rows makes a printer of a list with the given column heads.
func (a *app) rows(cmd *cobra.Command, head ...string) *printer {
	p := &printer{w: cmd.OutOrStdout(), json: a.global.output == "json", head: head}
	p.tab = newTable(p.w)
	return p
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// row prints one row: v as JSON, or the cells.
func (p *printer) row(v any, cells ...any) {
	if p.err != nil {
		return
	}
	if p.json {
		p.err = writeJSON(p.w, v)
		return
	}
	if p.rows == 0 {
		_, p.err = fmt.Fprintln(p.tab, strings.Join(p.head, "\t"))
	}
	p.rows++
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = cell(c)
	}
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.tab, strings.Join(text, "\t"))
	}
	if p.live && p.err == nil {
		p.err = p.tab.Flush()
	}
}

// end writes what is left; empty is said instead of a table without rows.
func (p *printer) end(empty string) error {
	if p.err == nil && !p.json {
		p.err = p.tab.Flush()
		if p.err == nil && p.rows == 0 && empty != "" {
			_, p.err = fmt.Fprintln(p.w, empty)
		}
	}
	return p.err
}

// object prints one thing: v as JSON, or the pairs of label and value, one a line. A nil value is left out.
func (a *app) object(cmd *cobra.Command, v any, pairs ...any) error {
	w := cmd.OutOrStdout()
	if a.global.output == "json" {
		return writeJSON(w, v)
	}
	tab := newTable(w)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == nil || pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(tab, "%v\t%s\n", pairs[i], cell(pairs[i+1])); err != nil {
			return err
		}
	}
	return tab.Flush()
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// cell is one value as people read it: on one line, without control characters.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case time.Time:
		if v.IsZero() {
			return "-"
		}
		return v.UTC().Format("2006-01-02 15:04:05.000")
	case string:
		if v == "" {
			return "-"
		}
		return printable(v)
	case []byte:
		return preview(v)
	}
	return printable(fmt.Sprint(v))
}

// previewChars is how much of a body a table shows.
const previewChars = 60

func preview(body []byte) string {
	if len(body) == 0 {
		return "-"
	}
	if !utf8.Valid(body) {
		return fmt.Sprintf("(%d bytes, not text)", len(body))
	}
	text := string(body)
	for i, n := 0, 0; i < len(text); n++ {
		if n == previewChars {
			return printable(text[:i]) + fmt.Sprintf("… (%d bytes)", len(body))
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return printable(text)
}

// printable replaces what would break a line or reach the terminal as a command.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
