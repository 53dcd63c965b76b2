package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/urlfilter"
)

const agent = "recrawl-bench"

// recrawlPebble runs the whole cycle on disk: robots.txt, one request at a time
// to a host, segments with contents, texts and links, signatures, scores, crawl
// db, link db, and an event for each page.
func recrawlPebble(ctx context.Context, j job, r *result, m *meter) error {
	dir := filepath.Join(j.Dir, "store")
	if err := m.start(); err != nil {
		return err
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	err = cycle(ctx, j, r, recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := m.stop(); err != nil {
		return err
	}
	return measureDisk(ctx, dir, j.Dir, &r.Disk)
}

// recrawlMem runs the same cycle in memory, segments included.
func recrawlMem(ctx context.Context, j job, r *result, m *meter) error {
	db := new(memstore.DB)
	if err := m.start(); err != nil {
		return err
	}
	err := cycle(ctx, j, r, recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()})
	if err != nil {
		return err
	}
	return m.stop()
}

// recrawlFetch is the one stage that asks for pages, reads and stores them, on the
// same stores as recrawlPebble: fetch lists are there when it begins, and what it
// found goes into no crawl db.
func recrawlFetch(ctx context.Context, j job, r *result, m *meter) (err error) {
	db, err := pebblestore.Open(filepath.Join(j.Dir, "store"), pebblestore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, o, err := j.options()
	if err != nil {
		return err
	}
	defer client.Close()
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(j.List) == 0 {
		return errNoList
	}
	if _, err := c.Inject(ctx, j.List...); err != nil {
		return err
	}
	g, err := c.Generate(ctx)
	if err != nil {
		return err
	}
	if err := m.start(); err != nil {
		return err
	}
	for _, name := range g.Segments {
		f, err := c.Fetch(ctx, name)
		if err != nil {
			return err
		}
		r.Pages += f.Visits[protocol.Success]
		r.Visits += f.Visited()
		r.Bytes += f.Bytes
	}
	return m.stop()
}

var errNoList = errors.New("what pages there are is known of a synthetic web only")

// options are those of a crawl, and its client, which is to be closed.
func (j *job) options() (*httpproto.Client, recrawl.Options, error) {
	client, err := j.client()
	if err != nil {
		return nil, recrawl.Options{}, err
	}
	within, err := urlfilter.Within(j.Hosts...)
	if err != nil {
		return nil, recrawl.Options{}, errors.Join(err, client.Close())
	}
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, within)
	return client, recrawl.Options{
		Agent: agent, Protocol: client, Rules: rules,
		Fetch: fetch.Options{Threads: j.Workers, Politeness: fetch.Politeness{Delay: -1}},
	}, nil
}

func (j *job) client() (*httpproto.Client, error) {
	roots, err := j.roots()
	if err != nil {
		return nil, err
	}
	var to []httpproto.ConnectTo
	for port, addr := range map[uint16]string{80: j.HTTP, 443: j.HTTPS} {
		if addr == "" {
			continue
		}
		host, p, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		toPort, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, err
		}
		to = append(to, httpproto.ConnectTo{Port: port, ToHost: host, ToPort: uint16(toPort)})
	}
	return httpproto.New(httpproto.Options{Agent: agent, ConnectTo: to, RootCAs: roots, Limits: httpproto.Limits{MaxIdle: j.Idle}})
}

// cycle crawls until nothing is due or there are enough pages.
func cycle(ctx context.Context, j job, r *result, s recrawl.Stores) error {
	client, o, err := j.options()
	if err != nil {
		return err
	}
	defer client.Close()
	text := 0 // what an application would work on, as with colly
	o.OnPage = func(ctx context.Context, e recrawl.PageEvent) error {
		if e.Kind != recrawl.PageNew {
			return nil
		}
		s, err := e.Text(ctx)
		text += len(s)
		return err
	}
	for first := true; ; first = false {
		if j.Max > 0 {
			o.Run.Rounds, o.Generate = 1, generate.Options{TopN: j.Max - r.Pages}
		}
		report, err := cycleOnce(ctx, j, s, o, first)
		if err != nil {
			return err
		}
		r.Pages += report.Visits[protocol.Success]
		r.Visits += report.Visited()
		r.Bytes += report.Bytes
		if j.Max <= 0 || r.Pages >= j.Max || report.Rounds == 0 {
			break
		}
	}
	if text == 0 {
		return errNoText
	}
	return nil
}

func cycleOnce(ctx context.Context, j job, s recrawl.Stores, o recrawl.Options, inject bool) (recrawl.Report, error) {
	c, err := recrawl.New(s, o)
	if err != nil {
		return recrawl.Report{}, err
	}
	defer c.Close()
	if inject {
		if _, err := c.Inject(ctx, j.Seeds...); err != nil {
			return recrawl.Report{}, err
		}
	}
	return c.Run(ctx)
}

// measureDisk weighs what a crawl left in dir; scratch is for a copy.
func measureDisk(ctx context.Context, dir, scratch string, d *disk) (err error) {
	segments := filepath.Join(dir, "segments")
	if d.Segments, _, err = sizeOf(segments, ""); err != nil {
		return err
	}
	if d.Segments == 0 {
		return fmt.Errorf("%s: no segments", segments)
	}
	if d.DB, d.Logs, err = sizeOf(dir, segments); err != nil {
		return err
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	copied := filepath.Join(scratch, "copy")
	d.URLs, err = copyCrawlDB(ctx, db.Crawl(), copied)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	for _, c := range []struct {
		dir  string
		size *int64
	}{{dir, &d.Compacted}, {copied, &d.CrawlDB}} {
		if err := compact(ctx, c.dir); err != nil {
			return err
		}
		if *c.size, _, err = sizeOf(c.dir, filepath.Join(c.dir, "segments")); err != nil {
			return err
		}
	}
	return nil
}

// compact opens a store for nothing else: a log that was written before goes when
// a store is opened.
func compact(ctx context.Context, dir string) error {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.Compact(ctx), db.Close())
}

// copyCrawlDB writes the crawl db alone into a store.
func copyCrawlDB(ctx context.Context, from crawldb.Store, dir string) (n int, err error) {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return 0, err
	}
	var records []crawldb.Datum
	flush := func() error {
		urls := make([]string, len(records))
		for i := range records {
			urls[i] = records[i].URL
		}
		err := db.Crawl().Update(ctx, crawldb.Batch{
			URLs: urls,
			Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil },
		})
		records = nil
		return err
	}
	err = func() error {
		for d, err := range from.Scan(ctx, crawldb.Range{}) {
			if err != nil {
				return err
			}
			n++
			if records = append(records, d); len(records) == 10_000 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return flush()
	}()
	return n, errors.Join(err, db.Close())
}
