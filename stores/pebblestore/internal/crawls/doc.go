// Package crawls tests whole crawls on every engine: that what comes of one does
// not depend on workers, arrival or engine, that it can be cancelled at any
// instant, that clocks may jump, and that it can go on forever. It has no code
// of its own.
//
// Each test has a short form, which is part of "go test", and a long one behind a
// flag:
//
//	go test ./internal/crawls -run TestDeterminism -mixes 300
//	go test ./internal/crawls -run TestCancel -cancels 1000
//	go test ./internal/crawls -run TestSoak -soak 30m -timeout 0 -v
//
// What fails names its seed; -seed N runs that one alone.
package crawls
