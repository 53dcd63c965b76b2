package flags

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// UsageError says that a command line is invalid.
type UsageError struct{ Err error }

func (u UsageError) Error() string { return u.Err.Error() }
func (u UsageError) Unwrap() error { return u.Err }

// Usagef returns a UsageError with a formatted text, as fmt.Errorf does.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// NoArgs refuses arguments for a verb that takes none.
func NoArgs(c *cli.Command) error {
	if c.Args().Present() {
		return Usagef("%s takes no argument %q", c.Name, c.Args().First())
	}
	return nil
}

// ExplainUsageErrors makes the errors of the library about a command line those of this
// command, also of the commands below.
func ExplainUsageErrors(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		what, why, number := strings.Cut(err.Error(), ": strconv.")
		switch {
		case number && strings.HasSuffix(why, "out of range"):
			err = fmt.Errorf("%s; it is out of range", what)
		case number:
			err = fmt.Errorf("%s; it should be a number", what)
		}
		if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
			err = fmt.Errorf("unknown flag -%s%s", name, SuggestFlags(c, strings.TrimLeft(name, "-")))
		}
		return UsageError{Err: err}
	}
	c.HideHelpCommand = true
	for _, sub := range c.Commands {
		ExplainUsageErrors(sub)
	}
}
