package crawldbtest_test

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// sequenceMutants have faults that show in a sequence of steps.
func sequenceMutants() []mutant {
	const rule = "any sequence of steps agrees with a map"
	return []mutant{
		{fault: "Due keeps the place of a record whose priority fell", rule: rule, wrap: func(e *engine) crawldb.Store {
			most := map[string]float32{}
			s := newIndexed(e)
			s.rank = func(a, b datum) int { return cmp.Compare(most[b.URL], most[a.URL]) }
			return highest{s, most}
		}},
		{fault: "a mark is written beside its batch", rule: rule, wrap: func(e *engine) crawldb.Store {
			f := &faulty{engine: e}
			f.update = func(c ctx, b batch) error {
				if err := e.Update(c, marksOf(b)); err != nil {
					return err
				}
				return e.Update(c, b)
			}
			return f
		}},
		{fault: "a scan skips a record between two chunks", rule: rule, wrap: func(e *engine) crawldb.Store {
			f := &faulty{engine: e}
			f.scan = func(c ctx, r crawldb.Range) records {
				return func(yield func(datum, error) bool) {
					n := 0
					for d, err := range e.Scan(c, r) {
						if n++; n%17 != 0 && !yield(d, err) {
							return
						}
					}
				}
			}
			return f
		}},
		{fault: "a scan has read ahead what is deleted meanwhile, and the rest anew", rule: rule, wrap: func(e *engine) crawldb.Store {
			f := &faulty{engine: e}
			written := 0
			f.update = func(c ctx, b batch) error {
				written++
				return e.Update(c, b)
			}
			f.scan = func(c ctx, r crawldb.Range) records {
				return func(yield func(datum, error) bool) {
					began, lost := written, false
					for d, err := range e.Scan(c, r) {
						if written > began && !lost && err == nil {
							lost = true
							continue
						}
						if !yield(d, err) {
							return
						}
					}
				}
			}
			return f
		}},
		{fault: "a crash loses an update before one that is kept", rule: rule, crashed: func(d *disk) []write {
			kept := slices.Clone(keptBy(d))
			if n := len(kept) - d.synced; n > 1 {
				kept = slices.Delete(kept, d.synced, d.synced+1)
			}
			return kept
		}},
		{fault: "a crash loses what was synced last", rule: rule, crashed: func(d *disk) []write { return d.log[:max(d.synced-1, 0)] }},
		{fault: "Reopen forgets which marks were removed", rule: rule, reopened: func(d *disk) []write {
			log := slices.Clone(d.log)
			for i := range log {
				log[i].marks = maps.Clone(log[i].marks)
				withoutEmpty(log[i].marks)
			}
			return log
		}},
	}
}

// highest notes the highest priority that a record ever had.
type highest struct {
	*indexed
	most map[string]float32
}

func (s highest) Update(c ctx, b batch) error {
	next := b.Next
	b.Next = func(i int, old *datum) (*datum, error) {
		d, err := next(i, old)
		if d != nil && !(s.most[b.URLs[i]] >= d.Priority) {
			s.most[b.URLs[i]] = d.Priority
		}
		return d, err
	}
	return s.indexed.Update(c, b)
}

func (s highest) Due(c ctx, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return s.indexed.Due(c, q)
}
