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
	"github.com/recrawl/recrawl/segment"
)

// tally compares what sitemaps had said of the pages of a segment, when it was
// generated, with what the visits found. It is a function of the segment.
type tally struct {
	claims map[string]*claim
	hints  map[string]*int // how many pages of a host the sitemaps of the segment name
}

// linked looks at a link.
func (t *tally) linked(l *segment.Link) {
	if t == nil || l.Meta == (crawldb.Meta{}) {
		return
	}
	if _, ok := crawldb.HintOf(l.Meta); !ok {
		return
	}
	if t.hints == nil {
		t.hints = map[string]*int{}
	}
	bump(t.hints, hostdb.ByHost.Key(l.URL))
}

// claim is what is known of one page.
type claim struct {
	changed bool   // what the hint says of the time since the visit before
	sum     []byte // of the content as it was
	at      time.Time
	found   verdictOf
}

// verdictOf is what a visit found.
type verdictOf uint8

const (
	nothing  verdictOf = iota // that tells
	unread                    // content, of which the signature follows
	asBefore                  // the content of the visit before
	another
)

// listed looks at a record of the fetch list.
func (t *tally) listed(d *crawldb.Datum) {
	if t == nil || d.Signature == nil || d.LastFetch.IsZero() {
		return
	}
	h, ok := crawldb.HintOf(d.Meta)
	if !ok || h.Modified.IsZero() {
		return
	}
	c := &claim{changed: h.Modified.After(d.LastFetch), sum: d.Signature}
	if !c.changed && h.Modified.Add(h.Span).After(d.LastFetch) {
		return // on the day of the visit: before it or behind?
	}
	if t.claims == nil {
		t.claims = map[string]*claim{}
	}
	t.claims[strings.Clone(d.URL)] = c // which is part of a block
}

// visited looks at a visit; of several the last counts.
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

// parsed looks at what was read, behind all visits.
func (t *tally) parsed(p *segment.Parse) {
	if t == nil {
		return
	}
	c := t.claims[p.URL]
	if c == nil || c.found != unread || p.Signature == nil {
		return
	}
	c.found = another
	if bytes.Equal(p.Signature, c.sum) {
		c.found = asBefore
	}
}

// counts are those of one host.
type counts struct{ hits, false, misses int64 }

func (t *tally) hosts() map[string]counts {
	all := map[string]counts{}
	for url, c := range t.claims {
		name := hostdb.ByHost.Key(url)
		n := all[name]
		switch changed := c.found == another; {
		case c.found != another && c.found != asBefore || !c.changed && !changed || name == "":
			continue
		case c.changed && changed:
			n.hits++
		case c.changed:
			n.false++
		default:
			n.misses++
		}
		all[name] = n
	}
	return all
}

// keep adds the counts to the hosts, once for each segment, and makes that durable
// before a record is changed that depends on it.
func (t *tally) keep(ctx context.Context, hosts hostdb.Store, name string) error {
	if t == nil {
		return nil
	}
	all := t.hosts()
	if len(all) == 0 {
		return nil
	}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		n := all[host]
		err := hosts.Update(ctx, host, func(old *hostdb.Host) (*hostdb.Host, error) {
			var h hostdb.Host
			if old != nil {
				h = *old
			}
			before := h.Lastmod
			if h.Lastmod = before.Counts(name, n.hits, n.false, n.misses); h.Lastmod == before {
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

// trust says whose sitemaps are believed. The records come by host, so it
// remembers one.
type trust struct {
	hosts hostdb.Store
	// claims counts the hints of the segment by host.
	claims map[string]*int

	name string
	of   hostdb.Lastmod
}

// A host of which fewer claims than this were checked is believed about so many of
// its pages at a time, whichever: enough to know it by, and no more than it takes
// if it lies.
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
