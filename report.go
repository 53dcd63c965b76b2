package recrawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
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
	// fetch.Following.MaxRedirects.
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
	// RefusedSeeds are the seeds that were not requested, because robots.txt forbids it or a rule
	// of ours: the first hundred. Seeds that the rules reject have no time.
	RefusedSeeds []segment.Visit
	// Events counts the calls of OnPage.
	Events int
	// NextDue is when the next page is due; zero if more is due already, or if that is not
	// known. After a round that worked on a segment it is known only in Hooks.Round, and only if
	// the crawl db is a crawldb.DueStore.
	NextDue time.Time
	// Elapsed is how long the rounds took, not counting the time Run waited for pages to
	// become due.
	Elapsed time.Duration
	// Freshness is how up to date the copies are according to the plan of a schedule that
	// learns, and how much of its budget is used; nil for other schedules.
	Freshness *Freshness

	ahead   bool  // the selection looked ahead: see Crawler.lookAhead
	refused error // the first visit that was refused
}

// Err returns what went wrong without ending a round, joined: segments that are damaged, seeds
// that were not requested because robots.txt or a rule of ours forbids it, and other pages that the
// crawler itself refused to request, such as those of private addresses; nil if there is nothing of
// the kind. Pages that their servers do not have are no such error.
func (r Report) Err() error {
	var errs []error
	for _, name := range r.Damaged {
		errs = append(errs, fmt.Errorf("recrawl: segment %s is damaged and left as it is", name))
	}
	n := r.Visits[protocol.Refused]
	for _, v := range r.RefusedSeeds {
		errs = append(errs, fmt.Errorf("recrawl: the seed %s was not requested: %s", v.URL, v.Outcome.Reason))
		if v.Outcome.Code == protocol.Refused && !v.Time.IsZero() {
			n--
		}
	}
	if n > 0 {
		if r.refused == nil {
			r.refused = errors.New("no reason was given")
		}
		errs = append(errs, fmt.Errorf("recrawl: %d pages were not requested, such as %w", n, r.refused))
	}
	return errors.Join(errs...)
}

// String returns the report in one line, such as
// "1 round: 12 pages visited (11 success, 1 not_found), 48.2 kB, 40 links, 12 events, in 3.1s".
func (r Report) String() string {
	var b strings.Builder
	plural := func(n int, what string) {
		fmt.Fprintf(&b, "%d %s", n, what)
		if n != 1 {
			b.WriteByte('s')
		}
	}
	plural(r.Rounds, "round")
	b.WriteString(": ")
	plural(r.Visited(), "page")
	b.WriteString(" visited")
	codes := slices.SortedFunc(maps.Keys(r.Visits), func(a, b protocol.Code) int {
		return cmp.Or(cmp.Compare(r.Visits[b], r.Visits[a]), cmp.Compare(a, b))
	})
	for i, code := range codes {
		fmt.Fprintf(&b, "%s%d %v", [2]string{" (", ", "}[min(i, 1)], r.Visits[code], code)
	}
	if len(codes) > 0 {
		b.WriteByte(')')
	}
	fmt.Fprintf(&b, ", %.1f kB, ", float64(r.Bytes)/1000)
	plural(r.Links, "link")
	b.WriteString(", ")
	plural(r.Events, "event")
	fmt.Fprintf(&b, ", in %v", r.Elapsed.Round(time.Millisecond))
	if len(r.RefusedSeeds) > 0 {
		b.WriteString("; ")
		plural(len(r.RefusedSeeds), "refused seed")
	}
	if len(r.Damaged) > 0 {
		b.WriteString("; ")
		plural(len(r.Damaged), "damaged segment")
	}
	if !r.NextDue.IsZero() {
		fmt.Fprintf(&b, "; the next page is due at %s", r.NextDue.Format(time.RFC3339))
	}
	return b.String()
}

// Visited adds up the visits.
func (r *Report) Visited() int {
	f := fetch.Report{Visits: r.Visits}
	return f.Visited()
}

// mostSegments is how many segments a Report names: it must not grow in a Run of
// years.
const mostSegments = 1000

// maxRefusedSeeds is how many refused seeds a Report names.
const maxRefusedSeeds = 100

func (r *Report) add(o Report) {
	r.Rounds += o.Rounds
	r.Segments = append(r.Segments, o.Segments...)
	r.Segments = slices.Delete(r.Segments, 0, max(0, len(r.Segments)-mostSegments))
	r.Damaged = append(r.Damaged, o.Damaged...)
	r.Damaged = slices.Delete(r.Damaged, 0, max(0, len(r.Damaged)-mostSegments))
	for _, v := range o.RefusedSeeds {
		known := slices.ContainsFunc(r.RefusedSeeds, func(k segment.Visit) bool { return k.URL == v.URL })
		if !known && len(r.RefusedSeeds) < maxRefusedSeeds { // the rules reject a seed in each round
			r.RefusedSeeds = append(r.RefusedSeeds, v)
		}
	}
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
	if r.NextDue = o.NextDue; r.refused == nil {
		r.refused = o.refused
	}
	r.Elapsed += o.Elapsed
	if o.Freshness != nil {
		r.Freshness = o.Freshness
	}
}
