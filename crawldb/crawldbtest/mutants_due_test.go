package crawldbtest_test

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// indexed is a sound DueStore as lazy as the contract lets it be: levels in no
// order, and hints that are not due.
type indexed struct {
	*engine
	due  func(datum, crawldb.DueQuery) bool
	rank func(a, b datum) int
	give func(crawldb.DueQuery, []datum, func(crawldb.Candidate, error) bool)
	ctx  func(context.Context) context.Context
	mute bool
}

func newIndexed(e *engine) *indexed {
	return &indexed{engine: e, due: hinted, rank: byLevel, give: giveDue, ctx: func(c context.Context) context.Context { return c }}
}

func hinted(d datum, q crawldb.DueQuery) bool {
	late := !d.FetchTime.After(q.Now) || !q.DueBeyond.IsZero() && d.FetchTime.After(q.DueBeyond)
	return (late && !d.Leased(q.Now) || len(d.URL)%5 == 0) && (q.MinPriority <= 0 || d.Priority >= q.MinPriority)
}

func byLevel(a, b datum) int {
	level := func(d datum) float64 {
		p := float64(d.Priority)
		if !(p > 0) {
			return math.Inf(-1)
		}
		return math.Floor(8 * math.Log2(p))
	}
	return cmp.Or(cmp.Compare(level(b), level(a)), cmp.Compare(b.URL, a.URL))
}

func giveDue(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
	n := 0
	for _, d := range data {
		if q.WantHost != nil && !q.WantHost(crawldb.Host(d.URL)) {
			continue
		}
		known := len(d.URL)%5 != 0 && !d.FetchTime.After(q.Now) && !d.Leased(q.Now)
		if !yield(crawldb.Candidate{URL: d.URL, Priority: d.Priority, Due: known}, nil) {
			return
		}
		if n++; n == q.Limit {
			return
		}
	}
}

func (s *indexed) Due(c context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		var data []datum
		for d, err := range s.Scan(s.ctx(c), crawldb.Range{}) {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			if s.due(d, q) {
				data = append(data, d)
			}
			if (d.FetchTime.After(q.Now) || d.Leased(q.Now)) && q.NotDue != nil && !s.mute {
				q.NotDue(&d)
			}
		}
		slices.SortStableFunc(data, s.rank)
		s.give(q, data, yield)
	}
}

// believing takes a record from a token, even if the token is old.
type believing struct {
	*indexed
	told map[string]datum
}

func (s believing) Due(c context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		for cand, err := range s.indexed.Due(c, q) {
			if d, err := s.Get(c, cand.URL); err == nil {
				cand.Token = strconv.Itoa(len(s.told))
				s.told[cand.Token] = d
			}
			if !yield(cand, err) {
				return
			}
		}
	}
}

func (s believing) Update(c context.Context, b crawldb.Batch) error {
	if next := b.Next; b.Tokens != nil {
		b.Next = func(i int, old *datum) (*datum, error) {
			if d, ok := s.told[b.Tokens[i]]; ok {
				old = &d
			}
			return next(i, old)
		}
	}
	return s.indexed.Update(c, b)
}

