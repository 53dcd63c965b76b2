package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// overview is what the crawl is doing and how it stands.
type overview struct {
	Now time.Time `json:"now"`
	// Stage is that of the round under way, empty if there is none in this process.
	Stage     string    `json:"stage,omitempty"`
	Segment   string    `json:"segment,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Rounds    int       `json:"rounds"` // since the process began, as Visits
	Visits    int       `json:"visits"`
	Bytes     int64     `json:"bytes"`
	PerSecond float64   `json:"visits_per_second"` // of the fetch under way
	Listed    int       `json:"listed"`
	Done      int       `json:"listed_done"`
	InFlight  int       `json:"in_flight"`
	Hosts     int       `json:"hosts_active"`
	NextDue   time.Time `json:"next_due,omitzero"`
	// Due is how many pages are due, at most dueCounted.
	Due       int                      `json:"due"`
	Freshness *freshness               `json:"freshness,omitempty"`
	Asked     []askedHost              `json:"asked"`
	Outcomes  []outcomeCount           `json:"outcomes"` // of the last day
	Failures  []failureCount           `json:"failures"` // of the newest segments
	Points    []historyPoint           `json:"history"`
	Changes   []change                 `json:"changes"`
	Damaged   []string                 `json:"damaged,omitempty"`
	Consumers []recrawl.ConsumerStatus `json:"consumers"`
	Workers   []worker                 `json:"workers,omitempty"` // of a divided crawl
	Refresh   int                      `json:"-"`
}

const dueCounted = 10_000

// DueText says how many pages are due.
func (o overview) DueText() string {
	if o.Due >= dueCounted {
		return "10,000 or more"
	}
	return number(o.Due)
}

// LastDay counts the visits of the last day.
func (o overview) LastDay() (n int) {
	for _, c := range o.Outcomes {
		n += c.Count
	}
	return n
}

// AllVisits counts the visits of the history.
func (o overview) AllVisits() (n int) {
	for _, p := range o.Points {
		n += p.total
	}
	return n
}

// ChartFreshness and ChartVisits are pictures of the history.
func (o overview) ChartFreshness() chart { return freshnessChart(o.Points) }
func (o overview) ChartVisits() chart    { return visitsChart(o.Points) }

// askedHost is a host with requests under way.
type askedHost struct {
	Host     string  `json:"host"`
	Requests int     `json:"requests"`
	Elapsed  float64 `json:"mean_seconds"` // what a request took recently
}

// worker is a process that makes rounds of some groups of a divided crawl. Groups without a worker are
// listed under an empty name.
type worker struct {
	Name   string `json:"name"`
	Groups []int  `json:"groups"`
}

func (h *Handler) workers(ctx context.Context) ([]worker, error) {
	if h.o.Workers == nil {
		return nil, nil
	}
	state, err := h.o.Workers(ctx)
	if err != nil {
		return nil, err
	}
	all, places := []worker{}, map[string]int{}
	add := func(name string) int {
		i, ok := places[name]
		if !ok {
			i = len(all)
			all, places[name] = append(all, worker{Name: name, Groups: []int{}}), i
		}
		return i
	}
	for _, w := range state.Workers {
		add(w.Owner)
	}
	for _, g := range state.Groups {
		i := add(g.Owner)
		all[i].Groups = append(all[i].Groups, g.Group)
	}
	return all, nil
}

type outcomeCount struct {
	Outcome string  `json:"outcome"`
	Count   int     `json:"count"`
	Share   float64 `json:"share"`
	Failure bool    `json:"failure"`
}

type failureCount struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
	Example string `json:"example"` // one of the URLs
}

type historyPoint struct {
	Time     time.Time      `json:"time"`
	Visits   map[string]int `json:"visits"`
	Failures int            `json:"failures"`
	Bytes    int64          `json:"bytes"`
	Fresh    float64        `json:"fresh,omitempty"`
	Never    int            `json:"never_visited"`
	Overdue  int            `json:"overdue"`
	Budget   float64        `json:"budget_per_day,omitempty"`
	total    int
}

// overviewFresh is for how long an overview is shown again, so that a browser that asks in a loop costs the
// crawl little.
const overviewFresh = time.Second

// recentOverview is the last overview that was made.
type recentOverview struct {
	mu   sync.Mutex
	made time.Time
	last overview
}

func (h *Handler) overview(q *request) (any, error) {
	h.recent.mu.Lock()
	defer h.recent.mu.Unlock()
	if time.Since(h.recent.made) >= overviewFresh {
		o, err := h.newOverview(q)
		if err != nil {
			return nil, err
		}
		h.recent.last, h.recent.made = o, time.Now()
	}
	o := h.recent.last
	o.Refresh = refreshSeconds(q)
	return o, nil
}

func (h *Handler) newOverview(q *request) (overview, error) {
	ctx := q.Context()
	s := h.o.Crawler.Status()
	o := overview{
		Now: q.now, Stage: s.Stage, Segment: s.Segment, Since: s.Since.UTC(), Rounds: s.Rounds, Visits: s.Visited(), Bytes: s.Bytes,
		Listed: s.Fetch.Listed, Done: s.Fetch.Done, InFlight: s.Fetch.InFlight, Hosts: s.Fetch.Hosts, NextDue: s.NextDue,
		Asked: []askedHost{}, Changes: []change{},
	}
	if took := time.Since(s.Since).Seconds(); s.Stage == "fetch" && took > 1 {
		o.PerSecond = float64(s.Fetch.Done+s.Fetch.Followed) / took
	}
	for _, err := range h.o.Crawler.Damaged() {
		o.Damaged = append(o.Damaged, err.Error())
	}
	var err error
	if o.Due, err = h.countDue(ctx, q.now); err != nil {
		return o, err
	}
	o.Freshness = newFreshness(h.planned(ctx))
	if o.Points, err = h.history(ctx); err != nil {
		return o, err
	}
	o.Outcomes = outcomesSince(o.Points, q.now.Add(-24*time.Hour))
	if s.Fetch.InFlight > 0 {
		if o.Asked, err = h.askedHosts(ctx); err != nil {
			return o, err
		}
	}
	if o.Failures, err = h.failures(ctx); err != nil {
		return o, err
	}
	recent, err := h.findChanges(ctx, changeQuery{limit: 8, budget: 300 * time.Millisecond})
	if err != nil {
		return o, err
	}
	o.Changes = recent.Changes
	if o.Consumers, err = h.o.Crawler.Consumers(ctx); err != nil {
		return o, err
	}
	o.Workers, err = h.workers(ctx)
	return o, err
}

// countDue counts the pages that are due, up to dueCounted.
func (h *Handler) countDue(ctx context.Context, now time.Time) (n int, err error) {
	due, ok := crawldb.AsDueStore(h.o.Stores.Crawl)
	if !ok {
		return h.countDueByScan(ctx, now)
	}
	for _, err := range due.Due(ctx, crawldb.DueQuery{Now: now, Limit: dueCounted}) {
		if err != nil && ctx.Err() == nil { // an index that is not up to date, of a store that cannot be changed
			return h.countDueByScan(ctx, now)
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// countDueByScan is countDue for a store without an index. It looks at no more than scanned records.
func (h *Handler) countDueByScan(ctx context.Context, now time.Time) (n int, err error) {
	looked := 0
	for d, err := range h.o.Stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return 0, err
		}
		if !d.FetchTime.After(now) && !d.Leased(now) {
			n++
		}
		if looked++; n >= dueCounted || looked >= scanned {
			break
		}
	}
	return n, nil
}

func (h *Handler) history(ctx context.Context) ([]historyPoint, error) {
	points, err := h.o.Crawler.History(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]historyPoint, 0, len(points))
	for _, p := range points {
		j := historyPoint{Time: p.Time, Visits: map[string]int{}, Bytes: p.Bytes, Fresh: p.Fresh, Never: p.Never, Overdue: p.Overdue, Budget: p.Budget}
		for code, n := range p.Visits {
			j.Visits[code.String()] = n
			j.total += n
			if isFailure(code) {
				j.Failures += n
			}
		}
		all = append(all, j)
	}
	return all, nil
}

// isFailure reports whether an outcome is a failure of the server or of the crawl. A page that is gone
// is no failure.
func isFailure(c protocol.Code) bool {
	switch c {
	case protocol.Failed, protocol.Busy, protocol.RobotsFailed, protocol.Skipped, protocol.Denied:
		return true
	}
	return false
}

func outcomesSince(points []historyPoint, since time.Time) []outcomeCount {
	counts, total := map[string]int{}, 0
	for _, p := range points {
		if p.Time.After(since) {
			for name, n := range p.Visits {
				counts[name] += n
				total += n
			}
		}
	}
	all := []outcomeCount{}
	for name, n := range counts {
		var c protocol.Code
		_ = c.UnmarshalText([]byte(name))
		all = append(all, outcomeCount{name, n, float64(n) / float64(total), isFailure(c)})
	}
	slices.SortFunc(all, func(a, b outcomeCount) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Outcome, b.Outcome))
	})
	return all
}

// askedHosts returns hosts with requests under way, as far as they are found in a quarter of a second.
func (h *Handler) askedHosts(ctx context.Context) ([]askedHost, error) {
	asked, began, now := []askedHost{}, time.Now(), time.Now()
	for host, err := range h.o.Stores.Hosts.Scan(ctx) {
		if err != nil {
			return nil, err
		}
		n := 0
		for _, end := range host.Grants {
			if end.After(now) {
				n++
			}
		}
		if n > 0 {
			asked = append(asked, askedHost{host.Name, n, host.Elapsed.Seconds()})
		}
		if len(asked) >= 20 || time.Since(began) > 250*time.Millisecond {
			break
		}
	}
	return asked, nil
}

// failures counts why visits have failed, in the newest segments, as far as that takes no longer than a
// quarter of a second.
func (h *Handler) failures(ctx context.Context) ([]failureCount, error) {
	names, err := h.newestSegments(ctx)
	if err != nil {
		return nil, err
	}
	type cause struct{ outcome, reason string }
	counts, examples, began := map[cause]int{}, map[cause]string{}, time.Now()
segments:
	for _, name := range names[:min(len(names), 100)] {
		for block, err := range segment.Partial[segment.Visit](ctx, h.o.Stores.Segments, name, 0) {
			if skip, err := unreadable(ctx, err); err != nil {
				return nil, err
			} else if skip {
				break
			}
			for i := range block {
				if v := &block[i]; isFailure(v.Outcome.Code) {
					c := cause{v.Outcome.Code.String(), shortReason(v.Outcome)}
					counts[c]++
					examples[c] = v.URL
				}
			}
			if time.Since(began) > 250*time.Millisecond {
				break segments
			}
		}
	}
	causes := slices.SortedFunc(maps.Keys(counts), func(a, b cause) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a.outcome+a.reason, b.outcome+b.reason))
	})
	all := []failureCount{}
	for _, c := range causes[:min(len(causes), 10)] {
		all = append(all, failureCount{c.outcome, c.reason, counts[c], examples[c]})
	}
	return all, nil
}

// shortReason returns the last part of a reason, which is the same for all hosts.
func shortReason(o protocol.Outcome) string {
	reason := o.Reason
	if i := strings.LastIndex(reason, ": "); i >= 0 {
		reason = reason[i+2:]
	}
	if o.Status > 0 && reason == "" {
		return "status " + number(o.Status)
	}
	return cut(reason, 100)
}

// newestSegments returns the names of all segments, the newest first.
func (h *Handler) newestSegments(ctx context.Context) (names []string, err error) {
	for name, err := range h.o.Stores.Segments.List(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Reverse(names)
	return names, nil
}

// unreadable reports whether an error of reading a segment is one that only this segment has: it is not
// there any more, or not yet, or damaged.
func unreadable(ctx context.Context, err error) (skip bool, _ error) {
	var damage *segment.CorruptError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, segment.ErrNotFound) || errors.As(err, &damage):
		return true, nil
	}
	return false, err
}

func refreshSeconds(q *request) int {
	var n int
	for _, c := range q.URL.Query().Get("refresh") {
		if c < '0' || c > '9' || n > 3600 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	if n == 0 {
		return 0
	}
	return max(n, 5)
}

// freshness is how up to date the copies are, as of the last plan.
type freshness struct {
	At       time.Time `json:"at"`
	Pages    int       `json:"pages"`
	Copies   int       `json:"copies"`
	Never    int       `json:"never_visited"`
	Overdue  int       `json:"overdue"`
	Known    bool      `json:"known"` // whether the shares are known
	Fresh    float64   `json:"fresh"`
	Weighted float64   `json:"fresh_by_importance"`
	Budget   float64   `json:"budget_per_day"`
	Used     float64   `json:"used_per_day"`
	LongRun  float64   `json:"fresh_in_the_long_run,omitempty"`
}

// planned returns the state as of the last plan; nil if there is none.
func (h *Handler) planned(ctx context.Context) *recrawl.Freshness {
	if f := h.o.Crawler.Status().Freshness; f != nil {
		return f
	}
	p, err := recrawl.ReadPlan(ctx, h.o.Stores.Crawl)
	if err != nil || p == nil || p.Outlook == nil { // a plan that cannot be read is made anew by the next round
		return nil
	}
	return &recrawl.Freshness{Outlook: *p.Outlook, Budget: p.Budget, BudgetGiven: p.Asked > 0}
}

// newFreshness returns f for JSON; nil if there is none.
func newFreshness(f *recrawl.Freshness) *freshness {
	if f == nil {
		return nil
	}
	j := &freshness{
		At: f.At, Pages: f.Pages, Copies: f.Copies, Never: f.Never, Overdue: f.Overdue, Known: f.Estimated > 0,
		Fresh: f.Freshness, Weighted: f.Weighted, Budget: f.Budget, Used: f.Used,
	}
	if f.Forecast != nil {
		j.LongRun = f.Forecast.Freshness
	}
	return j
}
