//go:build !unix

package main

func surviveFileLimit() {}

func surviveBrokenPipe() {}