func dueMutants() []mutant {
	on := func(change func(*indexed)) func(*engine) crawldb.Store {
		return func(e *engine) crawldb.Store {
			s := newIndexed(e)
			change(s)
			return s
		}
	}
	omits := func(what func(datum, crawldb.DueQuery) bool) func(*engine) crawldb.Store {
		return on(func(s *indexed) {
			s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && !what(d, q) }
		})
	}
	nothing := "Due yields everything that is due"
	return []mutant{
		{fault: "Due omits what is due this moment", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.Equal(q.Now) })},
		{fault: "Due omits what was never given a time", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.IsZero() })},
		{fault: "Due omits what is beyond", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.After(q.Now) })},
		{fault: "Due omits what was ever leased", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.LeasedBy != "" })},
		{fault: "Due omits what has no priority", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return !(d.Priority > 0) })},
		{fault: "Due omits URLs without a host", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return crawldb.Host(d.URL) == "" })},
		{fault: "Due forgets when the clock goes back", rule: nothing, wrap: func(e *engine) crawldb.Store {
			s := newIndexed(e)
			var latest time.Time
			s.due = func(d datum, q crawldb.DueQuery) bool {
				if q.Now.After(latest) {
					latest = q.Now
				}
				return hinted(d, q) && !q.Now.Before(latest)
			}
			return s
		}},
		{fault: "Due is sure of its hints", rule: "Due calls nothing due that is not", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				giveDue(q, data, func(c crawldb.Candidate, err error) bool {
					c.Due = true
					return yield(c, err)
				})
			}
		})},
		{fault: "Update believes old tokens", rule: "Due gives tokens that change no update", wrap: func(e *engine) crawldb.Store {
			return believing{newIndexed(e), map[string]datum{}}
		}},
		{fault: "Due keeps the next time to itself", rule: "Due shows when the next record is due", wrap: on(func(s *indexed) { s.mute = true })},
		{fault: "Due yields the worst first", rule: "Due yields the best level first", wrap: on(func(s *indexed) { s.rank = func(a, b datum) int { return byLevel(b, a) } })},
		{fault: "Due has levels of an octave", rule: "Due yields the best level first", wrap: on(func(s *indexed) {
			s.rank = func(a, b datum) int {
				octave := func(d datum) float64 { return math.Floor(math.Log2(max(float64(d.Priority), 1e-300))) }
				return cmp.Or(cmp.Compare(octave(b), octave(a)), bytes.Compare([]byte(a.URL), []byte(b.URL)))
			}
		})},
		{fault: "Due yields no priority", rule: "Due yields the best level first", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				giveDue(q, data, func(c crawldb.Candidate, err error) bool {
					c.Priority = 0
					return yield(c, err)
				})
			}
		})},
		{fault: "Due knows no limit", rule: "Due ends at its limit", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				q.Limit = 0
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due counts what nobody wants", rule: "Due ends at its limit", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if q.Limit > 0 {
					data = data[:min(len(data), q.Limit/2)]
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due ignores MinPriority", rule: "Due leaves out what is below MinPriority", wrap: on(func(s *indexed) {
			s.due = func(d datum, q crawldb.DueQuery) bool {
				q.MinPriority = 0
				return hinted(d, q)
			}
		})},
		{fault: "Due ends at the first host not wanted", rule: "Due omits no wanted host", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if i := slices.IndexFunc(data, func(d datum) bool { return q.WantHost != nil && !q.WantHost(crawldb.Host(d.URL)) }); i >= 0 {
					data = data[:i]
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due counts whom nobody wants against the limit", rule: "Due omits no wanted host", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if q.Limit > 0 {
					data = data[:min(len(data), q.Limit)]
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due asks Want about the URL", rule: "Due omits no wanted host", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if want := q.WantHost; want != nil {
					q.WantHost = func(string) bool { return want("http://example.com/") }
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due goes on after a break", rule: "The loop of Due may write and break", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				giveDue(q, data, func(c crawldb.Candidate, err error) bool {
					defer func() { _ = recover() }()
					yield(c, err)
					return true
				})
			}
		})},
		{fault: "Due omits what was written twice", rule: "Due follows every change", wrap: func(e *engine) crawldb.Store {
			written := map[string]int{}
			s := newIndexed(e)
			s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && written[d.URL] < 2 }
			return counting{s, written}
		}},
		{fault: "Due ignores its context", rule: "Due heeds its context", wrap: on(func(s *indexed) {
			s.ctx = func(context.Context) context.Context { return context.Background() }
		})},
		{fault: "Due knows what was written since it was opened", rule: "Due follows a Reopen", wrap: sinceOpened},
		{fault: "Due knows what was written since the crash", rule: "Due follows a crash", wrap: sinceOpened},
	}
}

// counting counts how often a record is written.
type counting struct {
	*indexed
	written map[string]int
}

func (s counting) Update(c ctx, b batch) error {
	err := s.indexed.Update(c, b)
	if err == nil {
		for _, url := range b.URLs {
			s.written[url]++
		}
	}
	return err
}

// sinceOpened has an index that is not kept.
func sinceOpened(e *engine) crawldb.Store {
	written := map[string]int{}
	s := newIndexed(e)
	s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && written[d.URL] > 0 }
	return counting{s, written}
}
