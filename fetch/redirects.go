package fetch

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// Redirects that are followed at once are followed in steps: after everything
// listed come the pages that it redirected to, then those to which these
// redirected, and so on up to the limit. They are queued like listed pages, so
// everything that applies to a page applies to them. What a page inherits from
// those that lead to it, and its distance from the list, are then functions of
// the segment alone, not of the order of visits; and an interrupted run finds all it
// needs in the segment.

// Redirects counts the outcomes of redirects and refreshes.
type Redirects struct {
	// Followed counts the pages that were visited because of a redirect.
	Followed int
	// Limit counts redirects beyond MaxRedirects, Loops those that lead back to a
	// page on the way, or to themselves, Rejected those that the rules keep out, and
	// Waiting those whose target could not be requested now. All become links but
	// Rejected, and Limit with SkipExceeded.
	Limit, Loops, Rejected, Waiting int
	// Downgrades counts those that lead from https to http.
	Downgrades int
}

// Add adds the counts of another fetch.
func (r *Redirects) Add(o Redirects) {
	r.Followed += o.Followed
	r.Limit += o.Limit
	r.Loops += o.Loops
	r.Rejected += o.Rejected
	r.Waiting += o.Waiting
	r.Downgrades += o.Downgrades
}

// hop says how a page that is not on the list came to be visited.
type hop struct {
	redirects int      // redirects in a row
	chain     []string // the pages on the way; the last one led here
}

// visit begins the visit to an item.
func (it *item) visit() segment.Visit {
	v := segment.Visit{URL: it.URL}
	if it.hop != nil {
		v.Hops, v.Via = it.hop.redirects, it.hop.chain[len(it.hop.chain)-1]
	}
	return v
}

// redirectTarget says where a page leads.
type redirectTarget struct {
	segment.Link
	list         int
	fromRedirect bool // the page was itself the target of a redirect
}

// redirectState is how far the redirects of a run were followed.
type redirectState struct {
	targets map[string]redirectTarget // where visited pages lead
	via     map[string]string         // for each target already handled, the first by key of the pages that led there
	current []string                  // the targets being visited now,
	level   int                       // after this many redirects in a row
}

// record records where a visit leads.
func (h *redirectState) record(v *visitResult) {
	if h != nil && v.target != nil {
		h.targets[v.visit.URL] = redirectTarget{*v.target, v.list, v.visit.Via != ""}
	}
}

// queueRedirects queues the targets of visited pages, and reports whether there are any.
func (l *loop) queueRedirects(ctx context.Context) (more bool, err error) {
	h := l.redirects
	for h != nil && l.limits.left == nil && h.level < l.opts.Following.MaxRedirects && len(h.targets) > 0 && !more {
		from := h.current
		if h.level == 0 {
			for f, to := range h.targets {
				if !to.fromRedirect {
					from = append(from, f)
				}
			}
		}
		links, err := l.redirectsToFollow(ctx, from)
		if err != nil {
			return false, err
		}
		h.level++
		h.current = slices.SortedFunc(maps.Keys(links), compareKeys)
		for _, url := range h.current {
			// This does not depend on the score that is given: a fetch that does not
			// parse does not know it.
			via := slices.MinFunc(links[url], func(a, b scoring.Link) int { return compareKeys(a.From, b.From) }).From
			h.via[url] = via
			if l.visitedBefore.has(url) {
				continue // by a run before this one
			}
			if l.queueUnlisted(item{Datum: l.opts.targetRecord(url, links[url]), list: h.targets[via].list, unlisted: true, hop: &hop{h.level, h.chain(via)}}) {
				more = true
			} else {
				l.report.Redirects.Waiting++
			}
		}
		for _, f := range from {
			delete(h.targets, f)
		}
		if len(h.current) == 0 {
			break
		}
	}
	return more, nil
}

