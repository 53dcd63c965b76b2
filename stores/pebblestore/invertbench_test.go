package pebblestore

import (
	"context"
	"testing"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// sortedOnly takes what is merged and keeps nothing.
type sortedOnly struct{ linkdb.Store }

func (sortedOnly) Merge(context.Context, []linkdb.Entry, int) error { return nil }

// BenchmarkInvertOfASegment asks what a link costs when a segment is inverted, in CPU
// time of the whole process: until the links are sorted by target, and until they
// are in the link db, durable, with the engine at rest; at first, and again once the
// link db has those of the segments before. The flags are those of
// BenchmarkUpdateOfASegment. Beside it, what it costs to read the same segment.
//
//	go test -run '^$' -bench InvertOfASegment -benchtime 1x ./stores/pebblestore -update.urls 10000000 -update.pages 100000
func BenchmarkInvertOfASegment(b *testing.B) {
	ctx := context.Background()
	w := newLinkedWeb(*updURLs)
	db, err := Open(copied(b, w.prepared(b, *updRounds)), Options{CacheSize: *updCache})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	o := linkdb.InvertOptions{SortMemory: *updMemory}
	profiled(b, func() {
		for round := range *updRounds {
			name := roundName(round)
			start := cpu()
			for _, err := range segment.Records[segment.Data](ctx, db.Segments(), name) {
				if err != nil {
					b.Fatal(err)
				}
			}
			read := cpu() - start
			peak()
			start = cpu()
			r, err := linkdb.Invert(ctx, sortedOnly{}, db.Segments(), []string{name}, o)
			if err != nil {
				b.Fatal(err)
			}
			sorted, most := cpu()-start, peak()
			start = cpu()
			if r, err = linkdb.Invert(ctx, db.Links(), db.Segments(), []string{name}, o); err != nil {
				b.Fatal(err)
			}
			durable := cpu() - start
			rest(b, db)
			settled := cpu() - start
			per := func(n int64) float64 { return float64(n) / float64(r.Links) }
			say("segment %d: %d links, %d targets; ns a link: %.0f read, %.0f sorted, %.0f durable, %.0f settled; peak %.0f MiB sorted, %.0f in all",
				round, r.Links, r.Targets, per(read.Nanoseconds()), per(sorted.Nanoseconds()), per(durable.Nanoseconds()), per(settled.Nanoseconds()), most, peak())
			b.ReportMetric(1e9/per(sorted.Nanoseconds()), "sorted-links/s")
			b.ReportMetric(1e9/per(settled.Nanoseconds()), "links/s")
		}
	})
	for b.Loop() {
	}
}
