package scoringtest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

var rules = []rule{
	{name: "no score is NaN or infinite", each: scoresAreFinite},
	{name: "only the score and the filter's own Meta change", each: onlyTheScore},
	{name: "arguments that are only read are not changed", each: readOnly},
	{name: "the same arguments give the same result", once: isAFunction},
	{name: "Base is neutral in a chain", each: baseIsNeutral},
	{name: "a dropped link is left alone", each: droppedIsDropped},
	{name: "a new record can be updated", each: newRecord},
	{name: "a page loses what it gives and keeps what it receives", needs: needsCash, each: cashIsConserved},
	{name: "a page gives at least what its links receive, and at most what it has", needs: needsCash, each: givesWhatItHas},
	{name: "the order of the links to a page makes no difference", needs: needsSame, each: anyOrder},
}

func scoresAreFinite(_ Harness, f scoring.Filter, c *sample) error {
	finite := func(what string, x float64) error {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s is %v", what, x)
		}
		return nil
	}
	d := c.record
	links := c.out()
	gave := f.Distribute(c.page(&d), links)
	errs := []error{finite("the result of Distribute", gave)}
	for _, l := range links {
		errs = append(errs, finite("the score of a link", l.Score))
	}
	for range 3 { // once per segment
		old := d
		f.Updated(&old, &d, c.flow)
		errs = append(errs,
			finite("the score after Updated", float64(d.Score)),
			finite("the priority", float64(f.Priority(&d, d.Score))),
			finite("the boost", float64(f.Boost(&d, 1))))
	}
	errs = append(errs, finite("the boost of a page without a record", float64(f.Boost(nil, 1))))
	f.Orphaned(&d, c.flow.Time.Add(1000*time.Hour))
	errs = append(errs, finite("the score after Orphaned", float64(d.Score)))
	f.Injected(&d)
	errs = append(errs, finite("the score after Injected", float64(d.Score)))
	f.Discovered(&d)
	errs = append(errs, finite("the score after Discovered", float64(d.Score)))
	return errors.Join(errs...)
}

// foreign returns a record without the fields that a filter may set, and the
// Meta entries that samples have.
func foreign(d crawldb.Datum) (crawldb.Datum, string) {
	meta := ""
	for _, name := range []string{"another.state", "page.title", "schedule.fixed", "seed"} {
		v, ok := d.Meta.Get(name)
		meta += fmt.Sprintf("%s=%q,%v ", name, v, ok)
	}
	d.Score, d.Meta = 0, crawldb.Meta{}
	return d, meta
}

func onlyTheScore(h Harness, f scoring.Filter, c *sample) error {
	want, wantMeta := foreign(c.record)
	check := func(method string, call func(d *crawldb.Datum)) error {
		d := c.record
		d.Signature = slices.Clone(d.Signature)
		call(&d)
		got, meta := foreign(d)
		if method != "Injected" && method != "Discovered" && slices.Contains(h.Marks, got.Status) {
			got.Status = want.Status
		}
		if !reflect.DeepEqual(got, want) || meta != wantMeta {
			return fmt.Errorf("%s changed other fields, from %+v with %s to %+v with %s", method, want, wantMeta, got, meta)
		}
		return nil
	}
	old := c.record
	return errors.Join(
		check("Injected", f.Injected),
		check("Discovered", f.Discovered),
		check("Updated", func(d *crawldb.Datum) { f.Updated(&old, d, c.flow) }),
		check("Updated of a new record", func(d *crawldb.Datum) { f.Updated(nil, d, c.flow) }),
		check("Orphaned", func(d *crawldb.Datum) { f.Orphaned(d, c.flow.Time.Add(1000*time.Hour)) }),
	)
}

func readOnly(_ Harness, f scoring.Filter, c *sample) error {
	d := c.record
	d.Signature = slices.Clone(d.Signature)
	if f.Priority(&d, d.Score); !reflect.DeepEqual(d, c.record) {
		return fmt.Errorf("Priority changed the record to %+v", d)
	}
	if f.Boost(&d, 1); !reflect.DeepEqual(d, c.record) {
		return fmt.Errorf("Boost changed the record to %+v", d)
	}
	links, p := c.out(), c.page(&d)
	if f.Distribute(p, links); !reflect.DeepEqual(p, c.page(&c.record)) {
		return fmt.Errorf("Distribute changed the page to %+v, with the record %+v", p, d)
	}
	for i, l := range links {
		state, _ := l.Meta.Get("another.state")
		if l.From != c.links[i].From || l.URL != c.links[i].URL || state != l.URL {
			return fmt.Errorf("Distribute changed link %d from %+v to %+v", i, c.links[i], l)
		}
	}
	in := slices.Clone(c.flow.In)
	next := c.record
	f.Updated(&d, &next, c.flow)
	switch {
	case !reflect.DeepEqual(d, c.record):
		return fmt.Errorf("Updated changed the old record to %+v", d)
	case !reflect.DeepEqual(in, c.flow.In):
		return fmt.Errorf("Updated changed the links from %+v to %+v", in, c.flow.In)
	}
	return nil
}

