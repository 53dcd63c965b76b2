package pebblestore

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
)

var (
	dueURLs   = flag.Int("due.urls", 200_000, "records of BenchmarkSelectionAgainstScan")
	dueTop    = flag.Int("due.top", 20_000, "URLs it selects at a time")
	dueRounds = flag.Int("due.rounds", 3, "rounds before it measures again")
	dueDir    = flag.String("due.dir", "", "where it keeps its store; empty is a temporary directory")
	dueSmall  = flag.Bool("due.small", false, "pack with Small")
	dueMost   = flag.Int("due.most", 100, "most URLs of a host in BenchmarkRounds")
	dueCache  = flag.Int64("due.cache", 128<<20, "cache in bytes")
	dueScan   = flag.Bool("due.scan", true, "scan in full, too, in BenchmarkGenerate")
)

// web is a crawl db whose hosts are as unequal as those of the web: the largest of
// up to 100,000 has 8 % of the URLs, and all have some.
type web struct {
	n   int
	due float64 // share of records that are due
	now time.Time
}

func (w *web) hosts() []int {
	count := min(100_000, w.n/10)
	sum := 0.0
	for i := range count {
		sum += 1 / float64(i+1)
	}
	sizes := make([]int, count)
	left := w.n
	for i := range sizes {
		sizes[i] = min(left-(count-1-i), max(1, int(float64(w.n)/sum/float64(i+1))))
		left -= sizes[i]
	}
	sizes[0] += left
	return sizes
}

// urls yields the URLs in key order; they are 50 to 120 bytes long.
func (w *web) urls() iter.Seq[string] {
	return func(yield func(string) bool) {
		sizes := w.hosts()
		r := rand.New(rand.NewPCG(4, 4))
		for i, k := range r.Perm(len(sizes)) {
			last := 0
			for range sizes[k] {
				last += 1 + r.IntN(9)
				url := fmt.Sprintf("https://www.site%06d.example/section-%05d/%09d-%s.html", i, last/5000, last, "of-a-site-and-what-it-has-to-say-about-this"[:10+r.IntN(33)])
				if !yield(url) {
					return
				}
			}
		}
	}
}

// datum makes the record of a URL: what is not due has been fetched, and what is
// due has not.
func (w *web) datum(r *rand.Rand) crawldb.Datum {
	d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: w.now.Add(-time.Duration(r.IntN(100)) * time.Hour), Interval: 30 * 24 * time.Hour}
	d.Score = float32(math.Exp(1.5 * r.NormFloat64()))
	d.Priority = d.Score
	if r.Float64() >= w.due {
		w.fetched(&d, r, w.now.Add(-time.Duration(r.Int64N(int64(d.Interval)))))
	}
	return d
}

func (w *web) fetched(d *crawldb.Datum, r *rand.Rand, at time.Time) {
	d.Status, d.LastFetch, d.Modified = crawldb.Fetched, at, at.Add(-24*time.Hour)
	d.FetchTime = at.Add(d.Interval)
	d.Signature = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())
	d.ETag = fmt.Sprintf("%q", fmt.Sprintf("%016x", r.Uint64()))
	d.LastModified = at.Add(-24 * time.Hour).Format(time.RFC1123)
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
}

// load writes the records, and returns the CPU time it took.
func (w *web) load(b *testing.B, db *DB) time.Duration {
	b.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(5, 5))
	var spent time.Duration
	var chunk []string
	put := func() {
		data := make([]crawldb.Datum, len(chunk))
		for i := range data {
			data[i] = w.datum(r)
		}
		start := cpu()
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }})
		if err != nil {
			b.Fatal(err)
		}
		spent += cpu() - start
		chunk = chunk[:0]
	}
	for u := range w.urls() {
		if chunk = append(chunk, u); len(chunk) == 20_000 {
			put()
		}
	}
	put()
	return spent
}

