//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond ulimit -f an error like any other, instead of
// the end of the process.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
