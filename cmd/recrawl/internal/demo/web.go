package demo

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// simulated is a clock that stands still until it is set.
type simulated struct{ at atomic.Int64 }

func (s *simulated) now() time.Time { return time.UnixMilli(s.at.Load()).UTC() }

func (s *simulated) set(t time.Time) { s.at.Store(t.UnixMilli()) }

// site is the web of the demo and its server.
type site struct {
	*webtest.Web
	server *webtest.Server

	tripped atomic.Pointer[trip] // nil for none
}

// A trip reports that a number of further pages have been requested.
type trip struct {
	left    atomic.Int64
	reached chan struct{}
}

func serveSite(now func() time.Time) (*site, error) {
	w := &site{Web: &webtest.Web{
		Hosts: 5, PagesPerHost: 160, Now: now, Start: startTime.Add(-60 * oneDay),
		Periods: []time.Duration{oneDay, 7 * oneDay, 7 * oneDay, 30 * oneDay, 30 * oneDay, 0, 0, 0},
	}}
	var err error
	w.server, err = webtest.Serve(w)
	return w, err
}

func (w *site) close() error { return w.server.Close() }

// tripAfter returns a channel that is closed when n more pages have been
// requested.
func (w *site) tripAfter(n int) <-chan struct{} {
	t := &trip{reached: make(chan struct{})}
	t.left.Store(int64(n))
	w.tripped.Store(t)
	return t.reached
}

func (w *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if t := w.tripped.Load(); t != nil && r.URL.Path != "/robots.txt" {
		switch left := t.left.Add(-1); {
		case left == 0:
			close(t.reached)
		case left < 50:
			time.Sleep(50 * time.Millisecond) // time to write what came before
		}
	}
	w.Web.ServeHTTP(patient{rw}, r)
}

// patient answers "not found" where the web is out of service. The crawler would
// otherwise obey and leave the whole host alone for two minutes of real time, which
// is right, and dull to watch.
type patient struct{ http.ResponseWriter }

func (p patient) WriteHeader(status int) {
	if status == http.StatusServiceUnavailable {
		p.Header().Del("Retry-After")
		status = http.StatusNotFound
	}
	p.ResponseWriter.WriteHeader(status)
}
