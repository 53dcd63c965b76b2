package recrawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// Stores say where a crawl keeps what it knows. The caller opens and closes
// them. Several running crawlers may share Hosts and Links, and then act as one
// polite client. Crawl and Segments belong to one crawler at a time, although
// others may read them and inject.
type Stores struct {
	// Crawl keeps the crawl db. Required.
	Crawl crawldb.Store
	// Hosts keeps what is known of each host. Nil keeps it in memory, so
	// politeness does not survive the process.
	Hosts hostdb.Store
	// Links keeps the inlinks. Nil means no inlinks are kept.
	Links linkdb.Store
	// Segments keeps what each round brought. Nil means a temporary directory
	// that Close removes; an interrupted round then starts over, and New reads
	// the whole crawl db to release its pages.
	Segments segment.Store
}

// A Crawler runs rounds of the crawl cycle over some stores. Its methods may be
// called from many goroutines at once. Rounds run one after the other: Round, Run and
// ReadSitemaps wait for a round under way, or until their context ends.
type Crawler struct {
	stores Stores
	opts   Options
	robots *robots.Cache

	closeMutex sync.Mutex
	owned      []func() error // what Close closes, in reverse order

	ranker       rank.Ranker
	roundMutex   ctxMutex      // held while a round is made
	accountMutex ctxMutex      // held while visits are added to the account
	updateMutex  ctxMutex      // held while a segment is folded in
	feedMutex    ctxMutex      // held while marks of the change feed are written
	feedNews     news          // of published segments and consumers that have lapsed
	readers      readers       // of the change feed
	wakeup       chan struct{} // ends the wait of a Run
	urgent       chan struct{} // ends a round: see endForUrgent
	status       status
	share        *groupShare // nil if the crawl is not divided
	history      history
	current      currentPlanner
	delivered    delivered         // used only while roundMutex is held
	gatherer     generate.Gatherer // likewise

	// damageMutex guards the two fields below.
	damageMutex   sync.Mutex
	damaged       []error
	setAsideNames map[string]bool
}

// New returns a crawler over the given stores, and cleans up what a process that died
// left half done: pages that were leased for a segment that was never completed are
// released. A segment whose fetch list is damaged is not an error: see
// [Crawler.Damaged]. Close it after use.
func New(s Stores, o Options) (*Crawler, error) { return newCrawler(s, o, nil) }

func newCrawler(s Stores, o Options, share *groupShare) (*Crawler, error) {
	if s.Crawl == nil {
		return nil, errors.New("recrawl: Stores.Crawl is required")
	}
	c := &Crawler{stores: s, opts: o, share: share, roundMutex: newCtxMutex(), accountMutex: newCtxMutex(), updateMutex: newCtxMutex(), feedMutex: newCtxMutex(), wakeup: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
	c.gatherer.Early = c.earlyVisit
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Crawler) open() error {
	o := &c.opts
	if err := o.check(); err != nil {
		return err
	}
	setNil(&o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Protocol == nil {
		if err := c.openHTTP(); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	if o.Parser == nil {
		o.Parser = htmlparse.Mux(&htmlparse.Parser{Agent: o.Agent, Timeout: o.Fetch.Parsing.Timeout})
	}
	setDefault[schedule.FetchSchedule](&o.Schedule, &schedule.Adaptive{})
	setDefault[scoring.Filter](&o.Scoring, &scoring.OPIC{})
	if o.Rules == nil {
		o.Rules = urlfilter.Default()
	}
	setDefault[signature.Signature](&o.Signature, signature.TextMD5{})
	if c.stores.Hosts == nil {
		c.stores.Hosts = new(memstore.Hosts)
		c.owned = append(c.owned, c.stores.Hosts.Close)
	}
	if c.stores.Segments == nil {
		if err := c.openSegments(); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	if c.robots = o.Fetch.Robots; c.robots == nil {
		c.robots = &robots.Cache{Protocol: o.Protocol, Hosts: c.stores.Hosts, Product: o.Agent, Policy: o.Robots, Now: o.Now, Logger: o.Logger}
	}
	if err := c.recoverSegments(context.Background()); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	if err := c.openPlan(context.Background()); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// openHTTP makes the client for a crawler without a Protocol.
func (c *Crawler) openHTTP() error {
	o := &c.opts
	o.HTTP.Agent, o.HTTP.Now = o.Agent, o.Now
	o.HTTP.Ascending = o.HTTP.Ascending || o.Fetch.Politeness.By == hostdb.ByIP
	client, err := httpproto.New(o.HTTP)
	if err != nil {
		return err
	}
	if client.Anonymous() {
		o.Logger.Warn("recrawl: requests name no page and no mailbox of who answers for them; httpproto.Options has AgentURL and AgentEmail", "agent", o.Agent)
	}
	o.Protocol = client
	c.owned = append(c.owned, client.Close)
	return nil
}

// openSegments makes a temporary store for a crawler without Segments. Pages that were leased
// for the segments of another such store are released: those are lost.
func (c *Crawler) openSegments() error {
	dir, err := os.MkdirTemp("", "recrawl-segments-")
	if err != nil {
		return err
	}
	c.owned = append(c.owned, func() error { return os.RemoveAll(dir) })
	store, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		return err
	}
	c.owned = append(c.owned, store.Close)
	c.stores.Segments = store
	if c.opts.ReadOnly {
		return nil
	}
	_, err = generate.ReleaseOrphans(context.Background(), c.stores.Crawl, store)
	return err
}

// recoverSegments brings to an end what a generate that died has left, and sets damaged segments
// aside.
func (c *Crawler) recoverSegments(ctx context.Context) error {
	crawl := c.stores.Crawl
	if c.opts.ReadOnly {
		crawl = nil
	}
	dead, err := generate.Recover(ctx, crawl, c.stores.Segments)
	if len(dead) > 0 {
		c.opts.Logger.Info("recrawl: released the pages of segments that were never completed", "segments", dead)
	}
	for _, name := range dead { // a merge marks what it makes before that is there
		if marked, e := c.hasMarks(ctx, name); e != nil {
			return e
		} else if !marked {
			continue
		}
		if e := c.removeMarks(ctx, name); e != nil {
			return e
		}
	}
	var damaged *generate.DamagedError
	if !errors.As(err, &damaged) {
		return err
	}
	for i, err := range damaged.Errs {
		c.setAside(damaged.Segments[i], err)
	}
	return nil
}

// Close releases what New acquired. The stores stay open; they belong to the caller,
// which must cancel any Run through its context and wait for it before closing
// anything. A second Close does nothing.
func (c *Crawler) Close() error {
	c.closeMutex.Lock()
	defer c.closeMutex.Unlock()
	var errs []error
	for i := len(c.owned) - 1; i >= 0; i-- {
		errs = append(errs, c.owned[i]())
	}
	c.owned = nil
	return errors.Join(errs...)
}
