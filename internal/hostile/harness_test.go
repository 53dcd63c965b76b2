package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// TestMain keeps quiet what net/http has to say about servers like these.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	flag.Parse()
	if *poor != "" {
		if err := crawlPoorly(*poor); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A row is one kind of trouble.
type row struct {
	id string
	// input, outcome and figure are published.
	input, outcome, figure string
	sites                  []site
	// domain is what the names of the sites end in, instead of "id.test".
	domain string
	// seeds are injected in addition to those of the sites. "{name}" stands for the port of
	// the site of that name.
	seeds []string
	// edit changes what the crawl begins with.
	edit func(*crawl)
	// pages are those of each honest host: 8, unless the row keeps the processor
	// busy for so long that they would be over too soon.
	pages int
	// interrupt has runs that are cancelled, each after a time, before the last. The
	// rate of the honest hosts does not count then.
	interrupt []time.Duration
	// more is how many crawls are made before the last one. The rate of the honest
	// hosts does not count then, either.
	more int
	// during, if not nil, is called with the crawler before it runs, and what it returns after that.
	during func(testing.TB, *crawl, *recrawl.Crawler) (stop func())
	// alone is a different test, instead of a crawl together with an honest site.
	alone func(*testing.T)
	// check demands the figure.
	check func(testing.TB, *crawl)
}

// A site is one hostile server, and what is wanted of the visit to its page "/".
type site struct {
	name   string
	scheme string // "http" unless given; "h2" is https over HTTP/2
	handle func(*conn)
	// silent sites are no seeds.
	silent    bool
	code      protocol.Code // any, if zero
	reason    string
	truncated bool
	body      int // bytes; any, if zero
}

// Limits of the crawls, and what they have to be good for.
const (
	workers   = 8
	maxBytes  = 256 << 10
	timeLimit = 2 * time.Second
	pause     = 20 * time.Millisecond // between two requests to a host
)

// A crawl is one run of a row.
type crawl struct {
	t       testing.TB
	web     *webtest.Web
	host    map[string]string // of a site
	servers map[string]*server
	db      memstore.DB
	http    httpproto.Options
	opts    recrawl.Options
	seeds   []string

	visits  map[string][]segment.Visit
	memory  uint64 // most in use
	took    time.Duration
	client  *httpproto.Client
	mu      sync.Mutex
	slowest time.Duration // of the requests
}

// url returns the URL of the page "/" of a site.
func (c *crawl) url(s site) string {
	scheme := "http"
	if s.scheme != "" {
		scheme = "https"
	}
	return scheme + "://" + c.host[s.name] + "/"
}

// port returns the port of a site.
func (c *crawl) port(name string) string {
	_, port, _ := net.SplitHostPort(c.servers[name].addr)
	return port
}

// visit returns the last visit to a URL, which there must be.
func (c *crawl) visit(t testing.TB, url string) segment.Visit {
	t.Helper()
	all := c.visits[url]
	if len(all) == 0 {
		t.Errorf("%s was not visited", url)
		return segment.Visit{}
	}
	return all[len(all)-1]
}

// Fetch makes the crawl a protocol that watches how long its client takes.
func (c *crawl) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	start := time.Now()
	r, err := c.client.Fetch(ctx, req)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, time.Since(start))
	return r, err
}

// honest returns a web of two hosts on which all goes well.
func honest(pages int) *webtest.Web {
	if pages == 0 {
		pages = 8
	}
	return &webtest.Web{Hosts: 2, PagesPerHost: pages, WordsPerPage: 50, Calm: true}
}

