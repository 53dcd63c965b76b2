// Package webtest is a synthetic web whose pages change on a clock, for tests, benchmarks
// and demonstrations: it knows the results of a perfect crawler. It has no hostile
// pages (see internal/hostile). Start with [Web].
//
// A [Web] is an [http.Handler] for many hosts. Everything it says is a function
// of its fields and of the time, so two webs with equal fields answer alike, on
// any machine and in any order. Most pages change, each with its own period.
// Some come and go, redirect, fail for a while or forbid indexing; some hosts
// send validators and some do not. [Web.Page] tells the truth about each page,
// and the log ([Web.Count], [Web.HostLog]) what was requested and how politely.
//
// There are three ways to reach it: [Web.Protocol] answers a crawler without any
// network, which suits testing/synctest; [Serve] listens on loopback; and a test
// server of your own takes it as a handler.
//
// The package imports neither testing nor a network client.
package webtest

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Web is a synthetic web. The zero value is a small one, ready to use. Its
// fields must not be changed once it is in use; its methods may be called from
// many goroutines at once.
type Web struct {
	// Seed picks one web of many. Zero is as good as any.
	Seed uint64
	// Hosts is how many hosts there are: news.example.test, docs.example.test
	// and so on, then h0008.example.test. Zero means 5.
	Hosts int
	// PagesPerHost is how many pages each host has, besides robots.txt and
	// sitemap.xml. Zero means 50.
	PagesPerHost int
	// LinksPerPage is how many links a page has, besides its navigation. Half of
	// them lead down a tree from the page "/" of the host to all of its pages;
	// the others lead anywhere. Zero means 10.
	LinksPerPage int
	// WordsPerPage is about how many words of text a page has. Zero means 200.
	WordsPerPage int
	// HubLinks adds to each host a page /all.html, linked from "/", with that
	// many links. Zero means no such page.
	HubLinks int
	// Periods are the change periods; each page has one of them. Zero stands for
	// pages that never change. Nil means never, 30 days, 7 days and 1 day. The
	// page "/" of a host has the shortest.
	Periods []time.Duration
	// Calm makes a web without problems: every page exists, answers with its
	// content and may be fetched. Pages still change.
	Calm bool
	// Noise puts a comment into each page that is different in every answer: the
	// bytes change every time, the text and links do not. It turns validators off.
	Noise bool
	// CrawlDelay is what robots.txt asks for. Zero or negative means that it asks
	// for none.
	CrawlDelay time.Duration
	// Sitemaps makes robots.txt list sitemap.xml, which exists in any case.
	Sitemaps bool
	// Latency is how long each answer takes, on a real timer.
	Latency time.Duration
	// Now decides which version of a page to show. It is called by each request,
	// from many goroutines at once; see [Clock]. Nil means a clock that stands
	// still at Start: nothing changes, and what is found today is found next year.
	Now func() time.Time
	// Start is when the first versions are shown. The zero Time means 2000-01-01
	// 00:00 UTC, when the clock of a testing/synctest bubble starts. Before Start,
	// the web is as it is at Start.
	Start time.Time

	log     requestLog
	buffers sync.Pool // of *[]byte, to render into
}

// kind is the kind of trouble that a page makes. Only pages that no other page hangs on make
// any, so that the others can all be reached from "/" by following links.
type kind int

const (
	plain     kind = iota
	private        // below /private/, which robots.txt forbids
	comes404       // exists at times; answers 404 at others
	comes410       // exists at times; answers 410 at others
	missing        // always 404, though linked to
	gone           // always 410
	movedPerm      // 301 to another page of the host
	movedTemp      // 302 to another page of the host
	chain          // four redirects on end
	loop           // redirects to itself by way of another URL
	flaky          // 503 in some spans of ten minutes
	noIndex        // meta robots noindex
	noFollow       // meta robots nofollow
)

// trouble says which kinds a page without children is of, in percent; the rest
// is plain.
var trouble = [...]struct {
	kind    kind
	percent uint64
}{
	{private, 8}, {comes404, 6}, {comes410, 4}, {missing, 3}, {gone, 1},
	{movedPerm, 4}, {movedTemp, 3}, {chain, 2}, {loop, 1}, {flaky, 5},
	{noIndex, 4}, {noFollow, 2},
}

const (
	hub    = -1                   // the page number of /all.html
	domain = ".example.test"      // of all hosts
	day    = 24 * time.Hour       //
	spell  = 10 * time.Minute     // how long a flaky page fails or answers
	hops   = 3                    // URLs between a chain's first and its target
	year   = 365 * 24 * time.Hour // the most a page that never changes was old at Start
)

