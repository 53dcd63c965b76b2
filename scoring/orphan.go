package scoring

import (
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// OrphanKey is where [Orphan] keeps when a link to the page was last seen, in
// seconds since 1970. (Nutch: _orphan_.)
const OrphanKey = "orphan.seen"

// Orphan marks pages that no page has linked to for a while: first as gone, so that they
// leave the index, and then as orphans, so that they can leave the crawl db (see the
// purge in update.Options). A page that never had a link, such as a seed, is never
// marked. The schedule is left alone: a marked page is fetched again when it is due, and
// marked again at once if it still has no link.
//
// A page that is not modified shows no links, so the pages it links to look like orphans:
// if servers answer "not modified" for long periods, the times should be longer than
// these.
//
// A page becomes an orphan only while the crawl is looking. So the times are measured by
// a clock that package update keeps, which advances from one update to the next by the
// time that has passed, but by at most a quarter of the shorter time. A crawl that stood
// still for a year, or whose clock was a year ahead for an hour, finds no orphans because
// of that. With NutchCompat the clock of the crawl counts.
//
// (Nutch: scoring-orphan.)
type Orphan struct {
	// Base leaves links and weights alone.
	Base
	// GoneAfter is how long after the last link a page is marked gone; zero
	// means 30 days, negative never. (Nutch: scoring.orphan.mark.gone.after.)
	GoneAfter time.Duration
	// OrphanAfter is the same for orphans; zero means 40 days, negative never.
	// If it is shorter than GoneAfter, pages are not marked gone. (Nutch:
	// scoring.orphan.mark.orphan.after.)
	OrphanAfter time.Duration
	// NutchCompat does what Nutch does: a segment older than the last one sets
	// the time back, and an orphan that is linked to again stays one until it
	// is fetched. By default it becomes unfetched again.
	NutchCompat bool
}

var _ Filter = Orphan{}

// Updated records the time if there are links to the page, and otherwise checks
// how long there have been none.
func (o Orphan) Updated(_, d *crawldb.Datum, f Flow) {
	if f.Clock.IsZero() || o.NutchCompat {
		f.Clock = f.Time
	}
	if len(f.In) == 0 {
		o.Orphaned(d, f.Clock)
		return
	}
	now := f.Clock.Unix()
	if !o.NutchCompat {
		if seen, ok := o.seen(d); ok && !o.wrong(seen, now) {
			now = max(now, seen)
		}
		if d.Status == crawldb.Orphan {
			d.Status = crawldb.Unfetched
		}
	}
	o.see(d, now)
}

func (o Orphan) see(d *crawldb.Datum, now int64) { d.Meta.Set(OrphanKey, strconv.FormatInt(now, 10)) }

// Orphaned marks the page if no link was seen for longer than one of the times.
func (o Orphan) Orphaned(d *crawldb.Datum, now time.Time) {
	seen, ok := o.seen(d)
	if !ok {
		return
	}
	since := now.Unix() - seen
	switch {
	case !o.NutchCompat && o.wrong(seen, now.Unix()):
		o.see(d, now.Unix())
	case since > seconds(o.OrphanAfter, orphanAfter):
		d.Status = crawldb.Orphan
	case since > seconds(o.GoneAfter, goneAfter):
		d.Status = crawldb.Gone
	}
}

// wrong reports whether a time is so far ahead that a clock must have been
// wrong.
func (o Orphan) wrong(seen, now int64) bool { return seen-now > int64(o.Patience()/time.Second) }

// Patience returns the shorter of the two times, zero if both are never.
func (o Orphan) Patience() time.Duration {
	gone, orphan := seconds(o.GoneAfter, goneAfter), seconds(o.OrphanAfter, orphanAfter)
	if shorter := min(gone, orphan); shorter < never {
		return time.Duration(shorter) * time.Second
	}
	return 0
}

// OrphanOf returns the Orphan that f is or contains, if there is one.
func OrphanOf(f Filter) (Orphan, bool) {
	switch f := f.(type) {
	case Orphan:
		return f, true
	case *Orphan:
		if f != nil {
			return *f, true
		}
	case Chain:
		for _, f := range f {
			if o, ok := OrphanOf(f); ok {
				return o, true
			}
		}
	}
	return Orphan{}, false
}

func (o Orphan) seen(d *crawldb.Datum) (int64, bool) {
	v, ok := d.Meta.Get(OrphanKey)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil && n >= 0 && n < 1<<53
}

const (
	goneAfter   = 30 * 24 * time.Hour
	orphanAfter = 40 * 24 * time.Hour
	never       = 1<<63 - 1 // seconds
)

func seconds(d, def time.Duration) int64 {
	switch {
	case d == 0:
		d = def
	case d < 0:
		return never
	}
	return int64(d / time.Second)
}
