//go:build !unix

package hostile_test

// limitFiles does nothing where a process has no limit of its own.
func limitFiles(uint64) error { return nil }
