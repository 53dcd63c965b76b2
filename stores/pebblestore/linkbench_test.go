package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// What do many layers cost a read? Each has a third of 300,000 pages, with two links.
//
//	go test . -run '^$' -bench InlinksOfAPage
func BenchmarkInlinksOfAPage(b *testing.B) {
	for _, layers := range []int{1, 4, 8, 16} {
		db, err := Open(b.TempDir(), Options{CacheSize: 16 << 20})
		if err != nil {
			b.Fatal(err)
		}
		db.links.mostLayers = 1 << 20
		const pages = 300_000
		url := func(i int) string {
			return fmt.Sprintf("http://host%03d.example/a/path/of/some/length/%06d.html", i/1000, i)
		}
		for n := range layers {
			var entries []linkdb.Entry
			for i := n % 3; i < pages; i += 3 {
				e := linkdb.Entry{URL: url(i)}
				for k := range 2 {
					e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: url((i*7 + n*13 + k) % pages), Anchor: fmt.Sprint("anchor ", k)})
				}
				entries = append(entries, e)
			}
			if err := db.Links().Merge(b.Context(), entries, 10_000); err != nil {
				b.Fatal(err)
			}
		}
		if n := len(*db.links.layers.Load()); n != layers {
			b.Fatalf("%d layers", n)
		}
		b.Run(fmt.Sprintf("layers=%d/Get", layers), func(b *testing.B) {
			b.ReportAllocs()
			r := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				if _, err := db.Links().Get(b.Context(), url(r.IntN(pages))); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("layers=%d/Scan", layers), func(b *testing.B) {
			rows := 0
			for b.Loop() {
				for _, err := range db.Links().Scan(b.Context(), crawldb.Range{}) {
					if err != nil {
						b.Fatal(err)
					}
					rows++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows)/float64((layers+2)/3), "ns/page/row")
		})
		list := *db.links.layers.Load()
		b.Run(fmt.Sprintf("layers=%d/join", layers), func(b *testing.B) {
			rows := 0
			for b.Loop() {
				// It is not made to be what the others have become.
				var failed error
				t := tables{store: "layers-", fresh: true, rows: db.links.joinedTables(b.Context(), list, codec.Layer{From: 0, To: 1000 + uint32(b.N)}, &failed), err: &failed}
				for table := range t.rows {
					if err := db.writeTable(b.TempDir()+"/table", false, true, func(w *sstable.Writer) error { return writeRows(w, table, true) }); err != nil {
						b.Fatal(err)
					}
				}
				rows += pages / 3 * layers
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
		})
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
