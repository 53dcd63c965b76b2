package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/stores/memstore"
)

// groupFlags returns the flags of a crawl that several processes share.
func groupFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "groups", Usage: "divide a new crawl in a database into `N` groups, about four for each process that is to share it; crawl, started again elsewhere, is another worker"},
		&cli.StringSliceFlag{Name: "hot-domain", Usage: "when a crawl is divided, let each host of the large domain `NAME` belong to a group of its own choosing; may be repeated"},
		&cli.DurationFlag{Name: "lease", Usage: "in a crawl of groups, take those of a worker that gave no sign of life for this `TIME`, the same for all workers", Value: 15 * time.Second},
	}
}

// crawlAsWorker works on a crawl that is divided among groups; done is false if it is not.
func (a *app) crawlAsWorker(ctx context.Context, c *cli.Command, seeds *seedSource, adjust func(*recrawl.Options)) (done bool, err error) {
	dsn := c.String("d")
	if !flags.IsURL(dsn) {
		if c.Int("groups") > 0 {
			return true, flags.Usagef("-groups: a crawl in a directory belongs to one process; use -d postgres://…")
		}
		return false, nil
	}
	engine, err := crawls.OpenGroups(ctx, dsn, c.Int("groups"), c.StringSlice("hot-domain"), a.logger(c))
	if engine == nil || err != nil {
		return err != nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if flags.Segments(c) != "" {
		return true, flags.Usagef("-segments: the segments of a crawl of groups are in its database")
	}
	s := &session{}
	defer func() { err = errors.Join(err, s.end()) }()
	o, err := a.sessionOptions(ctx, c, s, true)
	if err != nil {
		return true, err
	}
	given := flags.SavedFlags{}.With(c)
	if err := errors.Join(given.Apply(&o), given.ApplyExtraction(&o)); err != nil {
		return true, err
	}
	if s.pageRobots != nil {
		s.pageRobots.Hosts = new(memstore.Hosts) // the host db of a group can be used during its lease only
	}
	adjust(&o)
	s.readDocuments(c, &o)
	w, err := recrawl.NewWorker(engine, o, recrawl.WorkerOptions{Lease: c.Duration("lease")})
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := a.injectInto(ctx, w, seeds); err != nil {
		return true, err
	}
	report, err := w.Run(ctx)
	s.failures.Report(a.err, c.Bool("v"))
	return true, errors.Join(err, a.printCrawl(c, &report, err == nil))
}

// injectInto posts seeds for the groups that they belong to.
func (a *app) injectInto(ctx context.Context, w *recrawl.Worker, seeds *seedSource) error {
	if seeds == nil {
		return nil
	}
	var urls []string
	for seed, err := range seeds.all {
		if err != nil {
			return err
		}
		if len(seed.Meta) > 0 {
			return fmt.Errorf("%s has metadata, which seeds of a crawl of groups cannot have", seed.URL)
		}
		urls = append(urls, seed.URL)
	}
	return w.Inject(ctx, urls...)
}
