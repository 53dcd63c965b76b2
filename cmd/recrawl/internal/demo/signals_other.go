//go:build !unix

package demo

func ignoreBrokenPipe() {}
