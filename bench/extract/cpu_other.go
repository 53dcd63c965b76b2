//go:build !unix

package main

import "time"

var start = time.Now()

// cpu is the time since the process began, for systems on which processor time is not read.
func cpu() time.Duration { return time.Since(start) }
