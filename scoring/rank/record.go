package rank

import (
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
)

// Record returns the record of a page whose score of [Graph.Changed] is given, as the filters of
// its crawl make it: old itself if its score is on that level already, or if there is
// no PageRank in f.
func Record(f scoring.Filter, old *crawldb.Datum, received float64) *crawldb.Datum {
	p, ok := scoring.PageRankOf(f)
	if !ok {
		return old
	}
	return record(nil, f, p, old, received)
}

func record(s schedule.FetchSchedule, f scoring.Filter, p scoring.PageRank, old *crawldb.Datum, received float64) *crawldb.Datum {
	d := *old
	p.Rank(&d, received)
	if level(float64(d.Score)) == level(float64(old.Score)) {
		return old
	}
	d.Priority = f.Priority(&d, d.Score)
	if _, ok := crawldb.SitemapOf(d.Meta); ok {
		d.Priority = max(d.Priority, 1) // as package update does
	}
	d.Priority = schedule.Priority(s, &d, d.Priority)
	return &d
}
