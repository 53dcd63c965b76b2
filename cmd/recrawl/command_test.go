package main

import "os"

// asCommand is the variable of the environment in which the test binary is the
// command, and no test.
const asCommand = "RECRAWL_TEST_AS_COMMAND" // set by TestMain

func init() {
	if os.Getenv(asCommand) != "" {
		main()
	}
}
