package pebblestore_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/pebblestore"
	folding "github.com/recrawl/recrawl/update"
)

var crawlYears = flag.Int("years", 2, "years of TestYears; ten show what grows")

const (
	oneDay  = 24 * time.Hour
	oneYear = 365 * oneDay
)

// yearsBegin has the end of 31 bits of seconds among its years.
var yearsBegin = time.Date(2035, 3, 1, 0, 0, 0, 0, time.UTC)

// aging is a web in which everything disappears some time. Each of its sites moves to another
// domain every 14 months; for half a year the old one redirects, and then it is dead. A page
// lives for some months under its URL, changes every few weeks, and is replaced by another.
// After half a year one site is down for a year, and one forbids all in its robots.txt.
type aging struct {
	sites, slots int
	now          func() time.Time

	mu    sync.Mutex
	last  map[string]time.Time // visit of a page by site and slot that was answered
	asked int
}

func (a *aging) hash(parts ...any) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	return time.Duration(h.Sum64() % 1000)
}

// epoch returns which name of a site it is, and when that began.
func (a *aging) epoch(site int, now time.Time) (n int, began time.Time) {
	const each = 425 * oneDay
	first := yearsBegin.Add(-a.hash("site", site) * each / 1000)
	n = int(now.Sub(first) / each)
	return n, first.Add(time.Duration(n) * each)
}

func (a *aging) host(site, epoch int) string {
	if site < 2 { // which have troubles of their own
		epoch = 0
	}
	return fmt.Sprintf("www.site%dx%d.com", site, epoch)
}

func (a *aging) generation(site, slot int, now time.Time) int {
	life := 100*oneDay + a.hash("life", site, slot)*oneDay/4
	return int(now.Sub(yearsBegin.Add(-a.hash("born", site, slot)*oneDay)) / life)
}

func (a *aging) url(site, slot int, now time.Time) string {
	epoch, _ := a.epoch(site, now)
	return fmt.Sprintf("http://%s/%d/%d.html", a.host(site, epoch), slot, a.generation(site, slot, now))
}

func (a *aging) start(site int, now time.Time) string {
	epoch, _ := a.epoch(site, now)
	return "http://" + a.host(site, epoch) + "/"
}

// troubled says that it is the year of the sites that are down, or forbid.
func troubled(now time.Time) bool {
	return !now.Before(yearsBegin.Add(oneYear/2)) && now.Before(yearsBegin.Add(3*oneYear/2))
}

