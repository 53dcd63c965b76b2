//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpu is the processor time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
