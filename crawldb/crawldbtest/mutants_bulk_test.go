package crawldbtest_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl/crawldb"
)

// bulky is an engine with an UpdateAll of its own.
type bulky struct {
	*engine
	all func(ctx, *engine, iter.Seq2[batch, error]) error
}

func (s bulky) UpdateAll(c ctx, batches iter.Seq2[batch, error]) error {
	return s.all(c, s.engine, batches)
}

// soundBulk applies one batch after the other.
func soundBulk(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
	return crawldb.UpdateAll(c, bareStore{e}, batches)
}

type bareStore struct{ crawldb.Store }

// each applies the batches as change leaves them.
func each(c ctx, e *engine, batches iter.Seq2[batch, error], change func(n int, b *batch)) error {
	n := 0
	return soundBulk(c, e, func(yield func(batch, error) bool) {
		for b, err := range batches {
			n++
			if change(n, &b); !yield(b, err) {
				return
			}
		}
	})
}

func bulkMutants() []mutant {
	on := func(all func(ctx, *engine, iter.Seq2[batch, error]) error) func(*engine) crawldb.Store {
		return func(e *engine) crawldb.Store { return bulky{e, all} }
	}
	const (
		leaves = "UpdateAll leaves what single updates leave"
		ends   = "UpdateAll stops at an error, after a whole batch"
	)
	return []mutant{
		{fault: "UpdateAll drops the last batch", rule: leaves, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			var last *batch
			return soundBulk(c, e, func(yield func(batch, error) bool) {
				for b, err := range batches {
					if err != nil {
						yield(b, err)
						return
					}
					if last != nil && !yield(*last, nil) {
						return
					}
					last = &b
				}
			})
		})},
		{fault: "UpdateAll forgets marks", rule: leaves, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return each(c, e, batches, func(_ int, b *batch) { b.Marks = nil })
		})},
		{fault: "UpdateAll removes no marks", rule: leaves, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return each(c, e, batches, func(_ int, b *batch) { *b = editMarks(*b, withoutEmpty) })
		})},
		{fault: "UpdateAll deletes nothing", rule: leaves, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return each(c, e, batches, func(_ int, b *batch) {
				if next := b.Next; next != nil {
					b.Next = func(i int, old *datum) (*datum, error) {
						if d, err := next(i, old); d != nil || err != nil {
							return d, err
						}
						return old, nil
					}
				}
			})
		})},
		{fault: "UpdateAll gives Next what was there at first", rule: "UpdateAll gives Next what earlier batches wrote", wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			first := map[string]*datum{}
			for d, err := range e.Scan(c, crawldb.Range{}) {
				if err != nil {
					return err
				}
				first[d.URL] = &d
			}
			return each(c, e, batches, func(_ int, b *batch) {
				if next := b.Next; next != nil {
					b.Next = func(i int, _ *datum) (*datum, error) { return next(i, first[b.URLs[i]]) }
				}
			})
		})},
		{fault: "UpdateAll collects batches", rule: "UpdateAll is done with a batch when it asks for the next", wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			var all []batch
			for b, err := range batches {
				if err != nil {
					return err
				}
				all = append(all, b)
			}
			return soundBulk(c, e, func(yield func(batch, error) bool) {
				for _, b := range all {
					if !yield(b, nil) {
						return
					}
				}
			})
		})},
		{fault: "UpdateAll writes marks ahead", rule: "UpdateAll shows its sequence only marks of earlier batches", wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return each(c, e, batches, func(n int, b *batch) {
				*b = editMarks(*b, func(marks map[string]string) {
					if marks["job"] == fmt.Sprint(n) && n < 40 {
						marks["job"] = fmt.Sprint(n + 1)
					}
				})
			})
		})},
		{fault: "UpdateAll goes on after an error", rule: ends, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			var failed error
			for b, err := range batches {
				if err == nil {
					err = e.Update(c, b)
				}
				if err != nil {
					failed = err
				}
			}
			if failed != nil {
				return failed
			}
			return e.Sync(c)
		})},
		{fault: "UpdateAll keeps the errors of the sequence to itself", rule: ends, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return soundBulk(c, e, func(yield func(batch, error) bool) {
				for b, err := range batches {
					if err != nil || !yield(b, nil) {
						return
					}
				}
			})
		})},
		{fault: "UpdateAll writes marks at its end", rule: ends, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			marks := batch{}
			err := each(c, e, batches, func(_ int, b *batch) {
				if b.Marks != nil {
					marks.Marks = b.Marks
				}
				b.Marks = nil
			})
			if err != nil {
				return err
			}
			return e.Update(c, marks)
		})},
		{fault: "UpdateAll writes the mark of a batch before it", rule: ends, wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return soundBulk(c, e, func(yield func(batch, error) bool) {
				for b, err := range batches {
					if err == nil && !yield(marksOf(b), nil) || !yield(b, err) {
						return
					}
				}
			})
		})},
		{fault: "UpdateAll ignores its context", rule: "UpdateAll heeds its context", wrap: on(func(_ ctx, e *engine, batches iter.Seq2[batch, error]) error {
			return soundBulk(context.Background(), e, batches)
		})},
		{fault: "UpdateAll of nothing asks nobody", rule: "UpdateAll heeds its context", wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			n := 0
			for b, err := range batches {
				if n++; err == nil {
					err = e.Update(c, b)
				}
				if err != nil {
					return err
				}
			}
			if n == 0 {
				return nil
			}
			return e.Sync(c)
		})},
		{fault: "UpdateAll does not sync", rule: "UpdateAll syncs", wrap: on(func(c ctx, e *engine, batches iter.Seq2[batch, error]) error {
			for b, err := range batches {
				if err == nil {
					err = e.Update(c, b)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})},
		{fault: "UpdateAll passes its index by", rule: "Due follows UpdateAll", wrap: func(e *engine) crawldb.Store {
			s := newIndexed(e)
			written := map[string]int{}
			s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && written[d.URL] > 0 }
			return bulkIndexed{counting{s, written}}
		}},
	}
}

// bulkIndexed has an UpdateAll that leaves an index as it is.
type bulkIndexed struct{ counting }

func (s bulkIndexed) UpdateAll(c ctx, batches iter.Seq2[batch, error]) error {
	return soundBulk(c, s.engine, batches)
}
