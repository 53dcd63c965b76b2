// Package testlevel says how much a test does. By default tests run their quick form, so
// that `go test work` takes minutes; with the build tag exhaustive they run the form that
// tries every place. The package knows nothing of any test; start with [Pick].
package testlevel

// Pick returns the volume of a test, such as a number of repetitions: quick by default,
// exhaustive if the build tag exhaustive is set.
func Pick[T any](quick, exhaustive T) T {
	if Exhaustive {
		return exhaustive
	}
	return quick
}
