// Command bench measures what a page costs recrawl, what it costs colly, and what it
// costs a bare loop of net/http, tokenizer and zstd, side by side: CPU time of the
// crawling process, allocations and memory, and the disk that a crawl leaves behind.
//
//	GOWORK=off go run . -kb 2,10,30,50                          synthetic webs without end, of pages as large as pages are
//	GOWORK=off go run . -web                                    a small synthetic web of pages of 2 KB, crawled to its end
//	GOWORK=off go run . -farm ADDR -farm-tls ADDR -seeds FILE -cacert FILE -run recrawl-pebble,colly
//	                                                            any sites that are served on loopback
//	GOWORK=off go run . db -urls 1000000,10000000,20000000      what grows with the crawl db
//	GOWORK=off go run . all -write ../docs/benchmarks.md             pages and crawl db, as the file has them
//
// Every crawl runs in a process of its own, and so does the server of the
// synthetic web: what is measured is the crawler alone. The contenders take
// turns, so that what else the machine does falls on all of them, and the table
// shows medians. Nothing but loopback is ever dialled, whatever a page links to.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
)

// workerArg and serverArg as the only argument make this program a child of
// itself, which is told the rest on its standard input.
const (
	workerArg   = "worker"
	serverArg   = "server"
	dbWorkerArg = "db-worker"
	victimArg   = "db-victim"
)

