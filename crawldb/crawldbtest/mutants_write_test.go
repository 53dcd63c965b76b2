package crawldbtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// onNext is an engine that does something else with what Next is.
func onNext(f func(b batch, next nextFn) nextFn) func(*engine) crawldb.Store {
	return func(e *engine) crawldb.Store {
		return &faulty{engine: e, update: func(c ctx, b batch) error {
			if b.Next != nil {
				b.Next = f(b, b.Next)
			}
			return e.Update(c, b)
		}}
	}
}

// onUpdate is an engine that updates in another way.
func onUpdate(f func(e *engine, c ctx, b batch) error) func(*engine) crawldb.Store {
	return func(e *engine) crawldb.Store {
		return &faulty{engine: e, update: func(c ctx, b batch) error { return f(e, c, b) }}
	}
}

// racing is onUpdate with a meeting point for concurrent updates.
func racing(f func(readers *meeting, e *engine, c ctx, b batch) error) func(*engine) crawldb.Store {
	return func(e *engine) crawldb.Store {
		readers := new(meeting)
		return &faulty{engine: e, update: func(c ctx, b batch) error { return f(readers, e, c, b) }}
	}
}

// oneByOne applies a batch record by record.
func oneByOne(e *engine, c ctx, b batch) error {
	for i, url := range b.URLs {
		one := batch{URLs: []string{url}, Next: func(_ int, old *datum) (*datum, error) { return b.Next(i, old) }}
		if err := e.Update(c, one); err != nil {
			return err
		}
	}
	return e.Update(c, marksOf(b))
}

func writeMutants() []mutant {
	return []mutant{
		{fault: "takes out of order and sorts", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(oneByOne)},
		{fault: "wants the order of strings", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if !slices.IsSorted(b.URLs) {
				return crawldb.ErrOrder
			}
			return e.Update(c, b)
		})},
		{fault: "finds the disorder when it comes to it", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i := 1; i < len(b.URLs); i++ {
				if crawldb.Compare(b.URLs[i-1], b.URLs[i]) >= 0 {
					if err := e.Update(c, batch{URLs: b.URLs[:i], Next: b.Next}); err != nil {
						return err
					}
				}
			}
			return e.Update(c, b)
		})},
		{fault: "disorder is another error", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			err := e.Update(c, b)
			if errors.Is(err, crawldb.ErrOrder) {
				return io.ErrUnexpectedEOF
			}
			return err
		})},
		{fault: "keeps what it did before an error", rule: "an error from Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i := 1; i < len(b.URLs); i++ {
				if crawldb.Compare(b.URLs[i-1], b.URLs[i]) >= 0 {
					return crawldb.ErrOrder
				}
			}
			return oneByOne(e, c, b)
		})},
		{fault: "hides the error of Next", rule: "an error from Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, b); err != nil && !errors.Is(err, crawldb.ErrOrder) && !errors.Is(err, context.Canceled) && !errors.Is(err, crawldb.ErrClosed) {
				return fmt.Errorf("update failed: %v", err)
			} else {
				return err
			}
		})},
		{fault: "an error is a nil record", rule: "an error from Next changes nothing", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, _ := next(i, old)
				return d, nil
			}
		})},
		{fault: "nil leaves", rule: "nil deletes a record, old leaves it alone", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == nil {
					d = old
				}
				return d, err
			}
		})},
		{fault: "old deletes", rule: "nil deletes a record, old leaves it alone", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == old {
					d = nil
				}
				return d, err
			}
		})},
		{fault: "nil makes an empty record", rule: "nil deletes a record, old leaves it alone", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == nil && old == nil {
					d = &datum{}
				}
				return d, err
			}
		})},
		{fault: "none is a zero record", rule: "Next gets the stored record", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				if old == nil {
					zero := &datum{URL: b.URLs[i]}
					d, err := next(i, zero)
					if d == zero {
						d = nil
					}
					return d, err
				}
				return next(i, old)
			}
		})},
		{fault: "Next is not told the URL", rule: "Next gets the stored record", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				if old != nil {
					old.URL = ""
				}
				return next(i, old)
			}
		})},
		{fault: "calls Next from the end", rule: "Next gets the stored record", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i, url := range slices.Backward(b.URLs) {
				one := batch{URLs: []string{url}, Next: func(_ int, old *datum) (*datum, error) { return b.Next(i, old) }}
				if err := e.Update(c, one); err != nil {
					return err
				}
			}
			return nil
		})},
		{fault: "keeps a record under the URL it bears", rule: "a record is stored under the URL of the batch", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			var moved []datum
			next := b.Next
			b.Next = func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d != nil && d.URL != b.URLs[i] && d.URL != "" {
					moved = append(moved, *d)
					return old, err
				}
				return d, err
			}
			err := e.Update(c, b)
			for _, d := range moved {
				err = errors.Join(err, e.Update(c, batch{URLs: []string{d.URL}, Next: func(int, *datum) (*datum, error) { return &d, nil }}))
			}
			return err
		})},
		{fault: "takes ten thousand records at most", rule: "a batch may be empty or large", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			b.URLs = b.URLs[:min(len(b.URLs), 10_000)]
			return e.Update(c, b)
		})},
		{fault: "refuses an empty batch", rule: "a batch may be empty or large", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) == 0 {
				return io.ErrShortBuffer
			}
			return e.Update(c, b)
		})},
		{fault: "merges with the record before", rule: "a record replaces the whole record before it", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d != nil && d != old && old != nil && d.ETag == "" {
					merged := *d
					merged.ETag = old.ETag
					d = &merged
				}
				return d, err
			}
		})},
		{fault: "reads, then writes", rule: "overlapping updates lose nothing", wrap: racing(func(readers *meeting, e *engine, c ctx, b batch) error {
			olds := make([]*datum, len(b.URLs))
			for i, url := range b.URLs {
				if d, err := e.Get(c, url); err == nil {
					olds[i] = &d
				}
			}
			readers.arrive()
			next := b.Next
			b.Next = func(i int, old *datum) (*datum, error) {
				d, err := next(i, olds[i])
				if d == olds[i] {
					return old, err
				}
				return d, err
			}
			return e.Update(c, b)
		})},
	}
}

