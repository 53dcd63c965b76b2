package crawldb

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"math"
	"slices"
	"time"
)

// Candidate is a hint that a URL may be due, with the priority it had when its
// record was last written. Only the record decides.
type Candidate struct {
	URL      string
	Priority float32
	// Due says that the store knows more than a hint: when it looked, the times of
	// the record answered the query.
	Due bool
	// Token, if not empty, may be handed back to the store when the record is
	// updated: see Batch.Tokens. It means something only to the store that gave it,
	// and only while that is open.
	Token string
}

// DueQuery says which candidates [Due] is to yield.
type DueQuery struct {
	// Now is the time at which a record must be due: neither its FetchTime nor
	// its lease is later.
	Now time.Time
	// AheadOfClock is how far Now lies ahead of the clock, for queries about the future.
	// It changes no answer, but keeps an index that moves with the clock from
	// moving past the clock.
	AheadOfClock time.Duration
	// DueBeyond, if not zero, makes records due whose FetchTime is after it: no
	// schedule sets such a time, so a clock must have been wrong.
	DueBeyond time.Time
	// Limit ends the sequence after that many candidates; zero means no limit.
	Limit int
	// MinPriority leaves out records of a lower priority. Zero or less leaves
	// out none.
	MinPriority float32
	// WantHost, if not nil, is asked about the [Host] of a candidate, any number of
	// times, while the sequence runs; once it has returned false for a host, no
	// more candidates of that host need follow. What is left out does not count
	// towards Limit. It must not use the store.
	WantHost func(host string) bool
	// NotDue, if not nil, is called with records that are not due, so that the caller
	// learns when more will be. A full scan calls it with each such record it passes. An indexed store calls it once, at the
	// end of a sequence that was not ended early, with a record that has the
	// earliest times of all that are not due, and perhaps nothing but those times
	// and its URL.
	NotDue func(*Datum)
}

// due reports whether the times of the record match the query.
func (q *DueQuery) due(d *Datum) bool {
	late := !d.FetchTime.After(q.Now) || !q.DueBeyond.IsZero() && d.FetchTime.After(q.DueBeyond)
	return late && !d.Leased(q.Now)
}

// DueStore is the capability of a Store to find due records without reading all
// of them. Use it through [Due].
type DueStore interface {
	Store

	// Due yields candidates with the highest priority first. It may group
	// priorities into levels of at most an eighth of an octave and yield a level
	// in any order. It may yield a URL that is not due but never omits one that
	// is; a record that is written while the sequence runs may be seen or not. It
	// is lazy: nothing is computed ahead of need that costs more than the
	// candidates already yielded, but for an index being brought up to date. The loop
	// may write to the store and may break. An error ends the sequence.
	Due(ctx context.Context, q DueQuery) iter.Seq2[Candidate, error]
}

// Due yields the candidates for a query, highest priority first. It asks the
// store if that is a [DueStore], or wraps one and has a method Unwrap() Store;
// any other Store is scanned in full. The scan orders equal priorities by key
// and holds at most a million candidates at a time: if more are wanted, it
// scans again.
func Due(ctx context.Context, s Store, q DueQuery) iter.Seq2[Candidate, error] {
	if d, ok := AsDueStore(s); ok {
		return d.Due(ctx, q)
	}
	return DueByScan(ctx, s, q, nil)
}

// AsDueStore returns the [DueStore] that s is or wraps, if there is one.
func AsDueStore(s Store) (DueStore, bool) { return as[DueStore](s) }

// passSize is how many candidates one pass of DueByScan holds.
const passSize = 1 << 20

// DueByScan is the fallback of [Due]: it reads every record. If due is not nil
// it decides which record is due, instead of the times in the query: for
// schedules that know more than the record says. The rest of the query still
// applies. Neither due nor NotDue may keep the records they are passed.
func DueByScan(ctx context.Context, s Store, q DueQuery, due func(*Datum) bool) iter.Seq2[Candidate, error] {
	return dueByScan(ctx, s, q, due, passSize)
}

func dueByScan(ctx context.Context, s Store, q DueQuery, due func(*Datum) bool, pass int) iter.Seq2[Candidate, error] {
	if due == nil {
		due = q.due
	}
	return func(yield func(Candidate, error) bool) {
		seen := q.NotDue
		var last *ranked // the worst of the previous pass
		for left := q.Limit; ; {
			keep := pass
			if q.Limit > 0 {
				keep = min(pass, left)
			}
			best, more := worstFirst(make([]ranked, 0, min(keep, 1024))), false
			var d Datum // one for all, since due may be anything
			n := 0
			for next, err := range s.Scan(ctx, Range{}) {
				if err != nil {
					yield(Candidate{}, err)
					return
				}
				d = next
				if !due(&d) {
					if seen != nil {
						seen(&d)
					}
					continue
				}
				if q.MinPriority > 0 && !(d.Priority >= q.MinPriority) || q.WantHost != nil && !q.WantHost(Host(d.URL)) {
					continue
				}
				n++
				c := ranked{url: d.URL, priority: d.Priority, n: n}
				if c.priority != c.priority { // NaN is not ordered; it comes last
					c.priority = float32(math.Inf(-1))
				}
				if last != nil && !last.before(&c) {
					continue
				}
				if len(best) < keep {
					best = append(best, c)
					heap.Fix(&best, len(best)-1)
					continue
				}
				more = true
				if c.priority > best[0].priority { // otherwise it comes after it, as its key does
					best[0] = c
					heap.Fix(&best, 0)
				}
			}
			seen = nil // once is enough
			slices.SortFunc(best, func(a, b ranked) int { return a.compare(&b) })
			for _, c := range best {
				// A host that has is full by now displaces no other.
				if q.WantHost != nil && !q.WantHost(Host(c.url)) {
					continue
				}
				if !yield(Candidate{URL: c.url, Priority: c.priority, Due: true}, nil) {
					return
				}
				left--
			}
			if !more || q.Limit > 0 && left <= 0 {
				return
			}
			last = &best[len(best)-1]
		}
	}
}

// ranked is a candidate and what it is ordered by.
type ranked struct {
	url      string
	priority float32
	n        int // its position in the scan, which is that of its key
}

// compare is negative if a comes before b; both are from the same scan.
func (a *ranked) compare(b *ranked) int {
	if c := cmp.Compare(b.priority, a.priority); c != 0 {
		return c
	}
	return cmp.Compare(a.n, b.n)
}

// before reports whether a comes before b, which is from another scan.
func (a *ranked) before(b *ranked) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return Compare(a.url, b.url) < 0
}

// worstFirst is a heap whose root comes last.
type worstFirst []ranked

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return h[i].compare(&h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *worstFirst) Push(x any)        { *h = append(*h, x.(ranked)) }
func (h *worstFirst) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
