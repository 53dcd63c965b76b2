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
	claims map[string]*claim
	hints  map[string]*int // how many pages of each host the sitemaps of the segment name
}

// linked processes a link.
func (t *tally) linked(l *segment.Link) {
	if t == nil || l.Meta == (crawldb.Meta{}) {
		return
	}
	if _, ok := crawldb.SitemapEntryOf(l.Meta); !ok {
		return
	}
	if t.hints == nil {
		t.hints = map[string]*int{}
	}
	bump(t.hints, hostdb.ByHost.Key(l.URL))
}

// claim is what is known of one page.
type claim struct {
	changed bool           // what the hint says about the time since the previous visit
	page    *crawldb.Datum // as it was, as far as CheckSignals needs it
	at      time.Time
	found   verdictOf
}

// verdictOf is what a visit found.
type verdictOf uint8

const (
	nothing  verdictOf = iota // nothing conclusive
	unread                    // content whose signature follows
	asBefore                  // the content of the previous visit
	another
)

// listed processes a record of the fetch list.
func (t *tally) listed(d *crawldb.Datum) {
	if t == nil || d.Signature == nil {
		return
	}
	changed, ok := claims(d)
	if !ok {
		return
	}
	if t.claims == nil {
		t.claims = map[string]*claim{}
	}
	// A copy, because what was read is part of a block.
	url := strings.Clone(d.URL)
	meta, _ := crawldb.DecodeMeta(strings.Clone(d.Meta.Encoded()))
	t.claims[url] = &claim{changed: changed, page: &crawldb.Datum{URL: url, LastFetch: d.LastFetch, Signature: d.Signature, Meta: meta}}
}

// claims returns what is claimed about the time since the last visit to a page; ok is false
// if nothing is, or it cannot be determined.
func claims(d *crawldb.Datum) (changed, ok bool) {
	h, ok := crawldb.SitemapEntryOf(d.Meta)
	if !ok || h.Modified.IsZero() || d.LastFetch.IsZero() {
		return false, false
	}
	if changed = h.Modified.After(d.LastFetch); !changed && h.Modified.Add(h.Span).After(d.LastFetch) {
		return false, false // on the day of the visit: before or after it?
	}
	return changed, true
}

// CheckSignals returns what a visit to a page reveals about the claims made of it, given what is
// known of the claims of its host; listed is the record from the fetch list. [Run] counts
// these. ok is false if nothing was claimed of the page, or nothing can be told.
func CheckSignals(listed *crawldb.Datum, at time.Time, changed bool, l hostdb.Lastmod) (c hostdb.SignalCheck, ok bool) {
	said, ok := claims(listed)
	if !ok {
		return c, false
	}
	c.Changed = changed
	if said {
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
	c := t.claims[v.URL]
	if c == nil || v.Time.Before(c.at) {
		return
	}
	switch c.at = v.Time; v.Outcome.Code {
	case protocol.NotModified:
		c.found = asBefore
	case protocol.Success:
		c.found = unread
	default:
		c.found = nothing
	}
}

// parsed processes the result of parsing, after all visits.
func (t *tally) parsed(p *segment.Parse) {
	if t == nil {
		return
	}
	c := t.claims[p.URL]
	if c == nil || c.found != unread || p.Signature == nil {
		return
	}
	c.found = another
	if bytes.Equal(p.Signature, c.page.Signature) {
		c.found = asBefore
	}
}

// hosts returns the findings about the pages of each host, in the order of their
// URLs.
func (t *tally) hosts() map[string][]*claim {
	all := map[string][]*claim{}
	for _, url := range slices.Sorted(maps.Keys(t.claims)) {
		c := t.claims[url]
		if name := hostdb.ByHost.Key(url); name != "" && (c.found == another || c.found == asBefore) {
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
			was := h.Lastmod
			before := was
			if before.Segment != name && ahead(before.Segment, now) {
				before.Segment = "" // a clock was wrong, and all others are older
			}
			var told []hostdb.SignalCheck
			for _, c := range all[host] {
				if claim, ok := CheckSignals(c.page, c.at, c.found == another, before); ok {
					told = append(told, claim)
				}
			}
			if h.Lastmod = before.With(name, told); h.Lastmod == was {
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
	// claims counts the hints of the segment by host.
	claims map[string]*int

	name string
	of   hostdb.Lastmod
}

// If fewer claims of a host than this were checked, it is believed about that
// many of its pages at a time, whichever they are: enough to learn about it,
// and few enough if it lies.
const probes = 16

// believes reports whether what a sitemap says of a page counts.
func (t *trust) believes(ctx context.Context, url string) (bool, error) {
	name := hostdb.ByHost.Key(url)
	if t.hosts == nil || name == "" {
		return true, nil
	}
	if name != t.name {
		h, err := t.hosts.Get(ctx, name)
		if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
			return false, fmt.Errorf("trust in %s: %w", name, err)
		}
		t.name, t.of = name, h.Lastmod
	}
	if !t.of.Trusted() || t.of.Hits+t.of.False >= probes {
		return t.of.Trusted(), nil
	}
	pick := fnv.New64a()
	pick.Write([]byte(url))
	all := 1
	if n := t.claims[name]; n != nil {
		all = *n
	}
	return pick.Sum64()%uint64(all) < probes, nil
}
