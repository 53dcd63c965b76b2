package verbs

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/generate"
)

func (a *app) freegen() *cli.Command {
	return &cli.Command{
		Name: "freegen", Category: flags.StageVerbs, Usage: "make a segment of the URLs in a file, due or not", ArgsUsage: "FILE...",
		Description: `Makes a fetch list of URLs, one a line, whether the crawl db knows them or not;
"-" is standard input. Anything after a tab is ignored, and so are empty lines,
lines that start with #, and repeated URLs. Prints the name of the segment, which
is fetched, updated and inverted like any other. All URLs are taken, even more of a
host than can be visited soon, given the pauses between requests. With -conf, URLs are neither
filtered nor normalized, as in Nutch's freegen, unless -filter and -normalize are
given. The crawl of -d is created if it does not exist.

  s=$(recrawl freegen -d crawl urls.txt)
  recrawl fetch  -d crawl -agent mybot $s
  recrawl update -d crawl $s`,
		Flags: flags.Join(flags.Dir(), flags.URLRules(), flags.Lists(),
			&cli.BoolFlag{Name: "filter", Category: flags.SelectionGroup, Usage: "apply the URL filters (default: on; with -conf off)"},
			&cli.BoolFlag{Name: "normalize", Category: flags.SelectionGroup, Usage: "normalize URLs (default: on; with -conf off)"},
			flags.Reporting()),
		Action: a.runFreegen,
	}
}

func (a *app) runFreegen(ctx context.Context, c *cli.Command) error {
	files := c.Args().Slice()
	if len(files) == 0 {
		return flags.Usagef("freegen needs the name of a file with URLs")
	}
	if err := flags.ApplyLists(c, &generate.Options{}); err != nil {
		return err
	}
	of, err := identity(files)
	if err != nil {
		return err
	}
	urls := func(yield func(string, error) bool) {
		for _, name := range files {
			if !urlsOf(name, yield) {
				return
			}
		}
	}
	print := func(r *generate.Report) error {
		if !c.Bool("json") && r.Selected == 0 {
			printRejected(a.err, r)
			return fmt.Errorf("no URL to fetch in %s", strings.Join(files, ", "))
		}
		return a.printGenerate(c, r)
	}
	return a.withCrawl(ctx, c, access{create: true}, func(s *session) error {
		return a.reportSegments(ctx, s, c.Name, of, func() (generate.Report, error) { return s.crawler.GenerateFree(ctx, urls) }, print)
	}, func(all *recrawl.Options) {
		o := &all.Generate
		o.NoFilter, o.NoNormalize = o.NutchCompat, o.NutchCompat
		flags.ApplyLists(c, o) // its errors were returned above
		for flag, no := range map[string]*bool{"filter": &o.NoFilter, "normalize": &o.NoNormalize} {
			if c.IsSet(flag) {
				*no = !c.Bool(flag)
			}
		}
	})
}

// identity identifies files by their names, sizes and times. A pipe has no identity: each call
// returns another one for it.
func identity(names []string) (string, error) {
	var of strings.Builder
	for _, name := range names {
		info, err := statInput(name)
		if err != nil {
			return "", err
		}
		if info == nil {
			fmt.Fprintf(&of, "%s\n", rand.Text())
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&of, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return of.String(), nil
}

// statInput returns the FileInfo of a file to read, nil for standard input and other pipes, or
// why the file cannot be read. It is called before a crawl is created.
func statInput(name string) (os.FileInfo, error) {
	if name == flags.StdinArg {
		return nil, nil
	}
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return nil, nil // opening it would take its content from the reader
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", name)
	}
	return info, err
}

// urlsOf yields the URLs of a file and reports whether to go on.
func urlsOf(name string, yield func(string, error) bool) bool {
	in := os.Stdin
	if name != flags.StdinArg {
		f, err := os.Open(name)
		if err != nil {
			return yield("", err)
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		url, _, _ := strings.Cut(line, "\t")
		if url = strings.TrimSpace(url); url == "" || url[0] == '#' {
			continue
		}
		if !yield(url, nil) {
			return false
		}
	}
	if err := lines.Err(); err != nil {
		return yield("", fmt.Errorf("%s: %w", name, err))
	}
	return true
}
