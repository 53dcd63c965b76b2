package fetch

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// A fetch may visit pages that are not on its list: those that its pages link
// to, and other spellings of listed URLs. Which these are depends on the list
// and on what the pages say, not on timing: which links of a page count does
// not depend on what was visited, and the distance of a page from the list is
// that of the shortest path, even if that is found last.
//
// A page not on the list that was never requested, because the run is over or
// the host fails, leaves no trace but the link.

// pageID stands for a URL; not even hostile pages can make two collide.
type pageID [16]byte

func idOf(url string) (id pageID) {
	sum := sha256.Sum256([]byte(url))
	return pageID(sum[:])
}

// pages is a set of URLs that takes some 30 bytes for each, whatever their
// length.
type pages map[pageID]struct{}

func (p pages) add(url string) { p[idOf(url)] = struct{}{} }

func (p pages) has(url string) bool {
	if len(p) == 0 {
		return false
	}
	_, ok := p[idOf(url)]
	return ok
}

// place is the position of a page.
type place struct {
	depth int       // links away from the list, on the shortest known path
	links *[]string // those to follow if the path gets shorter; nil if it cannot, or the page is not read yet
	// spelling says that it is another spelling of a listed URL, and not queued
	// yet.
	spelling bool
}

// beyond knows the pages of the list and those visited in addition. It takes
// about 60 bytes for each.
type beyond struct {
	places map[pageID]place // nil if no further pages are visited
	depth  int
	visit  func(url string, from item) // puts a page into its queue
}

// openBeyond reads the list and, from what was fetched before this run, which
// links it follows.
func (l *loop) openBeyond(ctx context.Context, w *output) error {
	if l.o.Parser == nil {
		l.o.Following.Depth = 0
	}
	normalize := l.o.NormalizeList && l.o.Rules != nil
	if l.o.Following.Depth <= 0 && !normalize {
		return nil
	}
	b := &l.beyond
	b.places, b.depth = map[pageID]place{}, l.o.Following.Depth
	var spellings []string
	for d, err := range segment.Records[crawldb.Datum](ctx, l.segments, l.name) {
		if err != nil {
			return err
		}
		b.places[idOf(d.URL)] = place{}
		turn, err := segment.Unmark(&d)
		if err != nil {
			return err
		}
		l.asksFor(d.URL, turn.Delay)
		if !normalize {
			continue
		}
		url, err := l.spelled(d.URL)
		if err == nil && url != d.URL && (l.lists == nil || l.o.Politeness.By.Key(url) == l.o.Politeness.By.Key(d.URL)) {
			spellings = append(spellings, url)
		}
	}
	for _, url := range spellings {
		if _, ok := b.places[idOf(url)]; !ok {
			b.places[idOf(url)] = place{spelling: true}
		}
	}
	b.visit = l.visitBeyond
	if b.depth <= 0 || len(l.seen) == 0 {
		return nil
	}
	return w.each(ctx, l.segments, l.name, func(list int, p *segment.Parse) {
		b.read(p.URL, l.toFollow(p), item{Datum: crawldb.Datum{URL: p.URL}, list: list})
	})
}

// visitBeyond queues a page that is not on the list.
func (l *loop) visitBeyond(url string, from item) {
	if l.seen.has(url) || l.limits.left != nil {
		return
	}
	if l.o.Politeness.By.Key(url) != l.o.Politeness.By.Key(from.URL) {
		from.delay = 0 // which the list requests
	}
	from.Datum = crawldb.Datum{URL: url, Status: crawldb.Unfetched}
	from.unlisted = true
	l.goTo(from)
}

// goTo queues a page that is not on the list, unless its host was given up.
func (l *loop) goTo(it item) bool {
	name := l.queueOf(it.URL)
	h := l.q.hosts[name]
	if h != nil && h.over != nil {
		return false
	}
	if d, ok := l.delays[l.o.Politeness.By.Key(it.URL)]; ok {
		it.delay = d
	}
	l.q.add(name, it)
	return true
}

