// Package hoststat computes the statistics of the hosts of a crawl: how many
// pages each has in which state, where its start page is, how fast and with
// which media types it answers, whether its name has an address. (Nutch:
// updatehostdb.) It makes no visit, and looks names up only if asked to. Start with [Run].
//
// The statistics are a function of the crawl db: every [Run] recomputes them,
// and a host without records has zeros. Only the results of DNS checks and the
// score of a host are carried over from the host db.
package hoststat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say what to count. The zero value counts all hosts as Nutch does by
// default, and looks up no names.
type Options struct {
	// By says what counts as a host; it must match the queues of the fetcher,
	// since both write to one host db. By domain all hosts of a registered
	// domain are one.
	By hostdb.By
	// Rules, if not nil, are applied to "http://host/" in the scope
	// urlfilter.AnyScope. A host that they reject, or whose normal form is another
	// host, gets no statistics. (Nutch: hostdb.url.filter, hostdb.url.normalize;
	// -filter, -normalize.)
	Rules *urlfilter.Rules
	// URLLimit is how many records a host must have to get statistics; zero means
	// no minimum. (Nutch: hostdb.url.limit, -urlLimit.)
	URLLimit int64
	// Numbers are the names of numeric metadata. For the values of a host's
	// fetched pages, "min.NAME", "max.NAME", "avg.NAME" and the percentiles are
	// kept. Nil means "_rs_", the response time in milliseconds. (Nutch:
	// hostdb.numeric.fields.)
	Numbers []string
	// Texts are the names of textual metadata. For each of the 100 most frequent
	// values, "NAME.VALUE" is kept, the number of pages that have it. Nil means
	// "Content-Type". (Nutch: hostdb.string.fields.)
	Texts []string
	// Percentiles are the percentiles to keep, as "pct50.NAME" and so on, from 0
	// to 100. Nil means 50, 75, 95 and 99. (Nutch: hostdb.percentiles.)
	Percentiles []float64
	// Sample is how many values of a host percentiles are computed from; zero
	// means 100,000. Up to that number they are exact; of more values those
	// whose URLs have the smallest hashes are used, so that the sample is
	// random but always the same. Each value takes 32 bytes while its host is
	// read.
	Sample int
	// OverdueAfter is how long an unfetched record must have been due to count as
	// overdue; zero means 48 hours. (Nutch:
	// crawl.datum.processor.overdue.time.limit.)
	OverdueAfter time.Duration
	// Scores are scores of hosts by name; a positive score replaces that of the
	// host. (Nutch: -tophosts.)
	Scores map[string]float32
	// Processors are called once for each host. (Nutch:
	// hostdb.crawldatum.processors.)
	Processors []Processor

	// Lookup finds the addresses of a host, in bounded time; nil means the system's
	// resolver. It is called only if one of the next three is set, and from several
	// goroutines.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// CheckNew, CheckKnown and CheckFailed look up names that were never looked
	// up, that had an address the last time, and that had none. (Nutch:
	// -checkNew, -checkKnown, -checkFailed; -checkAll is all three.)
	CheckNew, CheckKnown, CheckFailed bool
	// Force looks up names even if they are not due. (Nutch: -force.)
	Force bool
	// Recheck is how long after a lookup a known name is looked up again; zero
	// means 24 hours. A name without an address waits that long times the number
	// of its failures. (Nutch: hostdb.recheck.interval.)
	Recheck time.Duration
	// PurgeAfter is the number of failures in a row above which a host is removed
	// from the host db; it is new again if it has records the next time. Zero
	// means 3, negative never. (Nutch: hostdb.purge.failed.hosts.threshold.)
	PurgeAfter int64
	// Forget removes hosts that have no record in the crawl db and no score, and that
	// received no request for that long, by the real clock. What was known of such a
	// host is learned again if it comes back. A host that has a sitemap, or whose pause
	// is not over, stays. Zero removes none.
	Forget time.Duration
	// Resolvers is how many lookups may be under way at once; zero means 25.
	// (Nutch: hostdb.num.resolvers.threads.)
	Resolvers int

	// NutchCompat makes two decisions as Nutch does. URLLimit does not count
	// records that are duplicate, orphan or parse_failed. Every error of Lookup
	// counts as a failure of the host; by default only the answer that there is no
	// such name does, and any other error is ignored.
	//
	// No option restores these faults of Nutch: percentiles that are all the
	// median, lookups made only before they are due, a purge of the hosts that
	// failed least, homepages that are not kept, connection failures that depend
	// on the order of records, figures for values that no page has any more, and
	// processors whose counts carry over from one host to the next.
	NutchCompat bool
	// Now is the time of the run; nil means time.Now.
	Now func() time.Time
}

