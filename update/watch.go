package update

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// orphansMark is the mark for the clock of scoring.Orphan.
const orphansMark = "orphans"

// watch is that clock. Times are in milliseconds since 1970.
type watch struct {
	shows int64 // the time it shows
	at    int64 // the time of the crawl's clock when last read
	most  int64 // the latest time it has ever shown
}

func (w watch) String() string { return fmt.Sprintf("%d at %d of %d", w.shows, w.at, w.most) }

// on returns the watch at a time of the crawl's clock. It advances by the time that has
// passed, but by at most a step: no update looked for links meanwhile, or that clock was set.
// A clock that is ahead now and then, as when two machines, one of them ahead, take
// turns, advances it only when it gets further ahead.
func (w watch) on(now, step int64) watch {
	passed := now - w.at
	if passed > step {
		passed = min(step, now-w.most)
	}
	w.shows += max(passed, 0)
	w.at, w.most = now, max(w.most, now)
	return w
}

// watched returns the time by which orphans are judged, advanced to now. It is that of
// the crawl's clock if there is no Orphan filter, or if it is in Nutch's mode.
func watched(ctx context.Context, crawl crawldb.Store, s scoring.Filter, compat bool, now time.Time) (time.Time, error) {
	orphan, ok := scoring.OrphanOf(s)
	if !ok || compat || orphan.NutchCompat || orphan.Patience() == 0 {
		return now, nil
	}
	mark, err := crawl.Mark(ctx, orphansMark)
	if err != nil {
		return now, err
	}
	var w watch
	if n, err := fmt.Sscanf(mark, "%d at %d of %d", &w.shows, &w.at, &w.most); err != nil || n != 3 || w.String() != mark {
		ms := now.UnixMilli() // it begins here; a damaged mark counts as if no time had passed
		w = watch{shows: ms, at: ms, most: ms}
	}
	if w = w.on(now.UnixMilli(), (orphan.Patience() / 4).Milliseconds()); w.String() != mark {
		if err := crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(orphansMark, w.String())}); err != nil {
			return now, err
		}
	}
	return time.UnixMilli(w.shows).UTC(), nil
}