// settle compacts, so that no debt of the load is measured with what follows.
func settle(b *testing.B, db *DB) {
	b.Helper()
	if err := db.Compact(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// disk is what the tables between two take.
func disk(b *testing.B, db *DB, from, to codec.Table) float64 {
	b.Helper()
	n, err := db.db.EstimateDiskUsage([]byte{byte(from)}, []byte{byte(to)})
	if err != nil {
		b.Fatal(err)
	}
	return float64(n)
}

// say is b.Logf, which shows ten lines only.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// top pulls n candidates, at most most of a host, as generate does.
func top(b *testing.B, seq func(crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error], now time.Time, n, most int) (per time.Duration, got int) {
	b.Helper()
	taken := map[string]int{}
	q := crawldb.DueQuery{Now: now, DueBeyond: now.AddDate(0, 0, 90)}
	if most > 0 {
		q.WantHost = func(host string) bool { return taken[host] < most }
	}
	start := cpu()
	for c, err := range seq(q) {
		if err != nil {
			b.Fatal(err)
		}
		if most > 0 {
			taken[crawldb.Host(c.URL)]++
		}
		if got++; got == n {
			break
		}
	}
	return (cpu() - start) / time.Duration(max(got, 1)), got
}

// BenchmarkSelectionAgainstScan asks what a selected URL costs, in CPU time of the
// whole process, by the index and by the full scan of the same store in the same
// run: all due, and 1 % due; by limits for each host; with the lease; and again
// after some rounds of generate and update.
//
//	go test -run '^$' -bench SelectionAgainstScan -benchtime 1x ./stores/pebblestore -due.urls 10000000 -due.top 100000 -due.rounds 20
func BenchmarkSelectionAgainstScan(b *testing.B) {
	ctx := context.Background()
	for _, due := range []float64{1, 0.01} {
		b.Run(fmt.Sprintf("due=%v", due), func(b *testing.B) {
			dir := *dueDir
			if dir == "" {
				dir = b.TempDir()
			}
			dir = filepath.Join(dir, fmt.Sprintf("%d-%v", *dueURLs, due))
			o := Options{CacheSize: *dueCache}
			if *dueSmall {
				o.Compression = Small
			}
			db, err := Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}()
			w := &web{n: *dueURLs, due: due, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			spent := w.load(b, db)
			say("load: %v us a URL", float64(spent.Nanoseconds())/1e3/float64(w.n))
			settle(b, db)
			say("disk: %.1f bytes a URL", disk(b, db, 0, 0xff)/float64(w.n))
			for _, t := range []codec.Table{codec.CrawlTable, codec.ReadyTable, codec.WheelTable} {
				say("table %c: %.1f bytes a URL", t, disk(b, db, t, t+1)/float64(w.n))
			}
			report := func(when string) {
				// What has become due is moved once; that is measured apart.
				start := cpu()
				if err := db.crawl.index.Prepare(ctx, w.now); err != nil {
					b.Fatal(err)
				}
				say("%s: moving what is due: %v", when, cpu()-start)
				for _, most := range []int{0, 1000, 100, 10, 1} {
					for range 2 {
						per, got := top(b, func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] { return db.crawl.Due(ctx, q) }, w.now, *dueTop, most)
						say("%s: limit %d: index %v a URL, %d selected", when, most, per, got)
					}
					if most != 0 && most != 100 {
						continue
					}
					scan, got := top(b, func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
						q.Limit = *dueTop
						return crawldb.DueByScan(ctx, db.Crawl(), q, nil)
					}, w.now, *dueTop, most)
					say("%s: limit %d: scan %v a URL, %d selected", when, most, scan, got)
				}
			}
			report("fresh")
			r := rand.New(rand.NewPCG(6, 6))
			for round := range *dueRounds + 1 {
				now := w.now
				start := cpu()
				rep, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{TopN: *dueTop, MaxPerHost: 100, Now: func() time.Time { return now }})
				if err != nil {
					b.Fatal(err)
				}
				took := cpu() - start
				say("round %d: generate: %v a URL, %d selected", round, took/time.Duration(max(rep.Selected, 1)), rep.Selected)
				start = cpu()
				n := w.visit(b, db, rep.Segments, r)
				say("round %d: update of %d: %v a URL", round, n, (cpu()-start)/time.Duration(max(n, 1)))
				w.now = w.now.Add(6 * time.Hour)
			}
			say("disk: %.1f bytes a URL", disk(b, db, 0, 0xff)/float64(w.n))
			report("after rounds")
			if err := db.CheckIndex(ctx); err != nil {
				b.Fatal(err)
			}
			settle(b, db)
			report("and settled")
			for b.Loop() {
			}
		})
	}
}

