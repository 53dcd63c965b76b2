package fetch_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/segment"
)

// Sitemaps that wait for a place do not keep the loop busy, however many they are.
func TestManySitemapsWaitInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		s := &site{slow: map[string]time.Duration{}, answer: func(string) protocol.Response {
			return body("application/xml", "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'></urlset>")
		}}
		r := newRig(t, s)
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "maps", 0)
		if err != nil {
			t.Fatal(err)
		}
		var all []crawldb.Datum
		for i := range n {
			d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.test/map", i), Status: crawldb.Unfetched}
			crawldb.Sitemap{Budget: 1}.Set(&d.Meta)
			all = append(all, d)
			s.slow[d.URL] = 5 * time.Minute
		}
		if err := w.Append(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.o.Threads = 64 // eight places
		var looks atomic.Int64
		r.o.Robots = &robots.Cache{Protocol: s, Hosts: r.o.Hosts, Now: func() time.Time {
			looks.Add(1)
			return time.Now()
		}}
		began := time.Now()
		rep := r.run("maps")
		took := time.Since(began)
		if rep.Sitemaps.Files != n || took > n/8*6*time.Minute || looks.Load() > 30_000 {
			t.Errorf("%d looks in %v, %+v", looks.Load(), took, rep.Sitemaps)
		}
	})
}
