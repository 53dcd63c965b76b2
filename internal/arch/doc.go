// Package arch has no code of its own: its tests enforce what may import what
// in this module, and which habits its code must not have.
package arch
