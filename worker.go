package recrawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// WorkerOptions say how a worker shares a divided crawl with others. The zero value is useful.
type WorkerOptions struct {
	// Name is the name of the worker, which no other one may have; empty means a random one. A
	// process that is started again had better have a new name.
	Name string
	// Lease is how long the groups of a worker that gives no sign of life stay its own; zero
	// means 15 seconds. All workers of a crawl must have the same.
	Lease time.Duration
	// Exchange is how often a worker looks for what other groups have found; zero means 10
	// seconds. What groups of the same worker have found is taken when their round ends.
	Exchange time.Duration
}

// A Worker makes the rounds of some groups of a divided crawl, and shares the others with the
// workers of other processes: see package groups. All that are started on one crawl must have the
// same options. Its methods may be called from many goroutines at once.
type Worker struct {
	engine   groups.Engine
	opts     Options
	name     string
	lease    time.Duration
	exchange time.Duration
	turns    chan struct{}
	kick     chan struct{} // has a token if groups have found something
	onPage   sync.Mutex
	running  ctxMutex
	close    func() error

	mu       sync.Mutex // guards what follows
	table    groups.Table
	router   *groups.Router
	held     map[int]*heldGroup
	workers  map[string]sighting // the other workers
	alone    bool                // no other worker is alive
	tended   bool                // each group has a worker that is alive
	report   Report
	failures []error
}

// sighting is when the counter of a worker was first seen with a value.
type sighting struct {
	counter int64
	at      time.Time
}

// heldGroup is a group that the worker has a lease of.
type heldGroup struct {
	lease   groups.Lease
	crawler *Crawler
	hosts   *inheritedHosts
	cancel  context.CancelCauseFunc
	ended   chan struct{} // is closed when its rounds have ended

	mu       sync.Mutex
	deadline time.Time // until then requests may begin
	timer    *time.Timer

	// Guarded by Worker.mu:
	idle, pending bool // nothing is due; something came that may be due
	release       bool // when its rounds have ended
}

// NewWorker returns a worker on a divided crawl. Close it after use; the engine stays open.
//
// Some options need all records of a crawl in one place, and are an error if it has several groups:
// scoring.PageRank, Dedup, Run.Rounds, Generate.Ahead, and a schedule.Planner with a budget.
func NewWorker(e groups.Engine, o Options, w WorkerOptions) (*Worker, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	k := &Worker{
		engine: e, opts: o, name: w.Name, lease: w.Lease, exchange: w.Exchange,
		turns: make(chan struct{}, runtime.GOMAXPROCS(0)), kick: make(chan struct{}, 1), running: newCtxMutex(),
		held: map[int]*heldGroup{}, workers: map[string]sighting{}, close: func() error { return nil },
	}
	if k.name == "" {
		k.name = rand.Text()
	}
	if k.lease <= 0 {
		k.lease = 15 * time.Second
	}
	if k.exchange <= 0 {
		k.exchange = 10 * time.Second
	}
	if o.Protocol == nil {
		c := &Crawler{opts: o}
		setNil(&c.opts.Logger, slog.New(slog.DiscardHandler))
		if err := c.openHTTP(); err != nil {
			return nil, fmt.Errorf("recrawl: %w", err)
		}
		k.opts.Protocol, k.close = c.opts.Protocol, c.Close
		k.opts.HTTP = Options{}.HTTP
	}
	if r, ok := k.opts.Protocol.(protocol.LookupProtocol); ok && k.opts.Fetch.Politeness.Lookup == nil {
		k.opts.Fetch.Politeness.Lookup = r.Lookup
	}
	setNil(&k.opts.Logger, slog.New(slog.DiscardHandler))
	setNil(&k.opts.Rules, urlfilter.Default())
	return k, nil
}

// checkGroups returns an error for options that a crawl of several groups cannot have.
func (w *Worker) checkGroups(t *groups.Table) error {
	if len(t.Groups) == 1 {
		return nil
	}
	_, ranked := scoring.PageRankOf(w.opts.Scoring)
	planner, _ := w.opts.Schedule.(schedule.Planner)
	for _, f := range []struct {
		set   bool
		field string
	}{
		{ranked, "Scoring with scoring.PageRank"},
		{w.opts.Dedup != nil, "Dedup"},
		{w.opts.Run.Rounds > 0, "Run.Rounds"},
		{w.opts.Generate.Ahead > 0, "Generate.Ahead"},
		{planner != nil && planner.VisitsPerDay() > 0, "Schedule with a budget"},
	} {
		if f.set {
			return fmt.Errorf("recrawl: Options.%s needs all records in one place, and the crawl has %d groups", f.field, len(t.Groups))
		}
	}
	return nil
}

