package update

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// sites keeps the accounts of the domains that a segment is about, and limits
// what links add by them. The accounts change in the same steps as the records,
// so interruptions make no difference to them.
type sites struct {
	crawl   crawldb.Store
	segment string
	o       *Options
	visits  map[string]*int64 // of the segment that were answered, by domain
	damaged map[string]struct{}

	// The accounts of batches that the crawl db may not have applied yet, with the
	// number of the batch; cursors are those of these batches, the first of which has
	// the number applied+1.
	ahead   map[string]aheadAccount
	cursors []string
	applied int

	host, domain string // the last one requested

	slots []target // of the current step, and of the next once that is begun
}

type aheadAccount struct {
	frontier.Account
	batch int
}

// domainOf returns the registered domain of a URL; most neighbours share
// theirs.
func (s *sites) domainOf(url string) string {
	if host := crawldb.Host(url); host != s.host || s.domain == "" {
		s.host, s.domain = host, hostdb.Domain(host)
	}
	return s.domain
}

// visit counts a visit of the segment.
func (s *sites) visit(v *segment.Visit) {
	if !s.o.NutchCompat && v.Outcome.Code.Asked() {
		bump(s.visits, s.domainOf(v.URL))
	}
}

// bump counts a name that may be part of a block, without retaining it. Assigning to
// an existing key would store the new string.
func bump[N int | int64](counts map[string]*N, name string) {
	n, ok := counts[name]
	if !ok {
		n = new(N)
		counts[strings.Clone(name)] = n
	}
	*n++
}

// A step is the effect of one batch on the accounts.
type step struct {
	s      *sites
	inputs []Input
	slots  []target
	sites  []site
	after  map[int]frontier.Account // of the sites that change, once marks were requested
}

// site is a domain in a batch, with its account before the batch.
type site struct {
	domain  string
	account frontier.Account
	last    int  // its last slot
	changed bool // regardless of the slots
}

// target is the effect of one input.
type target struct {
	site, before int     // the site, and the previous slot of it, or -1
	added        int64   // records that links have added to the site, including this one
	owed         float64 // cash of omitted pages that no visit received, including this one
	overgrown    bool
	read         bool // the page was read for the first time
}

// step begins a batch; the previous one is over.
func (s *sites) step(ctx context.Context, inputs []Input) (*step, error) {
	st := &step{s: s, inputs: inputs}
	if s.o.NutchCompat {
		return st, nil
	}
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	s.slots = slices.Grow(s.slots[:0], len(inputs))[:len(inputs)]
	st.slots = s.slots
	clear(st.slots)
	known := map[string]int{}
	for i := range inputs {
		domain := s.domainOf(inputs[i].URL)
		n, ok := known[domain]
		if !ok {
			n = len(st.sites)
			known[domain] = n
			a, err := s.account(ctx, domain)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", domain, err)
			}
			_, changed := s.damaged[domain]
			if n := s.visits[domain]; n != nil && a.Segment != s.segment {
				a.Segment, a.Visits, changed = s.segment, a.Visits+*n, true
			}
			st.sites = append(st.sites, site{domain: domain, account: a, last: -1, changed: changed})
		}
		st.slots[i].site, st.slots[i].before = n, st.sites[n].last
		st.sites[n].last = i
	}
	return st, nil
}

// catchUp drops the accounts of the batches that the crawl db has applied,
// according to the mark of the segment.
func (s *sites) catchUp(ctx context.Context) error {
	if len(s.cursors) == 0 {
		return nil
	}
	cursor, err := s.crawl.Mark(ctx, SegmentMark(s.segment))
	if err != nil {
		return err
	}
	n := slices.Index(s.cursors, cursor) + 1
	if n == 0 {
		return nil
	}
	s.cursors, s.applied = slices.Delete(s.cursors, 0, n), s.applied+n
	maps.DeleteFunc(s.ahead, func(_ string, a aheadAccount) bool { return a.batch <= s.applied })
	return nil
}

// account returns the account of a domain after the batches so far.
func (s *sites) account(ctx context.Context, domain string) (frontier.Account, error) {
	if a, ok := s.ahead[domain]; ok {
		return a.Account, nil
	}
	a, damaged, err := frontier.Load(ctx, s.crawl, domain)
	if damaged {
		s.damaged[domain] = struct{}{}
	}
	return a, err
}