// Fetch answers as of the moment.
func (a *aging) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	fails := func(code protocol.Code, status int, to string) (protocol.Response, error) {
		return protocol.Response{Outcome: protocol.Outcome{Code: code, Status: status, Location: to}}, nil
	}
	brings := func(kind, body string) (protocol.Response, error) {
		return protocol.Response{
			Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Bytes: int64(len(body)),
			Content: page.Content{URL: r.URL, Type: kind, Body: []byte(body)},
		}, nil
	}
	var site, epoch int
	host, path, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), "/")
	if _, err := fmt.Sscanf(host, "www.site%dx%d.com", &site, &epoch); err != nil || site >= a.sites {
		return fails(protocol.Failed, 0, "")
	}
	is, began := a.epoch(site, now)
	if site < 2 {
		is = 0
	}
	switch {
	case site == 0 && troubled(now):
		return fails(protocol.Failed, 0, "")
	case epoch == is-1 && now.Sub(began) < oneYear/2:
		if path == "robots.txt" {
			return fails(protocol.NotFound, 404, "")
		}
		return fails(protocol.MovedPerm, 301, "http://"+a.host(site, is)+"/"+path)
	case epoch != is:
		return fails(protocol.Failed, 0, "") // the name is gone
	case path == "robots.txt":
		body := "User-agent: *\nAllow: /\nSitemap: http://" + host + "/sitemap.xml\n"
		if site == 1 && troubled(now) {
			body = "User-agent: *\nDisallow: /\n"
		}
		return brings("text/plain", body)
	}
	var b strings.Builder
	switch {
	case path == "sitemap.xml":
		b.WriteString("<urlset>")
		for slot := range a.slots {
			fmt.Fprintf(&b, "<url><loc>%s</loc><lastmod>%s</lastmod></url>", a.url(site, slot, now), now.Add(-a.hash(slot)*oneDay/30).Format(time.DateOnly))
		}
		return brings("application/xml", b.String()+"</urlset>")
	case path == "":
		fmt.Fprintf(&b, "<title>Site %d</title><p>All that there is here.</p>", site)
		for slot := range a.slots {
			fmt.Fprintf(&b, "<a href='%s'>page %d</a> ", a.url(site, slot, now), slot)
		}
		for other := range a.sites {
			fmt.Fprintf(&b, "<a href='%s'>site %d</a> ", a.start(other, now), other)
		}
		a.last[fmt.Sprint(site)] = now
		return brings("text/html", b.String())
	}
	var slot, generation int
	if _, err := fmt.Sscanf(path, "%d/%d.html", &slot, &generation); err != nil || slot >= a.slots || generation != a.generation(site, slot, now) {
		return fails(protocol.NotFound, 404, "")
	}
	version := now.Sub(yearsBegin) / (10*oneDay + a.hash("change", site, slot)*oneDay/10)
	fmt.Fprintf(&b, "<title>%d</title><p>Page %d of site %d, version %d.</p><a href='/'>start</a> <a href='%s'>next</a>",
		slot, slot, site, version, a.url(site, (slot+1)%a.slots, now))
	a.last[fmt.Sprint(site, "/", slot)] = now
	return brings("text/html", b.String())
}

// mostRounds of one run say that it has no end.
const mostRounds = 200

// gauges are what is measured of a crawl at a time.
type gauges struct {
	rows, size       map[string]int // of the tables, compacted, and of marks by kind
	records          map[crawldb.Status]int
	all              int // records
	heap, goroutines int
	segments, hosts  int
	inlinks, targets int
	report           int // bytes
	asked            int
}

// TestYears crawls a web in which everything disappears for years, with default settings except
// for those mentioned, and looks at what is left: nothing may grow with what is gone, unless the
// crawl keeps it.
func TestYears(t *testing.T) {
	testlevel.SkipInRace(t)
	for _, test := range []struct {
		name string
		set  func(*recrawl.Options)
		// keeps says that what is gone is kept; quick that the quick form tests it.
		keeps, quick bool
	}{
		{"default", func(o *recrawl.Options) { o.Schedule = &schedule.Default{} }, true, false},
		{"learned, by rank", func(o *recrawl.Options) {
			o.Schedule, o.Scoring = schedule.Learned{Budget: 60}, scoring.PageRank{}
		}, true, false},
		{"purged", func(o *recrawl.Options) {
			o.Schedule, o.Scoring = &schedule.Default{}, scoring.Chain{&scoring.OPIC{}, scoring.Orphan{}}
			o.Update.Sweep = folding.SweepOptions{Orphans: true, PurgeOrphans: true, PurgeGone: true}
		}, false, false},
		{"learned, by rank, purged", func(o *recrawl.Options) {
			o.Schedule, o.Scoring = schedule.Learned{Budget: 60}, scoring.Chain{scoring.PageRank{}, scoring.Orphan{}}
			o.Update.Sweep = folding.SweepOptions{Orphans: true, PurgeOrphans: true, PurgeGone: true}
		}, false, true},
	} {
		if *crawlYears <= 2 && !testlevel.Exhaustive && !test.quick {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir() + "/db"
			synctest.Test(t, func(t *testing.T) { years(t, dir, test.set, test.keeps) })
		})
	}
}

