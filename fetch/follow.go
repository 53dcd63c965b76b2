package fetch

import (
	"context"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
)

// A fetch may visit pages that are not on its list: those that its pages link
// to, and other spellings of listed URLs. Which these are depends on the list
// and on what the pages say, not on timing: which links of a page count does
// not depend on what was visited, and the distance of a page from the list is
// that of the shortest path, even if that is found last.
//
// A page not on the list that was never requested, because the run is over or
// the host fails, leaves no trace but the link.

// position is the position of a page.
type position struct {
	depth int       // links away from the list, on the shortest known path
	links *[]string // those to follow if the path gets shorter; nil if it cannot, or the page is not read yet
	// otherSpelling says that it is another spelling of a listed URL, and not queued
	// yet.
	otherSpelling bool
}

// follower knows the pages of the list and those visited in addition. It takes
// about 60 bytes for each.
type follower struct {
	known map[pageID]position // nil if no further pages are visited
	depth int
	queue func(url string, from item) // puts a page into its queue
}

// openFollower reads the list and, from what was fetched before this run, which
// links it follows.
func (l *loop) openFollower(ctx context.Context, w *output) error {
	if l.opts.Parser == nil {
		l.opts.Following.Depth = 0
	}
	normalize := l.opts.NormalizeList && l.opts.Rules != nil
	if l.opts.Following.Depth <= 0 && !normalize {
		return nil
	}
	b := &l.follower
	b.known, b.depth = map[pageID]position{}, l.opts.Following.Depth
	var spellings []string
	for d, err := range segment.Records[crawldb.Datum](ctx, l.segments, l.name) {
		if err != nil {
			return err
		}
		b.known[idOf(d.URL)] = position{}
		turn, err := segment.TakePlacement(&d)
		if err != nil {
			return err
		}
		l.recordDelay(d.URL, turn.Delay)
		if !normalize {
			continue
		}
		url, err := l.normalized(d.URL)
		if err == nil && url != d.URL && (l.lists == nil || l.opts.Politeness.By.Key(url) == l.opts.Politeness.By.Key(d.URL)) {
			spellings = append(spellings, url)
		}
	}
	for _, url := range spellings {
		if _, ok := b.known[idOf(url)]; !ok {
			b.known[idOf(url)] = position{otherSpelling: true}
		}
	}
	b.queue = l.queueFollowed
	if b.depth <= 0 || len(l.visitedBefore) == 0 {
		return nil
	}
	return w.eachParsed(ctx, l.segments, l.name, func(list int, p *segment.Parse) {
		b.addPage(p.URL, l.toFollow(p), item{Datum: crawldb.Datum{URL: p.URL}, list: list})
	})
}

// queueFollowed queues a page that is not on the list.
func (l *loop) queueFollowed(url string, from item) {
	if l.visitedBefore.has(url) || l.limits.left != nil {
		return
	}
	if l.opts.Politeness.By.Key(url) != l.opts.Politeness.By.Key(from.URL) {
		from.delay = 0 // which the list requests
	}
	from.Datum = crawldb.Datum{URL: url, Status: crawldb.Unfetched}
	from.unlisted = true
	l.queueUnlisted(from)
}

// queueUnlisted queues a page that is not on the list, unless its host was given up.
func (l *loop) queueUnlisted(it item) bool {
	name := l.queueOf(it.URL)
	h := l.queues.hosts[name]
	if h != nil && h.givenUp != nil {
		return false
	}
	if d, ok := l.delays[l.opts.Politeness.By.Key(it.URL)]; ok {
		it.delay = d
	}
	l.queues.add(name, it)
	return true
}

// recordDelay records the pause that the list requests, for pages of the host that
// are not on it: by then its queue may be forgotten.
func (l *loop) recordDelay(url string, delay time.Duration) {
	if delay == 0 || l.redirects == nil && l.follower.known == nil {
		return
	}
	if l.delays == nil {
		l.delays = map[string]time.Duration{}
	}
	if key := l.opts.Politeness.By.Key(url); l.delays[key] == 0 {
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
	host, queue := hostdb.ByHost.Key(p.URL), l.opts.Politeness.By.Key(p.URL)
	for _, to := range p.Links {
		switch at, known := l.follower.known[idOf(to.URL)]; {
		case isFromSitemap(&to):
		case known && at.depth == 0, slices.Contains(links, to.URL):
		case !l.opts.Following.External && hostdb.ByHost.Key(to.URL) != host:
		case l.lists != nil && l.opts.Politeness.By.Key(to.URL) != queue:
		case l.opts.Following.Within != nil && !l.opts.Following.Within(to.URL):
		default:
			if links = append(links, to.URL); len(links) == l.opts.Following.MaxLinks {
				return links
			}
		}
	}
	return links
}

// addPage follows the links of a page.
func (b *follower) addPage(url string, links []string, from item) {
	id := idOf(url)
	at, ok := b.known[id]
	if !ok {
		return
	}
	if at.depth > 1 { // there may be a shorter path
		at.links = &links
		b.known[id] = at
	}
	b.follow(links, at.depth+1, from)
}

// follow visits pages that are that many links away.
func (b *follower) follow(links []string, depth int, from item) {
	if depth > b.depth {
		return
	}
	for _, url := range links {
		id := idOf(url)
		at, known := b.known[id]
		if known && at.depth <= depth {
			continue
		}
		at.depth = depth
		if !known {
			b.queue(url, from)
		}
		if read := at.links; read != nil {
			if depth == 1 {
				at.links = nil
			}
			b.known[id] = at
			b.follow(*read, depth+1, from)
			continue
		}
		b.known[id] = at
	}
}
