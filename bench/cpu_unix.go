//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpu returns the CPU time that this process has used.
func cpu() (user, sys time.Duration, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, err
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), nil
}
