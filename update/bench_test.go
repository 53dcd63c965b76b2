package update_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

func BenchmarkNext(b *testing.B) {
	for _, o := range []update.Options{{}, {VisitMeta: true}, {NutchCompat: true}} {
		b.Run(fmt.Sprintf("VisitMeta=%v,NutchCompat=%v", o.VisitMeta, o.NutchCompat), func(b *testing.B) {
			o.Scoring, o.Now = scoring.OPIC{}, func() time.Time { return noon }
			old, in := listed(known(crawldb.Fetched, 0, "A"))
			in.Visit, in.Parse = visitAt(noon, protocol.Success), parsed("B")
			b.ReportAllocs()
			for b.Loop() {
				update.Next(old, in, o)
			}
		})
	}
}

// A sweep of a hundred thousand records that need not move, without the cost of the rules.
func BenchmarkSweep(b *testing.B) {
	w := &world{crawl: newWorld(nil).crawl}
	const n = 100_000
	for i := 0; i < n; i += 10_000 {
		urls := make([]string, 10_000)
		for k := range urls {
			urls[k] = fmt.Sprintf("http://h.example.test/%06d", i+k)
		}
		err := w.crawl.Update(b.Context(), crawldb.Batch{URLs: urls, Next: func(k int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{URL: urls[k], Status: crawldb.Fetched, Interval: day, LastFetch: noon, FetchTime: noon, Signature: []byte("0123456789abcdef")}, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := update.Sweep(b.Context(), w.crawl, update.SweepOptions{PurgeGone: true, Normalize: true, Filter: true, Rules: &urlfilter.Rules{}})
		if err != nil || r.Records != n {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
