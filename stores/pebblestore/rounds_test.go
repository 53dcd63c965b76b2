package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// idle waits until the engine has nothing left to do in the background.
func idle(db *DB) {
	for range 3 {
		for {
			m := db.db.Metrics()
			if m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// BenchmarkRounds asks what a URL costs that is selected, leased and durable, with
// what the engine does in the background counted, over many rounds. With -due.dir
// the loaded store is kept there, and used again.
//
//	go test -run '^$' -bench Rounds -benchtime 1x ./stores/pebblestore -due.urls 10000000 -due.top 100000 -due.rounds 20
func BenchmarkRounds(b *testing.B) {
	ctx := context.Background()
	for _, due := range []float64{1, 0.01} {
		b.Run(fmt.Sprintf("due=%v", due), func(b *testing.B) {
			kept := ""
			if *dueDir != "" {
				kept = filepath.Join(*dueDir, fmt.Sprintf("%d-%v", *dueURLs, due))
			}
			w := &web{n: *dueURLs, due: due, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			o := Options{CacheSize: *dueCache}
			dir := filepath.Join(b.TempDir(), "store")
			if kept != "" {
				if _, err := os.Stat(kept); err == nil {
					if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
						b.Fatal(err)
					}
				}
			}
			_, err := os.Stat(dir)
			fresh := err != nil
			db, err := Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			if fresh {
				spent := w.load(b, db)
				say("load: %v us a URL", float64(spent.Nanoseconds())/1e3/float64(w.n))
				settle(b, db)
				if err := db.crawl.index.Prepare(ctx, w.now); err != nil {
					b.Fatal(err)
				}
				settle(b, db)
				if kept != "" {
					if err := db.Close(); err != nil {
						b.Fatal(err)
					}
					if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
						b.Fatal(err)
					}
					if db, err = Open(dir, o); err != nil {
						b.Fatal(err)
					}
				}
			}
			defer func() {
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}()
			idle(db)
			for range 2 {
				start := cpu()
				n := 0
				for _, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				say("scan: %v a record", (cpu()-start)/time.Duration(n))
			}
			for _, t := range []codec.Table{codec.CrawlTable, codec.ReadyTable, codec.WheelTable} {
				say("table %c: %.1f bytes a URL", t, disk(b, db, t, t+1)/float64(w.n))
			}
			say("disk: %.1f bytes a URL", disk(b, db, 0, 0xff)/float64(w.n))
			r := rand.New(rand.NewPCG(6, 6))
			for round := range *dueRounds + 1 {
				now := w.now
				start := cpu()
				rep, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{TopN: *dueTop, MaxPerHost: *dueMost, Now: func() time.Time { return now }})
				if err != nil {
					b.Fatal(err)
				}
				took := cpu() - start
				idle(db)
				settled := cpu() - start
				n := time.Duration(max(rep.Selected, 1))
				start = cpu()
				w.visit(b, db, rep.Segments, r)
				up := cpu() - start
				idle(db)
				ups := cpu() - start
				say("round %d: %d: generate %v, settled %v; update %v, settled %v a URL", round, rep.Selected, took/n, settled/n, up/n, ups/n)
				w.now = w.now.Add(6 * time.Hour)
			}
			say("disk: %.1f bytes a URL", disk(b, db, 0, 0xff)/float64(w.n))
			for b.Loop() {
			}
		})
	}
}
