package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

const benchURLs = 400_000

// benchURL is about 65 bytes long, as URLs of the web are.
func benchURL(i int) string {
	return fmt.Sprintf("https://www.site%05d.example/section%02d/page-%08d-of-a-site.html", i/97, i%97/10, i)
}

// benchDatum returns a record; every second one has been fetched, and has a signature that
// cannot be compressed.
func benchDatum(i int) crawldb.Datum {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: time.UnixMilli(1_700_000_000_000 + r.Int64N(1e9)), Interval: 30 * 24 * time.Hour, Score: r.Float32()}
	d.Priority = d.Score
	if i%2 == 0 {
		d.Status, d.LastFetch, d.Modified = crawldb.Fetched, d.FetchTime, d.FetchTime
		d.Signature = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())
		d.ETag = fmt.Sprintf("%q", fmt.Sprintf("%016x", r.Uint64()))
	}
	return d
}

// benchStore returns a compacted store of benchURLs records and their URLs in
// key order.
func benchStore(b *testing.B, o Options) (*DB, []string) {
	b.Helper()
	urls := make([]string, benchURLs)
	for i := range urls {
		urls[i] = benchURL(i)
	}
	byURL := make(map[string]int, len(urls))
	for i, u := range urls {
		byURL[u] = i
	}
	slices.SortFunc(urls, crawldb.Compare)
	db, err := Open(filepath.Join(b.TempDir(), "store"), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	ctx := context.Background()
	for chunk := range slices.Chunk(urls, 20_000) {
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			d := benchDatum(byURL[chunk[i]])
			return &d, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Compact(ctx); err != nil {
		b.Fatal(err)
	}
	return db, urls
}

func perSecond(b *testing.B, n int, what string) {
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), what+"/s")
}

// BenchmarkUpdateWalkAgainstGetSet changes one URL in four, in key order, by one
// iterator and by Get and Set of each. The cache holds a part of the database, as
// that of a large one does.
func BenchmarkUpdateWalkAgainstGetSet(b *testing.B) {
	db, urls := benchStore(b, Options{CacheSize: 32 << 20, MemTableSize: 4 << 20})
	var some []string
	for i := 0; i < len(urls); i += 4 {
		some = append(some, urls[i])
	}
	ctx := context.Background()
	round := 0
	change := func(old crawldb.Datum) crawldb.Datum {
		old.Score += float32(round)
		return old
	}
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			round++
			for chunk := range slices.Chunk(some, 20_000) {
				err := db.Crawl().Update(ctx, crawldb.Batch{URLs: chunk, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
					d := change(*old)
					return &d, nil
				}})
				if err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Crawl().Sync(ctx); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, len(some), "urls")
	})
	if err := db.Compact(ctx); err != nil {
		b.Fatal(err)
	}
	b.Run("get and set", func(b *testing.B) {
		for b.Loop() {
			round++
			for chunk := range slices.Chunk(some, 20_000) {
				batch := db.db.NewBatch()
				for _, url := range chunk {
					old, err := db.Crawl().Get(ctx, url)
					if err != nil {
						b.Fatal(err)
					}
					d := change(old)
					enc, err := d.AppendBinary(nil)
					if err == nil {
						err = batch.Set(codec.CrawlTable.Key(crawldb.Key(url)), enc, nil)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				if err := batch.Commit(pebble.NoSync); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Crawl().Sync(ctx); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, len(some), "urls")
	})
}

// BenchmarkScan asks what a record costs that a scan passes, in CPU time of the
// whole process: to the iterator of the engine, to Scan, and to a selection by a rule
// that no index knows, of one in a hundred and of one in two.
func BenchmarkScan(b *testing.B) {
	db, urls := benchStore(b, Options{})
	ctx := context.Background()
	run := func(name string, do func(b *testing.B) int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpu()
			for b.Loop() {
				if n := do(b); n != len(urls) {
					b.Fatalf("%d records", n)
				}
			}
			spent := (cpu() - start).Seconds() / float64(b.N)
			b.ReportMetric(spent*1e9/float64(len(urls)), "cpu-ns/url")
			b.ReportMetric(float64(len(urls))/spent, "urls/cpu-s")
		})
	}
	run("iterator", func(b *testing.B) (n int) {
		it, err := db.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(codec.CrawlTable)}, UpperBound: []byte{byte(codec.CrawlTable) + 1}})
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if value, err := it.ValueAndErr(); err != nil || len(it.Key())+len(value) == 0 {
				b.Fatal(err)
			}
			n++
		}
		return n
	})
	run("scan", func(b *testing.B) (n int) {
		for _, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		return n
	})
	for _, every := range []int{100, 2} {
		run(fmt.Sprintf("select one in %d", every), func(b *testing.B) (n int) {
			due := func(d *crawldb.Datum) bool {
				n++
				return d.Score < 1/float32(every)
			}
			for _, err := range crawldb.DueByScan(ctx, db.Crawl(), crawldb.DueQuery{Limit: len(urls) / 100}, due) {
				if err != nil {
					b.Fatal(err)
				}
			}
			return n
		})
	}
}

