package verbs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/nutch/nutchtext"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) importDump() *cli.Command {
	return &cli.Command{
		Name: "import", Category: flags.MergeVerbs, Usage: "import a dump of Nutch's crawl db", ArgsUsage: "FILE...",
		Description: `A FILE is the output of Nutch's readdb -dump, as text or with -format json (not
csv), gzipped or not; a directory stands for the files in it; - is standard input.

  nutch readdb crawl/crawldb -dump dump
  recrawl import -d crawl -zone Europe/Berlin dump

Each page keeps its due time and its interval. Its last visit is taken to be the
time of its next fetch minus its interval, as in Nutch. Scores are treated as those
of seeds. Signatures are Nutch's: without -conf, pages are compared by a different
one, and each seems to have changed at its next visit. A record that already exists
is merged as by mergedb, so a second import changes nothing. Records that cannot be
used are named; the others are imported, and the exit code is 1. Links and contents
are not in a dump: the next visits bring them. The crawl of -d is created if it does
not exist.`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "zone", Usage: "the machine that wrote the dump has the time zone of this `PLACE`, such as Europe/Berlin (default UTC)"},
			&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Usage: "keep URLs that the URL filters reject"},
			&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNormalize"}, Usage: "do not normalize URLs"},
			flags.URLRules(), flags.Scoring(), flags.Scheduling(), flags.Memory(), flags.MinFree(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if !c.Args().Present() {
				return flags.Usagef("import needs the files of a dump, or - for standard input")
			}
			zone := time.UTC
			if name := c.String("zone"); c.IsSet("zone") {
				var err error
				if zone, err = time.LoadLocation(name); err != nil || name == "" || name == "Local" {
					return flags.Usagef("-zone: unknown time zone %q", name)
				}
			}
			files, err := dumpFiles(c.Args().Slice())
			if err != nil {
				return err
			}
			var o recrawl.Options
			return a.withCrawl(ctx, c, access{create: true}, func(s *session) error {
				return a.importFiles(ctx, c, s, files, zone, &o)
			}, func(all *recrawl.Options) { o = *all })
		},
	}
}

// dumpFiles returns the files that the arguments stand for. In a directory, files whose
// names start with . or _, such as Hadoop's _SUCCESS, are left out.
func dumpFiles(args []string) (files []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "-":
			files = append(files, arg)
			continue
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		n := len(files)
		for _, e := range entries {
			if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(e.Name(), "_") {
				files = append(files, filepath.Join(arg, e.Name()))
			}
		}
		if len(files) == n {
			return nil, fmt.Errorf("no file in the directory %s", arg)
		}
	}
	return files, nil
}

func (a *app) importFiles(ctx context.Context, c *cli.Command, s *session, files []string, zone *time.Location, o *recrawl.Options) error {
	rules := *flags.RulesOrDefault(o.Rules)
	if c.Bool("no-filter") {
		rules.Filters = nil
	}
	if c.Bool("no-norm") {
		rules.Normalizers = nil
	}
	if o.Scoring == nil {
		o.Scoring = &scoring.OPIC{}
	}
	if o.Schedule == nil {
		o.Schedule = &schedule.Adaptive{}
	}
	var bad badRecords
	records := func(yield func(crawldb.Datum, error) bool) {
		for d, err := range a.dumpRecords(ctx, c, files, zone, &bad) {
			if err == nil {
				d = imported(d, o)
			}
			if !yield(d, err) {
				return
			}
		}
	}
	r, err := merge.Records(ctx, s.db.Crawl(), records, merge.CrawlDBOptions{
		SortMemory: o.Update.SortMemory,
		Accept: func(url string) (string, bool) {
			u, err := rules.Apply(urlfilter.CrawlDB, url)
			return u, err == nil
		},
	})
	if err != nil {
		return err
	}
	if bad.n > mostBad {
		fmt.Fprintf(a.err, "recrawl: and %d more\n", bad.n-mostBad)
	}
	if bad.abroad {
		fmt.Fprintln(a.err, "recrawl: -zone names that place, for example -zone Europe/Berlin")
	}
	if c.Bool("json") {
		err = a.printJSON(map[string]int{"records": r.Records, "rejected": r.Rejected, "bad": bad.n, "pages": r.Pages})
	} else {
		fmt.Fprintf(a.out, "%d records of %d pages were imported, %d rejected by the rules, %d could not be used\n", r.Records-r.Rejected, r.Pages, r.Rejected, bad.n)
	}
	switch {
	case err != nil:
		return err
	case r.Records == 0:
		return errors.New("no record in the dump")
	case bad.n > 0:
		return fmt.Errorf("%d of %d records could not be used; the others were imported", bad.n, r.Records+bad.n)
	}
	return nil
}

// badRecords counts the records of dumps that cannot be used.
type badRecords struct {
	n      int
	abroad bool // the time of one is in another zone
}

// mostBad is how many of them are named.
const mostBad = 20

// dumpRecords reads the records of some files. It counts and names those that cannot be used.
func (a *app) dumpRecords(ctx context.Context, c *cli.Command, files []string, zone *time.Location, bad *badRecords) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for _, file := range files {
			name := file
			if file == flags.StdinArg {
				name = stdin
			}
			for d, err := range readDump(c, file, zone) {
				if r := (*nutchtext.RecordError)(nil); errors.As(err, &r) {
					bad.abroad = bad.abroad || errors.As(err, new(*nutchtext.ZoneError))
					if bad.n++; bad.n <= mostBad {
						fmt.Fprintf(a.err, "recrawl: import: %s:%d: %v\n", name, r.Line, r.Err)
					}
					continue
				}
				if err != nil {
					err = fmt.Errorf("%s: %w", name, err)
				} else {
					err = ctx.Err()
				}
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// imported adds to a record of a dump what the policies of a crawl keep in a record.
func imported(d crawldb.Datum, o *recrawl.Options) crawldb.Datum {
	had := d.Meta
	o.Scoring.Injected(&d)
	d.Meta.Merge(had)
	d.Priority = schedule.Priority(o.Schedule, &d, o.Scoring.Priority(&d, d.Score))
	return d
}

// readDump reads the records of one file.
func readDump(c *cli.Command, name string, zone *time.Location) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		var r io.Reader = c.Root().Reader
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				yield(crawldb.Datum{}, err)
				return
			}
			defer f.Close()
			r = f
		}
		b := bufio.NewReader(r)
		r = b
		if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
			z, err := gzip.NewReader(b)
			if err != nil {
				yield(crawldb.Datum{}, err)
				return
			}
			r = z
		}
		nutchtext.ReadDump(r, zone)(yield)
	}
}