// Close releases what NewWorker acquired. Cancel any Run and wait for it before. A second Close
// does nothing.
func (w *Worker) Close() error { return w.close() }

// Run makes rounds of the groups that the worker gets until its context ends or, without
// Options.Run.Wait, nothing is due in them: at once if no other worker is alive, and otherwise
// after three times the lease, for something may still come. A worker that leaves gives its groups
// to the others. An error of a stage, of a store or of OnPage ends it, too: a service calls Run
// again after a pause. The report covers all rounds.
func (w *Worker) Run(ctx context.Context) (Report, error) {
	if err := w.running.lock(ctx); err != nil {
		return Report{}, err
	}
	defer w.running.unlock()
	w.mu.Lock()
	w.report, w.failures, w.alone, w.tended = Report{}, nil, false, false
	clear(w.workers)
	w.mu.Unlock()
	if err := w.loadTable(ctx); err != nil {
		return Report{}, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	err := w.tend(running)
	if err == nil {
		var loops sync.WaitGroup
		loops.Go(func() { w.keepLeases(running, stop) })
		err = w.exchangeRows(running)
		stop()
		loops.Wait()
	}
	w.leave(context.WithoutCancel(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return w.report, ctx.Err()
	}
	return w.report, cmp.Or(errors.Join(w.failures...), err)
}

func (w *Worker) loadTable(ctx context.Context) error {
	t, err := w.engine.Table(ctx)
	if err == nil {
		err = w.checkGroups(&t)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.router == nil {
		w.router = t.Routing.Router()
	}
	if t.Version > w.table.Version { // of two calls at the same time the later may have the older one
		w.table = t
	}
	return nil
}

// keepLeases renews the leases until the context ends. If that fails for too long, it calls stop.
func (w *Worker) keepLeases(ctx context.Context, stop func()) {
	last := time.Now()
	tick := time.NewTicker(w.lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := w.tend(ctx)
		switch {
		case err == nil:
			last = began
		case ctx.Err() != nil:
			return
		case time.Since(last) > w.lease:
			w.fail(fmt.Errorf("recrawl: the leases of worker %s could not be renewed: %w", w.name, err))
			stop()
			return
		default:
			w.opts.Logger.Warn("recrawl: leases could not be renewed", "worker", w.name, "error", err)
		}
	}
}

func (w *Worker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, err)
}

// tend renews the leases, drops what was lost, expels workers that give no sign of life, and takes
// or gives up groups so that all workers have about as many.
func (w *Worker) tend(ctx context.Context) error {
	sent := time.Now()
	leases, err := w.engine.Renew(ctx, w.name)
	if err != nil {
		return err
	}
	if err := w.loadTable(ctx); err != nil {
		return err
	}
	state, err := w.engine.State(ctx)
	if err != nil {
		return err
	}
	w.keepRenewed(leases, sent)
	now := time.Now()
	alive := w.sight(state, now)
	for _, dead := range w.deadWorkers(now) {
		switch err := w.engine.Expel(ctx, dead); {
		case errors.Is(err, groups.ErrTaken):
		case err != nil:
			return err
		default:
			w.opts.Logger.Info("recrawl: a worker gave no sign of life and was expelled", "worker", dead.Owner)
		}
	}
	if state, err = w.engine.State(ctx); err != nil {
		return err
	}
	for _, l := range leases { // of an Acquire whose answer was lost
		if err := w.begin(ctx, l, sent); err != nil {
			return err
		}
	}
	return w.balance(ctx, state, alive, sent)
}

// usable is how long after the call of Renew requests may begin: what is under way then has the
// rest of the lease to end.
func (w *Worker) usable() time.Duration { return w.lease * 3 / 4 }

// keepRenewed extends the deadlines of the groups that are held, and drops those that were lost.
func (w *Worker) keepRenewed(leases []groups.Lease, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.held {
		if slices.Contains(leases, g.lease) {
			g.extend(sent.Add(w.usable()))
		} else {
			g.cancel(crawldb.ErrFenced)
		}
	}
}

// sight notes the counters of the other workers, and returns the names of those that may be alive.
func (w *Worker) sight(s groups.State, now time.Time) (alive []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[string]sighting{}
	for _, other := range s.Workers {
		if other.Owner == w.name {
			continue
		}
		seen, ok := w.workers[other.Owner]
		if !ok || seen.counter != other.Counter {
			seen = sighting{other.Counter, now}
		}
		known[other.Owner] = seen
		if now.Sub(seen.at) < w.lease {
			alive = append(alive, other.Owner)
		}
	}
	w.workers = known
	return alive
}

// deadWorkers returns the workers whose counter has not changed for a lease.
func (w *Worker) deadWorkers(now time.Time) (dead []groups.WorkerState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for owner, seen := range w.workers {
		if now.Sub(seen.at) >= w.lease {
			dead = append(dead, groups.WorkerState{Owner: owner, Counter: seen.counter})
		}
	}
	return dead
}

// balance takes groups that have no worker, up to the share of this one, and gives up what others
// have too few of.
func (w *Worker) balance(ctx context.Context, s groups.State, alive []string, sent time.Time) error {
	all, workers := len(s.Groups), len(alive)+1
	most, least := (all+workers-1)/workers, all/workers
	owned := map[string]int{}
	var free []int
	tended := true
	for _, g := range s.Groups {
		owned[g.Owner]++
		switch {
		case g.Owner == "":
			free = append(free, g.Group)
		case g.Owner != w.name && !slices.Contains(alive, g.Owner):
			tended = false
		}
	}
	starving := slices.ContainsFunc(alive, func(other string) bool { return owned[other] < least })
	w.mu.Lock()
	w.alone = len(alive) == 0
	var mine []*heldGroup
	for _, g := range w.held {
		if !g.release {
			mine = append(mine, g)
		}
	}
	slices.SortFunc(mine, func(a, b *heldGroup) int { return cmp.Compare(a.lease.Group, b.lease.Group) })
	for n := len(mine); n > most || n > least && starving && len(free) == 0; n-- {
		g := mine[n-1]
		g.release = true
		g.cancel(errGivenUp)
		mine = mine[:n-1]
		if n <= most {
			break
		}
	}
	n := len(mine)
	w.mu.Unlock()
	for i, id := range free {
		if n >= most {
			break
		}
		w.mu.Lock()
		_, ending := w.held[id]
		w.mu.Unlock()
		if ending {
			continue
		}
		l, err := w.engine.Acquire(ctx, w.name, id)
		if errors.Is(err, groups.ErrTaken) {
			continue
		}
		if err == nil {
			err = w.begin(ctx, l, sent)
		}
		if err != nil {
			return err
		}
		free[i] = -1
		n++
	}
	tended = tended && !slices.ContainsFunc(free, func(id int) bool { return id >= 0 })
	w.mu.Lock()
	w.tended = tended
	w.mu.Unlock()
	return nil
}

// errGivenUp is why rounds end when the group goes to another worker.
var errGivenUp = errors.New("recrawl: the group goes to another worker")

// extend lets requests begin until a deadline. When it has passed, the rounds end.
func (g *heldGroup) extend(deadline time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = deadline
	if g.timer == nil {
		g.timer = time.AfterFunc(time.Until(deadline), func() {
			g.mu.Lock()
			left := time.Until(g.deadline)
			if left > 0 {
				g.timer.Reset(left)
			}
			g.mu.Unlock()
			if left <= 0 {
				g.cancel(crawldb.ErrFenced)
			}
		})
	}
}

func (g *heldGroup) mayRequest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.deadline)
}

