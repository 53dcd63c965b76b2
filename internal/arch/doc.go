// Package arch has no code of its own: its tests hold what may import what in
// this module, and which habits its code does not have.
package arch
