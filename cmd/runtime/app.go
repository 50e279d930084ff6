package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"parley/broker"
)

// app is one run of the binary.
type app struct {
	stdout, stderr io.Writer
	stdin          io.Reader
	getenv         func(string) string
	connect        func(context.Context, connectOptions) (*client, error)

	global  globals
	secrets []string // never printed: see hide
}

// run executes the command line args and returns its exit code. Errors are one line on stderr. It may be called any number
// of times, also at once.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, stdin io.Reader) int {
	a := &app{stdout: stdout, stderr: stderr, stdin: stdin, getenv: os.Getenv, connect: connect}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return broker.ExitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted before it was done")
	}
	// An error that is not ours comes from cobra itself before any command ran: a command that does not exist.
	if cmd == root && !isOurs(err) {
		err = usage("%v", err)
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", cmd.CommandPath(), oneLine(a.hide(err.Error())))
	return broker.ExitCode(err)
}

func isOurs(err error) bool {
	var e *broker.Error
	return errors.As(err, &e)
}

// usage is an error of the command line itself.
func usage(format string, args ...any) error {
	return broker.ErrInvalid.With("%s", fmt.Sprintf(format, args...))
}

// notYet is the answer of a command or flag whose turn comes with a later version.
func notYet(what string) error { return broker.ErrNotAvailable.With("%s", what) }

// oneLine puts text on one line, so that a script can rely on one error being one line.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// credentials are the user and password of any address: one may stand where nobody expects it.
var credentials = regexp.MustCompile(`://[^\s/@\[\]]*(?:/[^\s@\[\]]*)?@`)

// hide takes out of text whatever is known to be a password, or looks like one.
func (a *app) hide(text string) string {
	text = credentials.ReplaceAllString(text, "://***@")
	for _, s := range a.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// action makes the RunE of a command that talks to the broker: it connects, acts and closes.
func (a *app) action(do func(cmd *cobra.Command, c *client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		defer c.close()
		return do(cmd, c, args)
	}
}

// open connects with what flags and environment say.
func (a *app) open(ctx context.Context) (*client, error) {
	opt, err := a.connectOptions("", "")
	if err != nil {
		return nil, err
	}
	opt.log = a.warn
	return a.connect(ctx, opt)
}

// warn prints a warning of the broker on a line of its own.
func (a *app) warn(msg string, args ...any) {
	for i := 0; i+1 < len(args); i += 2 {
		msg += fmt.Sprintf(" (%v %v)", args[i], args[i+1])
	}
	fmt.Fprintf(a.stderr, "warning: %s\n", oneLine(a.hide(msg)))
}
