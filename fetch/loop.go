package fetch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/internal/recent"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// A group of results is written when it has this many visits or bytes, or is
// this old: that is what a kill can cost. The first group of a run is written
// sooner, and each waits twice as long as the one before, so that even a fetch
// that is killed again and again after a moment makes progress.
const (
	groupVisits   = 500
	groupBytes    = 8 << 20
	firstGroupAge = 100 * time.Millisecond
	groupAge      = 2 * time.Second
)

// job is one visit for a worker.
type job struct {
	host  *host
	item  item
	delay time.Duration // of the host
	pace  pace          // what was known of the host
	*runningVisit
	permit permit
	// robotsWaits is how often the fetch waited for the host's robots.txt.
	robotsWaits int
}

// result is what a worker made of a job. A page that was requested makes two:
// one when its grant has ended, one when the page is parsed.
type result struct {
	job
	// out is the visit; nil if the item has to wait for another grant.
	out *visitResult
	// nextVisit is when the host may be visited again, failures how many times in a row it
	// has failed, limit how many visits to it there may be, zero if that was not
	// looked up. allGranted says that all grants are taken, newPace how quickly the host
	// answers.
	nextVisit  time.Time
	failures   int64
	limit      int
	allGranted bool
	newPace    pace
	// crawlDelay is that of the origin. pause is the usual pause of the host, why
	// the reason for a longer one.
	crawlDelay, pause time.Duration
	verdict           verdict
	// robotsRetryAfter is how long the server that was just asked for robots.txt asks to be left
	// alone.
	robotsRetryAfter time.Duration
	// exclusive says that there must be no other request to the host meanwhile.
	exclusive bool
	// requested says that a request was made, and bytes how many bytes came.
	requested bool
	bytes     int64
	// address is the queue of the host by address, lookupFailure why there is none.
	address, lookupFailure string
	// A grant was taken at grantedAt, and ends at until.
	grantedAt, grantUntil time.Time
	// grantOver says that the page is being parsed and will follow, after that
	// this is the page.
	grantOver, parsedLater bool
	// requeueLast says that an item that has to wait goes behind the others of its
	// host.
	requeueLast bool
	// robots says that robots.txt was requested.
	robots bool
	// robotsMove is a robots.txt that has moved, or has arrived.
	robotsMove *robotsMove
	// awaitsRobots says that the fetch waits for the host's robots.txt.
	awaitsRobots bool
	// err ends the run.
	err error
}

// loop is one run of a fetch. Only the goroutine of the loop uses its fields; workers use
// the options, origins and sitemapSem, and the name of a host.
type loop struct {
	opts, givenOpts Options // without the parser if it is not used while fetching
	segments        segment.Store
	name            string
	report          Report

	queues        *queues
	visitedBefore urlSet // visited before this run
	lists         *lists // nil if the segment is fetched as a whole
	list          *listReader
	threads       threadShares
	addresses     recent.Map[string] // the queues of hosts by address
	limits        limits
	follower      follower
	lastURL       string                   // the URL of the last result
	redirects     *redirectState           // nil if redirects are not followed
	delays        map[string]time.Duration // requested by the list, by queue

	origins    origins       // whose robots.txt was checked for sitemaps
	sitemapSem chan struct{} // limits the visits that hold one in memory

	group      []*visitResult
	groupBytes int
	groupSince time.Time
	groupAge   time.Duration // how old it may get
	groups     chan []*visitResult
}

func fetchSegment(ctx context.Context, segments segment.Store, name string, o Options) (Report, error) {
	l := newLoop(segments, name, o)
	w, err := l.open(ctx)
	if errors.Is(err, errComplete) {
		l.report.Already = true
		err = nil
		if o.Parser != nil {
			err = l.parseRest(ctx, &o)
		}
		return l.report, err
	}
	if err != nil {
		return l.report, err
	}
	defer w.close()
	if len(w.parts) == 0 { // only the merge of the lists is left
		l.report.Already = true
		err = l.complete(ctx, w)
		return l.report, err
	}
	if !w.parsing() {
		l.opts.Parser = nil
	}
	if err := l.openFollower(ctx, w); err != nil {
		return l.report, err
	}
	l.list = newListReader(ctx, segments, name)
	defer func() { l.list.stop() }()
	if err = l.visitAll(ctx, w); err == nil {
		err = l.complete(ctx, w)
	}
	return l.report, err
}

