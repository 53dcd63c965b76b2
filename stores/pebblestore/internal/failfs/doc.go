// Package failfs has the file systems between the engine and the disk: one that stops at the
// first failed write, so that the engine never has to handle it, and one that waits while the
// disk is full. They decide nothing about what is stored. Start with FailStop and DiskSpace.
package failfs
