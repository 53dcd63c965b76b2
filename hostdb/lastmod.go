package hostdb

// Lastmod counts how often what sitemaps say of the changes of a host's pages was
// true, at visits of pages of which they say something. It is kept by package
// update. Visits at which it cannot be told, because the page was not known
// before, or because a day is given and the page was visited on it, do not count.
type Lastmod struct {
	// Hits counts the visits at which a page was said to have changed since the
	// visit before and had, False those at which it had not, and Misses those of
	// pages that had changed and were not said to have.
	Hits, False, Misses int64
	// Segment is the last that was counted.
	Segment string
}

const (
	// trustFrom is the precision from which on claims are believed. A sitemap that
	// says of each page at all times that it has just changed is right as often as
	// visits find a change anyway: on six of ten, with an adaptive schedule. So less
	// than that has no meaning, and those who tell the truth are well above.
	trustFrom = 0.75
	// What is assumed of a host that nothing is known of: seven claims of eight true.
	priorHits, priorAll = 7, 8
	// lastmodWindow is after how many visits what was counted before them begins to
	// count less: then all is halved, so that a site can change its ways.
	lastmodWindow = 100
)

// Precision is the share of claims that are true, as far as is known:
// (Hits+7)/(Hits+False+8).
func (l Lastmod) Precision() float64 {
	return float64(l.Hits+priorHits) / float64(l.Hits+l.False+priorAll)
}

// Recall is the share of changes that are claimed: (Hits+1)/(Hits+Misses+2), which
// begins at a half.
func (l Lastmod) Recall() float64 { return float64(l.Hits+1) / float64(l.Hits+l.Misses+2) }

// Trusted reports whether claims are believed: whether Precision is three quarters
// or more. A host of which nothing is known is trusted until two claims were false.
func (l Lastmod) Trusted() bool { return l.Precision() >= trustFrom }

// Counts returns what l is once a segment has been counted; l itself if that was
// done already. What was counted before fades: see the window of a hundred visits.
func (l Lastmod) Counts(segment string, hits, false, misses int64) Lastmod {
	if l.Segment >= segment {
		return l
	}
	l.Segment = segment
	l.Hits += hits
	l.False += false
	l.Misses += misses
	for l.Hits+l.False+l.Misses > lastmodWindow {
		l.Hits, l.False, l.Misses = l.Hits/2, l.False/2, l.Misses/2
	}
	return l
}
