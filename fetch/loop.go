package fetch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/recrawl/recrawl/internal/grace"
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
	h     *host
	it    item
	delay time.Duration // of the host
	was   pace          // what was known of the host
	*flight
	grant grant
	// waited is how often the fetch waited for the host's robots.txt.
	waited int
}

// result is what a worker made of a job. A page that was requested makes two:
// one when the turn with the host is over, one when the page is parsed.
type result struct {
	job
	// out is the visit; nil if the item has to wait for another turn.
	out *visited
	// at is when the host may be visited again, failures how many times in a row it
	// has failed, limit how many visits to it there may be, zero if that was not
	// looked up. full says that others have all turns, and now how quickly the host
	// answers.
	at       time.Time
	failures int64
	limit    int
	full     bool
	now      pace
	// crawlDelay is that of the origin. pause is the usual pause of the host, why
	// the reason for a longer one.
	crawlDelay, pause time.Duration
	why               verdict
	// patience is how long the server that was just asked for robots.txt asks to be left
	// alone.
	patience time.Duration
	// alone says that there must be no other request to the host meanwhile.
	alone bool
	// made says that a request was made, and bytes how many bytes came.
	made  bool
	bytes int64
	// addr is the queue of the host by address, lost why there is none.
	addr, lost string
	// A turn was claimed at claimed, and ends at until.
	claimed, until time.Time
	// turnOver says that the page is being parsed and will follow, after that
	// this is the page.
	turnOver, after bool
	// behind says that an item that has to wait goes behind the others of its
	// host.
	behind bool
	// robots says that robots.txt was requested.
	robots bool
	// hop is a robots.txt that has moved, or has arrived.
	hop *robotsHop
	// waits says that the fetch waits for the host's robots.txt.
	waits bool
	// err ends the run.
	err error
}

type loop struct {
	o, given Options // without the parser if it is not used while fetching
	segments segment.Store
	name     string
	report   Report

	q         *queues
	seen      pages  // visited before this run
	lists     *lists // nil if the segment is fetched as a whole
	list      *feed
	lanes     lanes
	addresses addresses
	limits    limits
	beyond    beyond
	asked     string                   // the URL of the last result
	hops      *hops                    // nil if redirects are not followed
	delays    map[string]time.Duration // requested by the list, by queue

	origins  origins       // whose robots.txt was checked for sitemaps
	sitemaps chan struct{} // places for visits that hold one in memory

	group      []*visited
	groupBytes int
	groupSince time.Time
	groupAge   time.Duration // how old it may get
	groups     chan []*visited
}

func run(ctx context.Context, segments segment.Store, name string, o Options) (Report, error) {
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
		err = l.finish(ctx, w)
		return l.report, err
	}
	if !w.parsing() {
		l.o.Parser = nil
	}
	if err := l.openBeyond(ctx, w); err != nil {
		return l.report, err
	}
	l.list = newFeed(ctx, segments, name)
	defer func() { l.list.stop() }()
	if err = l.visitAll(ctx, w); err == nil {
		err = l.finish(ctx, w)
	}
	return l.report, err
}

func newLoop(segments segment.Store, name string, o Options) *loop {
	pause := o.Politeness.Delay
	if o.Politeness.ThreadsPerHost > 1 {
		pause = o.Politeness.MinDelay
	}
	l := &loop{o: o, given: o, segments: segments, name: name,
		q:        newQueues(o.Politeness.ThreadsPerHost, pause, time.Now()),
		groupAge: firstGroupAge,
		lanes:    lanes{threads: o.Threads, spare: o.SpareThreads, long: o.SlowVisit},
		report:   Report{Visits: map[protocol.Code]int{}},
		groups:   make(chan []*visited, 1), sitemaps: make(chan struct{}, sitemapPlaces(o.Threads)),
		limits: newLimits(&o),
	}
	if o.Following.MaxRedirects > 0 {
		l.hops = &hops{to: map[string]led{}, via: map[string]string{}}
	}
	return l
}

// visitAll visits the list and what is visited beyond it, and writes what comes of
// that. All goroutines that it starts have ended when it returns.
func (l *loop) visitAll(ctx context.Context, w *output) error {
	var g errgroup.Group
	visiting, stopVisiting := context.WithCancel(ctx)
	defer stopVisiting()
	jobs := make(chan job)
	results := make(chan result, 2*(l.o.Threads+l.o.SpareThreads))
	hire := func() {
		g.Go(func() error {
			for j := range jobs {
				results <- l.work(visiting, j, results)
			}
			return nil
		})
	}
	// The writer outlives a cancelled context for a moment, so that complete results
	// are kept. If it fails it continues to accept groups, so that nobody waits for
	// it, and ends the visits.
	keep, done := grace.Context(ctx)
	defer done()
	g.Go(func() (err error) {
		for group := range l.groups {
			if err != nil {
				continue
			}
			if err = w.write(keep, group); err != nil {
				stopVisiting()
			}
		}
		return err
	})

	err := l.guarded(visiting, stopVisiting, hire, jobs, results)
	close(jobs)
	l.flush()
	close(l.groups)
	if e := g.Wait(); e != nil {
		err = e
	}
	// Claimed turns are given back, and the records of hosts are kept.
	if e := l.o.Hosts.Sync(keep); err == nil {
		err = e
	}
	return err
}

