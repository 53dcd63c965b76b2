//go:build !unix

package cputime

import (
	"errors"
	"time"
)

// Used returns an error.
func Used() (user, sys time.Duration, err error) {
	return 0, 0, errors.New("CPU time is measured on Unix only")
}
