// Command bench measures what a page costs recrawl, what it costs colly, and what it
// costs a bare loop of net/http, tokenizer and zstd, side by side: CPU time of the
// crawling process, allocations and memory, and the disk that a crawl leaves behind.
// It measures no quality of a schedule or an order: recrawl schedule simulate and
// recrawl scoring simulate do. Start with
//
//	go run ./bench -h
//
// Every crawl runs in a process of its own, and so does the server of the
// synthetic web, so that only the crawler is measured. The contenders take
// turns, so that other load of the machine falls on all of them, and the table
// shows medians. Only loopback is dialled, whatever a page links to.
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

// The only argument of a child process of this program, which reads its job from standard
// input.
const (
	workerArg   = "worker"
	serverArg   = "server"
	dbWorkerArg = "db-worker"
	victimArg   = "db-victim"
)

const modes = `Usage: go run ./bench MODE [options]

Modes, each with the command that makes its tables of docs/benchmarks.md alone:

  pages   synthetic webs without end, with pages of several sizes
          go run ./bench pages -kb 10,50 -n 3
  web     a small synthetic web of pages of 2 KB, crawled to its end
          go run ./bench web
  sites   any sites that are served on loopback
          go run ./bench sites -http ADDR -https ADDR -cacert FILE -seeds FILE -run recrawl-pebble,colly
  db      the crawl db as it grows: a selection, an update, an inversion
          go run ./bench db -urls 1000000,10000000 -rounds 2
  engines the crawl db in PostgreSQL beside pebblestore
          go run ./bench engines -postgres 'host=/tmp user=me dbname=test'
  endless pages that fall due one by one, in an endless run and in one round
          go run ./bench endless -urls 10000,1000000
  all     pages and db, written into the document
          go run ./bench all -write docs/benchmarks.md

go run ./bench MODE -h lists the options of a mode. Tables that other commands make:

  the order of a crawl     go run ./cmd/recrawl scoring simulate -pages 320000 -times
  single packages          go test -run '^$' -bench NAME -benchmem -count 9 ./PACKAGE
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
	case len(args) == 0:
		fmt.Fprint(os.Stderr, modes)
		return errors.New("want a mode")
	}
	switch mode, args := args[0], args[1:]; mode {
	case "-h", "-help", "--help", "help":
		fmt.Print(modes)
		return nil
	case "pages", "web", "sites":
		return compare(ctx, mode, args)
	case "db":
		return db(ctx, args)
	case "engines":
		return engines(ctx, args)
	case "endless":
		return endless(ctx, args)
	case "all":
		return everything(ctx, args)
	default:
		return fmt.Errorf("no mode %q; go run ./bench -h lists them", mode)
	}
}

// compare has the contenders crawl a web: the modes pages, web and sites.
func compare(ctx context.Context, mode string, args []string) error {
	var (
		f          = flag.NewFlagSet("bench "+mode, flag.ContinueOnError)
		c          = comparison{out: os.Stdout}
		contenders = f.String("run", strings.Join(contenderNames(), ","), "`NAMES` of the contenders")
		size       webSize
		kb, seeds  *string
	)
	f.IntVar(&c.reps, "n", 3, "crawls of each contender")
	f.IntVar(&c.Max, "max", 0, "stop a crawl after so many pages (0: when there are no more)")
	f.IntVar(&c.Workers, "workers", 64, "requests at once")
	f.IntVar(&c.Idle, "idle", 256, "idle connections kept at once, one a host")
	f.StringVar(&c.profile, "profile", "", "write profiles of CPU and allocations into this `DIR`")
	if mode == "sites" {
		f.StringVar(&c.HTTP, "http", "", "crawl what is served over HTTP at this loopback `ADDR`")
		f.StringVar(&c.HTTPS, "https", "", "the loopback `ADDR` where the same sites are served over HTTPS")
		f.StringVar(&c.CACert, "cacert", "", "PEM `FILE` of the authority of the HTTPS sites")
		seeds = f.String("seeds", "", "`FILE` of URLs to start from, one a line; their hosts bound the crawl")
	} else {
		f.IntVar(&size.Hosts, "hosts", 200, "hosts of the synthetic web")
		f.IntVar(&size.Pages, "pages", 50, "pages of each host of the synthetic web")
	}
	if mode == "pages" {
		kb = f.String("kb", "10,50", "`SIZES` of pages in kB, with commas")
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q: want no arguments", f.Args())
	}
	c.names = strings.Split(*contenders, ",")
	for _, name := range c.names {
		if contender(name) == nil {
			return fmt.Errorf("no contender %q; there are %s", name, strings.Join(contenderNames(), ", "))
		}
	}
	switch mode {
	case "web":
		return c.web(ctx, size)
	case "pages":
		sizes, err := parseSizes("-kb", *kb, 1, 10_000)
		if err != nil {
			return err
		}
		return c.webs(ctx, size, sizes)
	}
	var err error
	if c.Seeds, c.Hosts, err = readSeeds(*seeds); err != nil {
		return err
	}
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
		into  = f.String("write", "", "write what was measured into this `FILE`, as docs/benchmarks.md has it")
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
	for _, name := range []string{"pages", "db"} { // an error now, and not after an hour
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
