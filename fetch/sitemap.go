package fetch

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/sitemap"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/urlfilter"
)

// A sitemap is a record of the crawl db like any other, except for a mark
// (crawldb.Sitemap). So each of its hops obeys the rules, robots.txt and the
// politeness of its host, and it has validators, retries and leases like a
// page. The URLs it names are links without a share of importance, with what it
// says about each in their Meta; update decides what to do with them.

// SitemapOptions say how sitemaps are found and read. The zero value finds those
// that robots.txt lists, and reads them and feeds. For each limit, zero means
// the default and a negative number no limit.
type SitemapOptions struct {
	// NoDiscovery ignores the sitemaps that robots.txt lists. URLs marked as
	// sitemaps are still read as such. NutchCompat ignores them, too: in Nutch
	// sitemaps are a separate job.
	NoDiscovery bool
	// NoFeeds treats feeds as content without a parser, as NutchCompat does.
	NoFeeds bool
	// NoStrict lets a sitemap list any URL, not only those in its own directory and
	// on the sites that list it. (Nutch: sitemap.strict.parsing=false.)
	NoStrict bool
	// NoNormalize and NoFilter take what sitemaps name without the normalizers or
	// the filters of Rules. (Nutch: sitemap.url.normalize=false,
	// sitemap.url.filter=false.)
	NoNormalize, NoFilter bool
	// MaxListed is how many sitemaps of one robots.txt are followed; default 100.
	MaxListed int
	// MaxFiles is how many sitemaps those of one robots.txt may name, directly and
	// indirectly; default 10,000. The number is divided, first among the listed
	// sitemaps and then among those that an index names: one that leads to many
	// more files than its share is followed only in part.
	MaxFiles int
	// MaxDepth is how many indexes may lead to a sitemap; default 2, that is, an
	// index within an index. MaxURLs is how many URLs of one file are read; default
	// 50,000.
	MaxDepth, MaxURLs int
	// MaxRedirects is how many redirects of a sitemap are followed in a row; default
	// 5. (Nutch: sitemap.redir.max.)
	MaxRedirects int
	// MaxBytes limits the decoded size of a sitemap; default 50 MiB. An eighth of
	// the workers, at least two, may hold as much each at a time. (Nutch:
	// sitemap.size.max.)
	MaxBytes int64
	// KeepContent stores the bodies of sitemaps in the segment.
	KeepContent bool
}

// Defaults of SitemapOptions.
const (
	defaultListed = 100
	defaultFiles  = 10_000
	// as for robots.txt
	defaultRedirects = 5
	// unlimited is the budget if there is no limit; it can be divided a few
	// times.
	unlimited = min(1<<40, math.MaxInt)
	// acceptSitemap is the Accept header where a sitemap is expected.
	acceptSitemap = "application/xml,text/xml,application/rss+xml,application/atom+xml,text/plain;q=0.9,*/*;q=0.8"
)

// SitemapReport says what was read in sitemaps.
type SitemapReport struct {
	// Files counts the sitemaps that were read, Indexes those of them that name
	// others, Feeds those that are feeds, and Failed files that were expected
	// to be sitemaps but are not.
	Files, Indexes, Feeds, Failed int
	// URLs and Sitemaps count the accepted links to pages and to other sitemaps,
	// each once per file.
	URLs, Sitemaps int
	// OutOfScope counts the entries that the sitemap may not list, Rejected those
	// that the rules reject, Bad those that are not URLs, and Cut those beyond a
	// limit. Truncated counts the files that were not read to the end.
	OutOfScope, Rejected, Bad, Cut, Truncated int
}

// Add adds another report.
func (r *SitemapReport) Add(o SitemapReport) {
	r.Files += o.Files
	r.Indexes += o.Indexes
	r.Feeds += o.Feeds
	r.Failed += o.Failed
	r.URLs += o.URLs
	r.Sitemaps += o.Sitemaps
	r.OutOfScope += o.OutOfScope
	r.Rejected += o.Rejected
	r.Bad += o.Bad
	r.Cut += o.Cut
	r.Truncated += o.Truncated
}