// redirectsToFollow returns the links by which some pages lead to others that have to be
// visited because of that: not those visited anyway, or already.
func (l *loop) redirectsToFollow(ctx context.Context, from []string) (map[string][]scoring.Link, error) {
	h := l.redirects
	links := map[string][]scoring.Link{}
	for _, f := range from {
		to, ok := h.targets[f]
		if !ok || !l.staysOnList(f, to.URL) {
			continue
		}
		if _, known := h.via[to.URL]; known {
			continue
		}
		if _, known := l.follower.known[idOf(to.URL)]; known {
			continue
		}
		links[to.URL] = append(links[to.URL], scoring.Link{From: f, URL: to.URL, Score: to.Score, Meta: to.Meta})
	}
	if len(links) == 0 {
		return links, nil
	}
	for d, err := range segment.Records[crawldb.Datum](ctx, l.segments, l.name) {
		if err != nil {
			return nil, err
		}
		delete(links, d.URL)
	}
	return links, nil
}

// chain returns the pages on the way to a page, and the page.
func (h *redirectState) chain(url string) (urls []string) {
	for ok := true; ok; url, ok = h.via[url] {
		urls = append(urls, url)
	}
	slices.Reverse(urls)
	return urls
}

// staysOnList reports whether a redirect stays on the list of its page. If lists are
// fetched separately, another fetch may be visiting the target otherwise.
func (l *loop) staysOnList(from, to string) bool {
	if within := l.opts.Following.Within; within != nil && !within(to) {
		return false
	}
	if l.lists == nil {
		return true
	}
	by := hostdb.ByHost
	if l.lists.by == hostdb.ByDomain {
		by = hostdb.ByDomain
	}
	return by.Key(from) == by.Key(to)
}

func compareKeys(a, b string) int { return cmp.Compare(crawldb.Key(a), crawldb.Key(b)) }

// targetRecord returns the record of a page that has only what redirects give it: what
// an update would make of that. It orders the links as an update does.
func (o *Options) targetRecord(url string, links []scoring.Link) crawldb.Datum {
	slices.SortFunc(links, func(a, b scoring.Link) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareKeys(a.From, b.From))
	})
	d := crawldb.Datum{URL: url, Status: crawldb.Unfetched}
	if len(links) == 0 {
		return d
	}
	d.Meta = links[0].Meta
	if o.NutchCompat {
		d.Score = float32(links[0].Score)
	}
	o.Scoring.Discovered(&d)
	if !o.NutchCompat {
		o.Scoring.Updated(nil, &d, scoring.Flow{In: links, Time: o.Now()})
	}
	return d
}

// targetLinks collect, in a segment that is being parsed, what its pages give to the
// targets of redirects. The pages are read in the order of their visits, in
// which those nearer to the list come first.
type targetLinks struct {
	redirects map[string]int // of each page that is not on the list
	links     map[string][]scoring.Link
}

func readTargetLinks(ctx context.Context, s segment.Store, name string) (h targetLinks, err error) {
	h = targetLinks{redirects: map[string]int{}, links: map[string][]scoring.Link{}}
	for v, err := range segment.Records[segment.Visit](ctx, s, name) {
		if err != nil {
			return h, err
		}
		if v.Via != "" {
			h.redirects[v.URL] = v.Hops
		}
	}
	return h, nil
}

// addEarlier records what the first blocks give, which were read before.
func (h *targetLinks) addEarlier(ctx context.Context, s segment.Store, name string, blocks int) error {
	if blocks == 0 || len(h.redirects) == 0 {
		return nil
	}
	parses, stop := iter.Pull2(segment.PartialOf[segment.Parse](ctx, s, name, segment.ParsePart, 0))
	defer stop()
	for visits, err := range segment.Blocks[segment.Visit](ctx, s, name, 0) {
		if err != nil {
			return err
		}
		parsed, err, ok := parses()
		if err != nil || !ok {
			return err
		}
		for i := range visits {
			if len(parsed) > 0 && parsed[0].URL == visits[i].URL {
				h.add(&visits[i], &parsed[0])
				parsed = parsed[1:]
			}
		}
		if blocks--; blocks == 0 {
			break
		}
	}
	return nil
}

