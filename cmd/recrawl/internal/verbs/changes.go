package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) changes() *cli.Command {
	return &cli.Command{
		Name: "changes", Category: flags.StoreVerbs, Usage: "print what has changed since a consumer last read",
		Description: `Prints a line of JSON for each page that is new, has changed, moved or is gone, in
the order in which rounds found out. The consumer is a name of your choice. It is
registered at first use, and remembers how far it has read: what was printed is
not printed again, but if changes was killed while it printed, some lines are.
The crawl keeps segments until all consumers have read them; a consumer that is
not needed any more must be dropped.

  recrawl changes -d crawl -consumer search
  recrawl changes -d crawl -consumer search -diff
  recrawl changes -d crawl -consumer search -follow | ./index
  recrawl changes -d crawl -list
  recrawl changes -d crawl -consumer search -drop

If crawl -keep-bytes has removed segments that a consumer has yet to read, it gets
a snapshot instead: a line of kind snapshot_begin, one of kind known, moved or gone
for each page, and snapshot_end. A page that has no line is not in the crawl any
more. What has changed since follows.

If a crawl, fetch or sitemap is running in the directory, its process reads the
changes, and changes prints them.

With -webhook each event is posted to a URL, at least once and in order for each
page, and again after a pause if the receiver does not answer 2xx. What it refuses
for an hour is put aside, and can be listed and posted again:

  recrawl changes -d crawl -consumer hook -webhook https://example.com/hook \
      -secret-file secret -follow
  recrawl changes -d crawl -consumer hook -dead
  recrawl changes -d crawl -consumer hook -webhook https://example.com/hook \
      -secret-file secret -resend`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "consumer", Usage: "the `NAME` of the consumer"},
			&cli.BoolFlag{Name: "follow", Usage: "wait for more, until interrupted; for a crawl in a directory"},
			&cli.StringFlag{Name: "from", Value: "beginning", Usage: "where a new consumer begins: at the `beginning` of what is kept, now, or with a snapshot (default: beginning)"},
			&cli.BoolFlag{Name: "every-visit", Usage: "with a new consumer: print every visit, also of pages that have not changed"},
			&cli.BoolFlag{Name: "text", Usage: "with the text of each page, and the text before the change if its segment is kept"},
			&cli.BoolFlag{Name: "diff", Usage: "with the fields, links and words that differ from the content before, if its segment is kept"},
			&cli.BoolFlag{Name: "list", Usage: "list the consumers and how far they are behind"},
			&cli.BoolFlag{Name: "drop", Usage: "remove the consumer"},
			webhookFlags(), flags.MinFree(), flags.Reporting()),
		Action: a.printChanges,
	}
}

var consumerStarts = map[string]recrawl.ConsumerStart{
	"beginning": recrawl.StartAtBeginning, "now": recrawl.StartNow, "snapshot": recrawl.StartWithSnapshot,
}

func (a *app) printChanges(ctx context.Context, c *cli.Command) error {
	if err := flags.NoArgs(c); err != nil {
		return err
	}
	q := control.FeedRequest{Consumer: c.String("consumer"), List: c.Bool("list"), Drop: c.Bool("drop"), Text: c.Bool("text"), Diff: c.Bool("diff")}
	start, ok := consumerStarts[c.String("from")]
	switch {
	case !ok:
		return flags.Usagef("-from: %q is not beginning, now or snapshot", c.String("from"))
	case q.List && (q.Drop || q.Consumer != "" || c.Bool("follow")):
		return flags.Usagef("-list takes no other flag of changes")
	case q.Drop && c.Bool("follow"):
		return flags.Usagef("-drop and -follow exclude each other")
	case !q.List && q.Consumer == "":
		return flags.Usagef("-consumer NAME is required, or -list")
	}
	if err := checkFollow(c); err != nil {
		return err
	}
	if err := checkWebhook(c); err != nil {
		return err
	}
	if c.Bool("dead") {
		return a.printDeadLetters(c)
	}
	q.Options = recrawl.ConsumerOptions{Start: start, EveryVisit: c.Bool("every-visit")}
	f := newFeedOfCrawl(a, c)
	defer f.client.Close()
	if c.String("webhook") != "" {
		return f.postChanges(ctx, q)
	}
	err := f.print(ctx, &q)
	if err != nil && ctx.Err() != nil && q.Ack != "" { // interrupted
		keep, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		q.AckOnly = true
		_, _ = f.do(keep, q) // otherwise what was printed is printed again
	}
	return err
}