var (
	named          = [...]string{"news", "docs", "shop", "blog", "wiki", "mail", "www"}
	defaultPeriods = [...]time.Duration{0, 30 * day, 7 * day, day}
	defaultStart   = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

func (w *Web) hosts() int { return orDefault(w.Hosts, 5) }
func (w *Web) pages() int { return orDefault(w.PagesPerHost, 50) }
func (w *Web) links() int { return orDefault(w.LinksPerPage, 10) }
func (w *Web) words() int { return orDefault(w.WordsPerPage, 200) }

func orDefault(n, d int) int {
	if n <= 0 {
		return d
	}
	return n
}

func (w *Web) periods() []time.Duration {
	if len(w.Periods) == 0 {
		return defaultPeriods[:]
	}
	return w.Periods
}

func (w *Web) now() time.Time {
	if w.Now == nil {
		return w.start()
	}
	return w.Now()
}

func (w *Web) start() time.Time {
	if w.Start.IsZero() {
		return defaultStart
	}
	return w.Start.Truncate(time.Second).UTC()
}

// fan is how many children a page has in the tree of its host.
func (w *Web) fan() int { return max(1, w.links()/2) }

// inner is how many pages of a host have children; they are the first ones.
func (w *Web) inner() int { return (w.pages() - 2 + w.fan()) / w.fan() }

// Host returns the name of host h, counted from 0.
func (w *Web) Host(h int) string {
	if h < len(named) {
		return named[h] + domain
	}
	s := strconv.Itoa(h + 1)
	return "h" + strings.Repeat("0", max(0, 4-len(s))) + s + domain
}

// host is the inverse of Host.
func (w *Web) host(name string) (int, bool) {
	label, ok := strings.CutSuffix(name, domain)
	if !ok {
		return 0, false
	}
	for h, n := range named {
		if n == label {
			return h, h < w.hosts()
		}
	}
	number, ok := strings.CutPrefix(label, "h")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	if err != nil || n <= len(named) || n > w.hosts() || w.Host(n-1) != name {
		return 0, false
	}
	return n - 1, true
}

// Seeds returns the URLs to start from: the page "/" of each host.
func (w *Web) Seeds() []string {
	seeds := make([]string, w.hosts())
	for h := range seeds {
		seeds[h] = w.url(h, 0)
	}
	return seeds
}

// URLs returns the URL of every page of every host, whatever it answers, host
// by host. The URLs along a chain of redirects are not among them.
func (w *Web) URLs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for h := range w.hosts() {
			for p := range w.pages() {
				if !yield(w.url(h, p)) {
					return
				}
			}
			if w.HubLinks > 0 && !yield(w.url(h, hub)) {
				return
			}
		}
	}
}

func (w *Web) url(h, p int) string { return "http://" + w.Host(h) + w.path(h, p) }

// path returns the path of a page with its query.
func (w *Web) path(h, p int) string {
	switch {
	case p == hub:
		return "/all.html"
	case p == 0:
		return "/"
	case w.kind(h, p) == private:
		return "/private/" + strconv.Itoa(p) + ".html"
	case w.hash(saltPath, h, p, 0)%8 == 0:
		return "/view?id=" + strconv.Itoa(p)
	}
	return "/pages/" + strconv.Itoa(p) + ".html"
}

func (w *Web) kind(h, p int) kind {
	if w.Calm || p < w.inner() || p == 0 {
		return plain
	}
	r := w.hash(saltKind, h, p, 0) % 100
	for _, t := range trouble {
		if r < t.percent {
			return t.kind
		}
		r -= t.percent
	}
	return plain
}