const modes = `Usage: GOWORK=off go run . MODE [options]

Modes:
  -kb SIZES             synthetic webs with pages of these sizes in kB
  -web                  a small synthetic web, crawled to its end
  -farm ADDR            any sites that are served on loopback, with -seeds
  db [options]          the crawl db as it grows; db -h has its options
  all [options]         the tables of docs/benchmarks.md; all -h has its options

Options of -kb, -web and -farm:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == workerArg:
		return work(ctx, os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == serverArg:
		return serve(os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == dbWorkerArg:
		return measureDB(ctx, os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == victimArg:
		return victim(ctx, os.Stdin, os.Stdout)
	case len(args) > 0 && args[0] == "db":
		return db(ctx, args[1:])
	case len(args) > 0 && args[0] == "all":
		return everything(ctx, args[1:])
	}
	var (
		f          = flag.NewFlagSet("bench", flag.ContinueOnError)
		web        = f.Bool("web", false, "crawl a synthetic web")
		hosts      = f.Int("hosts", 200, "hosts of the synthetic web")
		pages      = f.Int("pages", 50, "pages a host of the synthetic web")
		kb         = f.String("kb", "", "crawl synthetic webs with pages of so many kB: `SIZES`, such as 2,10,30,50")
		farm       = f.String("farm", "", "crawl what is served over HTTP at this loopback `ADDR`")
		farmTLS    = f.String("farm-tls", "", "where the same sites are served over HTTPS")
		seeds      = f.String("seeds", "", "`FILE` of URLs to start from, one a line; their hosts bound the crawl")
		cacert     = f.String("cacert", "", "PEM `FILE` of the authority of the HTTPS sites")
		maxPages   = f.Int("max", 0, "stop a crawl after so many pages (0: when there are no more)")
		workers    = f.Int("workers", 64, "requests at once")
		idle       = f.Int("idle", 256, "idle connections kept at once, one a host")
		reps       = f.Int("n", 3, "crawls of each contender")
		contenders = f.String("run", strings.Join(contenderNames(), ","), "`NAMES` of the contenders")
		profile    = f.String("profile", "", "write profiles of CPU and allocations into this `DIR`")
	)
	f.Usage = func() {
		fmt.Fprint(f.Output(), modes)
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	which := 0
	for _, b := range []bool{*web, *kb != "", *farm != ""} {
		if b {
			which++
		}
	}
	if f.NArg() > 0 || which != 1 {
		return errors.New("want one of -web, -kb and -farm, and no arguments")
	}
	c := comparison{
		out: os.Stdout, names: strings.Split(*contenders, ","), reps: *reps, profile: *profile,
		job: job{Max: *maxPages, Workers: *workers, Idle: *idle},
	}
	for _, name := range c.names {
		if contender(name) == nil {
			return fmt.Errorf("no contender %q; there are %s", name, strings.Join(contenderNames(), ", "))
		}
	}
	switch {
	case *web:
		return c.web(ctx, webSize{Hosts: *hosts, Pages: *pages})
	case *kb != "":
		sizes, err := parseSizes("-kb", *kb, 1, 10_000)
		if err != nil {
			return err
		}
		return c.webs(ctx, webSize{Hosts: *hosts, Pages: *pages}, sizes)
	}
	var err error
	if c.Seeds, c.Hosts, err = readSeeds(*seeds); err != nil {
		return err
	}
	c.HTTP, c.HTTPS, c.CACert = *farm, *farmTLS, *cacert
	return c.run(ctx)
}

// everything is the command that measures what docs/benchmarks.md has tables of, and
// writes them into it.
func everything(ctx context.Context, args []string) error {
	var (
		f     = flag.NewFlagSet("bench all", flag.ContinueOnError)
		j     = dbJob{}
		c     = comparison{names: contenderNames(), job: job{Workers: 64, Idle: 256}}
		urls  = f.String("urls", "1000000,10000000,20000000", "`SIZES` of the crawl db, with commas")
		kb    = f.String("kb", "10,50", "`SIZES` of pages, in kB")
		hosts = f.Int("hosts", 200, "hosts of the synthetic webs")
		pages = f.Int("pages", 25, "pages of each host that are crawled")
		into  = f.String("write", "", "write what was measured into this `FILE`, as docs/benchmarks.md has it, and plots into a directory bench beside it")
	)
	f.IntVar(&c.reps, "n", 3, "crawls of each contender")
	j.flags(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q: want no arguments", f.Args())
	}
	sizes, err := parseSizes("-kb", *kb, 1, 10_000)
	if err != nil {
		return err
	}
	dbs, err := parseSizes("-urls", *urls, 1000, math.MaxInt)
	if err != nil {
		return err
	}
	for _, name := range []string{"pages", "db"} { // rather now than in an hour
		if *into != "" {
			if err := writeInto(*into, name, nil); err != nil {
				return err
			}
		}
	}
	var text bytes.Buffer
	c.out = &text
	if err := c.webs(ctx, webSize{Hosts: *hosts, Pages: *pages}, sizes); err != nil {
		return err
	}
	if *into == "" {
		_, err = os.Stdout.Write(append(text.Bytes(), '\n'))
	} else {
		err = writeInto(*into, "pages", text.Bytes())
	}
	if err != nil {
		return err
	}
	return writeDB(ctx, j, dbs, *into)
}

// parseSizes reads the value of an option: numbers from least to most.
func parseSizes(option, value string, least, most int) (sizes []int, err error) {
	for word := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < least || n > most {
			return nil, fmt.Errorf("%s: %q is not a size from %d to %d", option, word, least, most)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// comparison has the contenders crawl the same in turns.
type comparison struct {
	job
	out     io.Writer
	names   []string
	reps    int
	profile string
}

// webs is web for pages of several sizes, in kB.
func (c comparison) webs(ctx context.Context, size webSize, sizes []int) error {
	for i, kb := range sizes {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		fmt.Fprintf(c.out, "Pages of %d KB:\n\n", kb)
		size.KB = kb
		if err := c.web(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// web is run for a synthetic web. One that has no end is left after as many pages
// as are asked for.
func (c comparison) web(ctx context.Context, size webSize) error {
	s, err := startServer(ctx, size)
	if err != nil {
		return err
	}
	defer s.stop()
	if c.site = s.site; c.Max > 0 && c.Max < len(c.List) {
		c.List = c.List[:c.Max]
	} else if size.KB > 0 && c.Max <= 0 {
		c.Max = len(c.List)
	}
	return c.run(ctx)
}

func (c comparison) run(ctx context.Context) error {
	j := c.job
	for _, addr := range []string{j.HTTP, j.HTTPS} {
		if a, err := netip.ParseAddrPort(addr); addr != "" && (err != nil || !a.Addr().IsLoopback()) {
			return fmt.Errorf("%q is not an address and port of loopback", addr)
		}
	}
	all := map[string][]result{}
	for i := range c.reps {
		for _, name := range c.names {
			j := j
			j.Contender = name
			if c.profile != "" {
				path, err := filepath.Abs(filepath.Join(c.profile, fmt.Sprintf("%s.%d", name, i)))
				if err != nil {
					return err
				}
				j.Profile = path
			}
			r, err := crawl(ctx, j)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d %-17s %6d pages, %v CPU, %v\n", i+1, c.reps, name, r.Pages, r.cpu().Round(1e6), r.Wall.Round(1e6))
			all[name] = append(all[name], r)
		}
	}
	return printTables(c.out, c.names, all)
}

// crawl runs one crawl in a process of its own.
func crawl(ctx context.Context, j job) (result, error) {
	dir, err := os.MkdirTemp("", "recrawl-bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	j.Dir = dir
	in, err := json.Marshal(j)
	if err != nil {
		return result{}, err
	}
	cmd, err := self(ctx, workerArg)
	if err != nil {
		return result{}, err
	}
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		return result{}, err
	}
	var r result
	return r, json.Unmarshal(out, &r)
}

// self is this program as a child.
func self(ctx context.Context, arg string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, arg)
	cmd.Stderr = os.Stderr
	return cmd, nil
}
