package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// push is the first byte of a RESP3 push, which answers no command.
const push = '>'

// maxBlob is Redis's own limit for one string (proto-max-bulk-len).
const maxBlob = 512 << 20

// readRequest reads one command: its bytes as sent, and its words.
func readRequest(r *bufio.Reader) (raw []byte, words []string, err error) {
	raw, err = readLine(r, nil)
	if err != nil {
		return nil, nil, err
	}
	if raw[0] != '*' {
		return nil, nil, fmt.Errorf("request starts with %q, want an array", raw[0])
	}
	n, err := length(raw)
	if err != nil {
		return nil, nil, err
	}
	for range n {
		start := len(raw)
		if raw, err = readValue(r, raw); err != nil {
			return nil, nil, err
		}
		_, word, _ := bytes.Cut(raw[start:], []byte("\r\n"))
		words = append(words, string(bytes.TrimSuffix(word, []byte("\r\n"))))
	}
	return raw, words, nil
}

// readValue appends one whole RESP value, of version 2 or 3, to raw.
func readValue(r *bufio.Reader, raw []byte) ([]byte, error) {
	start := len(raw)
	raw, err := readLine(r, raw)
	if err != nil {
		return nil, err
	}
	line := raw[start:]
	children := 0
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	case '$', '=', '!':
		return readBlob(r, raw, line)
	case '*', '~', push:
		children, err = length(line)
	case '%':
		children, err = length(line)
		children *= 2
	case '|': // attributes, then the value that they describe
		children, err = length(line)
		children = children*2 + 1
	default:
		return nil, fmt.Errorf("unknown RESP type %q", line[0])
	}
	for ; err == nil && children > 0; children-- {
		raw, err = readValue(r, raw)
	}
	return raw, err
}

// readBlob appends the body that a length line announces; −1 announces none.
func readBlob(r *bufio.Reader, raw, line []byte) ([]byte, error) {
	n, err := length(line)
	if err != nil || n < 0 {
		return raw, err
	}
	if n > maxBlob {
		return nil, fmt.Errorf("blob of %d bytes is over the server's own limit", n)
	}
	// The announced length is not to be trusted before the bytes are there.
	b := bytes.NewBuffer(raw)
	_, err = io.CopyN(b, r, int64(n+len("\r\n")))
	return b.Bytes(), err
}

func readLine(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < len("+\r\n") {
		return nil, fmt.Errorf("line %q is no RESP", line)
	}
	return append(raw, line...), nil
}

func length(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil {
		return 0, fmt.Errorf("length in %q: %w", line, err)
	}
	return n, nil
}
