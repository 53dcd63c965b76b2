package recrawl

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// gathers reports whether pages that are due soon join a round of a Run.
func (c *Crawler) gathers() bool {
	return c.opts.Run.Wait && c.opts.Run.Gather >= 0 && !c.opts.Generate.NutchCompat
}

// earlyVisit is how long before it is due an endless run may visit a page: see
// Options.Run.Gather.
func (c *Crawler) earlyVisit(d *crawldb.Datum) time.Duration {
	least := c.opts.Run.Gather
	if least == 0 {
		least = time.Minute
	}
	// A page that was put off is due later than one interval after its last visit. Its host is not
	// to be asked before that time.
	gap := d.FetchTime.Sub(d.LastFetch)
	if d.LastFetch.IsZero() || gap > d.Interval+time.Second {
		return min(least, time.Minute)
	}
	return max(gap/100, min(least, gap/4))
}
