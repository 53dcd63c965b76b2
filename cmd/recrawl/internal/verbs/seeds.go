package verbs

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/inject"
)

// seedFileFormat explains the format of a seed file.
const seedFileFormat = `A seed file has one URL a line, optionally followed by name=value pairs, with tabs
between. nutch.score and nutch.fetchInterval (in seconds) mean what they mean to
Nutch. The other pairs become metadata. Empty lines and those that begin with # are
skipped.`

// injectSeeds injects the seeds that can be used. The second error ends the verb; the
// first, for the end of the run, says that some seeds could not be used.
func (a *app) injectSeeds(ctx context.Context, c *cli.Command, s *session, seeds *seedSource) (bad, err error) {
	r, err := s.crawler.InjectSeeds(ctx, seeds.all, s.injecting(c))
	if err != nil {
		return nil, err
	}
	if r.Seeds == 0 {
		return nil, fmt.Errorf("%s: it has no seeds", seeds.name)
	}
	const shown = 20
	bads := r.Bad[:min(len(r.Bad), shown)]
	for _, b := range bads {
		fmt.Fprintf(a.err, "recrawl: %v\n", b)
	}
	left := r.Filtered + r.Invalid
	if n := left - len(bads); n > 0 {
		fmt.Fprintf(a.err, "recrawl: and %d more\n", n)
	}
	if left > 0 {
		bad = fmt.Errorf("%d of %d seeds could not be used", left, r.Seeds)
		if left < r.Seeds {
			bad = fmt.Errorf("%w; the others were injected", bad)
		}
	}
	if c.Name == "inject" {
		if c.Bool("json") {
			return bad, a.printJSON(map[string]int{"seeds": r.Seeds, "new": r.New, "merged": r.Merged, "known": r.Known, "duplicate": r.Duplicate, "filtered": r.Filtered, "invalid": r.Invalid, "purged": r.Purged})
		}
		fmt.Fprintf(a.out, "%d seeds: %d new, %d merged, %d known, %d duplicate, %d filtered, %d invalid\n", r.Seeds, r.New, r.Merged, r.Known, r.Duplicate, r.Filtered, r.Invalid)
	}
	return bad, nil
}

// seedSource is the URLs of the command line and of -seeds.
type seedSource struct {
	urls []string
	name string // of -seeds; empty if it was not given
	dir  string // where the files of -seeds are
	more iter.Seq2[inject.Seed, error]
}

// stdin is the name of standard input.
const stdin = "standard input"

// seedsOf returns the source of the seeds; nil if there is none. It checks the arguments
// and the file before anything else is touched.
func seedsOf(c *cli.Command) (*seedSource, error) {
	for _, u := range c.Args().Slice() {
		if !strings.Contains(u, "://") {
			return nil, flags.Usagef("%q is not a URL; it should start with http:// or https://", u)
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
		return nil, flags.Usagef("-seeds needs the name of a file")
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
