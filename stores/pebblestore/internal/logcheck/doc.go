// Package logcheck tells damage of the engine's small files, its logs and its manifest, from
// what a crash leaves of them, which the engine does not. It checks; it neither opens the
// engine nor reads tables. Start with CheckFiles, which an opening calls, and Seal, which proves
// that there was no crash.
package logcheck