// limit resolves an option.
func limit(n, std int) int {
	switch {
	case n == 0:
		return std
	case n < 0:
		return unlimited
	}
	return n
}

// origins remembers the origins whose robots.txt was checked.
type origins struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// addNew reports whether an origin is new.
func (l *origins) addNew(origin string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[origin]; ok {
		return false
	}
	if l.seen == nil {
		l.seen = map[string]struct{}{}
	}
	l.seen[origin] = struct{}{}
	return true
}

// addRobotsSitemaps adds the sitemaps listed in robots.txt to a result. Without
// a parser that is left to the parse stage.
func (l *loop) addRobotsSitemaps(r *result, rules *robots.Rules) {
	if l.opts.Parser != nil {
		l.opts.contentReader().addSitemapLinks(&l.origins, r.out, rules)
	}
}

// addRobotsSitemaps of a reader does the same in the parse stage, which makes no request.
func (r contentReader) addRobotsSitemaps(ctx context.Context, seen *origins, v *visitResult) error {
	if r.opts.Politeness.NoRobots || r.opts.Robots.Hosts == nil {
		return nil
	}
	rules, _, err := r.opts.Robots.Cached(ctx, v.visit.URL)
	if err == nil {
		r.addSitemapLinks(seen, v, rules)
	}
	return err
}

// addSitemapLinks adds the sitemaps listed in robots.txt to the links of a visit, once
// per origin. Which visit that is makes no difference: the links say who lists
// them.
func (r contentReader) addSitemapLinks(seen *origins, v *visitResult, rules *robots.Rules) {
	if v == nil || rules == nil || len(rules.Sitemaps) == 0 || r.opts.Sitemaps.NoDiscovery || r.opts.NutchCompat {
		return
	}
	origin := crawldb.Origin(v.visit.URL)
	if origin == "" || !seen.addNew(origin) {
		return
	}
	links := r.robotsSitemapLinks(v, origin, rules.Sitemaps)
	if len(links) == 0 {
		return
	}
	if v.parse == nil {
		v.parse = &segment.Parse{URL: v.visit.URL}
	}
	v.parse.Links = append(v.parse.Links, links...)
}

func (r contentReader) robotsSitemapLinks(v *visitResult, origin string, sitemaps []string) []segment.Link {
	base := weburl.Parse(origin + "/robots.txt")
	sitemaps = sitemaps[:min(len(sitemaps), limit(r.opts.Sitemaps.MaxListed, defaultListed))]
	mark := crawldb.Sitemap{Origins: []string{origin}, Budget: limit(r.opts.Sitemaps.MaxFiles, defaultFiles) / max(len(sitemaps), 1)}
	var m crawldb.Meta
	mark.Set(&m)
	var links []segment.Link
	for _, s := range sitemaps {
		if r.tooLong(len(s)) {
			v.rejected++
			continue
		}
		target, ok := base.Resolve(s)
		if ok {
			target, ok = r.acceptSitemap(origin+"/robots.txt", target)
		}
		if !ok {
			v.rejected++
			continue
		}
		if !slices.ContainsFunc(links, func(l segment.Link) bool { return l.URL == target }) {
			links = append(links, segment.Link{URL: target, Meta: m})
		}
	}
	return links
}

// acceptSitemap applies the rules of the crawl to the URL of a sitemap.
func (r contentReader) acceptSitemap(from, target string) (string, bool) {
	if rules := r.sitemapRules(); rules != nil {
		normal, err := rules.ApplySitemap(urlfilter.Outlink, target)
		if err != nil {
			return "", false
		}
		target = normal
	}
	return target, !r.tooLong(len(target)) && !r.ignored(from, target)
}

