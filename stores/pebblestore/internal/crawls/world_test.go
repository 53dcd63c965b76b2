package crawls

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
)

// world is a web and a way to crawl it, both by chance. Two worlds of one seed
// are alike; what differs between them is the chance of a variant.
type world struct {
	seed  uint64
	web   webtest.Web
	clock *webtest.Clock
	o     recrawl.Options
	seeds string        // a seed file
	days  []int         // that pass before each run but the first
	runs  int           // at least one
	ways  string        // of the options, for messages
	hop   uint64        // one page in so many redirects to another host
	odd   uint64        // one page in so many leads on by a refresh; and sitemaps and robots.txt files are odd
	fail  uint64        // one page in so many fails on a day
	down  int           // the host whose pages all fail; none if it is negative
	takes func() uint64 // how long an answer takes, in milliseconds; nil: no time

	// seedOnce injects once in a run, however often that is taken up again: a seed that
	// it has purged since would come back. seeded says that it was done.
	seedOnce, seeded bool

	mu       sync.Mutex
	asked    map[string]int // how often since it was last emptied
	inFlight int
}

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 4))
	maybe := func(n int) bool { return r.IntN(n) == 0 }
	w := &world{seed: seed, clock: webtest.NewClock(start), runs: 1 + r.IntN(3), down: -1, asked: map[string]int{}}
	var ways []string
	way := func(format string, args ...any) { ways = append(ways, fmt.Sprintf(format, args...)) }

	web := &w.web
	web.Seed, web.Hosts, web.PagesPerHost, web.LinksPerPage = seed, 1+r.IntN(7), 4+r.IntN(24), 2+r.IntN(9)
	web.WordsPerPage, web.Calm, web.Sitemaps = 8+r.IntN(40), maybe(4), maybe(2)
	if maybe(6) {
		web.HubLinks = 20
	}
	if maybe(8) {
		web.CrawlDelay = 7 * time.Second
	}
	web.Start, web.Now = start.AddDate(-1, 0, 0), w.clock.Now
	if !web.Calm {
		if maybe(2) {
			w.odd = 4 + r.Uint64N(10)
			way("odd sites")
		}
		w.hop, w.fail = 5+r.Uint64N(20), 5+r.Uint64N(30)
		if maybe(5) {
			w.down = r.IntN(web.Hosts)
		}
	}

	o := &w.o
	*o = recrawl.Options{Agent: "recrawl-test", Protocol: w, Now: w.clock.Now}
	o.Run.Rounds = []int{0, 0, 2, 4}[r.IntN(4)]
	o.Fetch.Politeness.Delay = []time.Duration{-1, 0, 700 * time.Millisecond}[r.IntN(3)]
	o.Fetch.Politeness.By = []hostdb.By{hostdb.ByHost, hostdb.ByHost, hostdb.ByDomain, hostdb.ByIP}[r.IntN(4)]
	o.Fetch.Politeness.Lookup = w.lookup
	if o.Generate.By = o.Fetch.Politeness.By; o.Generate.By == hostdb.ByIP {
		o.Generate.By = hostdb.ByHost
	}
	if maybe(2) {
		o.Fetch.Following.MaxRedirects = 1 + r.IntN(4)
		o.Fetch.Following.SkipExceeded = maybe(2)
		way("%d redirects at once", o.Fetch.Following.MaxRedirects)
	}
	if maybe(3) {
		o.Fetch.Following.Depth, o.Fetch.Following.MaxLinks, o.Fetch.Following.External = 1+r.IntN(2), r.IntN(4), maybe(2)
		way("links %d deep at once", o.Fetch.Following.Depth)
	}
	if maybe(3) {
		o.Fetch.Limits.QueueDepth = 1 + r.IntN(3)
	}
	if maybe(4) {
		o.Fetch.Links.MaxPerPage = 1 + r.IntN(8)
	}
	if maybe(4) {
		o.Fetch.Politeness.ThreadsPerHost = 2 + r.IntN(2)
		way("%d threads a host", o.Fetch.Politeness.ThreadsPerHost)
	}
	// When patience with a host ends is a matter of time.
	o.Fetch.Politeness.MaxWait, o.Fetch.Politeness.MaxFailures = 1000*time.Hour, -1
	if maybe(6) {
		o.Fetch.Politeness.RobotsRetries, o.Fetch.Politeness.RobotsWait = r.IntN(3), time.Minute
	}
	o.Fetch.Sitemaps.NoDiscovery = maybe(4)
	o.Fetch.NoContent = maybe(4)
	o.Fetch.Links.IgnoreExternal = maybe(6)
	o.ParseLater = maybe(3) && o.Fetch.Following.Depth == 0
	if maybe(2) {
		o.Generate.TopN = 5 + r.IntN(60)
	}
	if maybe(3) {
		o.Generate.MaxPerHost = 1 + r.IntN(12)
	}
	if maybe(4) {
		o.Generate.MaxPerPart = 1 + r.IntN(6)
	}
	if maybe(4) {
		o.Generate.Segments = 2 + r.IntN(3)
	}
	o.Generate.ExactTopN = maybe(3)
	if maybe(3) {
		o.Generate.Ahead = time.Duration(1+r.IntN(40)) * 24 * time.Hour
	}
	if maybe(2) {
		o.Update.FreeGrowth, o.Update.MaxGrowth = 1+r.IntN(20), 1+r.IntN(3)
		way("growth %d free, %d a visit", o.Update.FreeGrowth, o.Update.MaxGrowth)
	}
	if maybe(5) {
		o.Update.MaxInlinks = 1 + r.IntN(5)
	}
	o.Update.Sweep.PurgeGone, o.Update.Sweep.Orphans = maybe(5), maybe(5)
	if maybe(3) {
		o.Dedup = &dedup.Options{Group: dedup.Group(r.IntN(3))}
		way("dedup")
	}
	switch r.IntN(4) {
	case 0:
		o.Schedule = &schedule.Default{}
	case 1:
		o.Schedule = &schedule.Adaptive{Default: schedule.Default{DefaultInterval: 24 * time.Hour}}
	case 2:
		// The last are a bound that holds a crawl back, and one that does not.
		budget := []float64{0, -1, 60, 1000}[r.IntN(4)]
		o.Schedule = schedule.Learned{Default: schedule.Default{DefaultInterval: 3 * 24 * time.Hour}, Budget: budget}
		way("learned, %v visits a day", budget)
	}
	switch r.IntN(4) {
	case 0:
		o.Scoring = &scoring.Depth{}
	case 1:
		o.Scoring = scoring.Chain{&scoring.OPIC{}, &scoring.Depth{}}
	case 2:
		o.Scoring = scoring.PageRank{}
		o.Rank.Growth = []float64{0, 0.3, -1}[r.IntN(3)]
		way("by PageRank anew at %v", o.Rank.Growth)
	}
	if maybe(4) {
		o.Generate.HostLimit = func(h *hostdb.Host) (float64, error) { return float64(3 + h.Stats.Fetched%7), nil }
		o.Generate.HostDelay = func(h *hostdb.Host) (float64, error) { return float64(h.Stats.Redirected % 3 * 400), nil }
	}
	if maybe(5) {
		o.Generate.Where = func(d *crawldb.Datum) (bool, error) {
			v, _ := d.Meta.Get("kind")
			return v != "3" || !d.LastFetch.IsZero(), nil
		}
	}
	o.Update.MaxRetries = r.IntN(3)
	if maybe(4) {
		o.Fetch.Politeness.HostRule = func(string) fetch.HostRule { return fetch.HostRule{Requests: 1000} }
	}
	if maybe(3) {
		o.Signature = signature.TextProfile{}
	}
	if maybe(3) {
		o.Retention.Segments = 1 + r.IntN(3)
	}
	if maybe(6) {
		o.Generate.NutchCompat, o.Fetch.NutchCompat, o.Update.NutchCompat = true, true, true
		o.Invert.NutchCompat = maybe(2)
		way("as Nutch")
	}
	for range w.runs - 1 {
		w.days = append(w.days, 1+r.IntN(40))
	}

	// A part of the pages are seeds, so that a crawl has something to do at once.
	var lines []string
	for u := range web.URLs() {
		if strings.HasSuffix(u, "test/") || maybe(5) {
			lines = append(lines, fmt.Sprintf("%s\tnutch.score=%d\tkind=%d", u, 1+r.IntN(3), r.IntN(4)))
		}
	}
	w.seeds = strings.Join(lines, "\n")
	w.ways = fmt.Sprintf("seed %d: %d runs, %d hosts of %d pages, delay %v, by %v, %s", seed, w.runs, web.Hosts, web.PagesPerHost, o.Fetch.Politeness.Delay, o.Fetch.Politeness.By, strings.Join(ways, ", "))
	return w
}