func newLoop(segments segment.Store, name string, o Options) *loop {
	pause := o.Politeness.Delay
	if o.Politeness.ThreadsPerHost > 1 {
		pause = o.Politeness.MinDelay
	}
	l := &loop{opts: o, givenOpts: o, segments: segments, name: name,
		queues:   newQueues(o.Politeness.ThreadsPerHost, pause, time.Now()),
		groupAge: firstGroupAge,
		threads:  threadShares{threads: o.Threads, spare: o.SpareThreads, slowAfter: o.SlowVisit},
		report:   Report{Visits: map[protocol.Code]int{}},
		groups:   make(chan []*visitResult, 1), sitemapSem: make(chan struct{}, maxSitemapsInMemory(o.Threads)),
		limits: newLimits(&o), addresses: recent.Map[string]{Max: maxAddresses},
	}
	if o.Following.MaxRedirects > 0 {
		l.redirects = &redirectState{targets: map[string]redirectTarget{}, via: map[string]string{}}
	}
	return l
}

// visitAll visits the pages of the list and those that are followed, and writes the
// results. All goroutines that it starts have ended when it returns.
func (l *loop) visitAll(ctx context.Context, w *output) error {
	var g errgroup.Group
	visiting, stopVisiting := context.WithCancel(ctx)
	defer stopVisiting()
	jobs := make(chan job)
	results := make(chan result, 2*(l.opts.Threads+l.opts.SpareThreads))
	hire := func() {
		g.Go(func() error {
			for j := range jobs {
				results <- l.work(visiting, j, results)
			}
			return nil
		})
	}
	// The writer outlives a cancelled context for a moment, so that complete results
	// are kept. If it fails it continues to accept groups, so that the loop does not wait
	// for it, and ends the visits.
	keep, done := grace.Context(ctx)
	defer done()
	g.Go(func() (err error) {
		for group := range l.groups {
			if err != nil {
				continue
			}
			if !w.parsing() {
				// The parse stage reads robots.txt of these pages in the host db.
				err = l.opts.Hosts.Sync(keep)
			}
			if err == nil {
				err = w.write(keep, group)
			}
			if err != nil {
				stopVisiting()
			}
		}
		return err
	})

	err := l.runRecovering(visiting, stopVisiting, hire, jobs, results)
	close(jobs)
	l.flush()
	close(l.groups)
	if e := g.Wait(); e != nil {
		err = e
	}
	// Grants are released, and the records of hosts are kept.
	if e := l.opts.Hosts.Sync(keep); err == nil {
		err = e
	}
	return err
}

// complete completes what was written, and the segment if nothing else is missing.
func (l *loop) complete(ctx context.Context, w *output) error {
	if err := w.commit(ctx); err != nil {
		return err
	}
	w.close()
	if l.lists != nil {
		whole, err := l.lists.merge(ctx)
		if l.report.Left = l.lists.incomplete; err != nil || !whole {
			return err
		}
	}
	if l.givenOpts.Parser != nil {
		return l.parseRest(ctx, &l.givenOpts)
	}
	return nil
}

// runRecovering is loop, except that a panic of OnVisit or a rule ends it with an error:
// the workers must not be left waiting. No worker is kept from ending, since results
// has room for all that they may still send.
func (l *loop) runRecovering(ctx context.Context, stop, hire func(), jobs chan<- job, results <-chan result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.opts.Logger.Error("fetch: a policy panicked", "url", l.lastURL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: OnVisit or another policy panicked: %v", l.lastURL, p)
			stop()
		}
	}()
	return l.runUntilDone(ctx, stop, hire, jobs, results)
}

// runUntilDone runs until the list is done or something ends it; then it stops the
// visits under way and waits for them.
func (l *loop) runUntilDone(ctx context.Context, stop, hire func(), jobs chan<- job, results <-chan result) error {
	workers := 0
	var failed error
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if failed == nil {
			failed = ctx.Err()
		}
		var wake time.Time
		if failed == nil {
			if wake, failed = l.readList(); failed != nil {
				continue
			}
			for {
				j, ok := l.nextJob(&wake)
				if !ok {
					break
				}
				if l.threads.inFlight() > workers {
					workers++
					hire()
				}
				jobs <- j // a worker is free: there are as many as visits
			}
			if l.checkLimits(&wake) {
				continue
			}
		}
		if l.threads.inFlight() == 0 && (failed != nil || l.queues.items == 0 && l.list.over()) {
			more := false
			if failed == nil {
				more, failed = l.queueRedirects(ctx)
			}
			if !more {
				return failed
			}
			continue
		}
		if len(l.group) > 0 {
			sooner(&wake, l.groupSince.Add(l.groupAge))
		}
		if wake.IsZero() {
			wake = time.Now().Add(time.Hour)
		}
		timer.Reset(time.Until(wake))
		done, end := ctx.Done(), l.opts.Limits.End
		if failed != nil {
			done = nil
		}
		if failed != nil || l.limits.left != nil {
			end = nil
		}
		select {
		case r := <-results:
			if err := l.handleResult(&r); err != nil && failed == nil {
				failed = err
				stop() // a page that never ends must not delay the news
			}
		case <-timer.C:
		case <-done:
		case <-end:
		}
		if len(l.group) > 0 && time.Since(l.groupSince) >= l.groupAge {
			l.groupAge = min(2*l.groupAge, groupAge)
			l.flush()
		}
	}
}

