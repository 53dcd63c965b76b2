package flags

import (
	"fmt"

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
