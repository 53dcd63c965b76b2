package update

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
)

// tally compares what sitemaps had said about the pages of a segment, when it
// was generated, with what the visits found. It is a function of the segment.
type tally struct {
	pages   map[string]*signalledPage
	entries map[string]*int // how many pages of each host the sitemaps of the segment name
}

// linked processes a link.
func (t *tally) linked(l *segment.Link) {
	if t == nil || l.Meta == (crawldb.Meta{}) {
		return
	}
	if _, ok := crawldb.SitemapEntryOf(l.Meta); !ok {
		return
	}
	if t.entries == nil {
		t.entries = map[string]*int{}
	}
	bump(t.entries, hostdb.ByHost.Key(l.URL))
}

// signalledPage is what is known of one page.
type signalledPage struct {
	changed bool           // what the sitemap says about the time since the previous visit
	page    *crawldb.Datum // as it was, as far as CheckSignals needs it
	at      time.Time
	finding finding
}

// finding is what a visit found.
type finding uint8

const (
	inconclusive finding = iota // nothing conclusive
	notCompared                 // content whose signature follows
	sameContent                 // the content of the previous visit
	otherContent
)

// listed processes a record of the fetch list.
func (t *tally) listed(d *crawldb.Datum) {
	if t == nil || d.Signature == nil {
		return
	}
	changed, ok := signalled(d)
	if !ok {
		return
	}
	if t.pages == nil {
		t.pages = map[string]*signalledPage{}
	}
	// A copy, because what was read is part of a block.
	url := strings.Clone(d.URL)
	meta, _ := crawldb.DecodeMeta(strings.Clone(d.Meta.Encoded()))
	t.pages[url] = &signalledPage{changed: changed, page: &crawldb.Datum{URL: url, LastFetch: d.LastFetch, Signature: d.Signature, Meta: meta}}
}

// signalled reports whether a sitemap says that a page has changed since its last visit; ok is
// false if it says nothing, or nothing definite.
func signalled(d *crawldb.Datum) (changed, ok bool) {
	h, ok := crawldb.SitemapEntryOf(d.Meta)
	if !ok || h.Modified.IsZero() || d.LastFetch.IsZero() {
		return false, false
	}
	if changed = h.Modified.After(d.LastFetch); !changed && h.Modified.Add(h.Span).After(d.LastFetch) {
		return false, false // on the day of the visit: before or after it?
	}
	return changed, true
}

// CheckSignals returns what a visit to a page reveals about the signals of it, given what is
// known of the signals of its host; listed is the record from the fetch list. [Run] counts
// these. ok is false if there was no signal, or it can be neither confirmed nor refuted.
func CheckSignals(listed *crawldb.Datum, at time.Time, changed bool, l hostdb.SignalStats) (c hostdb.SignalCheck, ok bool) {
	hasChanged, ok := signalled(listed)
	if !ok {
		return c, false
	}
	c.Changed = changed
	if hasChanged {
		c.Signals = max(1, schedule.SignalsOf(listed))
	}
	c.Chance, c.Expected = schedule.Weigh(listed, at.Sub(listed.LastFetch), c.Signals, schedule.SignalQuality{Precision: l.Precision(), Recall: l.Recall()})
	return c, true
}

// visited processes a visit; of several the last counts.
func (t *tally) visited(v *segment.Visit) {
	if t == nil {
		return
	}
	c := t.pages[v.URL]
	if c == nil || v.Time.Before(c.at) {
		return
	}
	switch c.at = v.Time; v.Outcome.Code {
	case protocol.NotModified:
		c.finding = sameContent
	case protocol.Success:
		c.finding = notCompared
	default:
		c.finding = inconclusive
	}
}

// parsed processes the result of parsing, after all visits.
func (t *tally) parsed(p *segment.Parse) {
	if t == nil {
		return
	}
	c := t.pages[p.URL]
	if c == nil || c.finding != notCompared || p.Signature == nil {
		return
	}
	c.finding = otherContent
	if bytes.Equal(p.Signature, c.page.Signature) {
		c.finding = sameContent
	}
}

// hosts returns the findings about the pages of each host, in the order of their
// URLs.
func (t *tally) hosts() map[string][]*signalledPage {
	all := map[string][]*signalledPage{}
	for _, url := range slices.Sorted(maps.Keys(t.pages)) {
		c := t.pages[url]
		if name := hostdb.ByHost.Key(url); name != "" && (c.finding == otherContent || c.finding == sameContent) {
			all[name] = append(all[name], c)
		}
	}
	return all
}

// keep adds the counts to the hosts, once per segment, and makes that durable
// before any record changes that depends on it.
func (t *tally) keep(ctx context.Context, hosts hostdb.Store, name string, now time.Time) error {
	if t == nil {
		return nil
	}
	all := t.hosts()
	if len(all) == 0 {
		return nil
	}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		err := hosts.Update(ctx, host, func(old *hostdb.Host) (*hostdb.Host, error) {
			var h hostdb.Host
			if old != nil {
				h = *old
			}
			was := h.Signals
			before := was
			if before.Segment != name && ahead(before.Segment, now) {
				before.Segment = "" // a clock was wrong, and all others are older
			}
			var checks []hostdb.SignalCheck
			for _, c := range all[host] {
				if check, ok := CheckSignals(c.page, c.at, c.finding == otherContent, before); ok {
					checks = append(checks, check)
				}
			}
			if h.Signals = before.With(name, checks); h.Signals == was {
				return old, nil
			}
			return &h, nil
		})
		if err != nil {
			return fmt.Errorf("count lastmod of %s: %w", host, err)
		}
	}
	return hosts.Sync(ctx)
}

// ahead reports whether a segment is named after a time in the future.
func ahead(name string, now time.Time) bool {
	digits, _, _ := strings.Cut(name, "-")
	at, err := time.Parse("20060102150405", digits)
	return err == nil && at.After(now)
}

// trust decides whose sitemaps are believed. Records come grouped by host, so
// it remembers one.
type trust struct {
	hosts hostdb.Store
	// entries counts, by host, the pages that the sitemaps of the segment name.
	entries map[string]*int

	host  string
	stats hostdb.SignalStats
}

// trialPages is how many pages of a host are believed to have changed, at a time and whichever
// they are, while fewer signals of it were checked: enough to learn about the host, and few enough if
// its sitemaps are wrong.
const trialPages = 16

// believes reports whether what a sitemap says of a page counts.
func (t *trust) believes(ctx context.Context, url string) (bool, error) {
	name := hostdb.ByHost.Key(url)
	if t.hosts == nil || name == "" {
		return true, nil
	}
	if name != t.host {
		h, err := t.hosts.Get(ctx, name)
		if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
			return false, fmt.Errorf("trust in %s: %w", name, err)
		}
		t.host, t.stats = name, h.Signals
	}
	if !t.stats.Trusted() || t.stats.Hits+t.stats.False >= trialPages {
		return t.stats.Trusted(), nil
	}
	pick := fnv.New64a()
	pick.Write([]byte(url))
	all := 1
	if n := t.entries[name]; n != nil {
		all = *n
	}
	return pick.Sum64()%uint64(all) < trialPages, nil
}