// sooner sets t to another time if that is earlier.
func sooner(t *time.Time, other time.Time) {
	if !other.IsZero() && (t.IsZero() || other.Before(*t)) {
		*t = other
	}
}

// nextJob returns a visit that may begin now. If there is none, it moves wake to the time
// at which there may be one.
func (l *loop) nextJob(wake *time.Time) (j job, ok bool) {
	now := time.Now()
	sooner(wake, l.threads.ageOut(now))
	g, at := l.opts.Politeness.Limiter.begin(now)
	if !at.IsZero() {
		sooner(wake, at)
		return job{}, false
	}
	h, it, at := l.queues.next(now, l.threads.openPaces())
	if h == nil {
		l.opts.Politeness.Limiter.end(g, false, 0, now)
		sooner(wake, at)
		return job{}, false
	}
	return job{h, it, h.delay, h.pace, l.threads.begin(h.pace, now), g, h.robotsWaits}, true
}

// handleResult processes a result.
func (l *loop) handleResult(r *result) error {
	l.lastURL = r.item.URL
	if !r.grantOver {
		l.threads.end(r.runningVisit)
	}
	if r.robots {
		l.report.Robots++
	}
	if !r.parsedLater {
		l.opts.Politeness.Limiter.end(r.permit, r.requested, r.bytes, time.Now())
		if (r.address != "" || r.lookupFailure != "") && l.limits.left == nil {
			l.moveResolved(r)
		} else {
			l.grantEnded(r)
		}
		l.queues.visitEnded(r.host, r.nextVisit)
	}
	if r.out != nil {
		l.keep(r)
	}
	return r.err
}

// grantEnded processes the end of a grant: the news about the host, and whether the item
// has to wait for another.
func (l *loop) grantEnded(r *result) {
	h := r.host
	moved := r.item.robots != nil && r.robotsMove != nil // and is no longer in this queue
	if r.err != nil || r.out == nil && !r.grantOver && !moved {
		l.requeue(r)
	}
	if r.err == nil && r.robotsMove != nil && l.limits.left == nil {
		l.moveRobots(r.robotsMove)
	}
	if !r.requeueLast {
		h.sitemapRefusals = 0
	}
	if r.limit > 0 {
		h.limit = r.limit
	}
	if r.allGranted && h.running > 1 { // by our own visits, which report when they end
		h.limit = h.running - 1
	}
	if r.newPace != unknown {
		h.pace = r.newPace
	}
	if r.awaitsRobots && h.robotsWaits == r.robotsWaits { // several visits may wait at the same time
		h.robotsWaits++
	}
	if r.err == nil && !r.requeueLast { // we have to wait, not the host
		l.skipIfLong(h, r)
	}
}

// requeue puts an item back into its queue, or counts it as left if a limit was hit.
func (l *loop) requeue(r *result) {
	switch {
	case l.limits.left != nil:
		if r.item.robots == nil && !r.item.unlisted {
			*l.limits.left++
		}
	case r.requeueLast:
		// Hosts that have nothing but sitemaps must not keep the loop busy,
		// however many there are.
		r.nextVisit = r.nextVisit.Add(sitemapWait<<min(l.queues.putBack(r.host, r.item)/8, 6) - sitemapWait)
	default:
		l.queues.putFront(r.host, r.item)
	}
}

// finish keeps a visit and reports it.
func (l *loop) finish(v *visitResult) {
	l.add(v)
	l.redirects.record(v)
	if v.visit.Outcome.Code.Asked() {
		l.limits.visits++
	}
	if l.opts.OnVisit != nil {
		l.opts.OnVisit(v.visit, Progress{Listed: l.report.Listed, Done: l.report.Resumed + l.report.Visited() - l.report.Followed, Followed: l.report.Followed, InFlight: l.threads.inFlight(), Hosts: len(l.queues.hosts)})
	}
}

// add counts a visit and puts it into the group.
func (l *loop) add(v *visitResult) {
	l.report.count(v)
	if len(l.group) == 0 {
		l.groupSince = time.Now()
	}
	l.group = append(l.group, v)
	if v.content != nil {
		l.groupBytes += len(v.content.Body)
	}
	if v.text != nil {
		l.groupBytes += len(v.text.Text)
	}
	l.groupBytes += v.linkBytes()
	if len(l.group) >= groupVisits || l.groupBytes >= groupBytes {
		l.flush()
	}
}

// flush passes the group to the writer.
func (l *loop) flush() {
	if len(l.group) > 0 {
		l.groups <- l.group
		l.group, l.groupBytes = nil, 0
	}
}
