package pebblestore

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// BenchmarkOpen asks how long a store takes to open, in wall time: loaded and closed,
// closed after many changes, and killed when its log was longest; and what of the
// directory a URL takes in these states, and after a compaction. A tenth of the URLs
// have not been fetched, the others have a signature and validators.
//
//	go test -run '^$' -bench 'Open$' -benchtime 1x ./stores/pebblestore -bulk.urls 10000000
func BenchmarkOpen(b *testing.B) {
	ctx := context.Background()
	n := *bulkURLs
	w := &web{n: n, due: 0.1, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	dir := filepath.Join(b.TempDir(), "store")
	open := func(dir, what string) *DB {
		size := tableBytes(b, dir)
		began, spent := time.Now(), cpu()
		db, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		took, busy := time.Since(began), cpu()-spent
		b.ReportMetric(took.Seconds()*1000, what+"-ms")
		say("open, %s: %v, of CPU %v; %.1f B a URL in tables", what, took, busy, float64(size)/float64(n))
		return db
	}
	shut := func(db *DB) {
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	shut(open(dir, "new"))
	db := open(dir, "empty")
	r := rand.New(rand.NewPCG(5, 5))
	// Without pointers, or the garbage collector would be what is measured.
	var text []byte
	ends := []int{0}
	url := func(i int) string { return string(text[ends[i]:ends[i+1]]) }
	batches := func(yield func(crawldb.Batch, error) bool) {
		var chunk []string
		for u := range w.urls() {
			text = append(text, u...)
			ends = append(ends, len(text))
			if chunk = append(chunk, u); len(chunk) == 20_000 || len(ends) == n+1 {
				data := make([]crawldb.Datum, len(chunk))
				for i := range data {
					data[i] = w.datum(r)
				}
				if !yield(crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}, nil) {
					return
				}
				chunk = chunk[:0]
			}
		}
	}
	if err := crawldb.UpdateAll(ctx, db.Crawl(), batches); err != nil {
		b.Fatal(err)
	}
	shut(db)
	db = open(dir, "loaded")

	// Each batch visits records all over the crawl db, and so moves their entries.
	crashed := filepath.Join(b.TempDir(), "crashed")
	longest := uint64(0)
	for round := range 100 {
		picked := map[int]bool{}
		for len(picked) < min(10_000, n/2) {
			picked[r.IntN(n)] = true
		}
		var chunk []string
		for i := range picked {
			chunk = append(chunk, url(i))
		}
		slices.SortFunc(chunk, crawldb.Compare)
		at := w.now.Add(time.Duration(round) * time.Minute)
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := *old
			d.Score *= 1.01
			d.Priority = d.Score
			w.fetched(&d, r, at)
			return &d, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
		if size := db.db.Metrics().WAL.Size; size > longest+longest/8 {
			longest = size
			for was := ""; was != files(b, dir); { // until the engine did nothing meanwhile
				was = files(b, dir)
				snapshot(b, dir, crashed)
			}
		}
	}
	say("the longest log that was seen: %.1f MB", float64(longest)/(1<<20))
	b.ReportMetric(float64(longest)/(1<<20), "log-MB")
	shut(db) // which would go on compacting beside
	shut(open(crashed, "killed"))
	db = open(dir, "changed")
	if err := db.Compact(ctx); err != nil {
		b.Fatal(err)
	}
	shut(db)
	shut(open(dir, "compacted"))
	for b.Loop() {
	}
	b.ReportMetric(0, "ns/op")
}

// tableBytes is what the tables in a directory take.
func tableBytes(b *testing.B, dir string) (size int64) {
	b.Helper()
	names, err := filepath.Glob(filepath.Join(dir, databaseName, "*.sst"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		if i, err := os.Stat(name); err == nil {
			size += i.Size()
		}
	}
	return size
}

// files are the names and sizes of what is in the database.
func files(b *testing.B, dir string) string {
	b.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, databaseName))
	if err != nil {
		b.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		if i, err := e.Info(); err == nil {
			fmt.Fprintln(&all, e.Name(), i.Size())
		}
	}
	return all.String()
}

// snapshot makes dir what a process that is killed now would leave in from. Tables
// are not written to again.
func snapshot(b *testing.B, from, dir string) {
	b.Helper()
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(name, from))
		switch {
		case e.IsDir():
			return os.MkdirAll(to, 0o700)
		case strings.HasSuffix(name, ".sst"):
			err = os.Link(name, to)
		default:
			var text []byte
			if text, err = os.ReadFile(name); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
		if os.IsNotExist(err) {
			return nil // the engine has just removed it
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}