// visit updates what a round has selected.
func (w *web) visit(b *testing.B, db *DB, segments []string, r *rand.Rand) int {
	b.Helper()
	ctx := context.Background()
	var urls []string
	for _, name := range segments {
		for d, err := range segment.Records[crawldb.Datum](ctx, db.Segments(), name) {
			if err != nil {
				b.Fatal(err)
			}
			urls = append(urls, d.URL)
		}
		if err := db.Segments().Remove(ctx, name); err != nil {
			b.Fatal(err)
		}
	}
	slices.SortFunc(urls, crawldb.Compare)
	for chunk := range slices.Chunk(urls, 20_000) {
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := *old
			w.fetched(&d, r, w.now)
			return &d, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Crawl().Sync(ctx); err != nil {
		b.Fatal(err)
	}
	return len(urls)
}

// BenchmarkWhatTheIndexCosts loads the same records into a store that keeps the
// index and into one that does not, and then changes time and priority of one in
// twenty: CPU time of the whole process, until what it left to do in the background
// is done.
//
//	go test -run '^$' -bench WhatTheIndexCosts -benchtime 1x ./stores/pebblestore -due.urls 1000000
func BenchmarkWhatTheIndexCosts(b *testing.B) {
	ctx := context.Background()
	for _, index := range []bool{false, true} {
		b.Run(fmt.Sprintf("index=%t", index), func(b *testing.B) {
			db, err := Open(b.TempDir(), Options{CacheSize: *dueCache})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			if !index { // one that is to be built, so that updates leave it alone
				if err := db.SetRow(string(codec.StateTable.Key("due")), "\x09\x00\x00\x00\x00\x00\x00\x00"); err != nil {
					b.Fatal(err)
				}
				if db.crawl.index, err = dueindex.Open(db.db, dueStore{&db.crawl}, dueindex.DefaultLimits(bulkStep, bulkLeast), 1, false, db.log); err != nil {
					b.Fatal(err)
				}
			}
			w := &web{n: *dueURLs, due: 0.5, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			start := cpu()
			spent := w.load(b, db)
			say("index %t: load: %v a URL", index, spent/time.Duration(w.n))
			settle(b, db)
			say("index %t: load and settle, with the making of the records: %v a URL", index, (cpu()-start)/time.Duration(w.n))
			say("index %t: disk: %.1f bytes a URL", index, disk(b, db, 0, 0xff)/float64(w.n))
			r := rand.New(rand.NewPCG(8, 8))
			var some []string
			for u := range w.urls() {
				if r.IntN(20) == 0 {
					some = append(some, u)
				}
			}
			for round := range 3 {
				start = cpu()
				for chunk := range slices.Chunk(some, 20_000) {
					err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
						d := *old
						d.Priority *= 0.5 + r.Float32()
						w.fetched(&d, r, w.now)
						return &d, nil
					}})
					if err != nil {
						b.Fatal(err)
					}
				}
				if err := db.Crawl().Sync(ctx); err != nil {
					b.Fatal(err)
				}
				say("index %t: update %d: %v a URL until durable", index, round, (cpu()-start)/time.Duration(len(some)))
			}
			settle(b, db)
			say("index %t: the last update, settled by a whole compaction: %v a URL", index, (cpu()-start)/time.Duration(len(some)))
			for b.Loop() {
			}
		})
	}
}