// result is the result of every method of a filter for a sample.
type result struct {
	Injected, Discovered, Updated, New, Orphaned crawldb.Datum
	Priority, Boost                              float32
	Links                                        []scoring.Link
	Gave                                         float64
}

func ask(f scoring.Filter, c *sample) result {
	old, flow := c.record, c.flow
	flow.In = slices.Clone(flow.In)
	r := result{Injected: old, Discovered: old, Updated: old, New: old, Orphaned: old, Links: c.out()}
	f.Injected(&r.Injected)
	f.Discovered(&r.Discovered)
	f.Updated(&old, &r.Updated, flow)
	f.Updated(nil, &r.New, flow)
	f.Orphaned(&r.Orphaned, flow.Time.Add(1000*time.Hour))
	r.Priority = f.Priority(&old, 0.75)
	r.Boost = f.Boost(&old, 0.75)
	r.Gave = f.Distribute(c.page(&old), r.Links)
	return r
}

func isAFunction(h Harness) error {
	one, other := h.New(), h.New()
	cases := slices.Collect(h.samples())
	want := make([]result, len(cases))
	for i, c := range cases {
		want[i] = ask(one, c)
	}
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[w] = fmt.Errorf("panic: %v", p)
				}
			}()
			f := one
			if w == 0 {
				f = other
			}
			for i := range cases {
				i = (len(cases) - 1 - i + w*7) % len(cases) // in another order
				if i < 0 {
					i += len(cases)
				}
				if got := ask(f, cases[i]); !reflect.DeepEqual(got, want[i]) {
					errs[w] = fmt.Errorf("%s: %+v at first, %+v later", cases[i].name, want[i], got)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func baseIsNeutral(_ Harness, f scoring.Filter, c *sample) error {
	want := ask(f, c)
	for _, chain := range []scoring.Chain{{f}, {scoring.Base{}, f}, {f, scoring.Base{}}, {scoring.Chain{}, f}} {
		if got := ask(chain, c); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%+v alone, %+v in a chain", want, got)
		}
	}
	return nil
}

func droppedIsDropped(_ Harness, f scoring.Filter, c *sample) error {
	links := c.out()
	f.Distribute(c.page(&c.record), links)
	for i, l := range links {
		if c.links[i].Drop && !reflect.DeepEqual(l, c.links[i]) {
			return fmt.Errorf("dropped link %d changed from %+v to %+v", i, c.links[i], l)
		}
	}
	return nil
}

func newRecord(_ Harness, f scoring.Filter, c *sample) error {
	d := crawldb.Datum{URL: c.record.URL}
	f.Discovered(&d)
	flow := c.flow
	flow.Gave, flow.Visited = 0, false
	f.Updated(nil, &d, flow)
	if flow = (scoring.Flow{Time: flow.Time}); math.IsNaN(float64(d.Score)) {
		return fmt.Errorf("score %v", d.Score)
	}
	f.Updated(nil, &d, flow)
	return nil
}

// near allows for rounding in a few additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func cashIsConserved(h Harness, f scoring.Filter, c *sample) error {
	if c.wild {
		return nil // such numbers cannot be added up exactly
	}
	d, old := c.record, c.record
	f.Updated(&old, &d, c.flow)
	want := h.Cash(&c.record) - c.flow.Gave
	for _, l := range c.flow.In {
		want += l.Score
	}
	want += c.flow.Shared
	if got := h.Cash(&d); !near(got, want) {
		return fmt.Errorf("had %v, gave %v, received %v, now has %v; want %v", h.Cash(&c.record), c.flow.Gave, c.flow.In, got, want)
	}
	// What the page received since it was selected is not lost: d may be the record of
	// the fetch list, old is the record as it is now.
	old, d = d, c.record
	now := h.Cash(&old)
	f.Updated(&old, &d, scoring.Flow{Visited: true, Time: c.flow.Time})
	if got := h.Cash(&d); !near(got, now) {
		return fmt.Errorf("has %v after a visit that gave nothing, but had %v", got, now)
	}
	return nil
}

func givesWhatItHas(h Harness, f scoring.Filter, c *sample) error {
	if c.wild {
		return nil
	}
	links := c.out()
	gave, sum := f.Distribute(c.page(&c.record), links), 0.0
	for _, l := range links {
		if l.Score < 0 {
			return fmt.Errorf("a link receives %v", l.Score)
		}
		sum += l.Score
	}
	if has := h.Cash(&c.record); gave < sum && !near(gave, sum) || gave > has && !near(gave, has) {
		return fmt.Errorf("has %v, gave %v, but the links received %v", has, gave, sum)
	}
	return nil
}

func anyOrder(h Harness, f scoring.Filter, c *sample) error {
	if c.wild {
		return nil
	}
	a, b, old := c.record, c.record, c.record
	f.Updated(&old, &a, c.flow)
	flow := c.flow
	flow.In = slices.Clone(flow.In)
	slices.Reverse(flow.In)
	f.Updated(&old, &b, flow)
	if !h.Same(&a, &b) {
		return fmt.Errorf("the score is %v, but %v with the links in reverse order", a.Score, b.Score)
	}
	return nil
}
