package main

import "os"

// Variables of the environment in which the test binary is something else, and no
// test.
const (
	asCommand = "RECRAWL_TEST_AS_COMMAND" // the command; set by TestMain
	asTracer  = "RECRAWL_TEST_AS_TRACER"  // what kills the command at a call, see tracer_linux_test.go
	asReader  = "RECRAWL_TEST_AS_READER"  // a program that uses the library, see reader_test.go
	asService = "RECRAWL_TEST_AS_SERVICE" // a program that crawls without end, see service_test.go
)

func init() {
	switch {
	case os.Getenv(asTracer) != "":
		traceMain()
	case os.Getenv(asReader) != "":
		readerMain()
	case os.Getenv(asService) != "":
		serviceMain()
	case os.Getenv(asCommand) != "":
		main()
	}
}
