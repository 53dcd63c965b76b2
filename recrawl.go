package recrawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/inject"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
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

// Options say how to crawl. Only Agent is required, and not even that with a
// Protocol; the zero value of the rest is polite and recrawls on an adaptive
// schedule.
type Options struct {
	// Agent is the name of the crawler, a product token of letters, digits, '-'
	// and '_'.
	// It is sent with every request, and robots.txt is obeyed under it. (Nutch:
	// http.agent.name.)
	Agent string
	// Robots says what else in a robots.txt is meant for the crawler, and for which
	// hosts robots.txt is ignored. It has no effect if Fetch has its own Cache.
	Robots robots.Policy
	// Protocol makes the requests. Nil means HTTP as httpproto does it by
	// default, which refuses to connect to private addresses. The caller closes a
	// Protocol that it provides. One for schemes other than http and https needs
	// Rules that let them in: see urlfilter.Basic.Schemes.
	Protocol protocol.Protocol
	// HTTP says how requests are made if Protocol is nil. Its Agent and Now
	// default to those of the crawl.
	HTTP httpproto.Options
	// Parser reads pages. Nil means HTML and plain text by parse/htmlparse.
	Parser parse.Parser
	// Schedule says when a page is fetched again. Nil means schedule.Adaptive
	// with its defaults. (Nutch: db.fetch.schedule.class.)
	//
	// With schedule.Learned the crawler keeps its plan: see Crawler.Plan. A Budget above
	// zero is a limit: no round selects more than is left of it, and while nothing is left
	// Run treats no page as due. It accrues evenly; what is not used within a day is lost,
	// or, below one visit a day, once a whole visit has accrued. The plan gives a host no
	// more visits than its pauses and Fetch.HostRule allow: see [fetch.Options.PerDay]. None
	// of this applies to a type that embeds it.
	Schedule schedule.FetchSchedule
	// Scoring orders the due pages. Nil means scoring.OPIC with its defaults;
	// scoring.PageRank finds what matters earlier, see Rank.
	Scoring scoring.Filter
	// Rules say which URLs belong to the crawl and how they are spelled. Nil
	// means urlfilter.Default. Their files are read again at the start of each
	// round if they have changed; if one has become invalid, that is logged and
	// the old rules stay.
	Rules *urlfilter.Rules
	// Reload lists what else is read again at the start of each round, such as
	// the file behind Fetch.Exempt.
	Reload []urlfilter.Reloader
	// Signature says whether content has changed. Nil means
	// signature.TextMD5: a page has changed when its text has. (Nutch:
	// db.signature.class, MD5 of the bytes.)
	Signature signature.Signature

	// Generate, Fetch, Update, Invert and Rank hold what only one stage needs: limits,
	// delays, threads. Their policies and clocks default to those above and below. A
	// zero TopN in Generate means 50,000 here, so that a fetch list fits into memory;
	// a negative one means no limit. A Delay or MinDelay in Fetch of less than 100 µs,
	// such as 5, is an error.
	Generate generate.Options
	Fetch    fetch.Options
	Update   update.Options
	Invert   linkdb.InvertOptions
	// Rank says when the ranks are computed if Scoring is scoring.PageRank or has it
	// in its chain.
	Rank rank.Options

	// ParseLater makes a round parse its pages when all are fetched, instead of
	// each as it comes. It takes longer and leads to the same result, with two
	// exceptions: what a parsing fetch would visit at once (FollowDepth, and
	// redirects of pages with MaxRedirects) waits for a later round; and with
	// NutchCompat in Fetch, a link is not always worth the same either way. (Nutch:
	// fetcher.parse, false by default.)
	ParseLater bool

	// Dedup, if not nil, makes each round mark duplicates, after the link db is
	// written and before OnPage is called. It reads the whole crawl db. (Nutch's
	// bin/crawl runs dedup at this point, before indexing.)
	Dedup *dedup.Options

	// OnPage, if not nil, is called for every page that was visited, once its
	// update has been committed: see [PageEvent]. It is called by one goroutine
	// at a time, at least once for each page, and again for the pages of a block
	// of 500 if the process ends among them. ctx is that of Round or Run. An error
	// ends the round, and Run with it; the next one resumes with that page, or in
	// another Crawler with its block. What OnPage has returned from is not reported
	// again otherwise, so it must be durable by then; a caller that commits only now
	// and then reads what its last commit lacks from the segments (examples/search).
	// OnPage may use the crawler, but not call
	// what waits for the round: Round, Run and ReadSitemaps.
	OnPage func(ctx context.Context, e PageEvent) error
	// OnRound, if not nil, is called with the report of each round that worked on a
	// segment, when it is over: for a service that has one Run for years and figures to
	// show. A round that failed or was cancelled is reported too, and again when the next
	// one resumes it, each time with what was done then, so that the reports add up to
	// that of Run. It is called by one goroutine at a time, and the next round waits for
	// it.
	OnRound func(r Report)

	// Rounds ends Run after so many rounds, those of an interrupted Run
	// included; zero means no limit.
	Rounds int
	// RoundTime is roughly how long the visits of a round should take: a round selects no
	// more of a host, or of what Fetch.By says, than there is time for with the pauses
	// between its requests. So following the links of a large host, telling OnPage of its
	// pages, and fetching what has become urgent need not wait until everything is done
	// that was due at the start. Zero means an hour, negative no limit. A host that is
	// slow or fails takes longer: see Fetch.TimeLimit.
	//
	// It has no effect if Generate has a MaxPerHost, a HostLimit, Ahead or NutchCompat,
	// nor on the methods Generate and GenerateFree.
	RoundTime time.Duration
	// Wait makes Run wait when nothing is due, until something is due or injected,
	// instead of returning. Once a minute it checks whether somebody else has written
	// to the store, which takes a full scan unless that is a crawldb.DueStore.
	Wait bool
	// KeepSegments is how many done segments are kept; older ones are removed.
	// Zero keeps all.
	KeepSegments int

	// ReadOnly is for stores that cannot be changed: New leaves alone what a process
	// that died left half done, and methods that write return the error of the store.
	// Status, Freshness and Explain work.
	ReadOnly bool
	// Now is the time to record; nil means time.Now. Pauses do not depend on it.
	Now func() time.Time
	// Logger is told of anything unusual; nil means no logging.
	Logger *slog.Logger
}

