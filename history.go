package recrawl

import (
	"context"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// HistoryPoint has the visits of a crawl since the point before, and its freshness at that time.
type HistoryPoint struct {
	Time time.Time
	// Visits counts the visits by outcome since the point before, Bytes the bytes of bodies as sent.
	// What a process did after the last point that it wrote is not counted.
	Visits map[protocol.Code]int `json:",omitempty"`
	Bytes  int64                 `json:",omitempty"`
	// Fresh is the share of importance that was fresh according to the last plan, Never the number of
	// pages never visited, Overdue that of pages due again, and Budget the number of visits a day. All
	// are zero without a plan.
	Fresh          float64 `json:",omitempty"`
	Never, Overdue int     `json:",omitempty"`
	Budget         float64 `json:",omitempty"`
}

// The history is a mark. A point is written with the end of a round, at most once in
// historyInterval. If there are maxHistory points, each second one is merged into the next.
const (
	historyMark     = "history"
	historyInterval = time.Minute
	maxHistory      = 512
)

// history is what the points cover. It is used only while accountMutex is held.
type history struct {
	written time.Time
	visits  map[protocol.Code]int // those of Status that are in points
	bytes   int64
}

// History returns how the crawl has done so far: at most 512 points, oldest first. There is one for the
// end of a round at most every minute; as the crawl gets older, there are fewer for its past.
func (c *Crawler) History(ctx context.Context) (points []HistoryPoint, err error) {
	err = c.readJSONMark(ctx, historyMark, &points)
	return points, err
}

// addHistory adds the mark of the history to those that are written at the end of a round, if a point
// is due. written is to be called when they are.
func (c *Crawler) addHistory(ctx context.Context, marks map[string]string) (written func(), err error) {
	now := c.opts.Now().UTC()
	h := c.history
	if since := now.Sub(h.written); !h.written.IsZero() && 0 <= since && since < historyInterval {
		return func() {}, nil
	}
	points, err := c.History(ctx)
	if err != nil {
		c.opts.Logger.Warn("recrawl: the history cannot be read, and begins anew", "error", err)
		points = nil
	}
	s := c.Status()
	p := HistoryPoint{Time: now, Visits: map[protocol.Code]int{}, Bytes: s.Bytes - h.bytes}
	for code, n := range s.Visits {
		if n -= h.visits[code]; n > 0 {
			p.Visits[code] = n
		}
	}
	if f, err := c.plannedFreshness(ctx); err != nil {
		return nil, err
	} else if f != nil {
		p.Fresh, p.Never, p.Overdue, p.Budget = f.Weighted, f.Never, f.Overdue, f.Budget
	}
	marks[historyMark] = jsonMark(thinHistory(append(points, p)))
	return func() { c.history = history{now, s.Visits, s.Bytes} }, nil
}

// thinHistory merges each second point into the next if there are too many.
func thinHistory(points []HistoryPoint) []HistoryPoint {
	if len(points) <= maxHistory {
		return points
	}
	var thinned []HistoryPoint
	for i := 1; i < len(points); i += 2 {
		p, previous := points[i], points[i-1]
		visits := map[protocol.Code]int{}
		for _, of := range []HistoryPoint{previous, p} {
			for code, n := range of.Visits {
				visits[code] += n
			}
		}
		p.Visits, p.Bytes = visits, p.Bytes+previous.Bytes
		thinned = append(thinned, p)
	}
	if len(points)%2 > 0 {
		thinned = append(thinned, points[len(points)-1])
	}
	return thinned
}