// asksFor records the pause that the list requests, for pages of the host that
// are not on it: by then its queue may be forgotten.
func (l *loop) asksFor(url string, delay time.Duration) {
	if delay == 0 || l.hops == nil && l.beyond.places == nil {
		return
	}
	if l.delays == nil {
		l.delays = map[string]time.Duration{}
	}
	if key := l.o.Politeness.By.Key(url); l.delays[key] == 0 {
		l.delays[key] = delay
	}
}

// toFollow returns the links of a page that are followed: the first that lead
// to pages not on the list. Lists fetched separately share no host, so for
// these only links to the same queue count.
func (l *loop) toFollow(p *segment.Parse) (links []string) {
	if p == nil || p.Signature == nil || p.Sitemap { // not read, or not a page
		return nil
	}
	host, queue := hostdb.ByHost.Key(p.URL), l.o.Politeness.By.Key(p.URL)
	for _, to := range p.Links {
		switch at, known := l.beyond.places[idOf(to.URL)]; {
		case ofSitemap(&to):
		case known && at.depth == 0, slices.Contains(links, to.URL):
		case !l.o.Following.External && hostdb.ByHost.Key(to.URL) != host:
		case l.lists != nil && l.o.Politeness.By.Key(to.URL) != queue:
		default:
			if links = append(links, to.URL); len(links) == l.o.Following.MaxLinks {
				return links
			}
		}
	}
	return links
}

// read follows the links of a page.
func (b *beyond) read(url string, links []string, from item) {
	id := idOf(url)
	at, ok := b.places[id]
	if !ok {
		return
	}
	if at.depth > 1 { // there may be a shorter path
		at.links = &links
		b.places[id] = at
	}
	b.follow(links, at.depth+1, from)
}

// follow visits pages that are that many links away.
func (b *beyond) follow(links []string, depth int, from item) {
	if depth > b.depth {
		return
	}
	for _, url := range links {
		id := idOf(url)
		at, known := b.places[id]
		if known && at.depth <= depth {
			continue
		}
		at.depth = depth
		if !known {
			b.visit(url, from)
		}
		if read := at.links; read != nil {
			if depth == 1 {
				at.links = nil
			}
			b.places[id] = at
			b.follow(*read, depth+1, from)
			continue
		}
		b.places[id] = at
	}
}

// spelled returns a URL of the list as normalized by the rules.
func (l *loop) spelled(url string) (string, error) {
	rules := *l.o.Rules
	if !l.o.NormalizeList {
		rules.Normalizers = nil
	}
	if !l.o.FilterList {
		rules.Filters = nil
	}
	return rules.Apply(urlfilter.AnyScope, url)
}

// listed reports whether a page of the list should be visited as it is. One
// that the rules reject or respell is recorded as skipped, and the new spelling
// queued; seen says that it was visited, or recorded, before this run.
func (l *loop) listed(it item, seen bool) bool {
	if !l.o.NormalizeList && !l.o.FilterList || l.o.Rules == nil {
		return !seen
	}
	url, err := l.spelled(it.URL)
	if err == nil && url == it.URL {
		return !seen
	}
	reason := "its normal form is " + oneLine(url)
	if err != nil {
		reason = "the rules reject it: " + oneLine(err.Error())
	}
	if !seen {
		l.over(l.skipped(it, &verdict{reason: reason}, 0))
		if err != nil {
			l.report.Filtered++
		}
	}
	if err != nil || !l.beyond.places[idOf(url)].spelling {
		return false
	}
	l.beyond.places[idOf(url)] = place{}
	if !l.seen.has(url) {
		it.URL, it.unlisted = url, true
		l.goTo(it)
	}
	return false
}

// came keeps a visit, and follows the links of the page.
func (l *loop) came(r *result) {
	if r.it.unlisted {
		if r.out.visit.Outcome.Code.Deferred() {
			if r.it.hop != nil {
				l.report.Redirects.Waiting++
			}
			return
		}
		l.report.Followed++
	}
	l.over(r.out)
	if l.beyond.depth > 0 {
		l.beyond.read(r.it.URL, l.toFollow(r.out.parse), item{Datum: crawldb.Datum{URL: r.it.URL}, list: r.it.list, delay: r.it.delay})
	}
}
