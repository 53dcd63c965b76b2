//go:build !exhaustive

package testlevel

// Exhaustive reports whether the build tag exhaustive is set.
const Exhaustive = false
