//go:build race

package hostile_test

// raceEnabled says that the race detector is at work. It makes processors what a
// crawl waits for, so that rates are not compared.
const raceEnabled = true