// leasedProtocol begins no request after the deadline of a lease.
type leasedProtocol struct {
	protocol.Protocol
	group *heldGroup
}

func (p leasedProtocol) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if !p.group.mayRequest() {
		return protocol.Response{}, fmt.Errorf("request for group %d: %w", p.group.lease.Group, crawldb.ErrFenced)
	}
	return p.Protocol.Fetch(ctx, r)
}

// begin begins the rounds of a group, unless they have begun.
func (w *Worker) begin(ctx context.Context, l groups.Lease, sent time.Time) error {
	w.mu.Lock()
	_, known := w.held[l.Group]
	w.mu.Unlock()
	if known {
		return nil
	}
	// The owner before may have seen a table that this worker has not.
	if err := w.loadTable(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	t := w.table
	w.mu.Unlock()
	s, err := w.engine.Open(ctx, l)
	if err != nil {
		return err
	}
	g := &heldGroup{lease: l, ended: make(chan struct{})}
	g.deadline = sent.Add(w.usable())
	member := t.Member(l.Group, w.router)
	share := &groupShare{engine: w.engine, router: w.router, turns: w.turns, threads: w.threads}
	share.member.Store(member)
	g.hosts = &inheritedHosts{Store: s.Hosts, share: share, pauseOf: w.opts.Fetch.Politeness.Pause, by: w.opts.Fetch.Politeness.By, first: map[string]*firstUse{}}
	s.Hosts = g.hosts
	stores := Stores{Crawl: s.Crawl, Hosts: s.Hosts, Links: s.Links, Segments: s.Segments}
	g.crawler, err = newCrawler(stores, w.groupOptions(g, len(t.Groups)), share)
	if errors.Is(err, crawldb.ErrFenced) {
		return nil
	}
	if err != nil {
		return err
	}
	// The rounds end with the lease, not with the call that has begun them.
	rounds, cancel := context.WithCancelCause(ctx)
	g.cancel = cancel
	g.extend(g.deadline)
	w.mu.Lock()
	w.held[l.Group] = g
	w.mu.Unlock()
	go w.work(rounds, g)
	return nil
}

// groupOptions are the options of the crawler of one group of n.
func (w *Worker) groupOptions(g *heldGroup, n int) Options {
	o := w.opts
	o.Protocol = leasedProtocol{o.Protocol, g}
	if o.Generate.TopN == 0 {
		o.Generate.TopN = max(defaultTopN/n, 1)
	} else if o.Generate.TopN > 0 {
		o.Generate.TopN = max(o.Generate.TopN/n, 1)
	}
	// So many stages are under way at a time.
	stages := min(cap(w.turns), n)
	o.Update.SortMemory = cmp.Or(max(o.Update.SortMemory, 0), defaultSortMemory) / stages
	o.Invert.SortMemory = cmp.Or(max(o.Invert.SortMemory, 0), defaultSortMemory) / stages
	if onPage := o.OnPage; onPage != nil {
		o.OnPage = func(ctx context.Context, e PageEvent) error {
			w.onPage.Lock()
			defer w.onPage.Unlock()
			return onPage(ctx, e)
		}
	}
	if round := o.Hooks.Round; round != nil {
		o.Hooks.Round = func(r Report) {
			w.onPage.Lock()
			defer w.onPage.Unlock()
			round(r)
		}
	}
	return o
}

// defaultSortMemory is what update and linkdb sort in if they are not told.
const defaultSortMemory = 64 << 20

// threads returns the part of the threads that a fetch has which begins now.
func (w *Worker) threads(all int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := 0
	for _, g := range w.held {
		if !g.idle {
			busy++
		}
	}
	if all <= 0 {
		all = defaultThreads
	}
	return max((all+busy-1)/max(busy, 1), 1)
}

// defaultThreads is what a fetch has if it is not told.
const defaultThreads = 50

// work makes the rounds of a group until its lease ends.
func (w *Worker) work(ctx context.Context, g *heldGroup) {
	err := w.rounds(ctx, g)
	cause := context.Cause(ctx)
	if e := g.crawler.Close(); err == nil {
		err = e
	}
	g.mu.Lock()
	g.timer.Stop()
	g.mu.Unlock()
	w.mu.Lock()
	released := g.release
	w.mu.Unlock()
	if released {
		if e := w.engine.Release(context.WithoutCancel(ctx), g.lease); e != nil && !errors.Is(e, crawldb.ErrFenced) {
			w.opts.Logger.Warn("recrawl: a group could not be released", "group", g.lease.Group, "error", e)
		}
	}
	w.mu.Lock()
	delete(w.held, g.lease.Group)
	if err != nil && cause == nil && !errors.Is(err, crawldb.ErrFenced) {
		w.failures = append(w.failures, err)
	}
	w.mu.Unlock()
	close(g.ended)
	w.tell()
}

func (w *Worker) rounds(ctx context.Context, g *heldGroup) error {
	c := g.crawler
	end, err := c.lockRounds(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := c.applyRetention(ctx); err != nil {
		return err
	}
	for moved := false; ; {
		w.mu.Lock()
		g.idle, g.pending = false, false
		t := w.table
		w.mu.Unlock()
		c.share.member.Store(t.Member(g.lease.Group, w.router))
		if m := t.Moving; m != nil && (m.From == g.lease.Group || m.To == g.lease.Group) {
			if err := w.moveBetweenRounds(ctx, c, &t); err != nil {
				return err
			}
			moved = true
			continue
		}
		if moved {
			g.hosts.reset()
			moved = false
		}
		if err := c.setMoving(ctx, false, false); err != nil {
			return err
		}
		r, err := c.oneRound(ctx, c.generateOptions(), calledByRun)
		w.mu.Lock()
		w.report.add(r)
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if r.Rounds > 0 {
			w.tell()
			continue
		}
		if r.ahead {
			continue
		}
		if err := c.stores.Crawl.Sync(ctx); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
		w.mu.Lock()
		again := g.pending
		g.idle = !again
		w.mu.Unlock()
		if again {
			continue
		}
		w.tell()
		if w.opts.Run.Wait {
			err = c.wait(ctx, r.NextDue)
		} else {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-c.wakeup:
			}
		}
		if err != nil {
			return err
		}
	}
}

// moveBetweenRounds finishes a round that was begun, or else does the part of the group in a move.
func (w *Worker) moveBetweenRounds(ctx context.Context, c *Crawler, t *groups.Table) error {
	name, _, err := c.unfinished(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		r, err := c.oneRound(ctx, c.generateOptions(), calledByRun)
		w.mu.Lock()
		w.report.add(r)
		w.mu.Unlock()
		return err
	}
	if err := w.moveSlots(ctx, c, t); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second): // the table may be another one then
		return w.loadTable(ctx)
	}
}

