// Command recrawl crawls the web, and comes back: the verbs of Apache Nutch's
// crawl cycle over one directory.
//
//	recrawl demo                                            watch a crawl, without a network
//	recrawl crawl -d DIR -agent NAME https://example.com/   all stages, round by round
//	recrawl inject | generate | fetch | parse | update | invert | dedup -d DIR …   one stage
//	recrawl status | readdb | explain | hosts | readlinks | readseg | index -d DIR …   look inside
//	recrawl mergedb | mergelinkdb | mergesegs -d DIR …      merge crawls and segments
//	recrawl check | schedule                                what a crawl would decide, and why
//	recrawl verify | salvage -d DIR …                       find damage, and rescue the rest
//	recrawl compact -d DIR                                  rewrite the databases without obsolete data
//	recrawl backup -d DIR NEWDIR                            copy a crawl, even while it runs
//	recrawl config | completion | version                   the command itself
//
// main.go starts the process and app.go runs one command line; the list of verbs is verbs.All
// in internal/verbs, where each verb has a file of its own. Flags that verbs share are in
// internal/flags, text and JSON in internal/render, what processes report and
// ask of each other in internal/control.
//
// Every verb may be interrupted or killed. Run again, the same command resumes
// where it stopped; one that changes nothing starts over. The exit code is 0 on
// success, 1 if something failed or the run was interrupted, 2 if the command line
// is invalid, and 3 if salvage made the new crawl but something is lost. See
// recrawl --help, and recrawl VERB --help.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for the hours of -host-rules, wherever this runs

	"github.com/recrawl/recrawl/stores/pebblestore/heaproom"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the run failed, or was interrupted
	exitUsage  = 2 // the command line is invalid
	exitLosses = 3 // salvage made the new crawl, but something is lost
)

func main() {
	log.SetOutput(io.Discard) // net/http complains about servers there; -v reports what matters
	ignoreFileLimit()
	heaproom.Leave(heaproom.Default)
	ctx, cancel := context.WithCancel(context.Background())
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		fmt.Fprintln(os.Stderr, "recrawl: stopping; interrupt again to stop at once")
		cancel()
		<-interrupts
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}
