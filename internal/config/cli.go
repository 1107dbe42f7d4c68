package config

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// UsageError is an error in how the program was called.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// ExitError is an error with an exit code of its own. Err may be nil: then there is nothing to say.
type ExitError struct {
	Code int
	Err  error
}

func (e ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns what is wrong.
func (e ExitError) Unwrap() error { return e.Err }

// ExitCode is the process's for an error: an ExitError's own, 2 where the program was called in a wrong way, else 1.
func ExitCode(err error) int {
	var own ExitError
	if errors.As(err, &own) {
		return own.Code
	}
	if errors.As(err, new(UsageError)) {
		return 2
	}
	return 1
}

// Parse reads the arguments of program name into cli, a pointer to a struct with kong's tags. It returns nil where they
// asked for help, which has been printed.
func Parse(cli any, name, description string, args []string, stdout, stderr io.Writer) (*kong.Context, error) {
	helped := false
	parser, err := kong.New(cli, kong.Name(name), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	ctx, err := parser.Parse(args)
	if helped {
		return nil, nil //nolint:nilnil // as documented
	}
	if err != nil {
		return nil, UsageError{fmt.Errorf("%w (see `%s --help`, or `--help` after a command)", err, name)}
	}
	return ctx, nil
}