// tell has the exchange look at once.
func (w *Worker) tell() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// exchangeRows takes what other groups have found for those of the worker, until the context ends,
// something fails or nothing is left to do.
func (w *Worker) exchangeRows(ctx context.Context) error {
	tick := time.NewTicker(w.exchange)
	defer tick.Stop()
	var quietSince time.Time
	for clean := true; ; {
		quiet, err := w.exchangeOnce(ctx, clean)
		switch {
		case err != nil:
			return err
		case !quiet || w.opts.Run.Wait:
			quietSince = time.Time{}
		case w.isAlone():
			_, err := w.exchangeOnce(ctx, true)
			return err
		case quietSince.IsZero():
			quietSince = time.Now()
		case time.Since(quietSince) >= 3*w.lease:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			clean = true
		case <-w.kick:
			clean = false
		}
	}
}

func (w *Worker) isAlone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alone
}

// exchangeOnce folds what waits for the groups of the worker, and reports whether there was
// nothing and nothing is due. If clean is set it removes rows that were folded from outboxes.
func (w *Worker) exchangeOnce(ctx context.Context, clean bool) (quiet bool, err error) {
	w.mu.Lock()
	if err := errors.Join(w.failures...); err != nil {
		w.mu.Unlock()
		return false, err
	}
	t := w.table
	var ids []int
	held := map[int]*heldGroup{}
	quiet = w.tended && t.Moving == nil
	for id, g := range w.held {
		quiet = quiet && g.idle
		held[id] = g
		if t.Moving == nil || t.Moving.From != id { // which folds nothing meanwhile
			ids = append(ids, id)
		}
	}
	w.mu.Unlock()
	slices.Sort(ids)
	inboxes, err := groups.Poll(ctx, w.engine, &t, ids)
	if err != nil {
		return false, err
	}
	var receiving sync.WaitGroup
	errs := make([]error, len(inboxes))
	for i := range inboxes {
		g := held[inboxes[i].Group]
		if !inboxes[i].Empty() {
			quiet = false
		} else if !clean {
			continue
		}
		receiving.Go(func() {
			if !inboxes[i].Empty() {
				errs[i] = g.crawler.receive(ctx, &inboxes[i])
				w.mu.Lock()
				g.idle, g.pending = false, true
				w.mu.Unlock()
				g.crawler.wake()
			}
			if errs[i] == nil && clean {
				errs[i] = g.crawler.removeFolded(ctx, &t)
			}
			if errors.Is(errs[i], crawldb.ErrFenced) {
				errs[i] = nil // the group is another worker's
			}
		})
	}
	receiving.Wait()
	return quiet, errors.Join(errs...)
}