// A Crawler runs rounds of the crawl cycle over some stores. Its methods may be
// called from many goroutines at once. Rounds run one after the other: Round, Run and
// ReadSitemaps wait for a round under way, or until their context ends.
type Crawler struct {
	s      Stores
	o      Options
	robots *robots.Cache

	closing sync.Mutex
	owned   []func() error // what Close closes, in reverse order

	ranker   rank.Ranker
	round    turn // to make a round
	counting turn // to add to the account
	updating turn // to update from a segment
	injected chan struct{}
	status   status
	planned  planned
	told     toldOf // used only while round is held

	// damage guards what was found damaged, and the names of the segments.
	damage  sync.Mutex
	damaged []error
	aside   map[string]bool
}

// New returns a crawler over the given stores, and cleans up what a process that died
// left half done: pages that were leased for a segment that was never completed are
// released. A segment whose fetch list is damaged is not an error: see
// [Crawler.Damaged]. Close it after use.
func New(s Stores, o Options) (*Crawler, error) {
	if s.Crawl == nil {
		return nil, errors.New("recrawl: Stores.Crawl is required")
	}
	c := &Crawler{s: s, o: o, round: newTurn(), counting: newTurn(), updating: newTurn(), injected: make(chan struct{}, 1)}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Crawler) open() error {
	o := &c.o
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
		o.Parser = htmlparse.Mux(&htmlparse.Parser{Agent: o.Agent, Timeout: o.Fetch.ParseTimeout})
	}
	setDefault[schedule.FetchSchedule](&o.Schedule, &schedule.Adaptive{})
	setDefault[scoring.Filter](&o.Scoring, &scoring.OPIC{})
	if o.Rules == nil {
		o.Rules = urlfilter.Default()
	}
	setDefault[signature.Signature](&o.Signature, signature.TextMD5{})
	if c.s.Hosts == nil {
		c.s.Hosts = new(memstore.Hosts)
		c.owned = append(c.owned, c.s.Hosts.Close)
	}
	if c.s.Segments == nil {
		if err := c.openSegments(); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	if c.robots = o.Fetch.Robots; c.robots == nil {
		c.robots = &robots.Cache{Protocol: o.Protocol, Hosts: c.s.Hosts, Product: o.Agent, Policy: o.Robots, Now: o.Now, Logger: o.Logger}
	}
	if err := c.recover(context.Background()); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	if err := c.openPlan(context.Background()); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// leastDelay is the shortest pause between requests that can be meant. A Delay of 5 is five
// nanoseconds, which neither the compiler nor vet says, and the servers of others pay.
const leastDelay = 100 * time.Microsecond

// check returns an error for options that can only be a mistake.
func (o *Options) check() error {
	for _, r := range o.Agent {
		if !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_') {
			return fmt.Errorf("recrawl: Options.Agent %q is not a product token: letters, digits, '-' and '_'", o.Agent)
		}
	}
	for _, d := range []time.Duration{o.Fetch.Delay, o.Fetch.MinDelay} {
		if 0 < d && d < leastDelay {
			return fmt.Errorf("recrawl: a pause of %v (Options.Fetch.Delay or MinDelay) is none: if it is a number without a unit, say 5*time.Second; a negative one means no pause", d)
		}
	}
	if o.Protocol == nil && o.Agent == "" {
		return errors.New("recrawl: Options.Agent is required: the name that the crawler sends and obeys in robots.txt")
	}
	return nil
}