// done ends a batch with that cursor, which the crawl db applies now or later.
func (s *sites) done(st *step, cursor string) {
	if st.slots == nil {
		return
	}
	s.cursors = append(s.cursors, cursor)
	for n, a := range st.after {
		if s.ahead == nil {
			s.ahead = map[string]aheadAccount{}
		}
		s.ahead[st.sites[n].domain] = aheadAccount{a, s.applied + len(s.cursors)}
	}
}

// next is what Next returns for slot i, except that it omits a record beyond the
// limit. What links gave to that goes to the next visit of the domain, in key order,
// in this segment or a later one. It is pure: it fills slot i, from the slots before
// it, and d.
func (st *step) next(i int, old, d *crawldb.Datum) *crawldb.Datum {
	in, o := &st.inputs[i], st.s.o
	if st.slots == nil {
		return next(old, in, o, d)
	}
	sl := &st.slots[i]
	site := &st.sites[sl.site]
	sl.added, sl.owed, sl.overgrown = site.account.Added, site.account.Undistributed, false
	if sl.before >= 0 {
		sl.added, sl.owed = st.slots[sl.before].added, st.slots[sl.before].owed
	}
	sl.read = in.Visit != nil && in.Visit.Outcome.Code == protocol.Success && in.Parse != nil && in.Parse.Signature != nil && (old == nil || old.LastFetch.IsZero())
	if in.Visit != nil {
		with := *in
		with.Shared += sl.owed
		in = &with
	}
	d = next(old, in, o, d)
	if in.Visit != nil && d != nil {
		sl.owed = 0
	}
	if old != nil || d == nil || in.Visit != nil || in.Sitemap != nil || in.SitemapEntry != nil {
		return d
	}
	if st.full(site, sl.added, in.URL) {
		sl.overgrown = true
		sl.owed = min(sl.owed+in.given(), math.MaxFloat64)
		return nil
	}
	sl.added++
	return d
}

// given is the cash that links give to the page; none if their pages gave none away,
// whatever their scores.
func (in *Input) given() (cash float64) {
	if !in.gave {
		return 0
	}
	for _, l := range in.Links {
		if l.Score > 0 && !math.IsInf(l.Score, 0) {
			cash += l.Score
		}
	}
	return cash
}

// plainShare is how many times as many plain URLs as others are free.
const plainShare = 5

// full reports whether there is no room for a URL in a site to which links have
// already added that many.
func (st *step) full(site *site, added int64, url string) bool {
	o := st.s.o
	visits := site.account.Visits
	if o.MaxGrowth < 0 || added < int64(o.FreeGrowth) || visits > 0 && (added+1)/visits < int64(o.MaxGrowth) {
		return false
	}
	return added/plainShare >= int64(o.FreeGrowth) || frontier.Endless(url, site.domain)
}

// marks returns the accounts that the batch changes, in their new state.
func (st *step) marks() map[string]string {
	st.after = map[int]frontier.Account{}
	for n := range st.sites {
		site, last := &st.sites[n], &st.slots[st.sites[n].last]
		if a := &site.account; site.changed || a.Added != last.added || a.Undistributed != last.owed {
			st.after[n] = st.left(n)
		}
	}
	for i, sl := range st.slots {
		if !sl.read {
			continue
		}
		a, ok := st.after[sl.site]
		if !ok {
			a = st.left(sl.site)
		}
		a.Read(frontier.PartOf(st.inputs[i].URL), st.inputs[i].Parse.Signature)
		st.after[sl.site] = a
	}
	marks := make(map[string]string, len(st.after))
	for n, a := range st.after {
		if a.Added > 0 || a.Visits > 0 {
			marks[frontier.MarkName(st.sites[n].domain)] = a.Encode()
		}
	}
	return marks
}

// left returns the account of a site including what the slots have added.
func (st *step) left(n int) frontier.Account {
	a, last := st.sites[n].account.Clone(), &st.slots[st.sites[n].last]
	a.Added, a.Undistributed = last.added, last.owed
	return a
}

// overgrown counts the records that were omitted.
func (st *step) overgrown() (n int) {
	for i := range st.slots {
		if st.slots[i].overgrown {
			n++
		}
	}
	return n
}
