//go:build unix

package demo

import (
	"os/signal"
	"syscall"
)

// ignoreBrokenPipe makes a write to a pipe that has no reader an error like any other,
// instead of the end of the process.
func ignoreBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