// A Processor is called at the first record of a host. It returns the functions to
// call with each record, and at the end, before the name is looked up; either may
// be nil. finish may change the statistics, whose Fields is not nil; it does not
// see the rest of the host. Both may read their arguments only until they return.
// By domain the records of two hosts may alternate. For a host with odd spellings it may
// be called twice; what the second call returns then sees all records.
type Processor func(host string) (count func(d *crawldb.Datum), finish func(h *hostdb.Host))

// Report says what was done with the hosts.
type Report struct {
	// Records counts the records that were read; NoHost those whose URL has no
	// host.
	Records, NoHost int
	// Hosts counts the hosts that now have statistics; Empty those of them
	// without records. Forgotten were removed because of Options.Forget, Filtered were
	// rejected by the rules, and BelowLimit have too few records.
	Hosts, Empty, Forgotten, Filtered, BelowLimit int
	// Checked counts the names that were looked up. NewKnown and NewUnknown were
	// looked up for the first time, and have an address or not. Rediscovered had no
	// address the last time and have one now. ExistingKnown have one as before,
	// ExistingUnknown have none, or no longer; Purged of these were removed.
	// Unanswered lookups say nothing of a host.
	Checked, NewKnown, NewUnknown, Rediscovered, ExistingKnown, ExistingUnknown, Purged, Unanswered int
}

// Run reads the crawl db once, in order, and writes the statistics of each host to
// the host db, where it changes nothing else. It may run during a crawl. What an
// interrupted run has written is valid, and the next run writes everything.
func Run(ctx context.Context, crawl crawldb.Store, hosts hostdb.Store, o Options) (Report, error) {
	o, err := o.complete()
	if err != nil {
		return Report{}, fmt.Errorf("hoststat: %w", err)
	}
	j := &job{o: o, crawl: crawl, hosts: hosts, now: time.Now(), real: time.Now(), seed: maphash.MakeSeed(), done: map[uint64]hostResult{}, maps: map[uint64]struct{}{}, strays: map[string]*group{}}
	if o.Now != nil {
		j.now = o.Now()
	}
	j.now = time.UnixMilli(j.now.UnixMilli()).UTC()
	if err := j.run(ctx); err != nil {
		return j.report, fmt.Errorf("hoststat: %w", err)
	}
	return j.report, nil
}

func (o Options) complete() (Options, error) {
	if o.Numbers == nil {
		o.Numbers = []string{"_rs_"}
	}
	if o.Texts == nil {
		o.Texts = []string{"Content-Type"}
	}
	if o.Percentiles == nil {
		o.Percentiles = []float64{50, 75, 95, 99}
	}
	for _, p := range o.Percentiles {
		if !(p >= 0 && p <= 100) {
			return o, fmt.Errorf("percentile %v is not between 0 and 100", p)
		}
	}
	if !o.CheckNew && !o.CheckKnown && !o.CheckFailed {
		o.Lookup = nil
	} else if o.Lookup == nil {
		o.Lookup = hostdb.Lookup
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"URLLimit", o.URLLimit}, {"Sample", int64(o.Sample)}, {"OverdueAfter", int64(o.OverdueAfter)}, {"Recheck", int64(o.Recheck)}, {"Forget", int64(o.Forget)}, {"Resolvers", int64(o.Resolvers)}} {
		if n.value < 0 {
			return o, fmt.Errorf("%s is negative", n.name)
		}
	}
	o.Sample = cmp.Or(o.Sample, 100_000)
	o.OverdueAfter = cmp.Or(o.OverdueAfter, 48*time.Hour)
	o.Recheck = cmp.Or(o.Recheck, 24*time.Hour)
	o.PurgeAfter = cmp.Or(o.PurgeAfter, 3)
	o.Resolvers = cmp.Or(o.Resolvers, 25)
	return o, nil
}

// job is one run. Its scan finds the records of a host together, since their
// keys are ordered that way; only a URL with an odd spelling is elsewhere: one with
// user information at the beginning, and a host that is not ASCII, or an address in
// another notation, may also be behind the others.
type job struct {
	o      Options
	crawl  crawldb.Store
	hosts  hostdb.Store
	now    time.Time
	real   time.Time // the real clock, which the times of hosts are of
	report Report

	seed   maphash.Seed
	done   map[uint64]hostResult // of hosts already finished, by their hashes
	maps   map[uint64]struct{}   // hashes of hosts with sitemaps, if hosts may be forgotten
	strays map[string]*group     // of records found elsewhere, until the others come, or if these came before
	open   []*group              // nested by domain: each is in the range of the one before
	checks *checks
}

