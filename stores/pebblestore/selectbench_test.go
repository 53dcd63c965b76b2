package pebblestore

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
)

// kept opens a store of the records of w, loaded and compacted. With -due.dir it is
// made once, and what is opened is a copy that shares the files no one writes to.
func (w *web) kept(b *testing.B) *DB {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "store")
	made := dir
	if *dueDir != "" {
		made = filepath.Join(*dueDir, fmt.Sprintf("%d-%v", w.n, w.due))
		dir = made + "-copy"
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { os.RemoveAll(dir) })
	}
	o := Options{CacheSize: *dueCache}
	open := func(dir string) *DB {
		db, err := Open(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		return db
	}
	if _, err := os.Stat(made); err != nil {
		db := open(made)
		w.bulkLoad(b, db)
		settle(b, db)
		if err := db.crawl.index.Prepare(context.Background(), w.now); err != nil {
			b.Fatal(err)
		}
		settle(b, db)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if made != dir {
		if err := linkTree(dir, made); err != nil {
			b.Fatal(err)
		}
	}
	db := open(dir)
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// linkTree copies a directory, but links tables, which are never written to again.
func linkTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		switch {
		case e.IsDir():
			return os.MkdirAll(dst, 0o755)
		case strings.HasSuffix(name, ".sst"):
			return os.Link(name, dst)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(dst, data, 0o644)
	})
}

func (w *web) bulkLoad(b *testing.B, db *DB) {
	b.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	batches := func(yield func(crawldb.Batch, error) bool) {
		var chunk []string
		put := func() bool {
			data := make([]crawldb.Datum, len(chunk))
			for i := range data {
				data[i] = w.datum(r)
			}
			return yield(crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}, nil)
		}
		for u := range w.urls() {
			if chunk = append(chunk, u); len(chunk) == 20_000 {
				if !put() {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			put()
		}
	}
	if err := crawldb.UpdateAll(context.Background(), db.Crawl(), batches); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGenerate asks what a URL costs that is selected, and one that is
// selected, leased and durable, with what the engine does in the background
// counted, in CPU time of the whole process: by limits for each host, from a store
// that was compacted and again after some rounds; and by a full scan. With -due.dir
// the loaded store is kept there, and used again.
//
//	go test -run '^$' -bench 'Generate/due=1/limit=1$' -benchtime 1x ./stores/pebblestore -due.urls 10000000 -due.top 100000 -due.rounds 20 -due.dir DIR
func BenchmarkGenerate(b *testing.B) {
	ctx := context.Background()
	for _, due := range []float64{1, 0.01} {
		for _, most := range []int{0, 10, 1} {
			b.Run(fmt.Sprintf("due=%v/limit=%d", due, most), func(b *testing.B) {
				w := &web{n: *dueURLs, due: due, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
				db := w.kept(b)
				index := func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] { return db.crawl.Due(ctx, q) }
				scan := func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
					return crawldb.DueByScan(ctx, db.Crawl(), q, nil)
				}
				name := fmt.Sprintf("%d URLs, due %v, limit %d", w.n, due, most)
				for range 2 {
					per, got := top(b, index, w.now, *dueTop, most)
					say("%s: select %v a URL, %d selected", name, per, got)
				}
				r := rand.New(rand.NewPCG(6, 6))
				for round := range *dueRounds + 1 {
					now := w.now
					start := cpu()
					rep, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{TopN: *dueTop, MaxPerHost: most, Now: func() time.Time { return now }})
					if err != nil {
						b.Fatal(err)
					}
					took := cpu() - start
					idle(db)
					n := time.Duration(max(rep.Selected, 1))
					say("%s: round %d: generate %v a URL, settled %v, %d selected", name, round, took/n, (cpu()-start)/n, rep.Selected)
					w.visit(b, db, rep.Segments, r)
					idle(db)
					w.now = w.now.Add(6 * time.Hour)
				}
				if *dueRounds > 0 {
					start := cpu()
					if err := db.crawl.index.Prepare(ctx, w.now); err != nil {
						b.Fatal(err)
					}
					say("%s: worn: moving what is due %v", name, cpu()-start)
					for range 2 {
						per, got := top(b, index, w.now, *dueTop, most)
						say("%s: worn: select %v a URL, %d selected", name, per, got)
					}
				}
				if *dueScan {
					per, got := top(b, scan, w.now, *dueTop, most)
					say("%s: scan %v a URL, %d selected", name, per, got)
				}
				if err := db.CheckIndex(ctx); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
				}
			})
		}
	}
}

// BenchmarkSelectionPastLeases asks what a selection costs that has to pass the best of
// all URLs, which are leased.
//
//	go test -run '^$' -bench SelectionPastLeases -benchtime 1x ./stores/pebblestore -due.urls 10000000 -due.top 100000 -due.dir DIR
func BenchmarkSelectionPastLeases(b *testing.B) {
	ctx := context.Background()
	w := &web{n: *dueURLs, due: 1, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	db := w.kept(b)
	query := crawldb.DueQuery{Now: w.now}
	leased := 0
	for _, goal := range []int{0, 100_000, 1_000_000, 2_000_000} {
		if goal > w.n/2 {
			break
		}
		start := cpu()
		for leased < goal {
			var urls []string
			query.Limit = min(100_000, goal-leased)
			for c, err := range db.crawl.Due(ctx, query) {
				if err != nil {
					b.Fatal(err)
				}
				urls = append(urls, c.URL)
			}
			slices.SortFunc(urls, crawldb.Compare)
			batch := crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				d.LeasedUntil, d.LeasedBy = w.now.Add(7*24*time.Hour), "20260101000000"
				return &d, nil
			}}
			if err := crawldb.UpdateAll(ctx, db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(batch, nil) }); err != nil {
				b.Fatal(err)
			}
			leased += len(urls)
		}
		say("%d URLs, %d leased in %v", w.n, leased, cpu()-start)
		for _, most := range []int{0, 10, 1} {
			for range 3 {
				per, got := top(b, func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] { return db.crawl.Due(ctx, q) }, w.now, *dueTop, most)
				say("%d URLs, %d leased, limit %d: select %v a URL, %d selected", w.n, leased, most, per, got)
			}
		}
	}
	for b.Loop() {
	}
}
