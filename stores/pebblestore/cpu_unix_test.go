//go:build unix

package pebblestore

import (
	"syscall"
	"time"
)

// cpu is the CPU time of the whole process, background threads included.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
