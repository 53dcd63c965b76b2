//go:build !unix

package pebblestore

import "time"

// cpu is zero: these systems do not tell a process what it takes in a way that package
// syscall knows.
func cpu() time.Duration { return 0 }
