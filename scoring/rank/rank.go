// Package rank keeps the scores of a crawl db at the PageRank of the known graph while
// the crawl runs. It does not decide how ranks order pages (scoring.PageRank does) and
// does not fetch anything. Start with [Ranker.Run], which is called after each update.
//
// It adds the links of a segment to the known graph ([Graph]), a compact graph of page
// numbers in memory. It computes the ranks again when the graph has changed by
// [Options.Growth], and writes those that have changed by a level to the records. So the
// cost depends on the growth of the crawl and not on the number of rounds.
//
// The graph is stored in the crawl db, in marks whose names begin with "pagerank", each
// of 32 KiB or a little more: about 30 bytes per page, most of them its URL, and 2 to 3
// bytes per link. They are written in one step with the mark of the segment, so a killed
// process loses nothing. When the graph has twice as many pages as after the last check,
// or is full, pages that are gone are removed from it. The ranks are a function of the
// graph, and the graph is a function of the segments and of the gone pages: a crawl that
// is killed and resumed ends with the ranks of an undisturbed one.
package rank

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// Options say when ranks are computed, and with how much memory.
type Options struct {
	// Scoring is the filter of the crawl. If there is no scoring.PageRank in
	// it, Run does nothing.
	Scoring scoring.Filter
	// Schedule is that of the crawl, which may order pages its own way: see
	// schedule.Priority. It may be nil.
	Schedule schedule.FetchSchedule
	// Growth is the share of the links of the known graph that have to come or go
	// before the ranks are computed again; zero means 0.03, negative after each
	// segment. The cost is inversely proportional to it: see [Graph.Grown].
	Growth float64
	// Memory limits the known graph, in bytes: see [NewGraph]. Zero means 512
	// MiB, negative no limit. Pages that there is no room for keep the score
	// they were found with.
	Memory int64
	// SortMemory limits the memory for sorting pages, in bytes; zero means 16 MiB.
	// What exceeds it goes to files in TempDir, by default the system's. Each link of
	// the segment takes another 8 bytes.
	SortMemory int
	TempDir    string

	chunk     int // URLs in one Update
	pruneFrom int // pruneFrom, but in tests
}

// Report says what was done.
type Report struct {
	// Pages and Links count those in the known graph. Full says that it has no
	// room for more.
	Pages int
	Links int64
	Full  bool
	// Ranked says that ranks were computed. Changed counts the pages whose
	// ranks have changed enough to be written, and Written the records of these
	// that had another score.
	Ranked           bool
	Changed, Written int
	// Rebuilt says that the graph was built anew from the existing segments, because
	// there was none or it was damaged. Damage says what was found.
	Rebuilt bool
	Damage  error
	// Dropped counts the pages that were removed from the known graph because they are
	// gone.
	Dropped int
	// Already says that the segment was counted before.
	Already bool
}

// SegmentMark is the name of the progress mark of a segment.
func SegmentMark(segment string) string { return "rank/" + segment }

// The cursors of the mark of a segment: its links are in the graph; nothing is left to do.
const (
	linksAdded = "folded"
	done       = "done"
)

// A Ranker keeps the known graph of a crawl db in memory from one Run to the next,
// so that it need not be read each time. The zero value is ready to use. Its methods
// may be called from many goroutines, and wait for each other; the store, the
// scoring and the schedule that they call must therefore not call them.
type Ranker struct {
	mu    sync.Mutex
	graph *storedGraph // nil if it must be read
}

// Run adds the links of a segment that was updated to the known graph, and brings the
// scores up to date if the graph has changed enough. It does so once: the mark of the
// segment says how far it got, and a run that died is continued by the next. Segments
// must be passed in the order in which they were updated, and only one Run at a time
// may work on a crawl db, which must be the same in every call.
func (r *Ranker) Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string, o Options) (Report, error) {
	var report Report
	filter, ok := scoring.PageRankOf(o.Scoring)
	if !ok {
		return report, nil
	}
	if o.chunk <= 0 {
		o.chunk = 10_000
	}
	if o.SortMemory <= 0 {
		o.SortMemory = 16 << 20
	}
	if o.pruneFrom <= 0 {
		o.pruneFrom = pruneFrom
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	j := job{crawl: crawl, segments: segments, o: o, filter: filter, report: &report, stored: r.graph}
	r.graph = nil
	if err := j.run(ctx, name); err != nil {
		return report, fmt.Errorf("rank %s: %w", name, err)
	}
	r.graph = j.stored
	return report, nil
}

type job struct {
	crawl    crawldb.Store
	segments segment.Store
	o        Options
	filter   scoring.PageRank
	report   *Report
	stored   *storedGraph
}

func (j *job) run(ctx context.Context, name string) error {
	cursor, err := j.crawl.Mark(ctx, SegmentMark(name))
	if err != nil {
		return err
	}
	if cursor == done {
		j.report.Already = true
		return nil
	}
	whole, err := j.open(ctx, name)
	if err != nil {
		return err
	}
	if cursor == "" || !whole {
		if err := j.addLinks(ctx, name); err != nil {
			return err
		}
		j.stored.head.segmentsSincePrune++
		if err := j.stored.save(ctx, j.crawl, SegmentMark(name), linksAdded); err != nil {
			return err
		}
	}
	if j.stored.pruneDue(j.o.pruneFrom) {
		if j.report.Dropped, err = j.stored.prune(ctx, j.crawl, j.filter, j.o.Memory); err != nil {
			return err
		}
	}
	g := j.stored.graph
	j.report.Pages, j.report.Links, j.report.Full = g.pages(), g.links(), g.full()
	if g.Grown(j.o.Growth) {
		if err := j.updateRanks(ctx); err != nil {
			return err
		}
	}
	return j.crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string {
		marks := j.stored.headMark()
		marks[SegmentMark(name)] = done
		return marks
	}})
}

// open reads the graph, unless it is in memory. whole says that it holds the links
// of all segments that were folded in.
func (j *job) open(ctx context.Context, name string) (whole bool, err error) {
	mark, err := j.crawl.Mark(ctx, headMarkName)
	if err != nil {
		return false, err
	}
	if j.stored != nil && mark == j.stored.head.String() {
		return true, nil
	}
	if mark != "" {
		j.stored, err = load(ctx, j.crawl, mark, NewGraph(j.filter, j.o.Memory))
		switch {
		case err == nil:
			return true, j.stored.removeOldBlocks(ctx, j.crawl)
		case !errors.Is(err, errDamaged):
			return false, err
		}
		j.report.Damage = err
	}
	return false, j.rebuild(ctx, name)
}

// rebuild builds a graph from the segments before one.
func (j *job) rebuild(ctx context.Context, name string) error {
	j.stored = &storedGraph{graph: NewGraph(j.filter, j.o.Memory)}
	for s, err := range j.segments.List(ctx) {
		if err != nil {
			return err
		}
		if s == name {
			break
		}
		ok, err := segment.Has[segment.Parse](ctx, j.segments, s)
		if err != nil {
			return err
		}
		if ok {
			j.report.Rebuilt = true
			if err := j.addLinks(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}