// sitemapRules are the rules for what sitemaps name; nil if there are none.
func (r contentReader) sitemapRules() *urlfilter.Rules {
	o := &r.opts.Sitemaps
	if r.opts.Rules == nil || !o.NoNormalize && !o.NoFilter {
		return r.opts.Rules
	}
	some := *r.opts.Rules
	if o.NoNormalize {
		some.Normalizers = nil
	}
	if o.NoFilter {
		some.Filters = nil
	}
	return &some
}

// redirectLink returns where a redirect leads, nil if it is not followed: its only
// link, apart from sitemaps listed in robots.txt.
func redirectLink(p *segment.Parse) *segment.Link {
	if len(p.Links) == 0 {
		return nil
	}
	if m, ok := crawldb.SitemapOf(p.Links[0].Meta); ok && m.Hops == 0 {
		return nil
	}
	return &p.Links[0]
}

// isFromSitemap reports whether a link is not on the page but from a sitemap.
func isFromSitemap(l *segment.Link) bool {
	if l.Meta == (crawldb.Meta{}) {
		return false
	}
	_, mark := crawldb.SitemapOf(l.Meta)
	_, hint := crawldb.SitemapEntryOf(l.Meta)
	return mark || hint
}

// sitemapMark reports whether a record should be read as a sitemap.
func sitemapMark(d *crawldb.Datum) (crawldb.Sitemap, bool) { return crawldb.SitemapOf(d.Meta) }

// readSitemap reads the content of a record marked as a sitemap. It returns
// false if it is not one and may be a page.
func (r contentReader) readSitemap(ctx context.Context, v *visitResult, from *crawldb.Datum, c *page.Content) bool {
	mark, ok := sitemapMark(from)
	if !ok {
		return false
	}
	s := r.newSitemap(from.URL, mark, c)
	err := s.read(ctx, v)
	if errors.Is(err, sitemap.ErrFormat) && mark.Page {
		return false
	}
	v.sitemap = &s.report
	v.parse = &segment.Parse{URL: from.URL, Sitemap: true}
	switch {
	case err == nil:
		v.parse.Signature = r.signSitemap(c)
	case ctx.Err() == nil:
		s.report = SitemapReport{Failed: 1}
		v.parse.Error = oneLine(strings.TrimPrefix(err.Error(), "sitemap "+from.URL+": "))
		s.links = nil
	}
	// There are no links to give to.
	r.distribute(v.parse, scoring.Page{Datum: from, Content: c}, nil)
	v.parse.Links = append(v.parse.Links, s.links...)
	return true
}

// signSitemap returns the fingerprint of content without text.
func (r contentReader) signSitemap(c *page.Content) []byte { return signature.MD5{}.Sum(c, nil) }

// redirectedSitemap passes the mark of a sitemap on to its new location.
func (r contentReader) redirectedSitemap(p *segment.Parse, from *crawldb.Datum) {
	mark, ok := sitemapMark(from)
	if !ok {
		return
	}
	mark.Page = false
	if mark.Hops++; mark.Hops > limit(r.opts.Sitemaps.MaxRedirects, defaultRedirects) {
		p.Links = nil
	}
	for i := range p.Links {
		mark.Set(&p.Links[i].Meta)
	}
}

// readFeed adds what a feed says about the pages of its own site, and returns
// what a parser would have found in it; false if it is not a feed.
func (r contentReader) readFeed(ctx context.Context, v *visitResult, c *page.Content) (page.Parsed, []segment.Link, bool) {
	var p page.Parsed
	if r.opts.NutchCompat || r.opts.Sitemaps.NoFeeds || !mayBeFeed(v.visit.ContentType) {
		return p, nil, false
	}
	s := r.newSitemap(v.visit.URL, crawldb.Sitemap{}, c)
	s.feed = &p
	if err := s.read(ctx, v); err != nil {
		return p, nil, false
	}
	v.sitemap = &s.report
	return p, s.links, true
}