// prepare starts the servers of a row and returns its crawl, and what stops them.
func prepare(t testing.TB, r row) (*crawl, func()) {
	t.Helper()
	c := &crawl{t: t, web: honest(r.pages), host: map[string]string{}, servers: map[string]*server{}, visits: map[string][]segment.Visit{}}
	good, err := webtest.Serve(c.web)
	if err != nil {
		t.Fatal(err)
	}
	stops := []func(){func() { good.Close() }}
	c.http = httpproto.Options{
		Agent: "recrawl-hostile", Limits: httpproto.Limits{MaxBytes: maxBytes, TimeLimit: timeLimit, ConnectTimeout: timeLimit / 2, TLSTimeout: timeLimit / 2, HeaderTimeout: timeLimit / 2, RateWindow: timeLimit / 6},
		RootCAs: trusted().pool,
		// No query leaves this machine.
		Resolver: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
	connect := func(host, addr string) {
		a := netip.MustParseAddrPort(addr)
		c.http.ConnectTo = append(c.http.ConnectTo, httpproto.ConnectTo{Host: host, ToHost: a.Addr().String(), ToPort: a.Port()})
	}
	for i := range c.web.Hosts {
		connect(c.web.Host(i), good.Addr)
	}
	var places []string
	for _, s := range r.sites {
		handle := s.handle
		host := s.name + "." + strings.ToLower(r.id) + ".test"
		if r.domain != "" {
			host = s.name + "." + r.domain
		}
		switch s.scheme {
		case "https":
			handle = overTLS(host, handle)
		case "h2":
			handle = overHTTP2(host, handle)
		}
		srv, stop := serve(t, handle)
		stops = append(stops, stop)
		c.host[s.name], c.servers[s.name] = host, srv
		connect(host, srv.addr)
		if !s.silent {
			c.seeds = append(c.seeds, c.url(s))
		}
		_, port, _ := net.SplitHostPort(srv.addr)
		places = append(places, "{"+s.name+"}", port)
	}
	for _, u := range r.seeds {
		c.seeds = append(c.seeds, strings.NewReplacer(places...).Replace(u))
	}
	// What has no entry is resolved, and guarded.
	c.http.ConnectTo = append(c.http.ConnectTo, httpproto.ConnectTo{})
	c.opts = recrawl.Options{
		Agent: "recrawl-hostile", Protocol: c, Run: recrawl.RunOptions{Rounds: 8},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: pause, MaxWait: 4 * pause, MaxCrawlDelay: 2 * pause}, Threads: workers, OnVisit: func(v segment.Visit, _ fetch.Progress) {
			c.visits[v.URL] = append(c.visits[v.URL], v)
		}},
	}
	if r.edit != nil {
		r.edit(c)
	}
	return c, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// hasty is for rows that wait for a limit.
func hasty(c *crawl) {
	const limit = 300 * time.Millisecond
	c.http.Limits.TimeLimit, c.http.Limits.ConnectTimeout, c.http.Limits.TLSTimeout, c.http.Limits.HeaderTimeout, c.http.Limits.RateWindow = limit, limit, limit, limit, limit
}

func (c *crawl) stores() recrawl.Stores {
	return recrawl.Stores{Crawl: c.db.Crawl(), Hosts: c.db.Hosts(), Links: c.db.Links(), Segments: c.db.Segments()}
}

// run crawls until nothing is due.
func (c *crawl) run(ctx context.Context, t testing.TB, during func(testing.TB, *crawl, *recrawl.Crawler) func()) error {
	t.Helper()
	var err error
	if c.client, err = httpproto.New(c.http); err != nil {
		t.Fatal(err)
	}
	defer c.client.Close()
	crawler, err := recrawl.New(c.stores(), c.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer crawler.Close()
	// The honest pages are all in the first round, so that their rate is that of
	// one fetch and not of the rounds.
	if _, err := crawler.Inject(t.Context(), slices.Concat(c.seeds, slices.Collect(c.web.URLs()))...); err != nil {
		t.Fatal(err)
	}
	stop := func() {}
	if during != nil {
		stop = during(t, c, crawler)
	}
	debug.FreeOSMemory()
	done := make(chan bool)
	watched := make(chan uint64)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			most = max(most, inUse())
			select {
			case <-tick.C:
			case <-done:
				watched <- most
				return
			}
		}
	}()
	start := time.Now()
	_, err = crawler.Run(ctx)
	c.took = time.Since(start)
	stop()
	close(done)
	c.memory = <-watched
	return err
}

