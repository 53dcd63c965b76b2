package update

import (
	"context"
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/extsort"
)

// ownHost says which URLs belong to other groups. URLs come sorted, so it remembers one host.
type ownHost struct {
	host  string
	asked bool
	owned bool
}

// foreign returns the URL if it belongs to another group, and otherwise "".
func (h *ownHost) foreign(m *groups.Member, url []byte) string {
	u := string(url)
	if host := crawldb.Host(u); !h.asked || host != h.host {
		h.host, h.asked, h.owned = host, true, m.Owns(u)
	}
	if h.owned {
		return ""
	}
	return u
}

// inboxSegment stands for the name of a segment where something comes from other groups. No
// segment has it.
const inboxSegment = "-inbox"

// Receive applies what other groups have found about URLs of this one ([Options].Group): items of
// their outboxes, which Run has written. It does so in one step, in which it also writes marks,
// those of the inbox. Items about URLs of a third group, which are there after a division has
// changed, are passed on in the same step. It keeps the items in memory. Run and Receive must not
// run at the same time.
func Receive(ctx context.Context, crawl crawldb.Store, items []groups.Item, marks map[string]string, o Options) (Report, error) {
	r, err := receive(ctx, crawl, items, marks, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("update: what other groups have found: %w", err)
	}
	return r, err
}

func receive(ctx context.Context, crawl crawldb.Store, items []groups.Item, marks map[string]string, o Options) (Report, error) {
	var report Report
	var err error
	if o.clock, err = watched(ctx, crawl, o.Scoring, o.NutchCompat, o.now); err != nil {
		return report, err
	}
	slices.SortStableFunc(items, func(a, b groups.Item) int { return crawldb.Compare(a.URL, b.URL) })
	sites := sites{crawl: crawl, segment: inboxSegment, o: &o, visits: map[string]*int64{}, damaged: map[string]struct{}{}}
	defer func() { report.Damaged = len(sites.damaged) }()
	f := folding{o: &o, sites: &sites, report: &report}
	f.outbox = groups.NewOutbox(o.Group, crawl)
	g := grouper{segment: inboxSegment, maxLinks: o.MaxInlinks, worst: o.NutchCompat}
	f.grouper = &g
	for len(items) > 0 {
		url, n := items[0].URL, 1
		for n < len(items) && items[n].URL == url {
			n++
		}
		owned := o.Group.Owns(url)
		key := crawldb.AppendKey(nil, url)
		for _, it := range items[:n] {
			if !owned {
				f.outbox.Add(url, []byte(it.Value))
			} else if err := g.add(extsort.Pair{Key: key, Value: []byte(it.Value)}); err != nil {
				return report, err
			}
		}
		if in, ok := g.last(); ok {
			f.inputs = append(f.inputs, in)
		}
		items = items[n:]
	}
	if err := f.judgeSignals(ctx); err != nil {
		return report, err
	}
	f.marks = marks
	err = crawldb.UpdateAll(ctx, crawl, func(yield func(crawldb.Batch, error) bool) {
		f.yield = yield
		if err := f.batch(ctx); err != nil {
			yield(crawldb.Batch{}, err)
		}
	})
	return report, err
}

// judgeSignals notes for each URL that was received whether its sitemap entry is trusted.
func (f *folding) judgeSignals(ctx context.Context) error {
	if f.o.Hosts != nil && !f.o.NutchCompat {
		f.trust = trust{hosts: f.o.Hosts, entries: map[string]*int{}}
		for i := range f.inputs {
			if f.inputs[i].SitemapEntry != nil {
				bump(f.trust.entries, hostdb.ByHost.Key(f.inputs[i].URL))
			}
		}
	}
	for i := range f.inputs {
		if err := f.believe(ctx, &f.inputs[i]); err != nil {
			return err
		}
	}
	return nil
}
