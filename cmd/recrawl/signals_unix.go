//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// surviveFileLimit makes a write beyond ulimit -f an error like any other, instead of
// the end of the process.
func surviveFileLimit() { signal.Ignore(syscall.SIGXFSZ) }

// surviveBrokenPipe does the same for a write to a pipe that nobody reads.
func surviveBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