// inUse returns the memory that the process has from the system and uses.
func inUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// rate returns the pages a second at which the honest hosts were asked: that of
// the slower one; zero if not all of its pages were found since an answer came too
// late. A page that was cancelled may have been asked for again.
func (c *crawl) rate(t testing.TB, again int) float64 {
	t.Helper()
	rate := 0.0
	for i := range c.web.Hosts {
		l := c.web.HostLog(c.web.Host(i))
		n := l.Requests - l.Robots
		if n < c.web.PagesPerHost && c.stalled(c.web.Host(i)) {
			t.Logf("%d requests to %s, which did not answer in time", n, c.web.Host(i))
			return 0
		}
		if n < c.web.PagesPerHost || n > c.web.PagesPerHost+again {
			t.Errorf("%d requests to %s, want %d", n, c.web.Host(i), c.web.PagesPerHost)
		}
		if r := float64(l.Requests-1) / l.Last.Sub(l.First).Seconds(); rate == 0 || r < rate {
			rate = r
		}
	}
	return rate
}

// stalled reports whether a visit to a host ended with a time limit. The honest ones
// answer at once; but the limits of some rows are short, and a machine that is busy with
// something else may not get round to it.
func (c *crawl) stalled(host string) bool {
	for url, visits := range c.visits {
		if strings.HasPrefix(url, "http://"+host+"/") && slices.ContainsFunc(visits, func(v segment.Visit) bool {
			return strings.Contains(v.Outcome.Reason, "timeout: ") // of robots.txt, too
		}) {
			return !*strict
		}
	}
	return false
}

// files counts the open files of the process; zero if that is unknown.
func files() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}

// soon reports whether ok holds within two seconds, or as long as is patient.
func soon(ok func() bool) bool {
	for end := time.Now().Add(patience(2 * time.Second)); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// crawlRow crawls a row once, and demands all budgets except B4: it returns the rate of the
// honest hosts.
func crawlRow(t testing.TB, r row) (*crawl, float64) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), files()
	c, stop := prepare(t, r)
	for _, d := range r.interrupt {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		if err := c.run(ctx, t, r.during); !errors.Is(err, context.DeadlineExceeded) || c.took > d+patience(200*time.Millisecond) {
			t.Errorf("cancelled after %v: %v after %v", d, err, c.took)
		}
		cancel()
	}
	if err := c.run(t.Context(), t, r.during); err != nil {
		t.Errorf("the crawl failed: %v", err)
	}
	if most := uint64(96<<20 + workers*2*c.http.Limits.MaxBytes + 2*2*c.opts.Fetch.Sitemaps.MaxBytes); c.memory > most {
		t.Errorf("B1: %d MiB in use, want at most %d", c.memory>>20, most>>20)
	}
	if d := c.slowest; d > c.http.Limits.TimeLimit+patience(time.Second) {
		t.Errorf("B2: a visit took %v, its limit is %v", d, c.http.Limits.TimeLimit)
	}
	for name, s := range c.servers {
		if !soon(func() bool { return s.open.Load() == 0 }) {
			t.Errorf("B3: %d connections to %s are open", s.open.Load(), name)
		}
	}
	stop()
	if !soon(func() bool { return runtime.NumGoroutine() <= goroutines && files() <= descriptors }) {
		buf := make([]byte, 1<<20)
		t.Errorf("B3: %d goroutines and %d files, before %d and %d\n%s", runtime.NumGoroutine(), files(), goroutines, descriptors, buf[:runtime.Stack(buf, true)])
	}
	c.checkStores(t)
	for _, s := range r.sites {
		if s.silent {
			continue
		}
		v := c.visit(t, c.url(s))
		if s.code != 0 && v.Outcome.Code != s.code || v.Outcome.Code != protocol.Success && v.Outcome.Reason == "" && !v.Outcome.Code.Redirect() && v.Outcome.Code != protocol.NotModified {
			t.Errorf("B6: %s: %v %d %q, want %v", s.name, v.Outcome.Code, v.Outcome.Status, v.Outcome.Reason, s.code)
		}
		if s.reason != "" && v.Outcome.Reason != s.reason {
			t.Errorf("%s: %q, want %q", s.name, v.Outcome.Reason, s.reason)
		}
		if s.code == protocol.Success && v.Truncated != s.truncated {
			t.Errorf("%s: truncated %v, want %v", s.name, v.Truncated, s.truncated)
		}
		if n := len(c.body(t, c.url(s))); s.body != 0 && n != s.body {
			t.Errorf("%s: a body of %d bytes, want %d", s.name, n, s.body)
		}
	}
	if r.check != nil {
		r.check(t, c)
	}
	return c, c.rate(t, len(r.interrupt))
}

