package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// endless measures what a page costs an endless run, whose pages fall due one by one over a month,
// beside the same pages in one big round: the mode endless. Nothing is sent: a page is made in memory,
// so that what the rounds cost is the larger part.
func endless(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench endless", flag.ContinueOnError)
	sizes := f.String("urls", "10000,1000000", "`SIZES` of the crawl db, with commas")
	most := f.Int("visits", 40_000, "visits that are measured, at most")
	dir := f.String("dir", os.TempDir(), "make the stores in this `DIR`")
	gather := f.Duration("gather", 0, "Options.Run.Gather: negative for rounds of what is due")
	profiles := f.String("profile", "", "write profiles of CPU and allocations into this `DIR`")
	if err := f.Parse(args); err != nil {
		return err
	}
	all, err := parseSizes("-urls", *sizes, 1, math.MaxInt)
	if err != nil {
		return err
	}
	fmt.Println("| URLs | visits | one round, µs/page | endless, µs/page | rounds | ratio |\n| --: | --: | --: | --: | --: | --: |")
	for _, n := range all {
		one, _, err := endlessRun(ctx, *dir, n, min(n, *most), true, *gather, *profiles)
		if err != nil {
			return err
		}
		run, rounds, err := endlessRun(ctx, *dir, n, min(n, *most), false, *gather, *profiles)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %d | %.0f | %.0f | %d | %.2f |\n", n, run.N, one.per(), run.per(), rounds, run.per()/one.per())
	}
	return nil
}

// endlessRun makes a crawl db of n pages, which fall due over a month, and measures the visits to
// those that fall due first.
func endlessRun(ctx context.Context, dir string, n, visits int, atOnce bool, gather time.Duration, profiles string) (c cost, rounds int, err error) {
	dir, err = os.MkdirTemp(dir, "bench-endless-")
	if err != nil {
		return c, 0, err
	}
	defer os.RemoveAll(dir)
	db, err := pebblestore.Open(filepath.Join(dir, "store"), pebblestore.Options{})
	if err != nil {
		return c, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const month = 30 * 24 * time.Hour
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPopulation(n, begin)
	rnd := rand.New(rand.NewPCG(7, 7))
	err = crawldb.UpdateAll(ctx, db.Crawl(), func(yield func(crawldb.Batch, error) bool) {
		for from := 0; from < n; from += chunk {
			data, urls := []crawldb.Datum(nil), []string(nil)
			for i := from; i < min(from+chunk, n); i++ {
				due := begin.Add(time.Duration(rnd.Int64N(int64(month)))).Truncate(time.Millisecond)
				data = append(data, crawldb.Datum{URL: p.url(i), Status: crawldb.Fetched, FetchTime: due, LastFetch: due.Add(-month), Interval: month, Score: 1, Priority: rnd.Float32()})
				urls = append(urls, data[len(data)-1].URL)
			}
			if !yield(crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}, nil) {
				return
			}
		}
	})
	if err != nil {
		return c, 0, err
	}
	var clock atomic.Int64 // ms since begin
	var visited atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Protocol: inMemory{p}, Run: recrawl.RunOptions{Wait: true, RoundTime: -1, Gather: gather},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1, NoRobots: true}},
		Now:   func() time.Time { return begin.Add(time.Duration(clock.Load()) * time.Millisecond) },
		Hooks: recrawl.Hooks{Round: func(r recrawl.Report) { rounds += r.Rounds; visited.Add(int64(r.Visited())) }},
	})
	if err != nil {
		return c, 0, err
	}
	defer crawler.Close()
	if profiles != "" {
		kind := "endless-"
		if atOnce {
			kind = "one-"
		}
		profiles = filepath.Join(profiles, kind+strconv.Itoa(n))
	}
	profiled, err := profile(profiles)
	if err != nil {
		return c, 0, err
	}
	defer func() { err = errors.Join(err, profiled()) }()
	if atOnce { // as many as fall due until then
		clock.Store(int64(float64(month.Milliseconds()) * float64(visits) / float64(n)))
		c, err = measured(ctx, func() (int, error) {
			r, err := crawler.Round(ctx)
			return r.Visited(), err
		})
		return c, rounds, err
	}
	c, err = measured(ctx, func() (int, error) {
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { _, err := crawler.Run(running); ended <- err }()
		for visited.Load() < int64(visits)*9/10 {
			select {
			case err := <-ended:
				stop()
				return 0, err
			case <-time.After(10 * time.Millisecond):
			}
			// The clock goes on to when the next page is due.
			if s := crawler.Status(); s.Stage == "wait" && s.NextDue.After(begin.Add(time.Duration(clock.Load())*time.Millisecond)) {
				clock.Store(s.NextDue.Sub(begin).Milliseconds())
				if _, err := crawler.Inject(running); err != nil {
					stop()
					return 0, err
				}
			}
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return 0, err
		}
		return int(visited.Load()), nil
	})
	return c, rounds, err
}

// inMemory is a protocol that makes pages of 10 KB with some ten links: nine of ten lead to the first
// pages of the host, the others anywhere.
type inMemory struct{ p *population }

func (m inMemory) Fetch(_ context.Context, r protocol.Request) (resp protocol.Response, _ error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<title>%s</title>", r.URL)
	h := uint64(len(r.URL))
	for _, c := range []byte(r.URL) {
		h = h*31 + uint64(c)
	}
	rnd := rand.New(rand.NewPCG(h, 1))
	for b.Len() < 10_000 {
		if rnd.IntN(10) == 0 {
			fmt.Fprintf(&b, "<p><a href=%q>", m.link(r.URL, rnd))
		}
		for range 12 {
			b.WriteString(benchWords[rnd.IntN(len(benchWords))])
			b.WriteByte(' ')
		}
		b.WriteString("</a>\n")
	}
	resp.Outcome.Code = protocol.Success
	resp.Content = page.Content{Type: "text/html", Body: []byte(b.String())}
	return resp, nil
}

func (m inMemory) link(from string, rnd *rand.Rand) string {
	host, err := hostOf(from)
	if err != nil || rnd.IntN(10) == 0 {
		return m.p.url(rnd.IntN(m.p.n))
	}
	first, size := m.p.first[host], m.p.first[host+1]-m.p.first[host]
	return m.p.url(first + rnd.IntN(min(size, 20)))
}
