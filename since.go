package recrawl

import (
	"context"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// leftJob is the mark that says when a crawl left a schedule that learns: until then
// intervals were learned, and schedule.Default would keep them forever. It is removed
// when the crawl learns again.
const leftJob = "schedule/left"

// since tells a schedule.Default when the crawl switched to it from one that learns.
// The first update that finds an unused plan notes the time.
func (c *Crawler) since(ctx context.Context, s schedule.FetchSchedule) (schedule.FetchSchedule, error) {
	var d schedule.Default
	switch s := s.(type) {
	case schedule.Learned, *schedule.Learned:
		mark, err := c.s.Crawl.Progress(ctx, leftJob)
		if err == nil && mark != "" {
			err = c.s.Crawl.Update(ctx, crawldb.Batch{Job: leftJob})
		}
		return s, err
	case schedule.Default:
		d = s
	case *schedule.Default:
		d = *s
	default:
		return s, nil
	}
	if !d.Since.IsZero() {
		return s, nil
	}
	plan, err := c.s.Crawl.Progress(ctx, planJob)
	if err != nil || plan == "" {
		return s, err
	}
	mark, err := c.s.Crawl.Progress(ctx, leftJob)
	if err != nil {
		return s, err
	}
	if d.Since, err = time.Parse(time.RFC3339, mark); err != nil {
		// None yet, or none that can be read. Pages visited this second are among those
		// whose interval was learned.
		d.Since = c.o.Now().Truncate(time.Second).Add(time.Second).UTC()
		err = c.s.Crawl.Update(ctx, crawldb.Batch{Job: leftJob, Cursor: d.Since.Format(time.RFC3339)})
	}
	return d, err
}