// leave ends the rounds, gives up the groups and forgets the worker.
func (w *Worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.lease)
	defer cancel()
	w.mu.Lock()
	var ending []*heldGroup
	for _, g := range w.held {
		g.release = true
		g.cancel(errGivenUp)
		ending = append(ending, g)
	}
	w.mu.Unlock()
	for _, g := range ending {
		<-g.ended
	}
	state, err := w.engine.State(ctx)
	if err == nil {
		for _, me := range state.Workers {
			if me.Owner == w.name {
				err = w.engine.Expel(ctx, me)
			}
		}
	}
	if err != nil {
		w.opts.Logger.Warn("recrawl: the worker could not leave, and will be expelled", "worker", w.name, "error", err)
	}
}

// Inject adds URLs to start from, durably: they go to the inboxes of their groups. Unusable ones
// are returned as an error, joined, and the others are injected.
func (w *Worker) Inject(ctx context.Context, urls ...string) error {
	items, bad := map[string][]byte{}, []error(nil)
	for _, u := range urls {
		normal, err := w.opts.Rules.Apply(urlfilter.Inject, u)
		if err != nil {
			bad = append(bad, fmt.Errorf("recrawl: inject %s: %w", u, err))
			continue
		}
		items[normal] = appendSeed(nil, inject.Seed{})
	}
	return errors.Join(w.post(ctx, items), errors.Join(bad...))
}

