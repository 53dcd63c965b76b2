// Package testlevel says how much a test does. By default tests run their quick form, so
// that `go test work` takes minutes; with the build tag exhaustive they run the form that
// tries every place; with the race detector they leave out what it would only slow down. The
// package knows nothing of any test; start with [Pick].
package testlevel

import "testing"

// Pick returns the volume of a test, such as a number of repetitions: quick by default,
// exhaustive if the build tag exhaustive is set.
func Pick[T any](quick, exhaustive T) T {
	if Exhaustive {
		return exhaustive
	}
	return quick
}

// SkipInRace skips a test that does one thing after the other, some hundred times: under the
// race detector it would take ten times as long, and have nothing to show.
func SkipInRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one thing after the other: not run with the race detector")
	}
}
