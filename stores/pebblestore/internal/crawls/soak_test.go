package crawls

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// warmRounds is after how many rounds the long form begins to measure. The share of an
// hour that they take depends on the machine.
const warmRounds = 300

var soak = flag.Duration("soak", 0, "how long TestSoak crawls; 0 is the short form")

// gauge is what must not grow.
type gauge struct {
	at                              time.Duration
	rounds, visits                  int
	heap, anon, rss                 float64 // bytes; anon is what no file is behind, without what the profiler keeps
	goroutines, fds                 float64
	disk, files, segments, database float64
	tables                          float64 // of the database
}

// TestSoak crawls a web that changes, over loopback, one simulated quarter of a day
// after the other, with one crawler on one store. In the long form it prints what
// the process holds, and its slopes once it has warmed up: heap (live, after a
// collection), goroutines and descriptors must be flat. With cgo the database keeps its
// cache and its memtables in memory of C: what is in use of that does not grow, but what
// C's allocator keeps does, by a few MB in half an hour. Without cgo both are in the heap,
// and the memory of the process is flat, too. What is on the
// disk goes up and down with compactions, so the databases are compacted now and then:
// what is left must be flat. The link db keeps links that pages once had, up to
// MaxInlinks a page, so that is reached first, in warmRounds.
func TestSoak(t *testing.T) {
	long := *soak > 0
	web := &webtest.Web{Hosts: 12, PagesPerHost: 100, Sitemaps: true, Start: start.AddDate(-1, 0, 0)}
	if !long {
		web.Hosts, web.PagesPerHost = 3, 12
	}
	clock := webtest.NewClock(start)
	web.Now = clock.Now
	server, err := webtest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.ServeHTTP(hurried{w}, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "db")
	db, err := pebblestore.Open(dir, pebblestore.Options{CacheSize: 2 << 20, MemTableSize: 512 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	connect, err := httpproto.ParseConnectTo(server.ConnectTo())
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	o := recrawl.Options{
		Agent: "recrawl-soak", Now: clock.Now, Dedup: &dedup.Options{}, Retention: recrawl.Retention{Segments: 3},
		HTTP:   httpproto.Options{ConnectTo: []httpproto.ConnectTo{connect}},
		OnPage: func(context.Context, recrawl.PageEvent) error { events++; return nil }, EveryVisit: true,
	}
	o.Fetch.Politeness.Delay, o.Fetch.Threads, o.Fetch.Politeness.ThreadsPerHost, o.Fetch.Following.MaxRedirects, o.Fetch.Following.Depth = -1, 32, 4, 2, 1
	o.Fetch.Politeness.MaxFailures, o.Fetch.Politeness.FailureDelay = -1, -1
	o.Generate.TopN, o.Invert.MaxInlinks = 400, 5
	o.Update.VisitMeta, o.Update.Sweep.Orphans, o.Update.Sweep.PurgeGone = true, true, true
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	began, rounds, visits := time.Now(), 0, 0
	warm := 0
	if long {
		warm = warmRounds
	}
	var all, settled []gauge
	for n := 0; ; n++ {
		if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n%8 == 7 {
			if _, err := c.ReadSitemaps(t.Context(), recrawl.SitemapOptions{KnownHosts: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := hoststat.Run(t.Context(), db.Crawl(), db.Hosts(), hoststat.Options{Now: clock.Now}); err != nil {
				t.Fatal(err)
			}
		}
		rounds += r.Rounds
		visits += r.Visited()
		clock.Advance(6 * time.Hour)
		if n < warm {
			began = time.Now()
			continue
		}
		took := time.Since(began)
		if len(all) == 0 || took-all[len(all)-1].at > *soak/120 {
			g := measure(t, dir)
			g.at, g.rounds, g.visits = took, rounds, visits
			all = append(all, g)
			if long {
				t.Logf("%6.0f s: %7d rounds, %8d visits, heap %6.2f MB, anon %6.1f MB, rss %6.1f MB, %3.0f goroutines, %3.0f fds, disk %6.2f MB in %3.0f files, database %6.2f MB, segments %6.2f MB",
					took.Seconds(), g.rounds, g.visits, g.heap/1e6, g.anon/1e6, g.rss/1e6, g.goroutines, g.fds, g.disk/1e6, g.files, g.database/1e6, g.segments/1e6)
			}
		}
		if long && took >= *soak/60*time.Duration(len(settled)+1) {
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			g := measure(t, dir)
			for range 50 { // tables that were replaced go a little later
				g.tables = min(g.tables, measure(t, dir).tables)
			}
			g.at = took
			settled = append(settled, g)
			t.Logf("%6.0f s: compacted: tables %6.3f MB; %s", took.Seconds(), g.tables/1e6, count(t, db))
		}
		if took >= *soak && n >= 20 {
			break
		}
	}
	if events == 0 || visits == 0 {
		t.Error("nothing was crawled")
	}
	first, last := all[len(all)/3], all[len(all)-1]
	if !long {
		// Within a second nothing is flat, but something left by every round would show.
		if last.goroutines > first.goroutines+20 || last.fds > first.fds+30 {
			t.Errorf("%v goroutines and %v fds became %v and %v", first.goroutines, first.fds, last.goroutines, last.fds)
		}
		return
	}
	for _, q := range []struct {
		name  string
		in    []gauge
		of    func(gauge) float64
		limit float64 // % an hour
	}{
		{"heap", all, func(g gauge) float64 { return g.heap }, 1},
		{"goroutines", all, func(g gauge) float64 { return g.goroutines }, 1},
		{"fds", all, func(g gauge) float64 { return g.fds }, 1},
		{"anon", all, func(g gauge) float64 { return g.anon }, math.Inf(1)},
		{"rss", all, func(g gauge) float64 { return g.rss }, math.Inf(1)},
		{"disk", all, func(g gauge) float64 { return g.disk }, math.Inf(1)},
		{"database", all, func(g gauge) float64 { return g.database }, math.Inf(1)},
		{"tables, compacted", settled, func(g gauge) float64 { return g.tables }, 5},
		{"files", all, func(g gauge) float64 { return g.files }, math.Inf(1)},
	} {
		slope, sure := trend(q.in[len(q.in)/3:], q.of)
		t.Logf("%s: %+.2f %% an hour ± %.2f", q.name, slope, 2*sure)
		if slope-2*sure > q.limit {
			t.Errorf("%s grows by %.2f ± %.2f %% an hour, more than %v", q.name, slope, 2*sure, q.limit)
		}
	}
}

// count says what is in the databases.
func count(t *testing.T, db *pebblestore.DB) string {
	t.Helper()
	var records, meta, hosts, targets, inlinks int
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		records, meta = records+1, meta+len(d.Meta.Encoded())
	}
	for _, err := range db.Hosts().Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		hosts++
	}
	for e, err := range db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		targets, inlinks = targets+1, inlinks+len(e.Inlinks)
	}
	return fmt.Sprintf("%d records with %d bytes of metadata, %d hosts, %d inlinks of %d pages", records, meta, hosts, inlinks, targets)
}

// hurried asks for no patience: a soak has no time.
type hurried struct{ http.ResponseWriter }

func (w hurried) WriteHeader(status int) {
	w.Header().Del("Retry-After")
	w.ResponseWriter.WriteHeader(status)
}

// trend fits a line, and returns its slope in percent of the mean an hour, with the
// standard error.
func trend(all []gauge, of func(gauge) float64) (slope, sure float64) {
	n := float64(len(all))
	if n < 3 {
		return 0, math.Inf(1)
	}
	var mx, my float64
	for _, g := range all {
		mx += g.at.Hours() / n
		my += of(g) / n
	}
	var sxy, sxx, rest float64
	for _, g := range all {
		x := g.at.Hours() - mx
		sxy += x * (of(g) - my)
		sxx += x * x
	}
	b := sxy / sxx
	for _, g := range all {
		e := of(g) - my - b*(g.at.Hours()-mx)
		rest += e * e
	}
	return 100 * b / my, 100 * math.Sqrt(rest/(n-2)/sxx) / my
}

// measure looks at the process and the directory.
func measure(t *testing.T, dir string) (g gauge) {
	t.Helper()
	debug.FreeOSMemory() // a collection, and what it left goes back
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.heap, g.goroutines = float64(m.HeapAlloc), float64(runtime.NumGoroutine())
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		g.fds = float64(len(open))
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			var kib float64
			if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
				g.rss = kib * 1024
			}
			if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kib); n == 1 {
				// The profiler has a row for each stack that it has ever seen allocate.
				g.anon = kib*1024 - float64(m.BuckHashSys)
			}
		}
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // compactions go on
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		size := float64(info.Size())
		g.disk += size
		g.files++
		if strings.Contains(name[len(dir):], "segments") {
			g.segments += size
		} else {
			g.database += size
		}
		if strings.HasSuffix(name, ".sst") {
			g.tables += size
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