// finish completes what was written, and the segment if nothing else is missing.
func (l *loop) finish(ctx context.Context, w *output) error {
	if err := w.commit(ctx); err != nil {
		return err
	}
	w.close()
	if l.lists != nil {
		whole, err := l.lists.join(ctx)
		if l.report.Left = l.lists.left; err != nil || !whole {
			return err
		}
	}
	if l.given.Parser != nil {
		return l.parseRest(ctx, &l.given)
	}
	return nil
}

// guarded is loop, except that a panic of OnVisit or a rule ends it with an error:
// the workers must not be left waiting. No worker is kept from ending, since results
// has room for all that they may still send.
func (l *loop) guarded(ctx context.Context, stop, hire func(), jobs chan<- job, results <-chan result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.o.Logger.Error("fetch: a policy panicked", "url", l.asked, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: OnVisit or another policy panicked: %v", l.asked, p)
			stop()
		}
	}()
	return l.loop(ctx, stop, hire, jobs, results)
}

// loop runs until the list is done or something ends it; then it stops the
// visits under way and waits for them.
func (l *loop) loop(ctx context.Context, stop, hire func(), jobs chan<- job, results <-chan result) error {
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
			if wake, failed = l.feed(); failed != nil {
				continue
			}
			for {
				j, ok := l.nextJob(&wake)
				if !ok {
					break
				}
				if l.lanes.flying() > workers {
					workers++
					hire()
				}
				jobs <- j // a worker is free: there are as many as visits
			}
			if l.limit(&wake) {
				continue
			}
		}
		if l.lanes.flying() == 0 && (failed != nil || l.q.items == 0 && l.list.over()) {
			more := false
			if failed == nil {
				more, failed = l.nextHops(ctx)
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
		done := ctx.Done()
		if failed != nil {
			done = nil
		}
		select {
		case r := <-results:
			if err := l.take(&r); err != nil && failed == nil {
				failed = err
				stop() // a page that never ends must not delay the news
			}
		case <-timer.C:
		case <-done:
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
	sooner(wake, l.lanes.age(now))
	g, at := l.o.Politeness.Limiter.begin(now)
	if !at.IsZero() {
		sooner(wake, at)
		return job{}, false
	}
	h, it, at := l.q.next(now, l.lanes.open())
	if h == nil {
		l.o.Politeness.Limiter.end(g, false, 0, now)
		sooner(wake, at)
		return job{}, false
	}
	return job{h, it, h.delay, h.pace, l.lanes.begin(h.pace, now), g, h.waited}, true
}

// take processes a result.
func (l *loop) take(r *result) error {
	l.asked = r.it.URL
	if !r.turnOver {
		l.lanes.end(r.flight)
	}
	if r.robots {
		l.report.Robots++
	}
	if !r.after {
		l.o.Politeness.Limiter.end(r.grant, r.made, r.bytes, time.Now())
		if (r.addr != "" || r.lost != "") && l.limits.left == nil {
			l.resolved(r)
		} else {
			l.endTurn(r)
		}
		l.q.done(r.h, r.at)
	}
	if r.out != nil {
		l.came(r)
	}
	return r.err
}

// endTurn processes the end of a turn with a host: what it says about the host, and whether
// the item has to wait for another.
func (l *loop) endTurn(r *result) {
	h := r.h
	moved := r.it.robots != nil && r.hop != nil // and is no longer in this queue
	if r.err != nil || r.out == nil && !r.turnOver && !moved {
		l.again(r)
	}
	if r.err == nil && r.hop != nil && l.limits.left == nil {
		l.moveRobots(r.hop)
	}
	if !r.behind {
		h.refused = 0
	}
	if r.limit > 0 {
		h.limit = r.limit
	}
	if r.full && h.busy > 1 { // by our own visits, which report when they end
		h.limit = h.busy - 1
	}
	if r.now != unknown {
		h.pace = r.now
	}
	if r.waits && h.waited == r.waited { // several visits may wait at the same time
		h.waited++
	}
	if r.err == nil && !r.behind { // we have to wait, not the host
		l.skip(h, r)
	}
}

// again puts an item back into its queue, or counts it as left if a limit was hit.
func (l *loop) again(r *result) {
	switch {
	case l.limits.left != nil:
		if r.it.robots == nil && !r.it.unlisted {
			*l.limits.left++
		}
	case r.behind:
		// Hosts that have nothing but sitemaps must not keep the loop busy,
		// however many there are.
		r.at = r.at.Add(placeWait<<min(l.q.behind(r.h, r.it)/8, 6) - placeWait)
	default:
		l.q.back(r.h, r.it)
	}
}

// A verdict says why a host is no longer visited in this round.
type verdict struct {
	reason string
	// after is how long that will last; zero if unknown. Then aDay pages can be
	// visited each day; zero for all.
	after time.Duration
	aDay  int64
	// down is how long a host that is down is left alone, and forGood says that its
	// pages are gone.
	down    time.Duration
	forGood bool
	// code is that of the visits; zero means Skipped.
	code  protocol.Code
	cause cause
}

// skip gives up on a host for this round if it keeps failing, or would have to
// be waited for too long: it holds nobody up.
func (l *loop) skip(h *host, r *result) {
	v := r.why
	switch wait := time.Until(r.at); {
	case l.o.Politeness.MaxFailures > 0 && r.failures >= int64(l.o.Politeness.MaxFailures):
		// In whole hours, like the pause, so that the result does not depend on how
		// soon after the failure this is.
		down := (wait + time.Hour - 1).Truncate(time.Hour)
		v = verdict{reason: fmt.Sprintf("the host failed %d times in a row", r.failures), down: down, forGood: l.o.forGood(r.failures), cause: hostFails}
	case wait <= max(l.o.Politeness.MaxWait, r.pause+time.Millisecond):
		if n := h.items.len() + h.unread; n > 0 && wait > r.pause+time.Second {
			l.o.Logger.Info("fetch: waiting for host", "host", h.name, "pages", n, "until", r.at)
		}
		return
	case v.reason == "":
		v.reason = "the host has to be left alone for longer than this round can wait"
	}
	if v.cause == noCause {
		v.cause = hostWaits
	}
	l.giveUp(h, v)
}

// giveUp ends the visits to a host for this round.
func (l *loop) giveUp(h *host, v verdict) {
	if h.unread > 0 { // including those that have to be read again
		h.over = &v
	}
	items := l.q.drop(h)
	if len(items) == 0 {
		return
	}
	l.o.Logger.Warn("fetch: host skipped for this round", "host", h.name, "pages", len(items), "reason", v.reason)
	for i, it := range items {
		if it.robots != nil {
			l.endRobots(it.robots, v.reason)
			continue
		}
		switch {
		case !it.unlisted:
			l.over(l.skipped(it, &v, i))
		case it.hop != nil:
			l.report.Redirects.Waiting++
		}
	}
}

// maxPutOff limits how many days a page is put off because others come before
// it.
const maxPutOff = 7

// skipped returns the visit to a page whose host was given up, given the number
// of pages before it.
func (l *loop) skipped(it item, v *verdict, before int) *visited {
	if v.code != 0 {
		return l.unasked(job{it: it}, v.code, v.reason)
	}
	var s *visited
	if v.forGood && !it.LastFetch.After(l.o.Now().Add(-l.o.Politeness.GoneAfter)) {
		s = l.unasked(job{it: it}, protocol.Refused, "host: has been down for long")
	} else {
		s = l.notAsked(it, protocol.Skipped, v.reason)
	}
	s.visit.Outcome.RetryAfter = v.after
	if v.after > 0 && v.aDay > 0 {
		s.visit.Outcome.RetryAfter += time.Duration(min(int64(before)/v.aDay, maxPutOff)) * 24 * time.Hour
	}
	// The pages of a host that is down would fill every list from now on. They wait until
	// it may be asked again.
	if v.down > 24*time.Hour {
		s.visit.Outcome.RetryAfter = v.down
	}
	s.cause = v.cause
	return s
}

// over keeps a visit and reports it.
func (l *loop) over(v *visited) {
	l.add(v)
	l.hops.met(v)
	if v.visit.Outcome.Code.Asked() {
		l.limits.visits++
	}
	if l.o.OnVisit != nil {
		l.o.OnVisit(v.visit, Progress{Listed: l.report.Listed, Done: l.report.Resumed + l.report.Visited() - l.report.Followed, Followed: l.report.Followed, InFlight: l.lanes.flying(), Hosts: len(l.q.hosts)})
	}
}

// count adds a visit to the report.
func (rep *Report) count(v *visited) {
	rep.Visits[v.visit.Outcome.Code]++
	rep.Bytes += v.visit.Bytes
	rep.Causes.count(v)
	if v.visit.Outcome.Code.Asked() {
		rep.Latency.add(v.visit.Elapsed)
	}
	rep.LinksRejected += v.rejected
	rep.LinksCut += v.cut
	if v.sitemap != nil {
		rep.Sitemaps.Add(*v.sitemap)
	}
	rep.Redirects.Add(v.redirects)
	if v.visit.Via != "" {
		rep.Redirects.Followed++
	}
	if v.parse != nil {
		rep.Links += len(v.parse.Links)
		if v.parse.Error != "" {
			rep.ParseFailed++
		} else if v.data != nil {
			rep.Parsed++
			if v.data.Parsed.Truncated {
				rep.ParseCut++
			}
		}
	}
}

// add counts a visit and puts it into the group.
func (l *loop) add(v *visited) {
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
	l.groupBytes += v.heavy()
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
