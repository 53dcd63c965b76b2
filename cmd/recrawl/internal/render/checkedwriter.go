package render

import (
	"io"
)

// CheckedWriter remembers that a write failed: a segment whose name was never printed
// is no success.
type CheckedWriter struct {
	W   io.Writer
	Err error
}

func (c *CheckedWriter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	if err != nil && c.Err == nil {
		c.Err = err
	}
	return n, err
}
