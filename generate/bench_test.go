package generate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/stores/memstore"
)

// The cost of a condition compared with none: 1,000 of 200,000 due records are selected. The
// leased records are put back.
func BenchmarkSelect1000Of200k(b *testing.B) {
	crawl := new(memstore.Crawl)
	rnd := rand.New(rand.NewPCG(3, 4))
	var all []crawldb.Datum
	for i := range 200_000 {
		d := due(fmt.Sprintf("http://h%d.example.test/%06d", i%500, i), rnd.Float32())
		d.Meta.Set("Content-Type", "text/html")
		all = append(all, d)
	}
	putAll(b, crawl, all)
	for _, c := range []struct{ name, where, limit string }{
		{"nothing", "", ""},
		{"score", "score > 0.01", ""},
		{"url", `url =~ 'https?://h.*\.example\.test/.*'`, ""},
		{"metadata", "Content_Type == 'text/html' && retries < 3", ""},
		{"hostlimit", "", "fetched > 10 ? 5 : 20"},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := generate.Options{TopN: 1000, MaxPerHost: 10, Now: clock}
			var err error
			if c.where != "" {
				if o.Where, err = expression.RecordFilter(c.where); err != nil {
					b.Fatal(err)
				}
			}
			if c.limit != "" {
				hosts := new(memstore.Hosts)
				for i := range 500 {
					h := hostdb.Host{Name: fmt.Sprintf("h%d.example.test", i), Pages: hostdb.Pages{Fetched: int64(i)}}
					if err := hosts.Update(b.Context(), h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
						b.Fatal(err)
					}
				}
				o.Hosts = hosts
				if o.HostLimit, err = expression.HostNumber(c.limit); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				segments := new(memstore.Segments)
				r, err := generate.Run(b.Context(), crawl, segments, o)
				if err != nil || r.Selected != 1000 {
					b.Fatal(r, err)
				}
				b.StopTimer()
				if n, err := generate.ReleaseOrphans(b.Context(), crawl, new(memstore.Segments)); n != 1000 || err != nil {
					b.Fatal(n, err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/record")
		})
	}
}
