package pebblestore

import (
	"context"
	"flag"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

var bulkURLs = flag.Int("bulk.urls", 200_000, "records of BenchmarkBulkAgainstBatches")

// dirSize is what the files in a directory take.
func dirSize(b *testing.B, dir string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			size += i.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// BenchmarkBulkAgainstBatches asks what a new record costs by UpdateAll and by
// Update, in CPU time of the whole process: until it is durable, and what is left to
// do for the compactions that follow. Seeds all have one score and one time; links
// have many of both, so that their entries in the index lie apart.
//
//	go test -run '^$' -bench BulkAgainstBatches -benchtime 1x ./stores/pebblestore -bulk.urls 10000000
func BenchmarkBulkAgainstBatches(b *testing.B) {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, kind := range []string{"seeds", "links"} {
		for _, way := range []string{"bulk", "batches"} {
			b.Run(kind+"/"+way, func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "store")
				db, err := Open(dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer db.Close()
				w := &web{n: *bulkURLs, due: 1, now: now}
				r := rand.New(rand.NewPCG(5, 5))
				// Making the records is not counted.
				var making time.Duration
				batches := func(yield func(crawldb.Batch, error) bool) {
					start := cpu()
					var chunk []string
					put := func() bool {
						data := make([]crawldb.Datum, len(chunk))
						for i := range data {
							data[i] = crawldb.Datum{Status: crawldb.Unfetched, FetchTime: now, Interval: 30 * 24 * time.Hour, Score: 1, Priority: 1}
							if kind == "links" {
								data[i] = w.datum(r)
							}
						}
						making += cpu() - start
						ok := yield(crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}, nil)
						start, chunk = cpu(), chunk[:0]
						return ok
					}
					for u := range w.urls() {
						if chunk = append(chunk, u); len(chunk) == 20_000 && !put() {
							return
						}
					}
					put()
				}
				var s crawldb.Store = db.Crawl()
				if way == "batches" {
					s = struct{ crawldb.Store }{s}
				}
				start := cpu()
				if err := crawldb.UpdateAll(ctx, s, batches); err != nil {
					b.Fatal(err)
				}
				durable := cpu() - start - making
				size := dirSize(b, dir)
				settle(b, db)
				settled := cpu() - start - making
				n := time.Duration(*bulkURLs)
				say("%s by %s: durable %v a URL, settled %v; directory %d B a URL, settled %.1f", kind, way, durable/n, settled/n, size/int64(n), disk(b, db, 0, 0xff)/float64(n))
				if err := db.CheckIndex(ctx); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
				}
				b.ReportMetric(float64(durable.Nanoseconds())/float64(n), "cpu-ns/url")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
