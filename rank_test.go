package recrawl_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// A crawl by PageRank over a web whose pages change, move and vanish, that dies at any
// write of an update and is taken up by another process, comes to the crawl db of one
// that does not.
func TestRanksSurviveKills(t *testing.T) {
	testlevel.SkipInRace(t)
	crawl := func(t *testing.T, seed uint64, kills bool) (dump string, died int) {
		db, rnd, round := new(memstore.DB), rand.New(rand.NewPCG(seed, 7)), uint64(0)
		store := &frail{Store: db.Crawl()}
		options := recrawl.Options{
			Protocol: fickle{seed, &round}, Scoring: scoring.Chain{&scoring.PageRank{}, scoring.Depth{Max: 9}}, Schedule: schedule.Default{DefaultInterval: time.Hour},
			Rank: rank.Options{Growth: 0.2}, Generate: generate.Options{TopN: 15}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
			Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}}},
		}
		var c *recrawl.Crawler
		open := func() {
			var err error
			if c, err = recrawl.New(recrawl.Stores{Crawl: store, Hosts: db.Hosts(), Segments: db.Segments()}, options); err != nil {
				t.Fatal(err)
			}
		}
		open()
		for n := range 3 {
			if _, err := c.InjectSeeds(t.Context(), inject.URLs(fmt.Sprintf("http://h%d.example/", n)), inject.Options{Score: float32(n + 1)}); err != nil {
				t.Fatal(err)
			}
		}
		for round = range 40 {
			g, err := c.Generate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range g.Segments {
				if _, err := c.Fetch(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				for err = errFrail; errors.Is(err, errFrail); {
					if kills {
						store.n = 1 + rnd.IntN(6)
					}
					if _, err = c.Update(t.Context(), name); err != nil {
						died++
						c.Close()
						store.n = 0
						open()
					}
				}
				if store.n = 0; err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(50 * time.Minute)
		}
		c.Close()
		var b strings.Builder
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			raw, err := d.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %v %v %x\n", d.URL, d.Score, d.Priority, raw)
		}
		return b.String(), died
	}
	for seed := range uint64(2) {
		var calm, killed string
		var died int
		synctest.Test(t, func(t *testing.T) { calm, _ = crawl(t, seed, false) })
		synctest.Test(t, func(t *testing.T) { killed, died = crawl(t, seed, true) })
		if killed != calm {
			t.Errorf("seed %d: after %d deaths it is\n%s\nwant\n%s", seed, died, killed, calm)
		}
		if pages := strings.Count(calm, "\n"); pages < 100 || died < 30 {
			t.Errorf("seed %d: too small a test, %d pages and %d deaths", seed, pages, died)
		}
	}
}
