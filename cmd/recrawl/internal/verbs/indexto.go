package verbs

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/targets"
	"github.com/recrawl/recrawl/index"
)

// indexTo brings an index up to date, as a consumer of the change feed.
func (a *app) indexTo(ctx context.Context, c *cli.Command) error {
	if err := flags.NoArgs(c); err != nil {
		return err
	}
	for _, name := range []string{"o", "conf", "filter", "normalize", "scoring"} {
		if c.IsSet(name) {
			return flags.Usagef("-to and -%s exclude each other", name)
		}
	}
	if err := checkFollow(c); err != nil {
		return err
	}
	o, err := a.indexOptions(c)
	if err != nil {
		return err
	}
	t := &indexingTo{a: a, c: c, feed: newFeedOfCrawl(a, c)}
	to := targets.Options{
		OnReject: func(url string, err error) {
			t.rejected++
			fmt.Fprintf(a.err, "recrawl: left out: %s: %v\n", url, err)
		},
		OnRetry: func(err error, pause time.Duration) {
			fmt.Fprintf(a.err, "recrawl: trying again in %v: %v\n", pause, err)
		},
	}
	if c.Bool("follow") { // a service waits for its index
		to.Patience = -1
	}
	t.target, err = targets.Parse(c.String("to"), to)
	if err != nil {
		return err
	}
	t.request = control.NewDocumentRequest(&o)
	if t.consumer = c.String("consumer"); t.consumer == "" {
		t.consumer = t.target.Consumer()
	}
	return t.run(ctx)
}

// indexingTo is one run of index -to.
type indexingTo struct {
	a        *app
	c        *cli.Command
	target   targets.Target
	consumer string
	request  control.DocumentRequest
	feed     feedOfCrawl

	w        targets.Writer
	restart  bool // the consumer is to begin anew
	rejected int
	report   recrawl.IndexReport
}

func (t *indexingTo) run(ctx context.Context) error {
	defer t.feed.client.Close()
	exists, err := t.target.Exists(ctx)
	if err != nil {
		return err
	}
	t.restart = !exists || t.c.Bool("rebuild")
	err = t.catchUp(ctx)
	for err == nil && t.c.Bool("follow") {
		if err = t.feed.wait(ctx); err == nil {
			err = t.catchUp(ctx)
		}
	}
	if t.w != nil {
		if e := t.w.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	return t.print()
}

func (t *indexingTo) print() error {
	if t.c.Bool("json") {
		return t.a.printJSON(map[string]int{"documents": t.report.Documents, "deleted": t.report.Deleted, "rejected": t.rejected})
	}
	fmt.Fprintf(t.a.out, "%d documents, %d deletions in %v\n", t.report.Documents, t.report.Deleted, t.target)
	return nil
}

// options are those of a consumer that is new.
func (t *indexingTo) options() recrawl.ConsumerOptions {
	o := recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true}
	if t.c.Bool("rebuild") {
		o.Start = recrawl.StartWithSnapshot
	}
	return o
}

// open opens the index. It is made only after the consumer has begun anew: an index that exists is
// one that the consumer has filled.
func (t *indexingTo) open(ctx context.Context) (err error) {
	t.restart = false
	if t.w == nil {
		if t.w, err = t.target.Open(ctx); err == nil && t.c.String("format") == "markdown" {
			t.w = markdownTarget{t.w, t.c.Bool("addBinaryContent")}
		}
	}
	return err
}

// catchUp applies what has changed. The crawl is opened here, or by another process, which then
// reads the changes.
func (t *indexingTo) catchUp(ctx context.Context) error {
	return t.feed.read(ctx, access{change: true}, func(s *session) error {
		if t.restart {
			if err := s.crawler.RestartConsumer(ctx, t.consumer, t.options()); err != nil {
				return err
			}
		}
		if err := t.open(ctx); err != nil {
			return err
		}
		k, err := s.crawler.AddConsumer(ctx, t.consumer, t.options())
		if err != nil {
			return err
		}
		r, err := k.Index(ctx, t.w, recrawl.IndexOptions{Options: t.request.IndexOptions(), Clean: t.c.Bool("clean")})
		t.report.Documents += r.Documents
		t.report.Deleted += r.Deleted
		return err
	}, func() error { return t.catchUpFromOther(ctx) })
}

// remoteBatchBytes is after how many bytes of replies changes from another process are committed.
const remoteBatchBytes = 32 << 20

// catchUpFromOther applies the changes that another process has read.
func (t *indexingTo) catchUpFromOther(ctx context.Context) error {
	q := control.FeedRequest{Consumer: t.consumer, Options: t.options(), Documents: &t.request}
	position, pending, changed := "", 0, false
	for {
		t.request.Restart = t.restart
		r, err := t.feed.client.Do(ctx, q)
		if err != nil {
			return err
		}
		if err := t.open(ctx); err != nil {
			return err
		}
		q.Ack = ""
		for _, line := range r.Lines {
			change, err := control.DecodeChange(line)
			if err == nil {
				err = t.apply(ctx, &change)
			}
			if err != nil {
				return err
			}
			if change.Position != "" {
				position = change.Position
			}
			pending += len(line)
			changed = true
		}
		if !r.End && pending < remoteBatchBytes {
			continue
		}
		if r.End && changed && t.c.Bool("clean") {
			if err := t.reconcile(ctx); err != nil {
				return err
			}
		}
		if pending > 0 {
			if err := t.w.Commit(ctx); err != nil {
				return err
			}
		}
		q.Ack, position, pending = position, "", 0
		if r.End {
			q.AckOnly = true
			if q.Ack != "" {
				_, err = t.feed.client.Do(ctx, q)
			}
			return err
		}
	}
}

func (t *indexingTo) apply(ctx context.Context, change *index.Change) error {
	if err := change.Apply(ctx, t.w); err != nil {
		return err
	}
	switch {
	case change.Document != nil:
		t.report.Documents++
	case change.URL != "":
		t.report.Deleted++
	}
	if change.Reconcile {
		return t.reconcile(ctx)
	}
	return nil
}

// checkBatch is how many URLs of an index are checked with one request.
const checkBatch = 5000

// reconcile deletes the documents of pages that the crawl does not have any more.
func (t *indexingTo) reconcile(ctx context.Context) error {
	if err := t.w.Commit(ctx); err != nil {
		return err
	}
	var urls []string
	check := func() error {
		if len(urls) == 0 {
			return nil
		}
		r, err := t.feed.client.Do(ctx, control.FeedRequest{Consumer: t.consumer, Documents: &control.DocumentRequest{Check: urls}})
		for _, u := range r.Dead {
			if err == nil {
				err = t.w.Delete(ctx, u)
			}
			t.report.Deleted++
		}
		urls = urls[:0]
		return err
	}
	for u, err := range t.w.URLs(ctx) {
		if err != nil {
			return err
		}
		if urls = append(urls, u); len(urls) == checkBatch {
			if err := check(); err != nil {
				return err
			}
		}
	}
	return check()
}