// add records what a visit gives to its target.
func (h *targetLinks) add(v *segment.Visit, p *segment.Parse) {
	if p == nil || !v.Outcome.Code.Redirect() {
		return
	}
	if to := redirectLink(p); to != nil && h.redirects[to.URL] == v.Hops+1 {
		h.links[to.URL] = append(h.links[to.URL], scoring.Link{From: v.URL, URL: to.URL, Score: to.Score, Meta: to.Meta})
	}
}

// followRedirect accepts the target of a redirect and records what is needed about it.
func (r contentReader) followRedirect(v *visitResult, from *crawldb.Datum, location string) (scoring.Link, bool) {
	l, ok := r.acceptRedirect(v, from, location)
	var notes []string
	if downgrade(from.URL, location) {
		v.redirects.Downgrades++
		notes = append(notes, "leads from https to http")
	}
	switch target := cmp.Or(l.URL, location); {
	case target == from.URL:
		v.redirects.Loops++
		notes = append(notes, "leads to itself")
	case !ok:
		v.redirects.Rejected++
		notes = append(notes, "the rules reject where it leads")
	case r.opts.Following.MaxRedirects <= 0:
	case v.hop != nil && slices.Contains(v.hop.chain, target):
		v.redirects.Loops++
		notes = append(notes, "a loop: leads back to a page on the way")
	case v.visit.Hops >= r.opts.Following.MaxRedirects:
		v.redirects.Limit++
		notes = append(notes, "one redirect too many")
		ok = !r.opts.Following.SkipExceeded
	}
	if len(notes) > 0 && !r.parseStage && v.visit.Outcome.Code.Redirect() {
		v.visit.Outcome.Reason = strings.Join(notes, "; ")
	}
	return l, ok
}

// downgrade reports whether a redirect gives up TLS.
func downgrade(from, to string) bool {
	return hasScheme(from, "https:") && hasScheme(to, "http:")
}

func hasScheme(url, scheme string) bool {
	return len(url) >= len(scheme) && strings.EqualFold(url[:len(scheme)], scheme)
}

// setTarget records that a page leads to one of its links.
func (v *visitResult) setTarget(target string) {
	for i := range v.parse.Links {
		if v.parse.Links[i].URL == target {
			v.target = &v.parse.Links[i]
			return
		}
	}
}

// recallRedirects records where the visits of an earlier run lead.
func (l *loop) recallRedirects(ctx context.Context, named func(string) string, list int, parsed bool) error {
	parses, stop := iter.Pull2(segment.PartialOf[segment.Parse](ctx, l.segments, l.name, named(segment.ParsePart), 0))
	defer stop()
	for visits, err := range segment.PartialOf[segment.Visit](ctx, l.segments, l.name, named(segment.FetchPart), 0) {
		if err != nil {
			return err
		}
		var read []segment.Parse
		if parsed {
			if read, err, _ = parses(); err != nil && !errors.Is(err, segment.ErrNotFound) {
				return err
			}
		}
		for i := range visits {
			v := &visitResult{visit: visits[i], list: list}
			if !parsed {
				l.opts.contentReader().findTarget(v)
			} else if len(read) > 0 && read[0].URL == v.visit.URL {
				v.parse, read = &read[0], read[1:]
				switch {
				case v.visit.Outcome.Code.Redirect():
					v.target = redirectLink(v.parse)
				case v.parse.Refresh != "":
					v.setTarget(v.parse.Refresh)
				}
			}
			l.redirects.record(v)
		}
	}
	return nil
}

// findTarget finds where a redirect leads in a fetch that does not parse, in which
// it gives nothing yet.
func (r contentReader) findTarget(v *visitResult) {
	if !v.visit.Outcome.Code.Redirect() {
		return
	}
	if link, ok := r.followRedirect(v, &crawldb.Datum{URL: v.visit.URL}, v.visit.Outcome.Location); ok {
		v.target = &segment.Link{URL: link.URL}
	}
	v.rejected = 0 // the parse stage counts that
}
