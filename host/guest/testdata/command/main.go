// Command command is a WASI command without any SDK: it answers on stdout what it reads on stdin, in upper case.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switch verb, _, _ := strings.Cut(string(body), " "); verb {
	case "environment":
		vars := os.Environ()
		slices.Sort(vars)
		fmt.Print(strings.Join(vars, "\n"))
	case "exit":
		fmt.Fprintln(os.Stderr, "the stock is gone")
		os.Exit(3)
	case "exit0":
		fmt.Print("done")
		os.Exit(0)
	case "panic":
		panic("boom")
	case "flood":
		fmt.Print(strings.Repeat("x", 300<<10))
	case "sleep":
		time.Sleep(time.Minute)
	case "spin":
		for {
		}
	default:
		fmt.Print(strings.ToUpper(string(body)))
		fmt.Fprintln(os.Stderr, "note")
	}
}
