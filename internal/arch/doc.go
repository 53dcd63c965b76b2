// Package arch has no code of its own: its tests enforce which package may import which
// in this module, and which habits its code must not have. The table of packages in
// arch_test.go is the place to start.
package arch
