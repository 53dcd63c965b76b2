package recrawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// Signal says that a page changed at the given time, or now if that is zero:
// somebody has heard so from a feed, a sitemap, or the page's author. A schedule
// that learns has the page visited sooner, by as much as such signals of its host have
// proved true, those of its sitemaps included; any other makes it due at once if
// they mostly have. What the resulting visit finds is counted. For a page without a
// record the error matches crawldb.ErrNotFound, for a URL that does not belong to the
// crawl urlfilter.ErrRejected or ErrInvalid. A signal is durable once a round has
// ended after it, or Stores.Crawl was synced.
func (c *Crawler) Signal(ctx context.Context, url string, at time.Time) error {
	fail := func(err error) error { return fmt.Errorf("recrawl: signal %s: %w", url, err) }
	normal, err := c.opts.Rules.Apply(urlfilter.Inject, url)
	if err != nil {
		return fail(err)
	}
	h, err := c.stores.Hosts.Get(ctx, hostdb.ByHost.Key(normal))
	if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
		return fail(err)
	}
	o := c.updateOptions()
	if now := o.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	found, due := false, false
	err = c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: []string{normal}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		if found = old != nil; !found {
			return nil, nil
		}
		d := update.Signal(old, at, h.Signals, o)
		due = o.Schedule.Due(d, o.Now())
		return d, nil
	}})
	if err == nil && !found {
		err = crawldb.ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	if due {
		c.urge()
	} else {
		c.wake()
	}
	return nil
}