// BenchmarkDiskOfAURL says how many bytes of the directory a URL takes once the
// database is compacted and closed, in tables, and how many are in logs kept for
// reuse, whose number does not depend on that of URLs. Its time is that of
// opening and closing.
func BenchmarkDiskOfAURL(b *testing.B) {
	for name, c := range map[string]Compression{"fast": Fast, "small": Small} {
		b.Run(name, func(b *testing.B) {
			db, urls := benchStore(b, Options{Compression: c})
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
			raw := 0
			for i := range urls {
				d := benchDatum(i)
				enc, _ := d.AppendBinary(crawldb.AppendKey(nil, benchURL(i)))
				raw += len(enc)
			}
			var logs, rest int64
			err := filepath.WalkDir(db.dir, func(name string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				i, err := e.Info()
				if filepath.Ext(name) == ".log" {
					logs += i.Size()
				} else {
					rest += i.Size()
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				again, err := Open(db.dir, Options{Compression: c})
				if err == nil {
					err = again.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			n := float64(len(urls))
			b.ReportMetric(float64(rest)/n, "disk-B/url")
			b.ReportMetric(float64(raw)/n, "raw-B/url")
			b.ReportMetric(float64(logs)/(1<<20), "log-MB")
		})
	}
}

// BenchmarkHostTurn is what a fetch costs the host db: a turn taken and given
// back, by the size of the robots.txt files that are known of the host.
func BenchmarkHostTurn(b *testing.B) {
	for _, robots := range []int{2000, 1 << 20} {
		b.Run(fmt.Sprintf("robots=%d", robots), func(b *testing.B) {
			db, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			benchHosts(b, db, robots)
		})
	}
}

func benchHosts(b *testing.B, db *DB, robots int) {
	ctx := context.Background()
	body := bytes.Repeat([]byte("Disallow: /ab\n"), robots/14+1)[:robots]
	hosts := min(1000, 64<<20/robots)
	before, n := uint64(0), 0
	turn := func() {
		name := fmt.Sprintf("www.site%05d.example", n%hosts)
		for range 2 {
			err := db.Hosts().Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
				h := hostdb.Host{Robots: []hostdb.Robots{{Origin: "https://" + name, Status: 200, Body: body}}}
				if old != nil {
					h = *old
				}
				h.NextFetch = time.UnixMilli(int64(n))
				return &h, nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		n++
	}
	for range hosts {
		turn()
	}
	before, n = db.db.Metrics().WAL.BytesIn, 0
	b.ReportAllocs()
	for b.Loop() {
		turn()
	}
	b.ReportMetric(float64(db.db.Metrics().WAL.BytesIn-before)/float64(n), "log-B/op")
}
