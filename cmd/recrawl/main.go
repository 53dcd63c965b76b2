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
//
// Every verb may be interrupted or killed. Run again, the same command resumes
// where it stopped; one that changes nothing starts over. The exit code is 0 on
// success, 1 if something failed or the run was interrupted, 2 if the command line
// is invalid, and 3 if salvage made the new crawl but something is lost. See
// recrawl --help, and recrawl VERB --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // for the hours of -host-rules, wherever this runs

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
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
	surviveFileLimit()
	collectLess(garbage)
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

// usageError is an error about an invalid command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && slices.Contains([]string{"help", "--help", "-help", "-h"}, args[1]) {
		args = append(append(args[:1:1], args[2:]...), "--help")
	}
	out := &checked{w: stdout}
	c := root(out, stderr)
	err := c.Run(ctx, args)
	if err == nil {
		err = out.err
	}
	var usage usageError
	var locked lockedError
	if coder := cli.ExitCoder(nil); errors.As(err, &coder) {
		err = usageError{err} // help for an unknown verb
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "recrawl: %v\n", err)
		fmt.Fprintln(stderr, "recrawl: see recrawl --help, or recrawl VERB --help")
		return exitUsage
	case errors.As(err, new(lossError)):
		fmt.Fprintf(stderr, "recrawl: %v\n", err)
		return exitLosses
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "recrawl: interrupted; the same command "+again(c, args))
		return exitFailed
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(stderr, "recrawl: %s\n", strings.TrimPrefix(line, "recrawl: "))
		}
		if errors.Is(err, pebblestore.ErrLocked) && !errors.As(err, &locked) {
			fmt.Fprintln(stderr, "recrawl: a crawl is open to one process that changes it, or to several that read it; if it is being crawled, recrawl status says what it is doing")
		}
		if errors.As(err, new(*crawldb.CorruptError)) {
			fmt.Fprintln(stderr, "recrawl: recrawl verify lists all damage, and recrawl salvage rescues the rest")
		}
		if noRoom(err) && out.err == nil {
			fmt.Fprintln(stderr, "recrawl: once the disk has room, the same command "+again(c, args))
		}
		return exitFailed
	}
}

// again says what an interrupted command does when it is run again: one that changes
// a crawl has kept what it has done.
func again(root *cli.Command, args []string) string {
	for _, arg := range args[1:] {
		switch verb := root.Command(arg); {
		case verb == nil:
			continue
		case verb.Category == looking || slices.Contains([]string{"demo", "verify", "salvage", "backup"}, verb.Name):
			return "starts over"
		}
		break
	}
	return "resumes from here"
}

// checked remembers that a write failed: a segment whose name was never printed
// is no success.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

func root(stdout, stderr io.Writer) *cli.Command {
	a := &app{out: stdout, err: stderr}
	c := &cli.Command{
		Name:  "recrawl",
		Usage: "crawl the web politely, and come back to every page at the right time",
		Description: `A crawl lives in one directory (-d DIR): what is known about every URL and every
host, the links between pages, and the segments, which hold the results of each
round. Every verb may be interrupted, by Ctrl-C or kill -9. Run again, the same
command resumes where it stopped; one that changes nothing starts over.

Try it, without a network:
  recrawl demo
Crawl a site for two rounds:
  recrawl crawl -d crawl -agent mybot -rounds 2 https://example.com/
See what is in it, and how fresh the copies are:
  recrawl readdb -d crawl -stats
  recrawl status -d crawl
See why a page is not fetched:
  recrawl explain -d crawl https://example.com/page
Come back for what is due:
  recrawl crawl -d crawl -agent mybot`,
		Writer: stdout, ErrWriter: stderr,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {},
		HideHelpCommand: true,
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				hint := ""
				if verbs := meant(c, c.Args().First()); len(verbs) > 0 {
					hint = "; perhaps recrawl " + strings.Join(verbs, ", or recrawl ")
				}
				return usagef("unknown verb %q%s", c.Args().First(), hint)
			}
			return cli.ShowRootCommandHelp(c)
		},
		Commands: []*cli.Command{
			a.demo(), a.crawl(),
			a.inject(), a.generate(), a.freegen(), a.sitemap(), a.fetch(), a.parse(), a.update(), a.invert(),
			a.updatehostdb(), a.dedup(),
			a.status(), a.readdb(), a.explain(), a.hosts(), a.readlinks(), a.readseg(), a.index(), a.clean(),
			a.domainstats(), a.protocolstats(), a.crawlcomplete(), a.check(), a.schedule(), a.scoring(),
			a.importDump(), a.mergedb(), a.mergelinkdb(), a.mergesegs(),
			a.verify(), a.salvage(), a.compact(), a.backup(),
			a.demoCrawl(),
		},
	}
	share(c)
	quiet(c)
	teach(c)
	return c
}

// quiet leaves it to us to print the usage errors of a command and those below it.
func quiet(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		what, why, number := strings.Cut(err.Error(), ": strconv.")
		switch {
		case number && strings.HasSuffix(why, "out of range"):
			err = fmt.Errorf("%s; it is out of range", what)
		case number:
			err = fmt.Errorf("%s; it should be a number", what)
		}
		if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: "); unknown {
			if flags := meantFlags(c, strings.TrimLeft(name, "-")); len(flags) > 0 {
				err = fmt.Errorf("%w; perhaps -%s", err, strings.Join(flags, ", or -"))
			}
		}
		return usageError{err}
	}
	c.HideHelpCommand = true
	for _, sub := range c.Commands {
		quiet(sub)
	}
}
