package recrawl

import (
	"slices"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/update"
)

// Report says what one round did, or several.
type Report struct {
	// Rounds counts the rounds that worked on a segment; Segments names the segments,
	// at most the last thousand of a Run.
	Rounds   int
	Segments []string
	// Selected counts the URLs that were selected, Visits the outcomes of the
	// visits.
	Selected int
	Visits   map[protocol.Code]int
	// Bytes counts the bytes of bodies as sent over the wire.
	Bytes int64
	// Links counts the outlinks that the crawl follows, LinksRejected those that
	// the rules keep out.
	Links, LinksRejected int
	// Redirects counts the outcomes of redirects: see
	// fetch.Options.MaxRedirects.
	Redirects fetch.Redirects
	// Overgrown counts pages that were linked to but not added, because their domains
	// had as many as Options.Update.MaxGrowth allows.
	Overgrown int
	// Sitemaps says what was read in sitemaps, SitemapEffects what it did to the crawl db.
	Sitemaps       fetch.SitemapReport
	SitemapEffects update.SitemapReport
	// Damaged are the segments that were found damaged and set aside, of a Run the last
	// thousand: see [Crawler.Damaged].
	Damaged []string
	// Events counts the calls of OnPage.
	Events int
	// NextDue is when the next page is due, if the last round found none; zero
	// if that is not known.
	NextDue time.Time
	// Elapsed is how long the rounds took, not counting the time Run waited for pages to
	// become due.
	Elapsed time.Duration
	// Freshness is how up to date the copies are according to the plan of a schedule that
	// learns, and how much of its budget is used; nil for other schedules.
	Freshness *Freshness

	ahead bool // the selection looked ahead: see Crawler.ahead
}

// Visited adds up the visits.
func (r *Report) Visited() int {
	f := fetch.Report{Visits: r.Visits}
	return f.Visited()
}

// mostSegments is how many segments a Report names: it must not grow in a Run of
// years.
const mostSegments = 1000

func (r *Report) add(o Report) {
	r.Rounds += o.Rounds
	r.Segments = append(r.Segments, o.Segments...)
	r.Segments = slices.Delete(r.Segments, 0, max(0, len(r.Segments)-mostSegments))
	r.Damaged = append(r.Damaged, o.Damaged...)
	r.Damaged = slices.Delete(r.Damaged, 0, max(0, len(r.Damaged)-mostSegments))
	r.Selected += o.Selected
	for code, n := range o.Visits {
		if r.Visits == nil {
			r.Visits = map[protocol.Code]int{}
		}
		r.Visits[code] += n
	}
	r.Bytes += o.Bytes
	r.Links += o.Links
	r.LinksRejected += o.LinksRejected
	r.Redirects.Add(o.Redirects)
	r.Overgrown += o.Overgrown
	r.Sitemaps.Add(o.Sitemaps)
	r.SitemapEffects.Add(o.SitemapEffects)
	r.Events += o.Events
	r.NextDue = o.NextDue
	r.Elapsed += o.Elapsed
	if o.Freshness != nil {
		r.Freshness = o.Freshness
	}
}
