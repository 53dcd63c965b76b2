// Package cputime reads the CPU time of this process for the benchmarks, on Unix only. Start with [Used].
package cputime

import "time"

// Sum returns the sum of what Used returns.
func Sum() (time.Duration, error) {
	user, sys, err := Used()
	return user + sys, err
}
