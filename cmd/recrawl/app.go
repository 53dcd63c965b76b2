package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/verbs"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 && slices.Contains([]string{"help", "--help", "-help", "-h"}, args[1]) {
		args = append(append(args[:1:1], args[2:]...), "--help")
	}
	if len(args) > 1 && slices.Contains([]string{"--version", "-version"}, args[1]) {
		args = []string{args[0], "version"}
	}
	escaped := &render.Escaper{W: stdout}
	out := &render.CheckedWriter{W: escaped}
	stderr = &render.Escaper{W: stderr}
	c := root(out, stderr)
	err := c.Run(ctx, args)
	if e := cmp.Or(out.Err, escaped.Flush()); err == nil {
		err = e
	}
	var usage flags.UsageError
	var locked verbs.LockedError
	if coder := cli.ExitCoder(nil); errors.As(err, &coder) {
		err = flags.UsageError{Err: err} // help for an unknown verb
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "recrawl: %v\n", err)
		if _, name := verbOf(c, args); name != "" {
			fmt.Fprintf(stderr, "recrawl: see recrawl %s --help\n", name)
		} else {
			fmt.Fprintln(stderr, "recrawl: see recrawl --help")
		}
		return exitUsage
	case errors.As(err, new(verbs.LossError)):
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
		if verbs.DiskFull(err) && out.Err == nil {
			fmt.Fprintln(stderr, "recrawl: once the disk has room, the same command "+again(c, args))
		}
		return exitFailed
	}
}

// again says what an interrupted command does when it is run again: one that changes
// a crawl has kept what it has done.
func again(root *cli.Command, args []string) string {
	if verb, _ := verbOf(root, args); verb != nil && verbs.StartsOver(verb) {
		return "starts over"
	}
	return "resumes from here"
}

// verbOf returns the verb of a command line and its whole name, such as check filter, which
// begins with that of the verb; nil and an empty name if there is none.
func verbOf(root *cli.Command, args []string) (verb *cli.Command, name string) {
	at := root
	for _, arg := range args[1:] {
		sub := at.Command(arg)
		switch {
		case sub == nil && !strings.HasPrefix(arg, "-"):
			return verb, name
		case sub == nil:
			continue
		case verb == nil:
			verb = sub
		}
		at, name = sub, strings.TrimSpace(name+" "+sub.Name)
	}
	return verb, name
}

func root(stdout, stderr io.Writer) *cli.Command {
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
				return flags.Usagef("unknown verb %q%s", c.Args().First(), flags.SuggestVerbs(c, c.Args().First()))
			}
			return cli.ShowRootCommandHelp(c)
		},
		Commands: verbs.All(stdout, stderr),
	}
	flags.AcceptShared(c)
	flags.AddConfigFiles(c)
	flags.ExplainUsageErrors(c)
	render.AddHelp(c)
	return c
}
