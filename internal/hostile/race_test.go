//go:build race

package hostile_test

// raceEnabled says that the race detector is running. It makes a crawl wait for processors,
// so that rates are not compared.
const raceEnabled = true