// dump returns all records and links, whose times are those of the clock of the
// crawl.
func (c *crawl) dump(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for d, err := range c.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		raw, err2 := d.AppendBinary(nil)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %x\n", d.URL, d.Status, raw)
	}
	for e, err := range c.db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %q\n", e.URL, e.Inlinks)
	}
	return b.String()
}

// checkStores demands that everything stored can be read, that nothing is half done, and
// that each URL of a fetch list has a visit and a record (B5, B6).
func (c *crawl) checkStores(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	records := map[string]bool{}
	for d, err := range c.db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			t.Fatalf("B5: %v", err)
		}
		if records[d.URL] || d.URL == "" || d.LeasedBy != "" {
			t.Errorf("B5: record %q, leased by %q", d.URL, d.LeasedBy)
		}
		records[d.URL] = true
	}
	for e, err := range c.db.Links().Scan(ctx, crawldb.Range{}) {
		if err != nil || len(e.Inlinks) == 0 {
			t.Errorf("B5: link db: %q %v", e.URL, err)
		}
	}
	for name, err := range c.db.Segments().List(ctx) {
		if err != nil {
			t.Fatalf("B5: %v", err)
		}
		visited := map[string]bool{}
		for v := range stored[segment.Visit](t, c, name) {
			visited[v.URL] = true
			if strings.ContainsFunc(v.Outcome.Reason, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("B6: reason %q is not one line of ASCII", v.Outcome.Reason)
			}
		}
		for d := range stored[crawldb.Datum](t, c, name) {
			if !visited[d.URL] || !records[d.URL] {
				t.Errorf("B6: %s: visited %v, recorded %v", d.URL, visited[d.URL], records[d.URL])
			}
		}
		for range stored[segment.Text](t, c, name) {
		}
		for range stored[segment.Parse](t, c, name) {
		}
		for range stored[segment.Data](t, c, name) {
		}
	}
}

// stored yields the records of one part of a segment.
func stored[T segment.Record](t testing.TB, c *crawl, name string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for rec, err := range segment.Records[T](context.Background(), c.db.Segments(), name) {
			if err != nil {
				t.Errorf("B5: %s: %v", name, err)
				return
			}
			if !yield(rec) {
				return
			}
		}
	}
}

// last returns the last record of a URL in one part of the segments.
func last[T segment.Record](t testing.TB, c *crawl, is func(*T) bool) (found T, ok bool) {
	for name := range c.db.Segments().List(context.Background()) {
		for rec := range stored[T](t, c, name) {
			if is(&rec) {
				found, ok = rec, true
			}
		}
	}
	return found, ok
}

// body returns the stored body of a page.
func (c *crawl) body(t testing.TB, url string) []byte {
	rec, _ := last(t, c, func(r *page.Content) bool { return r.URL == url })
	return rec.Body
}

// parsed returns what was found in a page.
func (c *crawl) parsed(t testing.TB, url string) page.Parsed {
	t.Helper()
	rec, ok := last(t, c, func(r *segment.Data) bool { return r.URL == url })
	if !ok {
		t.Errorf("%s was not parsed", url)
	}
	return rec.Parsed
}

// record returns the record of a URL in the crawl db.
func (c *crawl) record(url string) (crawldb.Datum, bool) {
	d, err := c.db.Crawl().Get(context.Background(), url)
	return d, err == nil
}

func describe(c *crawl, rate float64) string {
	var accepted, written int64
	requests := 0
	for _, s := range c.servers {
		accepted += s.accepted.Load()
		written += s.written.Load()
		requests += len(s.seen)
	}
	return fmt.Sprintf("%d MiB\t%.2f s\t%d connections\t%d requests\t%d KiB written\tslowest %d ms\thonest %.1f/s",
		c.memory>>20, c.took.Seconds(), accepted, requests, written>>10, c.slowest.Milliseconds(), rate)
}