func (w *Web) period(h, p int) time.Duration {
	periods := w.periods()
	if p == hub {
		return 0
	}
	if p > 0 {
		return max(0, periods[w.hash(saltPeriod, h, p, 0)%uint64(len(periods))]).Truncate(time.Second)
	}
	var shortest time.Duration
	for _, d := range periods {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest.Truncate(time.Second)
}

// sendsETag, and what follows, are habits of a host.
func (w *Web) sendsETag(h int) bool         { return !w.Noise && h%4 < 2 }
func (w *Web) sendsLastModified(h int) bool { return !w.Noise && h%4 != 1 && h%4 != 3 }
func (w *Web) hasRobots(h int) bool         { return h%7 != 6 }

func (w *Web) charset(h int) string {
	switch h % 5 {
	case 3:
		return "iso-8859-1" // said in the Content-Type
	case 4:
		return "windows-1251" // said in a meta element only
	}
	return "utf-8"
}

// Salts keep the choices about a page independent of each other.
const (
	saltPath uint64 = iota + 1
	saltKind
	saltPeriod
	saltPhase
	saltLife
	saltFlaky
	saltTarget
	saltLink
	saltTitle
	saltText
)

// hash is a number that looks random and depends on nothing but its arguments
// and the seed. (The mixing is splitmix64's.)
func (w *Web) hash(salt uint64, h, p, n int) uint64 {
	x := mix(w.Seed + salt*0x9e3779b97f4a7c15)
	x = mix(x ^ uint64(h))
	x = mix(x ^ uint64(p)<<1)
	return mix(x ^ uint64(n)<<2)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ServeHTTP answers for the host that the request names, with or without a port.
// For a host that is not part of this web it answers 421.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	name := strings.ToLower(r.Host)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[:i]
	}
	h, ok := w.host(name)
	if !ok {
		http.Error(rw, "no such host here", http.StatusMisdirectedRequest)
		return
	}
	path := r.URL.RequestURI()
	done := w.log.begin(name, path)
	defer done()
	if w.Latency > 0 {
		timer := time.NewTimer(w.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(rw, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	switch path {
	case "/robots.txt":
		w.serveRobots(rw, r, h)
	case "/sitemap.xml":
		w.serveSitemap(rw, r, h)
	default:
		w.servePage(rw, r, h, path)
	}
}

func (w *Web) servePage(rw http.ResponseWriter, r *http.Request, h int, path string) {
	now := w.now()
	s, ok := w.look(h, path, now)
	if !ok {
		http.Error(rw, "no such page", http.StatusNotFound)
		return
	}
	header := rw.Header()
	switch s.status {
	case http.StatusOK:
	case http.StatusMovedPermanently, http.StatusFound:
		header.Set("Location", s.location)
		rw.WriteHeader(s.status)
		return
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "120")
		fallthrough
	default:
		http.Error(rw, http.StatusText(s.status), s.status)
		return
	}
	if etag := w.etag(&s); etag != "" {
		header.Set("ETag", etag)
	}
	if w.sendsLastModified(h) {
		header.Set("Last-Modified", s.changed.Format(http.TimeFormat))
	}
	if w.unmodified(r, &s) {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	charset := w.charset(h)
	if charset == "windows-1251" {
		header.Set("Content-Type", "text/html")
	} else {
		header.Set("Content-Type", "text/html; charset="+charset)
	}
	buf, _ := w.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = w.render((*buf)[:0], &s)
	if w.Noise {
		*buf = append(*buf, "<!-- answer "...)
		*buf = strconv.AppendUint(*buf, w.log.total(), 10)
		*buf = append(*buf, " -->\n"...)
	}
	send(rw, r, *buf)
	w.buffers.Put(buf)
}

func send(rw http.ResponseWriter, r *http.Request, body []byte) {
	rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	// A client that went away is none of our business. The last byte is written by itself:
	// the server keeps it until the handler returns, and a client that has all of the
	// answer must not still be counted as waiting for it.
	last := max(len(body)-1, 0)
	_, _ = rw.Write(body[:last])
	_, _ = rw.Write(body[last:])
}

func (w *Web) etag(s *state) string {
	if !w.sendsETag(s.host) {
		return ""
	}
	return `"` + strconv.Itoa(s.page) + "-" + strconv.Itoa(s.version) + `"`
}

// unmodified reports whether the validators of a request stand for what the page
// is now (RFC 9110, 13.2.2).
func (w *Web) unmodified(r *http.Request, s *state) bool {
	if want := r.Header.Get("If-None-Match"); want != "" && w.sendsETag(s.host) {
		etag := w.etag(s)
		for v := range strings.SplitSeq(want, ",") {
			if v = strings.TrimPrefix(strings.TrimSpace(v), "W/"); v == etag || v == "*" {
				return true
			}
		}
		return false
	}
	if !w.sendsLastModified(s.host) {
		return false
	}
	t, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	return err == nil && !s.changed.After(t)
}

func (w *Web) serveRobots(rw http.ResponseWriter, r *http.Request, h int) {
	if !w.hasRobots(h) {
		http.Error(rw, "no such page", http.StatusNotFound)
		return
	}
	b := []byte("User-agent: *\n")
	if !w.Calm {
		b = append(b, "Disallow: /private/\n"...)
	} else {
		b = append(b, "Disallow:\n"...)
	}
	if w.CrawlDelay > 0 {
		b = append(b, "Crawl-delay: "...)
		b = strconv.AppendFloat(b, w.CrawlDelay.Seconds(), 'f', -1, 64)
		b = append(b, '\n')
	}
	if w.Sitemaps {
		b = append(b, "\nSitemap: http://"...)
		b = append(b, w.Host(h)...)
		b = append(b, "/sitemap.xml\n"...)
	}
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(rw, r, b)
}

// maxSitemap is how many URLs a sitemap may have. (sitemaps.org)
const maxSitemap = 50_000

func (w *Web) serveSitemap(rw http.ResponseWriter, r *http.Request, h int) {
	now := w.now()
	b := []byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	for p := range min(w.pages(), maxSitemap) {
		s := w.stateOf(h, p, now)
		if s.status != http.StatusOK || s.kind == private || s.kind == noIndex {
			continue
		}
		b = append(b, "<url><loc>"...)
		b = append(b, w.url(h, p)...)
		b = append(b, "</loc><lastmod>"...)
		b = s.changed.AppendFormat(b, time.RFC3339)
		b = append(b, "</lastmod></url>\n"...)
	}
	b = append(b, "</urlset>\n"...)
	rw.Header().Set("Content-Type", "application/xml")
	send(rw, r, b)
}