// Signal says that a page changed at the given time, or now if that is zero: see [Crawler.Signal].
// It goes to the inbox of its group, which leaves it out if it does not know the page.
func (w *Worker) Signal(ctx context.Context, url string, at time.Time) error {
	return w.postOne(ctx, "signal", url, appendSignal(at))
}

// FetchNow has a page fetched, due or not: see [Crawler.GenerateFree]. It goes to the inbox of its
// group. If the worker that takes it dies at that moment, the page may be fetched twice.
func (w *Worker) FetchNow(ctx context.Context, url string) error {
	return w.postOne(ctx, "fetch", url, []byte{fetchItem})
}

func (w *Worker) postOne(ctx context.Context, op, url string, value []byte) error {
	normal, err := w.opts.Rules.Apply(urlfilter.Inject, url)
	if err != nil {
		return fmt.Errorf("recrawl: %s %s: %w", op, url, err)
	}
	return w.post(ctx, map[string][]byte{normal: value})
}

// post posts rows for the groups of URLs.
func (w *Worker) post(ctx context.Context, items map[string][]byte) error {
	if err := w.loadTable(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	m := w.table.Member(groups.Outside, w.router)
	w.mu.Unlock()
	for to, row := range rowsFor(m, items) {
		if err := w.engine.Post(ctx, to, row); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	w.tell()
	return nil
}

// inheritedHosts is the host db of a group for one lease. What was asked of the hosts of the group
// before it began, or before slots were moved to it, is not known, so each host counts as asked when it
// is first used, as after a crash: grants that were never given back end, and a full pause begins.
type inheritedHosts struct {
	hostdb.Store
	share *groupShare
	// pauseOf returns the pause between two requests to a host with a Crawl-delay. The record of a
	// host with a grant need not say it: a request may have begun when the pause before it was over.
	pauseOf func(crawlDelay time.Duration) time.Duration
	by      hostdb.By

	mu    sync.Mutex
	first map[string]*firstUse
}

// firstUse is the first update of a host. Others wait for it: otherwise they would end its grant.
type firstUse struct {
	updating ctxMutex
	done     atomic.Bool
}

// reset begins anew, when slots were moved.
func (h *inheritedHosts) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.first)
}

func (h *inheritedHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if h.by == hostdb.ByIP || !h.share.member.Load().Owns("http://"+name+"/") {
		return h.Store.Update(ctx, name, next)
	}
	h.mu.Lock()
	use := h.first[name]
	if use == nil {
		use = &firstUse{updating: newCtxMutex()}
		h.first[name] = use
	}
	h.mu.Unlock()
	if use.done.Load() {
		return h.Store.Update(ctx, name, next)
	}
	if err := use.updating.lock(ctx); err != nil {
		return err
	}
	defer use.updating.unlock()
	if use.done.Load() {
		return h.Store.Update(ctx, name, next)
	}
	err := h.Store.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		if old == nil {
			return next(nil)
		}
		now := time.Now() // not earlier: the pause begins when the store was waited for
		after := old.AfterCrash(now, now)
		if len(old.Grants) > 0 {
			if end := now.Add(h.pauseOf(old.CrawlDelay)); end.After(after.NextFetch) {
				after.NextFetch = end
			}
		}
		return next(&after)
	})
	use.done.Store(err == nil)
	return err
}