// openHTTP makes the client for a crawler without a Protocol.
func (c *Crawler) openHTTP() error {
	o := &c.o
	o.HTTP.Agent = cmp.Or(o.HTTP.Agent, o.Agent)
	if o.HTTP.Now == nil {
		o.HTTP.Now = o.Now
	}
	o.HTTP.Ascending = o.HTTP.Ascending || o.Fetch.By == hostdb.ByIP
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
	c.s.Segments = store
	if c.o.ReadOnly {
		return nil
	}
	_, err = generate.ReleaseOrphans(context.Background(), c.s.Crawl, store)
	return err
}

// recover brings to an end what a generate that died has left, and sets damaged segments
// aside.
func (c *Crawler) recover(ctx context.Context) error {
	crawl := c.s.Crawl
	if c.o.ReadOnly {
		crawl = nil
	}
	dead, err := generate.Recover(ctx, crawl, c.s.Segments)
	if len(dead) > 0 {
		c.o.Logger.Info("recrawl: released the pages of segments that were never completed", "segments", dead)
	}
	for _, name := range dead { // a merge marks what it makes before that is there
		if marked, e := c.marked(ctx, name); e != nil {
			return e
		} else if !marked {
			continue
		}
		if e := c.unmark(ctx, name); e != nil {
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

// Damaged returns an error for each segment that New or a round has found damaged. No
// round takes up such a segment until the stores are opened by another New; it stays as
// it is, and its pages are due again when their leases end. Options.Logger is told, too.
func (c *Crawler) Damaged() []error {
	c.damage.Lock()
	defer c.damage.Unlock()
	return slices.Clone(c.damaged)
}

// setAside keeps rounds from a segment that is damaged.
func (c *Crawler) setAside(name string, err error) {
	c.damage.Lock()
	defer c.damage.Unlock()
	if c.aside == nil {
		c.aside = map[string]bool{}
	}
	c.aside[name] = true
	c.damaged = append(c.damaged, err)
	c.o.Logger.Error("recrawl: a segment is damaged and left as it is", "segment", name, "error", err)
}

func (c *Crawler) isAside(name string) bool {
	c.damage.Lock()
	defer c.damage.Unlock()
	return c.aside[name]
}

// Close releases what New acquired. The stores stay open; they belong to the caller,
// who must cancel any Run through its context and wait for it before closing
// anything. A second Close does nothing.
func (c *Crawler) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	var errs []error
	for i := len(c.owned) - 1; i >= 0; i-- {
		errs = append(errs, c.owned[i]())
	}
	c.owned = nil
	return errors.Join(errs...)
}

// Inject adds URLs to start from, durably. Unusable ones are named in the report
// and logged, and the others are injected; that is not an error.
func (c *Crawler) Inject(ctx context.Context, urls ...string) (inject.Report, error) {
	return c.InjectSeeds(ctx, inject.URLs(urls...), inject.Options{})
}

// InjectSeeds adds seeds, for example those of inject.Read. Policies and the
// clock default to those of the crawler.
func (c *Crawler) InjectSeeds(ctx context.Context, seeds iter.Seq2[inject.Seed, error], o inject.Options) (inject.Report, error) {
	setNil(&o.Rules, c.o.Rules)
	setDefault(&o.Schedule, c.schedule())
	setDefault(&o.Scoring, c.o.Scoring)
	if o.Now == nil {
		o.Now = c.o.Now
	}
	r, err := inject.Run(ctx, c.s.Crawl, seeds, o)
	if len(r.Bad) > 0 {
		c.o.Logger.Warn("recrawl: seeds were left out", "filtered", r.Filtered, "invalid", r.Invalid, "first", r.Bad[0].Error())
	}
	c.wake()
	return r, err
}

// wake ends the wait of a Run.
func (c *Crawler) wake() {
	select {
	case c.injected <- struct{}{}:
	default:
	}
}

// Generate selects what is due and writes it to new segments: the first stage
// of a round.
func (c *Crawler) Generate(ctx context.Context) (generate.Report, error) {
	if err := c.replan(ctx); err != nil {
		return generate.Report{}, err
	}
	o, until, err := c.within(ctx, c.generateOptions())
	if err != nil || !until.IsZero() {
		return generate.Report{NextDue: until}, err
	}
	return generate.Run(ctx, c.s.Crawl, c.s.Segments, o)
}

func (c *Crawler) generateOptions() generate.Options {
	o := c.o.Generate
	setNil(&o.Rules, c.o.Rules)
	setDefault(&o.Schedule, c.schedule())
	if o.Now == nil {
		o.Now = c.o.Now
	}
	if o.TopN == 0 {
		o.TopN = defaultTopN
	}
	if o.Taken == nil {
		o.Taken = c.marked
	}
	if o.Lookup == nil {
		o.Lookup = c.lookup()
	}
	setDefault(&o.Hosts, c.s.Hosts)
	setDefault(&o.Scoring, c.o.Scoring)
	return o
}

// GenerateFree makes a segment of the given URLs, due or not, as generate.Free
// does: a first stage whose URLs need not be in the crawl db. The next round takes it
// up, so a service with a Run can have a page fetched at once, whatever its schedule
// and budget; politeness still holds, and the request is unconditional. No segment in
// the report means that the rules reject all of the URLs. All others are on the list, so
// many of one host make the round longer than RoundTime.
func (c *Crawler) GenerateFree(ctx context.Context, urls iter.Seq2[string, error]) (generate.Report, error) {
	o := c.generateOptions()
	if o.Known == nil {
		o.Known = c.s.Crawl
	}
	r, err := generate.Free(ctx, c.s.Segments, urls, o)
	c.wake()
	return r, err
}

// defaultTopN bounds a segment, whose fetch list is held in memory while it is
// made. It is the number that Nutch's crawl script uses.
const defaultTopN = 50_000

// Fetch visits and parses the pages of a segment: the second stage.
func (c *Crawler) Fetch(ctx context.Context, segment string) (fetch.Report, error) {
	return fetch.Run(ctx, c.s.Segments, segment, c.fetchOptions(true))
}

// FetchOnly visits the pages of a segment and leaves their parsing to Parse.
func (c *Crawler) FetchOnly(ctx context.Context, segment string) (fetch.Report, error) {
	return fetch.Run(ctx, c.s.Segments, segment, c.fetchOptions(false))
}

// Parse parses a segment that was fetched by FetchOnly.
func (c *Crawler) Parse(ctx context.Context, segment string) (fetch.Report, error) {
	return fetch.Parse(ctx, c.s.Segments, segment, c.fetchOptions(true))
}

func (c *Crawler) fetchOptions(parsing bool) fetch.Options {
	o := c.o.Fetch
	setDefault(&o.Protocol, c.o.Protocol)
	setDefault(&o.Hosts, c.s.Hosts)
	o.Robots = c.robots
	setDefault(&o.Signature, c.o.Signature)
	setNil(&o.Rules, c.o.Rules)
	setDefault(&o.Scoring, c.o.Scoring)
	setNil(&o.Logger, c.o.Logger)
	o.Lookup = c.lookup()
	if parsing {
		setDefault(&o.Parser, c.o.Parser)
	} else {
		o.Parser = nil
	}
	if o.Now == nil {
		o.Now = c.o.Now
	}
	told := o.OnVisit
	o.OnVisit = func(v segment.Visit, p fetch.Progress) {
		c.status.visit(&v, p)
		if told != nil {
			told(v, p)
		}
	}
	return o
}

// lookup is how a round finds the addresses of hosts: as the protocol does, or nil if that
// does not say. Lists that are made by address are then made by those of the queues.
func (c *Crawler) lookup() func(ctx context.Context, host string) ([]netip.Addr, error) {
	if c.o.Fetch.Lookup != nil {
		return c.o.Fetch.Lookup
	}
	p := c.o.Fetch.Protocol
	setDefault(&p, c.o.Protocol)
	if r, ok := p.(protocol.LookupProtocol); ok {
		return r.Lookup
	}
	return nil
}

// Update folds a fetched segment into the crawl db: the third stage. If there is a
// scoring.PageRank in Options.Scoring, it then updates the ranks: see package rank.
// Updates run one at a time: of two of the same segment, the second finds it done.
func (c *Crawler) Update(ctx context.Context, segment string) (update.Report, error) {
	if err := c.updating.take(ctx); err != nil {
		return update.Report{}, err
	}
	defer c.updating.give()
	o := c.updateOptions()
	var err error
	if o.Schedule, err = c.since(ctx, o.Schedule); err != nil {
		return update.Report{}, fmt.Errorf("recrawl: %w", err)
	}
	if err := c.note(ctx, segment); err != nil {
		return update.Report{}, fmt.Errorf("recrawl: note what is known of %s: %w", segment, err)
	}
	r, err := update.Run(ctx, c.s.Crawl, c.s.Segments, segment, o)
	if r.Damaged > 0 {
		c.o.Logger.Warn("recrawl: what domains have brought could not be read, and is counted anew", "segment", segment, "domains", r.Damaged)
	}
	if err != nil {
		return r, err
	}
	return r, c.rank(ctx, segment)
}

// rank counts the links of a segment and brings the scores up to date.
func (c *Crawler) rank(ctx context.Context, segment string) error {
	o := c.o.Rank
	setDefault(&o.Scoring, c.updateOptions().Scoring)
	setDefault(&o.Schedule, c.schedule())
	r, err := c.ranker.Run(ctx, c.s.Crawl, c.s.Segments, segment, o)
	if r.Damage != nil {
		c.o.Logger.Warn("recrawl: the known graph could not be read, and is made anew of the segments that are kept", "error", r.Damage)
	}
	if r.Full {
		c.o.Logger.Warn("recrawl: there is no room for more pages in the known graph: those that are found now keep the score that they begin with", "pages", r.Pages)
	}
	return err
}

func (c *Crawler) updateOptions() update.Options {
	o := c.o.Update
	setDefault(&o.Schedule, c.schedule())
	setDefault(&o.Scoring, c.o.Scoring)
	if o.Now == nil {
		o.Now = c.o.Now
	}
	setDefault(&o.Hosts, c.s.Hosts)
	setNil(&o.Sweep.Rules, c.o.Rules)
	return o
}

// Sweep goes over all records of the crawl db. An update also does so if
// Options.Update.Sweep asks for something. Policies and the clock default to those of
// the crawler. Rules from files are as the last round read them: see
// urlfilter.Rules.Reload. Records on a fetch list are left alone, and OnPage is not told
// of dropped ones.
func (c *Crawler) Sweep(ctx context.Context, o update.SweepOptions) (update.SweepReport, error) {
	setNil(&o.Rules, c.o.Rules)
	setDefault(&o.Schedule, c.schedule())
	setDefault(&o.Scoring, c.o.Scoring)
	if o.Now == nil {
		o.Now = c.o.Now
	}
	return update.Sweep(ctx, c.s.Crawl, o)
}

// InvertLinks adds the links of parsed segments to the link db: the fourth
// stage. Without Stores.Links it does nothing.
func (c *Crawler) InvertLinks(ctx context.Context, segments ...string) (linkdb.InvertReport, error) {
	if c.s.Links == nil {
		return linkdb.InvertReport{}, nil
	}
	return linkdb.Invert(ctx, c.s.Links, c.s.Segments, segments, c.o.Invert)
}

// Dedup marks the duplicates in the crawl db: the fifth stage, which rounds
// include if Options.Dedup is set. Called directly, it uses the defaults of
// package dedup if that is nil. With NutchCompat in Options.Dedup it then does
// what Options.Update.Sweep asks for, which in Nutch is part of the same job; a
// round does so after OnPage has seen the pages.
func (c *Crawler) Dedup(ctx context.Context) (dedup.Report, error) {
	r, err := c.markDuplicates(ctx)
	if err == nil {
		err = c.sweepAsDedup(ctx)
	}
	return r, err
}

func (c *Crawler) markDuplicates(ctx context.Context) (dedup.Report, error) {
	var o dedup.Options
	if c.o.Dedup != nil {
		o = *c.o.Dedup
	}
	return dedup.Run(ctx, c.s.Crawl, o)
}

// sweepAsDedup does what Nutch's dedup does to all records besides. (Nutch:
// CrawlDbFilter is the mapper of its second job.)
func (c *Crawler) sweepAsDedup(ctx context.Context) error {
	o := c.o.Update.Sweep
	if c.o.Dedup == nil || !c.o.Dedup.NutchCompat || !o.PurgeGone && !o.PurgeOrphans && !o.Normalize && !o.Filter {
		return nil
	}
	o.NutchCompat = true
	_, err := c.Sweep(ctx, o)
	return err
}

// setNil gives a pointer that is nil a value; setDefault does so for an
// interface. It looks at the interface alone: what is in it may not be comparable.
func setNil[T any](p **T, value *T) {
	if *p == nil {
		*p = value
	}
}

func setDefault[T any](p *T, value T) {
	if any(*p) == nil {
		*p = value
	}
}
