package fetch

import (
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
)

// Some servers send X-Robots-Tag with "not modified", too, and some do not: RFC 9110 section 15.4.5
// leaves it to them. So an answer without it says nothing, unless this page has had one with it. If
// the header of "not modified" forbids indexing for the first time, or no longer does, the content is
// requested as well, since what a segment and an index hold of the page was sent under another header.
// In between validators are used as for any page. What a page has had is noted in its record, as long
// as its header forbids indexing.
const (
	tagName  = "x-robots-tag" // in segment.Parse.Meta
	tagKept  = "page." + tagName
	tagValue = "noindex"
)

// tagChanged reports whether a page that was not modified has to be requested again, without
// validators, and prepares its record for that.
func (l *loop) tagChanged(d *crawldb.Datum, req protocol.Request, resp *protocol.Response) bool {
	if resp.Outcome.Code != protocol.NotModified || req.ETag+req.LastModified == "" || l.opts.Parser == nil || l.opts.NutchCompat {
		return false
	}
	if _, ok := sitemapMark(d); ok { // a sitemap is not indexed
		return false
	}
	_, was := d.Meta.Get(tagKept)
	is := l.opts.noIndex(&resp.Content)
	if is == was {
		return false
	}
	d.ETag, d.LastModified = "", ""
	d.Meta.Set(tagKept, tagValue) // which a header that has changed removes
	return true
}

// recordTag notes that a header forbids indexing, if "not modified" has said so.
func (r contentReader) recordTag(m *crawldb.Meta, from *crawldb.Datum, c *page.Content) {
	if _, was := from.Meta.Get(tagKept); was && !r.opts.NutchCompat && r.opts.noIndex(c) {
		m.Set(tagName, tagValue)
	}
}

// noIndex reports whether the header of an answer forbids indexing.
func (o *Options) noIndex(c *page.Content) bool {
	return c.Robots != "" && !robots.ParseHeader([]string{c.Robots}).Indexable(o.Now())
}
