package pebblestore

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// seedFile writes a file of n seeds of about 80 bytes in no order, whose hosts are
// as unequal as those of the web.
func seedFile(b *testing.B, n int) string {
	b.Helper()
	name := filepath.Join(b.TempDir(), "seeds.txt")
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	r := rand.New(rand.NewPCG(1, 2))
	hosts := rand.NewZipf(r, 1.1, 20, 100_000)
	for range n {
		fmt.Fprintf(w, "https://www.site%05d.example/section%02d/%x/page-%08d-of-a-site.html\n", hosts.Uint64(), r.IntN(50), r.Uint64N(1<<40), r.IntN(1<<30))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return name
}

// nowhere is a store that keeps nothing of an UpdateAll.
type nowhere struct{ crawldb.Store }

func (nowhere) UpdateAll(_ context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	for b, err := range batches {
		if err != nil {
			return err
		}
		for i := range b.URLs {
			if _, err := b.Next(i, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// BenchmarkSeedsToRecords asks what a seed costs from the line of a file to the
// durable record, in CPU time of the whole process: reading, normalizing and
// filtering it; that and sorting, into no store; and all of it, by UpdateAll, without
// a scoring filter and with the one that the command has, and by batches.
//
//	go test -run '^$' -bench SeedsToRecords -benchtime 1x ./stores/pebblestore -bulk.urls 10000000
func BenchmarkSeedsToRecords(b *testing.B) {
	ctx := context.Background()
	n := *bulkURLs
	name := seedFile(b, n)
	into := func(b *testing.B, s crawldb.Store, seeds iter.Seq2[inject.Seed, error], by scoring.Filter) {
		report, err := inject.Run(ctx, s, seeds, inject.Options{Rules: urlfilter.Default(), Scoring: by})
		if err != nil || report.New+report.Duplicate != n {
			b.Fatal(report, err)
		}
	}
	ways := []struct {
		name string
		run  func(*testing.B, iter.Seq2[inject.Seed, error])
	}{
		{"read", func(b *testing.B, seeds iter.Seq2[inject.Seed, error]) {
			rules := urlfilter.Default()
			for s, err := range seeds {
				if err == nil {
					_, err = rules.Apply(urlfilter.Inject, s.URL)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"sorted", func(b *testing.B, seeds iter.Seq2[inject.Seed, error]) { into(b, nowhere{}, seeds, nil) }},
		{"stored", func(b *testing.B, seeds iter.Seq2[inject.Seed, error]) {
			db, err := Open(filepath.Join(b.TempDir(), "store"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			into(b, db.Crawl(), seeds, nil)
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}},
		{"stored with cash", func(b *testing.B, seeds iter.Seq2[inject.Seed, error]) {
			db, err := Open(filepath.Join(b.TempDir(), "store"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			into(b, db.Crawl(), seeds, scoring.OPIC{})
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}},
		{"in batches", func(b *testing.B, seeds iter.Seq2[inject.Seed, error]) {
			db, err := Open(filepath.Join(b.TempDir(), "store"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			into(b, bare{db.Crawl()}, seeds, nil)
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}},
	}
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			for b.Loop() {
				f, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				start := cpu()
				w.run(b, inject.Read(f))
				spent := cpu() - start
				f.Close()
				b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "cpu-ns/url")
				b.ReportMetric(float64(n)/spent.Seconds(), "urls/cpu-s")
			}
		})
	}
}
