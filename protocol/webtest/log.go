package webtest

import (
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxLogged is how many different URLs the log counts. Hosts and totals are
// counted beyond it.
const maxLogged = 1 << 20

// HostLog is what one host was asked. Its times are read from the real clock, or
// from that of the testing/synctest bubble the requests were made in, whatever
// the clock of the web says.
type HostLog struct {
	// Requests counts all requests; Robots those for robots.txt among them.
	Requests, Robots int
	// First and Last are when the first and the last request arrived.
	First, Last time.Time
	// MinGap is the shortest time from the end of an answer to the arrival of the
	// next request, requests for robots.txt left out; negative if two overlapped,
	// zero if there were fewer than two. A crawler that waits d after what it
	// received makes a gap of at least d.
	MinGap time.Duration
	// MaxInFlight is the largest number of requests being answered at once.
	MaxInFlight int
}

// requestLog is shared by all requests. The zero value is ready.
type requestLog struct {
	mu    sync.Mutex
	n     uint64
	urls  map[string]int // by host and request URI
	hosts map[string]*hostState
}

type hostState struct {
	HostLog
	pages    int // requests except those for robots.txt
	inFlight int
	ended    time.Time // of the last page
}

// begin counts a request and returns what to call when it was answered.
func (l *requestLog) begin(host, path string) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.urls == nil {
		l.urls = make(map[string]int)
		l.hosts = make(map[string]*hostState)
	}
	l.n++
	key := host + path
	if n, ok := l.urls[key]; ok || len(l.urls) < maxLogged {
		l.urls[key] = n + 1
	}
	s := l.hosts[host]
	if s == nil {
		s = &hostState{HostLog: HostLog{First: now}}
		l.hosts[host] = s
	}
	s.Requests++
	s.Last = now
	s.inFlight++
	s.MaxInFlight = max(s.MaxInFlight, s.inFlight)
	if path == "/robots.txt" {
		s.Robots++
		return func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.inFlight--
		}
	}
	s.pages++
	if s.pages > 1 {
		gap := now.Sub(s.ended)
		if s.ended.IsZero() || s.inFlight > 1 {
			gap = -1
		}
		if s.pages == 2 || gap < s.MinGap {
			s.MinGap = gap
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.inFlight--
		s.ended = time.Now()
	}
}

func (l *requestLog) total() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// Count returns how often a URL was asked for, whatever the answer. URLs that
// turn up after the first million are not counted.
func (w *Web) Count(rawURL string) int {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.urls[strings.ToLower(u.Hostname())+u.RequestURI()]
}

// Requests returns how many requests the hosts of the web received in total.
func (w *Web) Requests() int { return int(w.log.total()) }

// HostLog returns what a host was asked; the zero HostLog if nothing.
func (w *Web) HostLog(host string) HostLog {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if s := w.log.hosts[host]; s != nil {
		return s.HostLog
	}
	return HostLog{}
}
