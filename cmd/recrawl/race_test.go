//go:build race

package main_test

// Under the race detector the command is built without it: it is only waited for.
const builtForRace = true
