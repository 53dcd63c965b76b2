//go:build !race

package main_test

const builtForRace = false