// A variant is what must make no difference.
type variant struct {
	threads, procs int
	seed           uint64 // of latencies and of the order of seeds; zero: none
	engine         engineKind
}

func (v variant) String() string {
	return fmt.Sprintf("%v, %d threads, GOMAXPROCS %d, shuffled by %d", v.engine, v.threads, v.procs, v.seed)
}

// vary makes a world one of a variant.
func (w *world) vary(v variant) {
	w.o.Fetch.Threads = v.threads
	if v.seed == 0 {
		return
	}
	r := rand.New(rand.NewPCG(v.seed, 5))
	lines := strings.Split(w.seeds, "\n")
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	w.seeds = strings.Join(lines, "\n")
	w.takes = func() uint64 { // called with w.mu held
		switch n := r.IntN(100); {
		case n < 10:
			return 0
		case n < 95:
			return r.Uint64N(900)
		}
		return r.Uint64N(20_000)
	}
}

// inject puts the seeds in.
func (w *world) inject(ctx context.Context, c *recrawl.Crawler) error {
	_, err := c.InjectSeeds(ctx, inject.Read(strings.NewReader(w.seeds)), inject.Options{})
	return err
}

func hash(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	n := hash(w.seed, "ip", host)
	if n%19 == 0 && !w.web.Calm {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(n % 4)})}, nil
}