// mayBeFeed reports whether content of that type is checked for a feed.
func mayBeFeed(mediaType string) bool {
	switch mediaType {
	case "application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/xml", "text/xml":
		return true
	}
	return false
}

// sitemapReading is a sitemap or feed being read.
type sitemapReading struct {
	r      contentReader
	url    string
	mark   crawldb.Sitemap
	opts   sitemap.Options
	body   []byte
	at     time.Time
	feed   *page.Parsed // takes the links of a feed; nil if a sitemap is expected
	rules  *urlfilter.Rules
	links  []segment.Link
	report SitemapReport

	last     crawldb.SitemapEntry
	lastMeta crawldb.Meta
}

func (r contentReader) newSitemap(url string, mark crawldb.Sitemap, c *page.Content) *sitemapReading {
	o := &r.opts.Sitemaps
	maxURL := r.opts.Links.MaxLength
	if maxURL == 0 {
		maxURL = urlfilter.DefaultMaxLength
	}
	return &sitemapReading{r: r, url: url, mark: mark, body: c.Body, at: c.Time, rules: r.sitemapRules(), opts: sitemap.Options{
		URL: url, ContentType: c.Type, Truncated: c.Truncated, Depth: mark.Depth,
		MaxDepth: o.MaxDepth, MaxURLs: o.MaxURLs, MaxBytes: o.MaxBytes, MaxURL: maxURL,
	}}
}

var errNoFeed = errors.New("not a feed")

// read collects the links. It returns an error if the context ends or the content is
// not a sitemap.
func (s *sitemapReading) read(ctx context.Context, v *visitResult) error {
	rd := sitemap.NewReader(bytes.NewReader(s.body), s.opts)
	var scope sitemap.Scope
	known := false
	seen := map[string]struct{}{s.url: {}}
	var children []string
	for e, err := range rd.All(ctx) {
		if err != nil {
			return err
		}
		if !known {
			known = true
			if err := s.begin(rd.Report().Format, &scope); err != nil {
				return err
			}
		}
		target, ok := s.accept(v, &scope, e)
		if !ok {
			continue
		}
		if _, dup := seen[target]; dup {
			continue
		}
		seen[target] = struct{}{}
		if e.Sitemap {
			children = append(children, target)
			continue
		}
		if s.feed != nil {
			s.feed.Outlinks = append(s.feed.Outlinks, page.Outlink{URL: target})
			if crawldb.Origin(target) != crawldb.Origin(s.url) {
				continue // only a site may speak of its own pages
			}
		}
		s.links = append(s.links, segment.Link{URL: target, Meta: s.hint(e)})
		s.report.URLs++
	}
	if !known { // nothing in it
		if err := s.begin(rd.Report().Format, &scope); err != nil {
			return err
		}
	}
	s.name(children)
	rep := rd.Report()
	s.report.Files = 1
	s.report.Bad += rep.BadURLs
	s.report.Cut += rep.TooDeep
	if rep.Truncated {
		s.report.Truncated = 1
	}
	if s.feed != nil {
		s.feed.Truncated = rep.Truncated
	}
	return nil
}

// begin is called once the form of the document is known.
func (s *sitemapReading) begin(f sitemap.Format, scope *sitemap.Scope) (err error) {
	origins := s.mark.Origins
	switch f {
	case sitemap.RSS, sitemap.RDF, sitemap.Atom:
		origins = append(origins[:len(origins):len(origins)], s.url)
		s.report.Feeds = 1
	case sitemap.Index:
		s.report.Indexes = 1
		fallthrough
	default:
		if s.feed != nil {
			return errNoFeed
		}
	}
	*scope, err = sitemap.NewScope(s.url, origins...)
	return err
}

