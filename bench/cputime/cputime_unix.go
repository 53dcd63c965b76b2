//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time that this process has used.
func Used() (user, sys time.Duration, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, err
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), nil
}
