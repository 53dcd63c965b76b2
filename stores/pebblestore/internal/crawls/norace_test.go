//go:build !race

package crawls

const raceEnabled = false