func years(t *testing.T, dir string, set func(*recrawl.Options), keeps bool) {
	now := yearsBegin
	web := &aging{sites: 8, slots: 10, now: func() time.Time { return now }, last: map[string]time.Time{}}
	o := recrawl.Options{
		Agent: "recrawl-test", Protocol: web, Now: web.now, Retention: recrawl.Retention{Segments: 2}, Run: recrawl.RunOptions{Rounds: mostRounds},
		Fetch:  fetch.Options{Politeness: fetch.Politeness{Delay: -1}, Following: fetch.Following{MaxRedirects: 2}},
		OnPage: func(context.Context, recrawl.PageEvent) error { return nil },
	}
	set(&o)
	var db *pebblestore.DB
	var c *recrawl.Crawler
	end := func() {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	begin := func() {
		var err error
		if db, err = pebblestore.Open(dir, pebblestore.Options{CacheSize: 4 << 20, MemTableSize: 256 << 10}); err != nil {
			t.Fatal(err)
		}
		c, err = recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
		if err != nil {
			t.Fatal(err)
		}
	}
	begin()
	defer func() { end() }()
	if _, err := c.Inject(t.Context(), web.start(0, now), web.start(2, now)); err != nil {
		t.Fatal(err)
	}
	var total recrawl.Report
	var half, last gauges
	days := testlevel.Pick(6, 3) // between two runs
	steps := *crawlYears * 365 / days
	for n := range steps {
		now = now.Add(time.Duration(days) * oneDay)
		time.Sleep(time.Duration(days) * oneDay) // hosts have a clock of their own
		r, err := c.Run(t.Context())
		if r.Rounds >= mostRounds {
			t.Fatalf("day %d: %d rounds and no end: %+v", days*n, r.Rounds, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		total = r
		if (n*days)%183 >= days && n != steps-1 && n != steps/2 {
			continue
		}
		last = gauge(t, db, web, &total)
		if n == steps/2 {
			half = last
		}
		t.Logf("%.1f years: %+v", now.Sub(yearsBegin).Hours()/24/365, last)
		end() // of a process
		begin()
	}
	// Whatever was down, or forbidden, or moved, is followed again.
	for site := range web.sites {
		if at := web.last[fmt.Sprint(site)]; now.Sub(at) > 100*oneDay {
			t.Errorf("site %d was visited %v before the end for the last time", site, now.Sub(at))
		}
		found := 0
		for slot := range web.slots {
			if now.Sub(web.last[fmt.Sprint(site, "/", slot)]) < 100*oneDay {
				found++
			}
		}
		if found < web.slots*3/4 {
			t.Errorf("site %d: %d of %d pages were visited of late", site, found, web.slots)
		}
	}
	if last.goroutines > half.goroutines+2 || last.heap > half.heap+1<<20 || last.segments > 3 || last.report > 64<<10 {
		t.Errorf("%d goroutines, %d bytes of heap, %d segments, a report of %d bytes; half way %d, %d, %d and %d", last.goroutines, last.heap,
			last.segments, last.report, half.goroutines, half.heap, half.segments, half.report)
	}
	for kind, n := range last.rows {
		least := last.hosts // what is kept of each host, and of its domain
		switch kind {
		case "c", "d", "e", "w": // records
			least = last.all
		case "l":
			continue // keeps all links: links are never removed, see docs/design/store.md
		}
		if n > least+10 {
			t.Errorf("%d rows of %q, with %d hosts and %d records", n, kind, last.hosts, last.all)
		}
	}
	if there := web.sites * (web.slots + 2); !keeps && last.all > 3*there {
		t.Errorf("%d records of %d pages that are there", last.all, there)
	}
}

func gauge(t *testing.T, db *pebblestore.DB, web *aging, r *recrawl.Report) (g gauges) {
	t.Helper()
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.rows, g.size, err = db.Kinds(); err != nil {
		t.Fatal(err)
	}
	g.records = map[crawldb.Status]int{}
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		g.records[d.Status]++
		g.all++
	}
	for _, err := range db.Hosts().Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		g.hosts++
	}
	for e, err := range db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		g.targets, g.inlinks = g.targets+1, g.inlinks+len(e.Inlinks)
	}
	for _, err := range db.Segments().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		g.segments++
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.heap, g.goroutines, g.asked = int(m.HeapAlloc), runtime.NumGoroutine(), web.asked
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	g.report = len(text)
	return g
}
