//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// surviveFileLimit makes a write beyond the limit of ulimit -f an error like any
// other, instead of the end of the process.
func surviveFileLimit() { signal.Ignore(syscall.SIGXFSZ) }

// surviveBrokenPipe makes a write to a pipe that nobody reads an error like any
// other, too.
func surviveBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
