package page

import "time"

// Directives is what a page asks of a crawler, in X-Robots-Tag headers and in
// meta elements. The zero value asks for nothing. Package robots reads them
// (robots.ParseHeader, robots.ParseMeta).
type Directives struct {
	// NoIndex asks that the page not be shown in an index, NoFollow that its
	// links not be followed, NoArchive that no copy of it be shown. "none" is
	// NoIndex and NoFollow, "nocache" is NoArchive.
	NoIndex, NoFollow, NoArchive bool
	// UnavailableAfter is when NoIndex begins to hold (unavailable_after); zero if
	// the page does not say so.
	UnavailableAfter time.Time
}

// Indexable reports whether the page may be in an index at the given time.
func (d Directives) Indexable(now time.Time) bool {
	return !d.NoIndex && (d.UnavailableAfter.IsZero() || now.Before(d.UnavailableAfter))
}

// At returns the directives as they hold at a visit: with NoIndex once UnavailableAfter has passed. A zero time is
// before any other.
func (d Directives) At(visit time.Time) Directives {
	d.NoIndex = d.NoIndex || !visit.IsZero() && !d.Indexable(visit)
	return d
}

// And combines the two: where they disagree, the stricter holds.
func (d Directives) And(e Directives) Directives {
	d.NoIndex = d.NoIndex || e.NoIndex
	d.NoFollow = d.NoFollow || e.NoFollow
	d.NoArchive = d.NoArchive || e.NoArchive
	if !e.UnavailableAfter.IsZero() && (d.UnavailableAfter.IsZero() || e.UnavailableAfter.Before(d.UnavailableAfter)) {
		d.UnavailableAfter = e.UnavailableAfter
	}
	return d
}
