package extsort

import (
	"os"
	"syscall"
)

// unnamed creates a file in dir that never has a name. Not every file system
// can.
func unnamed(dir string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	const tmpfile = 0x400000 // __O_TMPFILE, which open(2) wants together with O_DIRECTORY
	return os.OpenFile(dir, os.O_RDWR|os.O_EXCL|tmpfile|syscall.O_DIRECTORY, 0o600)
}
