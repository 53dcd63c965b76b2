package webtest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Truth is what there is to know about one URL at one time.
type Truth struct {
	// URL is the URL that was asked about.
	URL string
	// Status is the answer to a GET without validators; Location is the
	// absolute target if that is a redirect.
	Status   int
	Location string
	// Exists says that Status is 200: there is a page. The fields below are about
	// that page and are zero otherwise, except for Next.
	Exists bool
	// Period is the time from one change to the next; zero if there is none.
	Period time.Duration
	// Version counts the changes since Start.
	Version int
	// Changed is when the page became what it is.
	Changed time.Time
	// Next is when the answer, its status or its content, changes next; the zero
	// Time if never. Whole seconds, like Changed and Period.
	Next time.Time
	// Outlinks are the absolute targets of its links in the order of the page,
	// each once.
	Outlinks []string
	// Title is its title.
	Title string
	// ETag and LastModified are the validators that are sent; empty if none.
	ETag, LastModified string
	// Charset is the encoding of the page.
	Charset string
	// Disallowed says that robots.txt forbids the URL to all crawlers. It is set
	// for any URL.
	Disallowed bool
	// NoIndex and NoFollow are the directives of its meta robots element.
	NoIndex, NoFollow bool
}

// Page tells the truth about a URL at the time of the web's clock. It reports
// false if the web has never heard of it; such a URL on one of its hosts is
// answered 404. It does not count as a request.
func (w *Web) Page(url string) (Truth, bool) { return w.PageAt(url, w.now()) }

// PageAt is Page at a given time.
func (w *Web) PageAt(rawURL string, t time.Time) (Truth, bool) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" || u.Port() != "" {
		return Truth{}, false
	}
	h, ok := w.host(u.Host)
	if !ok {
		return Truth{}, false
	}
	s, ok := w.look(h, u.RequestURI(), t)
	if !ok {
		return Truth{}, false
	}
	truth := Truth{
		URL: rawURL, Status: s.status, Location: s.location, Next: s.next,
		Disallowed: s.kind == private && w.hasRobots(h),
	}
	if s.status != http.StatusOK {
		return truth, true
	}
	truth.Exists = true
	truth.Period, truth.Version, truth.Changed = s.period, s.version, s.changed
	for _, l := range w.outlinks(nil, &s) {
		truth.Outlinks = append(truth.Outlinks, w.url(l.host, l.page))
	}
	truth.Title = string(w.title(nil, h, s.page))
	truth.ETag = w.etag(&s)
	if w.sendsLastModified(h) {
		truth.LastModified = s.changed.Format(http.TimeFormat)
	}
	truth.Charset = w.charset(h)
	truth.NoIndex, truth.NoFollow = s.kind == noIndex, s.kind == noFollow
	return truth, true
}

// state is one page at one time.
type state struct {
	host, page int
	kind       kind
	status     int
	location   string
	period     time.Duration
	version    int
	changed    time.Time
	next       time.Time
}

// look finds what a host has at a path.
func (w *Web) look(h int, path string, t time.Time) (state, bool) {
	switch path {
	case "/":
		return w.stateOf(h, 0, t), true
	case "/all.html":
		return w.stateOf(h, hub, t), w.HubLinks > 0
	case "/index.html":
		return state{host: h, status: http.StatusMovedPermanently, location: w.url(h, 0)}, true
	}
	var number string
	if s, ok := strings.CutPrefix(path, "/view?id="); ok {
		number = s
	} else if dir, s, ok := strings.Cut(path[1:], "/"); ok {
		if dir == "hop" {
			return w.hop(h, s)
		}
		number = strings.TrimSuffix(s, ".html")
	}
	p, err := strconv.Atoi(number)
	if err != nil || p < 1 || p >= w.pages() || w.path(h, p) != path {
		return state{}, false
	}
	return w.stateOf(h, p, t), true
}