// listed changes the marks that are listed.
type listed struct {
	*engine
	change func([]crawldb.NamedMark) []crawldb.NamedMark
}

func (s listed) Marks(c ctx) iter.Seq2[crawldb.NamedMark, error] {
	return func(yield func(crawldb.NamedMark, error) bool) {
		var all []crawldb.NamedMark
		for m, err := range s.engine.Marks(c) {
			if err != nil {
				yield(m, err)
				return
			}
			all = append(all, m)
		}
		for _, m := range s.change(all) {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func markListMutants() []mutant {
	var all []mutant
	for fault, change := range map[string]func([]crawldb.NamedMark) []crawldb.NamedMark{
		"lists a page of marks":            func(all []crawldb.NamedMark) []crawldb.NamedMark { return all[:min(len(all), 500)] },
		"lists marks backwards":            func(all []crawldb.NamedMark) []crawldb.NamedMark { slices.Reverse(all); return all },
		"leaves out the mark without name": func(all []crawldb.NamedMark) []crawldb.NamedMark { return all[1:] },
		"lists a removed mark": func(all []crawldb.NamedMark) []crawldb.NamedMark {
			return append(all, crawldb.NamedMark{Name: "\xff\xff\xff"})
		},
	} {
		all = append(all, mutant{fault: fault, rule: "Marks lists every mark in order", wrap: func(e *engine) crawldb.Store { return listed{e, change} }})
	}
	return all
}

// ambiguousMutants answer wrongly if the answer to a commit was lost.
func ambiguousMutants() []mutant {
	rule := "an ambiguous commit is applied once"
	return []mutant{
		{fault: "repeats an update that was applied", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if e.answerOf() == lostAfter {
				if err := e.Update(c, b); err != nil {
					return err
				}
			}
			return e.Update(c, b)
		})},
		{fault: "believes that a lost commit was applied", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if e.answerOf() == lostBefore {
				return nil
			}
			return e.Update(c, b)
		})},
		{fault: "reports as failed what was applied", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			lost := e.answerOf()
			err := e.Update(c, b)
			if err == nil && lost == lostAfter {
				err = io.ErrUnexpectedEOF
			}
			return err
		})},
	}
}

func markMutants() []mutant {
	rule := "a mark is written with its batch"
	after := "marks are those after the last Next"
	return []mutant{
		{fault: "marks no empty batch", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) == 0 {
				return nil
			}
			return e.Update(c, b)
		})},
		{fault: "forgets the mark with the next batch", rule: rule, wrap: func(e *engine) crawldb.Store {
			var last batch
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					err := e.Update(c, b)
					if err == nil {
						last = b
					}
					return err
				},
				mark: func(c ctx, name string) (string, error) {
					if last.Marks == nil {
						return "", c.Err()
					}
					return e.Mark(c, name)
				}}
		}},
		{fault: "a batch without marks has one without a name", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if b.Marks == nil {
				b.Marks = crawldb.Mark("", "none")
			}
			return e.Update(c, b)
		})},
		{fault: "marks before the batch", rule: "an error from Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, marksOf(b)); err != nil {
				return err
			}
			return e.Update(c, b)
		})},
		{fault: "knows one mark of a batch", rule: after, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			return e.Update(c, editMarks(b, func(marks map[string]string) {
				first := slices.Min(slices.Collect(maps.Keys(marks)))
				maps.DeleteFunc(marks, func(name, _ string) bool { return name != first })
			}))
		})},
		{fault: "calls Marks before Next", rule: after, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if b.Marks != nil {
				marks := b.Marks()
				b.Marks = func() map[string]string { return marks }
			}
			return e.Update(c, b)
		})},
		{fault: "marks are written whatever Next says", rule: after, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			err := e.Update(c, b)
			if err != nil && b.Marks != nil {
				return errors.Join(err, e.Update(c, marksOf(b)))
			}
			return err
		})},
		{fault: "an empty value beside others leaves the mark", rule: after, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			return e.Update(c, editMarks(b, func(marks map[string]string) {
				if len(marks) > 1 {
					withoutEmpty(marks)
				}
			}))
		})},
		{fault: "an empty value leaves the mark", rule: "an empty value removes the mark", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			return e.Update(c, editMarks(b, withoutEmpty))
		})},
		{fault: "one mark for all", rule: "each name has its own mark", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					return e.Update(c, editMarks(b, func(marks map[string]string) {
						for name, value := range marks {
							delete(marks, name)
							marks["job"] = value
						}
					}))
				},
				mark: func(c ctx, name string) (string, error) { return e.Mark(c, "job") }}
		}},
		{fault: "a mark is a record", rule: "each name has its own mark", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, b); err != nil || b.Marks == nil {
				return err
			}
			return e.Update(c, batch{URLs: slices.Collect(maps.Keys(b.Marks()))[:1], Next: func(int, *datum) (*datum, error) { return &datum{Status: crawldb.Gone}, nil }})
		})},
		{fault: "marks are lost when reopened", rule: rule, reopened: withoutMarks},
	}
}

func withoutMarks(d *disk) []write {
	for i := range d.log {
		d.log[i].marks = nil
	}
	return d.log
}
