//go:build unix

package hostile_test

import "syscall"

// limitFiles lets this process have no more than n open files.
func limitFiles(n uint64) error {
	l := syscall.Rlimit{Cur: n, Max: n}
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}
