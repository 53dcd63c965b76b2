package generate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
)

// A Gatherer selects for a crawl without end, in which pages fall due one after the other: so that
// they share rounds, it also selects pages that are due soon, if any page is due now.
//
// In the order of their fetch times, pages are selected up to the first that cannot be on the list:
// one that may not be visited so early, or for whose host or for which there is no room. So no
// page that is left out falls due before a page that is selected, and pages of one host that fall due
// one pause apart are visited when they are due. What is due now comes first, and is selected as by
// Run.
//
// A Gatherer remembers how far it looked ahead, so one crawl should keep one. It is for use by one
// goroutine.
type Gatherer struct {
	// Early returns how long before its FetchTime a page may be visited. A page that is due now
	// looks ahead no further than itself might be visited early, and never more than 23 hours.
	Early func(*crawldb.Datum) time.Duration

	last time.Duration // how far the last selection went
}

// Run is the function [Run] with what is due soon. It is that alone if Ahead or NutchCompat is set, or if the
// schedule is not a schedule.HorizonSchedule.
func (g *Gatherer) Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, o Options) (Report, error) {
	j := newJob(crawl, segments, o)
	if _, indexable := schedule.Horizon(j.o.Schedule); indexable && j.o.Ahead == 0 && !j.o.NutchCompat {
		j.soon = g
	}
	return j.run(ctx)
}

// The first look at what is due soon goes a minute ahead, or twice as far as the last selection, and each
// other one four times as far, so that not much more is read than is selected. An index of fetch
// times is quick for less than a day.
const (
	leastLook = time.Minute
	lookRatio = 4
	mostAhead = 23 * time.Hour
)

// gather selects what is due soon, if something was selected that is due now.
func (j *job) gather(ctx context.Context) error {
	ahead := time.Duration(0)
	for _, m := range j.makes {
		for i := range m.list {
			ahead = max(ahead, j.soon.Early(&m.list[i]))
		}
	}
	if ahead = min(ahead, mostAhead); ahead <= 0 || j.place.full() {
		return nil
	}
	for look := min(max(leastLook, 2*j.soon.last), ahead); ; look = min(lookRatio*look, ahead) {
		pages, all, err := j.sharing(ctx, j.now.Add(look))
		if err != nil {
			return err
		}
		if all && look < ahead {
			continue
		}
		if j.soon.last = 0; len(pages) == 0 {
			return nil
		}
		j.due = pages[len(pages)-1].due
		j.soon.last = j.due.Sub(j.now)
		return j.selectAll(ctx, func(yield func(candidate, error) bool) {
			for i := range pages {
				if !yield(candidate{url: pages[i].url, host: pages[i].host}, nil) {
					return
				}
			}
		})
	}
}

// gathering reports whether what is due soon is being selected, and no longer what is due now.
func (j *job) gathering() bool { return j.soon != nil && j.due.After(j.now) }

// soonDue is a page that is not due yet.
type soonDue struct {
	url   string
	due   time.Time
	early bool // it may be visited now
	host  *hostState
	room  int // of the host; negative if that has no limit
}

// sharing returns the pages that fall due until then and can be on the list, in the order of time,
// up to the first that cannot. all says that there is none such.
func (j *job) sharing(ctx context.Context, until time.Time) (pages []soonDue, all bool, err error) {
	err = j.eachSoonDue(ctx, until, func(d *crawldb.Datum) error {
		p := soonDue{url: d.URL, due: d.FetchTime, early: d.FetchTime.Sub(j.now) <= j.soon.Early(d), host: j.hostOf(d.URL), room: -1}
		if p.host.limited != nil {
			h, err := j.host(ctx, d.URL)
			if err != nil {
				return err
			}
			if h.limit >= 0 {
				p.room = j.place.left(p.host.limited, h.limit)
			}
		}
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(pages, func(a, b soonDue) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.url, b.url)) })
	pages = slices.CompactFunc(pages, func(a, b soonDue) bool { return a.url == b.url }) // an index may yield a record twice
	room, taken := j.o.TopN*j.o.Segments, map[*counted]int{}
	for _, m := range j.makes {
		room -= len(m.list)
	}
	for i := range pages {
		p := &pages[i]
		full := j.o.TopN > 0 && i >= room
		if p.room >= 0 {
			taken[p.host.limited]++
			full = full || taken[p.host.limited] > p.room
		}
		if full || !p.early {
			return pages[:i], false, nil
		}
	}
	return pages, true, nil
}

// eachSoonDue calls do with the records that are not due now, but will be at until and may then be
// selected. Those of hosts that have no room are left out.
func (j *job) eachSoonDue(ctx context.Context, until time.Time, do func(*crawldb.Datum) error) error {
	defer func() { j.due = j.now }()
	j.due = until
	soon := func(d *crawldb.Datum) error {
		if why, _ := j.check(d); why != "" || !d.FetchTime.After(j.now) {
			return nil
		}
		return do(d)
	}
	if !j.indexed {
		for d, err := range j.crawl.Scan(ctx, crawldb.Range{}) {
			if err == nil && j.want(crawldb.Host(d.URL)) {
				err = soon(&d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	store, _ := crawldb.AsDueStore(j.crawl)
	var some []crawldb.Candidate
	flush := func() error {
		records, err := j.records(ctx, some)
		for _, d := range records {
			if err == nil {
				err = soon(d)
			}
		}
		some = some[:0]
		return err
	}
	for c, err := range store.Due(ctx, j.query()) {
		if err != nil {
			return err
		}
		if some = append(some, c); len(some) == readBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// soonLast moves the records that are not due now behind the others, in the order of their fetch
// times, and returns how many the others are. best has the index of each record in its lower half.
func (j *job) soonLast(best []uint64, list []crawldb.Datum) (due int) {
	var soon []uint64
	for _, b := range best {
		if list[uint32(b)].FetchTime.After(j.now) {
			soon = append(soon, b)
		} else {
			best[due] = b
			due++
		}
	}
	slices.SortStableFunc(soon, func(a, b uint64) int {
		return list[uint32(a)].FetchTime.Compare(list[uint32(b)].FetchTime)
	})
	copy(best[due:], soon)
	return due
}
