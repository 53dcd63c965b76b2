//go:build !unix

package main

import (
	"errors"
	"time"
)

func cpu() (user, sys time.Duration, err error) {
	return 0, 0, errors.New("CPU time is measured on Unix only")
}