// Fetch asks the web, and makes some trouble of its own: which, depends on the URL
// and the recorded day alone. How long it takes depends on the variant.
func (w *world) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	var wait time.Duration
	w.mu.Lock()
	if w.takes != nil {
		wait = time.Duration(w.takes()) * time.Millisecond
	}
	w.inFlight++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.inFlight--
		w.mu.Unlock()
	}()
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return protocol.Response{}, ctx.Err()
		}
	} else {
		runtime.Gosched()
	}
	w.mu.Lock()
	w.asked[r.URL]++
	w.mu.Unlock()
	day := w.clock.Now().Format(time.DateOnly)
	host := crawldb.Host(r.URL)
	n := hash(w.seed, r.URL)
	text := func(kind, body string) (protocol.Response, error) {
		resp := protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Bytes: int64(len(body))}
		resp.Content = page.Content{URL: r.URL, Type: kind, Body: []byte(body)}
		return resp, nil
	}
	outcome := func(o protocol.Outcome) (protocol.Response, error) { return protocol.Response{Outcome: o}, nil }
	switch {
	case w.down >= 0 && host == w.web.Host(w.down):
		return outcome(protocol.Outcome{Code: protocol.Failed, Reason: "down"})
	case w.fail > 0 && hash(w.seed, r.URL, day)%w.fail == 0:
		switch n % 3 {
		case 0:
			return outcome(protocol.Outcome{Code: protocol.Busy, Status: 503, RetryAfter: time.Duration(n%100) * time.Second})
		case 1:
			panic("by chance")
		}
		return outcome(protocol.Outcome{Code: protocol.Failed, Reason: "reset"})
	case w.odd > 0 && strings.HasSuffix(r.URL, "/robots.txt"):
		switch hash(w.seed, "robots", host) % 6 {
		case 0: // that of another host holds
			return outcome(protocol.Outcome{Code: protocol.MovedTemp, Status: 302, Location: "http://" + w.web.Host(0) + "/robots.txt"})
		case 1:
			body := "User-agent: *\nDisallow: /private/\n"
			for i := range 3 {
				body += fmt.Sprintf("Sitemap: http://%s/maps/%d.xml\n", host, i)
			}
			return text("text/plain", body)
		}
	case w.odd > 0 && strings.HasSuffix(r.URL, ".xml") && strings.Contains(r.URL, "/maps/"):
		return text("application/xml", w.sitemap(r.URL, host, day))
	case w.odd > 0 && n%w.odd == 0:
		to := w.anyURL(hash(w.seed, "refresh", r.URL))
		return text("text/html", fmt.Sprintf("<meta http-equiv=refresh content='0; url=%s'><p>%d <a href='%s'>on</a>", to, n%3, to))
	case w.hop > 0 && n%w.hop == 0 && !strings.HasSuffix(r.URL, "robots.txt"):
		to := w.anyURL(hash(w.seed, "to", r.URL))
		return outcome(protocol.Outcome{Code: protocol.MovedTemp, Status: 302, Location: to})
	}
	resp, err := w.web.Protocol().Fetch(ctx, r)
	resp.Elapsed = time.Duration(n%2000) * time.Millisecond // which a record may keep
	return resp, err
}

// sitemap is an index, or a sitemap that tells the truth on some days.
func (w *world) sitemap(url, host, day string) string {
	var b strings.Builder
	if strings.HasSuffix(url, "/0.xml") {
		b.WriteString("<sitemapindex>")
		for i := range 4 {
			fmt.Fprintf(&b, "<sitemap><loc>http://%s/maps/%d.xml</loc></sitemap>", host, i+1)
		}
		return b.String() + "</sitemapindex>"
	}
	b.WriteString("<urlset>")
	for i := range hash(url) % 8 {
		u := w.anyURL(hash(url, i))
		if i%3 > 0 {
			u = fmt.Sprintf("http://%s/pages/%d.html", host, hash(url, i)%uint64(w.web.PagesPerHost))
		}
		fmt.Fprintf(&b, "<url><loc>%s</loc><lastmod>%s</lastmod><priority>0.%d</priority></url>", u, day, i)
	}
	return b.String() + "</urlset>"
}

func (w *world) anyURL(n uint64) string {
	i := n % uint64(w.web.Hosts*w.web.PagesPerHost)
	for u := range w.web.URLs() {
		if i == 0 {
			return u
		}
		i--
	}
	return ""
}
