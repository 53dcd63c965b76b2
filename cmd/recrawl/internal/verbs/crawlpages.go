package verbs

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// crawlPages serves the pages of the crawl that -d names. If another process has it open, that one
// makes them. Otherwise the crawl is opened for a second at a time, so that a verb that changes it
// can begin.
type crawlPages struct {
	a     *app
	c     *cli.Command
	guard httpapi.Guard
	index *indexPages // nil without -index

	mu   sync.Mutex
	open *openPages // nil if the crawl is not open
	// closed is when it was closed last.
	closed time.Time
}

// openPages is an open crawl. Its fields are guarded by the mutex of crawlPages.
type openPages struct {
	s      *session
	pages  http.Handler
	change bool // opened for writing
	users  int
	ending bool
	done   chan struct{} // closed when the crawl is
}

const (
	// openTime is how long the crawl stays open, and closedTime how long it is closed before it is opened
	// again: longer than waitForLock waits between two tries.
	openTime   = time.Second
	closedTime = 150 * time.Millisecond
	// databaseOpenTime is openTime for a crawl in a database that is read.
	databaseOpenTime = time.Minute
	// pagesPatience is how long a request waits for the crawl.
	pagesPatience = 10 * time.Second
)

// ServeHTTP implements http.Handler.
func (p *crawlPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.guard.Protect(http.HandlerFunc(p.serve), func(r *http.Request) httpapi.Action { return httpapi.ActionOf(r, "") }).ServeHTTP(w, r)
}

func (p *crawlPages) serve(w http.ResponseWriter, r *http.Request) {
	allowed := p.guard.Allowed(r)
	r = r.Clone(r.Context())
	control.AllowIn(r, allowed)
	p.answer(w, r)
}

// answer answers a request that was checked, and for which control.AllowIn was called.
func (p *crawlPages) answer(w http.ResponseWriter, r *http.Request) {
	if p.index.serves(r) {
		p.index.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pagesPatience)
	defer cancel()
	for {
		if !flags.IsURL(p.c.String("d")) {
			if pages, err := control.Pages(p.c.String("d")); err == nil {
				pages.ServeHTTP(w, r)
				return
			}
		}
		o, err := p.acquire(ctx, r.Method != http.MethodGet && r.Method != http.MethodHead)
		if err == nil {
			defer p.release(o)
			o.pages.ServeHTTP(w, r)
			return
		}
		if !errors.Is(err, pebblestore.ErrLocked) || ctx.Err() != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the crawl cannot be opened: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		// Another process has begun meanwhile, and will serve pages.
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// acquire opens the crawl, unless it is open.
func (p *crawlPages) acquire(ctx context.Context, change bool) (*openPages, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open != nil {
		o := p.open
		if !o.ending && (o.change || !change) {
			o.users++
			return o, nil
		}
		p.end(o)
		p.mu.Unlock()
		select {
		case <-o.done:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	open := openTime
	switch database := flags.IsURL(p.c.String("d")); {
	case database && !change: // it keeps no crawl from beginning
		open = databaseOpenTime
	case !database && !change:
		time.Sleep(time.Until(p.closed.Add(closedTime)))
	}
	o := &openPages{change: change, users: 1, done: make(chan struct{})}
	var err error
	opening := ctx
	if flags.IsURL(p.c.String("d")) { // its connections outlive the request
		opening = context.WithoutCancel(ctx)
	}
	o.s, err = p.a.begin(opening, p.c, access{change: change})
	if err != nil {
		return nil, err
	}
	stores := recrawl.Stores{Crawl: o.s.db.Crawl(), Hosts: o.s.db.Hosts(), Links: o.s.db.Links(), Segments: o.s.db.Segments()}
	if o.pages, err = control.NewPages(o.s.crawler, stores, crawls.WithoutPassword(p.c.String("d")), o.s.now, nil); err != nil {
		return nil, errors.Join(err, o.s.end())
	}
	p.open = o
	time.AfterFunc(open, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.end(o)
	})
	return o, nil
}

func (p *crawlPages) release(o *openPages) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.users--
	if o.ending && o.users == 0 {
		p.close(o)
	}
}

// end closes the crawl when the requests that use it have been answered.
func (p *crawlPages) end(o *openPages) {
	if !o.ending {
		if o.ending = true; o.users == 0 {
			p.close(o)
		}
	}
}

func (p *crawlPages) close(o *openPages) {
	if err := o.s.end(); err != nil {
		p.a.logger(p.c).Error("the crawl could not be closed", "error", err)
	}
	p.open, p.closed = nil, time.Now()
	close(o.done)
}

// Close closes the crawl and the index. No request may be under way.
func (p *crawlPages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		p.end(p.open)
	}
	return p.index.Close()
}