// hostResult is what became of a host.
type hostResult uint8

const (
	left       hostResult = iota + 1 // without statistics, whatever its records
	belowLimit                       // without statistics, for want of records
	written                          // or passed on to have its name looked up
)

func (j *job) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.checks = startChecks(ctx, cancel, j)
	err := j.scan(ctx)
	if err == nil {
		err = j.finishRest(ctx)
	}
	if e := j.checks.wait(&j.report); e != nil {
		err = e // the reason why the scan was cancelled, if it was
	}
	if err == nil {
		err = j.finishLate(ctx)
	}
	if err != nil {
		return err
	}
	return j.hosts.Sync(ctx)
}

// scan counts the records and finishes each host once its range is over.
func (j *job) scan(ctx context.Context) error {
	for d, err := range j.crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if d.IsSitemap() { // not a page
			if j.o.Forget > 0 {
				j.maps[maphash.String(j.seed, j.o.By.Key(d.URL))] = struct{}{}
			}
			continue
		}
		j.report.Records++
		g, err := j.group(ctx, &d)
		if err != nil {
			return err
		}
		if g == nil {
			j.report.NoHost++
			continue
		}
		g.count(&d)
	}
	return j.closeUntil(ctx, func(*group) bool { return false })
}

// group returns the host that a record belongs to, nil if it has none.
func (j *job) group(ctx context.Context, d *crawldb.Datum) (*group, error) {
	// Most records are on the same site as the one before.
	if n := len(j.open); n > 0 && j.open[n-1].last.covers(d.URL) {
		return j.open[n-1], nil
	}
	name := j.o.By.Key(d.URL)
	if name == "" {
		return nil, nil
	}
	key := crawldb.Key(d.URL)
	if !j.reach(name).Contains(key) {
		g := j.strays[name]
		if g == nil {
			g = newGroup(j, name)
			j.strays[name] = g
		}
		return g, nil
	}
	if err := j.closeUntil(ctx, func(g *group) bool { return g.reach.Contains(key) }); err != nil {
		return nil, err
	}
	for _, g := range j.open {
		if g.name == name {
			g.last = siteOf(d.URL)
			return g, nil
		}
	}
	g := j.strays[name]
	if g == nil {
		g = newGroup(j, name)
	}
	delete(j.strays, name)
	g.last = siteOf(d.URL)
	j.open = append(j.open, g)
	return g, nil
}

// site is the beginning of a URL, up to the byte that begins its path; empty if
// the URL is not that plain.
type site string

func siteOf(url string) site {
	i := strings.Index(url, "://")
	if i < 0 {
		return ""
	}
	n := strings.IndexByte(url[i+3:], '/')
	if n < 0 || strings.ContainsAny(url[:i+3+n], "?#@\\") {
		return ""
	}
	return site(url[:i+3+n+1])
}

func (s site) covers(url string) bool { return s != "" && strings.HasPrefix(url, string(s)) }

// reach returns the range of keys of a host's plain records.
func (j *job) reach(name string) crawldb.Range {
	if j.o.By == hostdb.ByDomain {
		return crawldb.DomainRange(name)
	}
	return crawldb.HostRange(name)
}