// print makes the requests, and prints the replies.
func (f *feedOfCrawl) print(ctx context.Context, q *control.FeedRequest) error {
	for {
		r, err := f.do(ctx, *q)
		switch {
		case err != nil || q.Drop:
			return err
		case q.List:
			return f.a.printConsumers(r.Consumers)
		}
		q.Ack = ""
		w := bufio.NewWriter(f.a.out)
		for _, line := range r.Lines {
			_, _ = w.Write(append(line, '\n'))
		}
		if err := errors.Join(w.Flush(), f.a.printed()); err != nil {
			return err
		}
		// What is printed is acknowledged with the next request.
		if q.Ack = r.Last; r.Last != "" {
			continue
		}
		if !f.c.Bool("follow") {
			return nil
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// feedOfCrawl is the change feed of a crawl, which this process opens for each request, or another
// process has open. A slow reader of the output keeps no other verb from opening it.
type feedOfCrawl struct {
	a        *app
	c        *cli.Command
	dir      string
	client   *control.FeedClient
	here     bool // this process opened the crawl for the last request
	reported bool
}

// newFeedOfCrawl returns the feed of the crawl that -d names. Close its client after use.
func newFeedOfCrawl(a *app, c *cli.Command) feedOfCrawl {
	return feedOfCrawl{a: a, c: c, dir: c.String("d"), client: control.NewFeedClient(c.String("d"))}
}

// checkFollow returns an error for -follow with a crawl that this command cannot wait for.
func checkFollow(c *cli.Command) error {
	if c.Bool("follow") && flags.IsURL(c.String("d")) {
		return flags.Usagef("-follow works on a crawl in a directory; for a crawl in a database, call %s without it after each crawl", c.Name)
	}
	return nil
}

// read reads the feed with here, in this process, or with remote if another process has the crawl open.
func (f *feedOfCrawl) read(ctx context.Context, needs access, here func(*session) error, remote func() error) error {
	for {
		err := f.a.withCrawl(ctx, f.c, needs, here)
		if f.here = !errors.Is(err, pebblestore.ErrLocked); f.here {
			return err
		}
		if !f.reported {
			fmt.Fprintf(f.a.err, "recrawl: %v: reading the changes from that process, or waiting until it ends\n", err)
			f.reported = true
		}
		if err := remote(); !errors.Is(err, fs.ErrNotExist) { // otherwise that process has ended
			return err
		}
	}
}

// do makes a request.
func (f *feedOfCrawl) do(ctx context.Context, q control.FeedRequest) (r control.FeedReply, err error) {
	err = f.read(ctx, access{}, func(s *session) (err error) {
		r, err = control.AnswerFeed(ctx, s.crawler, &q)
		return err
	}, func() (err error) {
		r, err = f.client.Do(ctx, q)
		return err
	})
	return r, err
}

// wait waits until there may be more changes.
func (f *feedOfCrawl) wait(ctx context.Context) error {
	opened, err := pebblestore.LastOpened(f.dir)
	if err != nil {
		return err
	}
	for {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if !f.here {
			return nil
		}
		// Nothing changes until a process opens the crawl to change it; it may have closed it by now.
		if used, err := pebblestore.InUse(f.dir); err != nil || used {
			return err
		}
		if last, err := pebblestore.LastOpened(f.dir); err != nil || !last.Equal(opened) {
			return err
		}
	}
}

func (a *app) printConsumers(all []recrawl.ConsumerStatus) error {
	for _, k := range all {
		if err := a.printLine(k); err != nil {
			return err
		}
	}
	return a.printed()
}