// hop is an URL within a chain of redirects: /hop/PAGE/LEFT.
func (w *Web) hop(h int, s string) (state, bool) {
	number, left, _ := strings.Cut(s, "/")
	p, err1 := strconv.Atoi(number)
	n, err2 := strconv.Atoi(left)
	if err1 != nil || err2 != nil || p < 1 || p >= w.pages() || n < 1 || n > hops || hopPath(p, n) != "/hop/"+s {
		return state{}, false
	}
	st := state{host: h, status: http.StatusFound}
	switch k := w.kind(h, p); {
	case k == loop && n == 1:
		st.location = w.url(h, p)
	case k == chain && n == 1:
		st.location = w.url(h, w.target(h, p))
	case k == chain:
		st.location = "http://" + w.Host(h) + hopPath(p, n-1)
	default:
		return state{}, false
	}
	return st, true
}

func hopPath(p, n int) string { return "/hop/" + strconv.Itoa(p) + "/" + strconv.Itoa(n) }

// target is where a page that moved went: a page that never does.
func (w *Web) target(h, p int) int {
	return int(w.hash(saltTarget, h, p, 0) % uint64(max(1, w.inner())))
}

// stateOf works out a page. Times before Start count as Start.
func (w *Web) stateOf(h, p int, t time.Time) state {
	s := state{host: h, page: p, kind: w.kind(h, p), status: http.StatusOK}
	switch s.kind {
	case missing:
		s.status = http.StatusNotFound
		return s
	case gone:
		s.status = http.StatusGone
		return s
	case movedPerm:
		s.status, s.location = http.StatusMovedPermanently, w.url(h, w.target(h, p))
		return s
	case movedTemp:
		s.status, s.location = http.StatusFound, w.url(h, w.target(h, p))
		return s
	case chain:
		s.status, s.location = http.StatusFound, "http://"+w.Host(h)+hopPath(p, hops)
		return s
	case loop:
		s.status, s.location = http.StatusFound, "http://"+w.Host(h)+hopPath(p, 1)
		return s
	}
	start := w.start()
	age := max(0, t.Sub(start)) // since Start
	s.period = w.period(h, p)
	phase := w.hash(saltPhase, h, p, 0)
	if s.period > 0 {
		lead := seconds(phase, s.period)
		s.version = int((age + lead) / s.period)
		s.changed = start.Add(time.Duration(s.version)*s.period - lead)
		s.next = s.changed.Add(s.period)
	} else {
		s.changed = start.Add(-seconds(phase, year))
	}
	switch s.kind {
	case comes404, comes410:
		// It lives, is gone, and comes back, each time a few weeks.
		r := w.hash(saltLife, h, p, 0)
		cycle := 40*day + seconds(r, 80*day)
		up := (cycle * time.Duration(40+r%40) / 100).Truncate(time.Second)
		at := (age + seconds(mix(r), cycle)) % cycle
		flip := up - at
		if at >= up {
			s.status = http.StatusNotFound
			if s.kind == comes410 {
				s.status = http.StatusGone
			}
			flip = cycle - at
			s.next = time.Time{}
		}
		s.earlier(start.Add(age + flip))
	case flaky:
		// It fails in one span of four.
		span := func(n time.Duration) bool { return w.hash(saltFlaky, h, p, int(n))%4 == 0 }
		n := age / spell
		down := span(n)
		if down {
			s.status = http.StatusServiceUnavailable
			s.next = time.Time{}
		}
		// Past a day of the same, only the content can change first.
		for i := n + 1; i < n+144; i++ {
			if span(i) != down {
				s.earlier(start.Add(i * spell))
				break
			}
		}
	}
	return s
}

// earlier makes t the next change unless there is one before it.
func (s *state) earlier(t time.Time) {
	if s.next.IsZero() || t.Before(s.next) {
		s.next = t
	}
}

// seconds returns a whole number of seconds below d, picked by r; 0 if d is
// below a second.
func seconds(r uint64, d time.Duration) time.Duration {
	n := uint64(d / time.Second)
	if n == 0 {
		return 0
	}
	return time.Duration(r%n) * time.Second
}