// accept returns whether an entry is followed, and its URL as normalized.
func (s *sitemapReading) accept(v *visitResult, scope *sitemap.Scope, e sitemap.Entry) (string, bool) {
	var err error
	switch target := e.URL; {
	case s.rules == nil:
	case e.Sitemap:
		e.URL, err = s.rules.ApplySitemap(urlfilter.Outlink, target)
	default:
		e.URL, err = s.rules.Apply(urlfilter.Outlink, target)
	}
	if err != nil || s.r.tooLong(len(e.URL)) || s.r.ignored(s.url, e.URL) {
		s.report.Rejected++
		return "", false
	}
	if s.feed == nil && !s.r.opts.Sitemaps.NoStrict && !scope.Contains(e) {
		s.report.OutOfScope++
		return "", false
	}
	return e.URL, true
}

// hint returns what an entry says about a page. Dates in the future are
// ignored.
func (s *sitemapReading) hint(e sitemap.Entry) (m crawldb.Meta) {
	h := crawldb.SitemapEntry{Every: e.Interval, Priority: e.Priority, HasPriority: e.HasPriority}
	if !e.Modified.After(s.at) && e.Modified.Year() > 1990 {
		h.Modified, h.Span = e.Modified, e.Span
	}
	if h != s.last || s.lastMeta == (crawldb.Meta{}) {
		h.Set(&m)
		s.last, s.lastMeta = h, m
	}
	return s.lastMeta // most are alike, and share their memory
}

// name marks the sitemaps that an index names, as many as its budget allows,
// and divides the rest of the budget among them.
func (s *sitemapReading) name(children []string) {
	budget := s.mark.Budget
	if budget == 0 && s.mark.Depth == 0 { // of a seed
		budget = limit(s.r.opts.Sitemaps.MaxFiles, defaultFiles)
	}
	if n := len(children) - budget; n > 0 {
		s.report.Cut += n
		children = children[:budget]
	}
	if len(children) == 0 {
		return
	}
	var m crawldb.Meta
	crawldb.Sitemap{Depth: s.mark.Depth + 1, Budget: (budget - len(children)) / len(children), Origins: s.mark.Origins}.Set(&m)
	for _, c := range children {
		s.links = append(s.links, segment.Link{URL: c, Meta: m})
	}
	s.report.Sitemaps = len(children)
}

// linkBytes is the memory that a visit holds besides content and text.
func (v *visitResult) linkBytes() int {
	n := 0
	if v.parse != nil && len(v.parse.Links) > 1000 {
		for i := range v.parse.Links {
			n += len(v.parse.Links[i].URL) + 64
		}
	}
	return n
}

// newRequest makes the request for an item.
func (l *loop) newRequest(it *crawldb.Datum) protocol.Request {
	req := protocol.Request{URL: it.URL, ETag: it.ETag, LastModified: it.LastModified, MaxBytes: l.opts.Limits.MaxBytes}
	if l.opts.Unconditional || it.Signature == nil && !l.opts.NutchCompat { // nothing that "not modified" could refer to
		req.ETag, req.LastModified = "", ""
	}
	if _, ok := sitemapMark(it); ok {
		req.Accept = acceptSitemap
		switch req.MaxBytes = l.opts.Sitemaps.MaxBytes; {
		case req.MaxBytes == 0:
			req.MaxBytes = sitemap.DefaultMaxBytes
		case req.MaxBytes < 0:
			req.MaxBytes = -1
		}
	}
	return req
}

// acquireSitemap acquires the right to hold a sitemap in memory, if the item is one; false
// if as many as may are held. release ends it.
func (l *loop) acquireSitemap(it *crawldb.Datum) (release func(), ok bool) {
	if _, marked := sitemapMark(it); !marked {
		return func() {}, true
	}
	select {
	case l.sitemapSem <- struct{}{}:
		return func() { <-l.sitemapSem }, true
	default:
		return nil, false
	}
}

// sitemapWait is how long a sitemap waits before it is tried again because too many are
// in memory; it doubles after each eight tries, up to six times, while its host has
// nothing else.
const sitemapWait = 100 * time.Millisecond

func maxSitemapsInMemory(threads int) int { return max(2, threads/8) }