// closeUntil finishes the open hosts, the last first, up to one that stays.
func (j *job) closeUntil(ctx context.Context, stays func(*group) bool) error {
	for n := len(j.open); n > 0 && !stays(j.open[n-1]); n = len(j.open) {
		g := j.open[n-1]
		j.open = j.open[:n-1]
		if err := j.finish(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// finishRest finishes the hosts whose records were all found elsewhere, and
// those that are in the host db but not in the crawl db.
func (j *job) finishRest(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(j.strays)) {
		if _, ok := j.done[maphash.String(j.seed, name)]; ok {
			continue // see finishLate
		}
		if err := j.finish(ctx, j.strays[name]); err != nil {
			return err
		}
		delete(j.strays, name)
	}
	for h, err := range j.hosts.Scan(ctx) {
		if err != nil {
			return err
		}
		if _, ok := j.done[maphash.String(j.seed, h.Name)]; ok {
			continue
		}
		// By domain, single hosts have records too, for their robots.txt files, and
		// may have earlier statistics.
		if h.Name == "" || j.o.By.Key("http://"+h.Name+"/") != h.Name {
			if h.Counted.IsZero() {
				continue
			}
			if err := j.drop(ctx, h.Name); err != nil {
				return err
			}
			continue
		}
		if err := j.finish(ctx, newGroup(j, h.Name)); err != nil {
			return err
		}
	}
	return nil
}

// finishLate finishes the hosts with records that were found after those in their
// range were counted and written: these are read once more. The name of such a host is
// not looked up again.
func (j *job) finishLate(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(j.strays)) {
		was := j.done[maphash.String(j.seed, name)]
		if was == left {
			continue
		}
		g := j.strays[name]
		for d, err := range j.crawl.Scan(ctx, g.reach) {
			if err != nil {
				return err
			}
			if !d.IsSitemap() && j.o.By.Key(d.URL) == name {
				g.count(&d)
			}
		}
		st := g.statistics()
		if was == belowLimit {
			if j.counted(&st.Pages) < j.o.URLLimit {
				continue
			}
			j.report.BelowLimit--
			j.report.Hosts++
		}
		if err := j.write(ctx, name, &st, nil); err != nil {
			return err
		}
	}
	return nil
}

// finish writes a host, or passes it on to have its name looked up.
func (j *job) finish(ctx context.Context, g *group) error {
	done := maphash.String(j.seed, g.name)
	j.done[done] = left
	st := g.statistics()
	if st.Pages.Total() == 0 && j.o.Forget > 0 {
		if forgotten, err := j.forget(ctx, g.name, st.Score); forgotten || err != nil {
			return err
		}
	}
	switch {
	case j.rejected(g.name):
		j.report.Filtered++
		return j.drop(ctx, g.name)
	case j.counted(&st.Pages) < j.o.URLLimit:
		j.report.BelowLimit++
		j.done[done] = belowLimit
		return j.drop(ctx, g.name)
	}
	j.done[done] = written
	if st.Pages.Total() == 0 {
		j.report.Empty++
	}
	if j.o.Lookup != nil {
		old, err := j.hosts.Get(ctx, g.name)
		if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
			return err
		}
		if j.due(&old) {
			return j.checks.look(ctx, check{name: g.name, also: g.first, st: st})
		}
	}
	j.report.Hosts++
	return j.write(ctx, g.name, &st, nil)
}

// forget removes a host without records if nothing is left to do for it, and reports
// whether it did.
func (j *job) forget(ctx context.Context, name string, score float32) (forgotten bool, err error) {
	if _, ok := j.maps[maphash.String(j.seed, name)]; ok || score > 0 {
		return false, nil
	}
	before := j.real.Add(-j.o.Forget)
	err = j.hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		forgotten = old != nil && old.Score == 0 && len(old.Grants) == 0 && old.LastFetch.Before(before) && !old.NextFetch.After(j.real)
		for i := 0; forgotten && i < len(old.Robots); i++ { // which may be all that was asked for
			forgotten = old.Robots[i].Fetched.Before(j.now.Add(-j.o.Forget))
		}
		if !forgotten {
			return old, nil
		}
		return nil, nil
	})
	if err != nil {
		return false, err
	}
	if forgotten {
		j.report.Forgotten++
	}
	return forgotten, nil
}

// counted returns the number that URLLimit limits.
func (j *job) counted(p *hostdb.Pages) int64 {
	n := p.Total()
	if j.o.NutchCompat {
		n -= p.Duplicate + p.Orphan + p.ParseFailed
	}
	return n
}

func (j *job) rejected(name string) bool {
	if j.o.Rules == nil {
		return false
	}
	url, err := j.o.Rules.Apply(urlfilter.AnyScope, "http://"+name+"/")
	return err != nil || j.o.By.Key(url) != name
}

// write replaces the statistics of a host. look, if not nil, updates the record
// with the result of the lookup; it may return nil to remove it.
func (j *job) write(ctx context.Context, name string, st *hostdb.Host, look func(*hostdb.Host) *hostdb.Host) error {
	return j.hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		h.Pages, h.Homepage, h.ConnectionFailures, h.Overdue, h.Fields, h.Counted = st.Pages, st.Homepage, st.ConnectionFailures, st.Overdue, st.Fields, j.now
		if st.Score > 0 {
			h.Score = st.Score
		}
		if look != nil {
			return look(&h), nil
		}
		return &h, nil
	})
}

// drop removes the statistics of a host, and the host if nothing else is left.
func (j *job) drop(ctx context.Context, name string) error {
	return j.hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		if old == nil {
			return old, nil
		}
		h := *old
		h.Pages, h.Homepage, h.Score, h.DNSFailures, h.ConnectionFailures = hostdb.Pages{}, "", 0, 0, 0
		h.LastCheck, h.Overdue, h.Fields, h.Counted = time.Time{}, 0, nil, time.Time{}
		if reflect.DeepEqual(h, hostdb.Host{Name: h.Name}) {
			return nil, nil
		}
		return &h, nil
	})
}
