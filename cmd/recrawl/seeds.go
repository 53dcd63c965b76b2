package main

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/inject"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// seedSource is the URLs of the command line and of -seeds.
type seedSource struct {
	urls []string
	name string // of -seeds; empty if it was not given
	dir  string // where the files of -seeds are
	more iter.Seq2[inject.Seed, error]
}

// stdin is the name of standard input.
const stdin = "standard input"

// seeds returns the source of the seeds; nil if there is none. It checks the arguments
// and the file before anything else is touched.
func (a *app) seeds(c *cli.Command) (*seedSource, error) {
	for _, u := range c.Args().Slice() {
		if !strings.Contains(u, "://") {
			return nil, usagef("%q is not a URL; it should start with http:// or https://", u)
		}
	}
	s := &seedSource{urls: c.Args().Slice(), name: c.String("seeds")}
	switch {
	case s.name == "-":
		s.name = stdin
		s.more = inject.Read(bufio.NewReader(c.Root().Reader))
	case s.name != "":
		info, err := os.Stat(s.name)
		if err != nil {
			return nil, fmt.Errorf("-seeds: %w", err)
		}
		if info.IsDir() {
			if err := anyFile(s.name); err != nil {
				return nil, fmt.Errorf("-seeds: %w", err)
			}
			s.dir, s.more = s.name, inject.Files(os.DirFS(s.name), ".")
			break
		}
		if f, err := os.Open(s.name); err != nil {
			return nil, fmt.Errorf("-seeds: %w", err)
		} else if err := f.Close(); err != nil {
			return nil, fmt.Errorf("-seeds: %w", err)
		}
		s.dir = filepath.Dir(s.name)
		s.more = inject.Files(os.DirFS(s.dir), filepath.Base(s.name))
	case c.IsSet("seeds"):
		return nil, usagef("-seeds needs the name of a file")
	}
	if len(s.urls) == 0 && s.more == nil {
		return nil, nil
	}
	return s, nil
}

// anyFile returns an error if there is no plain file in a directory.
func anyFile(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			return nil
		}
	}
	return fmt.Errorf("no file in the directory %s", dir)
}

// all yields the seeds. It can be called once.
func (s *seedSource) all(yield func(inject.Seed, error) bool) {
	for _, u := range s.urls {
		if !yield(inject.Seed{URL: u}, nil) {
			return
		}
	}
	if s.more == nil {
		return
	}
	for seed, err := range s.more {
		switch {
		case s.name != stdin:
			seed.File = filepath.Join(s.dir, seed.File)
		case err != nil:
			err = fmt.Errorf("%s: %w", s.name, err)
		}
		if !yield(seed, err) {
			return
		}
	}
}

// rulesForAll applies the rules of the crawl to the existing records, if asked to.
// (With db.update.purge.404, Nutch purges them in any case.)
func (a *app) rulesForAll(ctx context.Context, c *cli.Command, s *session, o *recrawl.Options) error {
	how, apply := s.injecting(c), c.Bool("filter-normalize-all")
	if !apply && !(how.PurgeGone && how.NutchCompat) {
		return nil
	}
	all := update.SweepOptions{
		Normalize: apply && !how.NoNormalize, Filter: apply && !how.NoFilter, PurgeGone: how.PurgeGone,
		Rules: o.Rules, Scope: urlfilter.Inject, Scoring: o.Scoring, NutchCompat: o.Update.NutchCompat, Now: s.now,
	}
	if all.Rules == nil {
		all.Rules = urlfilter.Default()
	}
	if all.Scoring == nil {
		all.Scoring = scoring.OPIC{}
	}
	r, err := update.Sweep(ctx, s.db.Crawl(), all)
	if err != nil {
		return err
	}
	switch {
	case !c.Bool("json"):
		fmt.Fprintf(a.out, "of %d records %d filtered, %d invalid, %d gone purged, %d moved (%d merged)\n", r.Records, r.Filtered, r.Invalid, r.Gone, r.Moved, r.Merged)
	case c.String("seeds") == "" && !c.Args().Present(): // nothing else is printed
		return a.printJSON(map[string]int{"records": r.Records, "filtered": r.Filtered, "invalid": r.Invalid, "gone": r.Gone, "moved": r.Moved, "merged": r.Merged})
	}
	return nil
}
