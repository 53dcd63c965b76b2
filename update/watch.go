package update

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// orphansJob is the mark of the clock by which scoring.Orphan counts.
const orphansJob = "orphans"

// watch is that clock. Times are in milliseconds since 1970.
type watch struct {
	shows int64 // what it shows
	at    int64 // what the clock of the crawl showed when it was last looked at
	most  int64 // the latest that this one ever showed
}

func (w watch) String() string { return fmt.Sprintf("%d at %d of %d", w.shows, w.at, w.most) }

// on returns the watch at a time of the clock of the crawl. It moves on by what has
// passed, but by no more than a step: nobody has looked for the links of pages meanwhile,
// or that clock was set. One that is set ahead now and then, as where two hosts take turns
// of which one is ahead, moves it on no more often than it gets further ahead.
func (w watch) on(now, step int64) watch {
	passed := now - w.at
	if passed > step {
		passed = min(step, now-w.most)
	}
	w.shows += max(passed, 0)
	w.at, w.most = now, max(w.most, now)
	return w
}

// watched returns what the clock shows by which orphans are told, moved on to now. It is
// the clock of the crawl if nobody tells orphans, or who does so does it as Nutch.
func watched(ctx context.Context, crawl crawldb.Store, s scoring.Filter, compat bool, now time.Time) (time.Time, error) {
	orphan, ok := scoring.OrphanOf(s)
	if !ok || compat || orphan.NutchCompat || orphan.Patience() == 0 {
		return now, nil
	}
	mark, err := crawl.Progress(ctx, orphansJob)
	if err != nil {
		return now, err
	}
	var w watch
	if n, err := fmt.Sscanf(mark, "%d at %d of %d", &w.shows, &w.at, &w.most); err != nil || n != 3 || w.String() != mark {
		ms := now.UnixMilli() // it begins here; what is damaged is as if nothing had passed
		w = watch{shows: ms, at: ms, most: ms}
	}
	if w = w.on(now.UnixMilli(), (orphan.Patience() / 4).Milliseconds()); w.String() != mark {
		if err := crawl.Update(ctx, crawldb.Batch{Job: orphansJob, Cursor: w.String()}); err != nil {
			return now, err
		}
	}
	return time.UnixMilli(w.shows).UTC(), nil
}
