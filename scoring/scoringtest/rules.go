package scoringtest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

func scoresAreFinite(k *check, c *sample) {
	f := k.f
	finite := func(what string, x float64) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			k.Failf("%s is %v", what, x)
		}
	}
	d := c.record
	links := c.out()
	gave := f.Distribute(c.page(&d), links)
	finite("the result of Distribute", gave)
	for _, l := range links {
		finite("the score of a link", l.Score)
	}
	for range 3 { // once per segment
		old := d
		f.Updated(&old, &d, c.flow)
		finite("the score after Updated", float64(d.Score))
		finite("the priority", float64(f.Priority(&d, d.Score)))
		finite("the boost", float64(f.Boost(&d, 1)))
	}
	finite("the boost of a page without a record", float64(f.Boost(nil, 1)))
	f.Orphaned(&d, c.flow.Time.Add(1000*time.Hour))
	finite("the score after Orphaned", float64(d.Score))
	f.Injected(&d)
	finite("the score after Injected", float64(d.Score))
	f.Discovered(&d)
	finite("the score after Discovered", float64(d.Score))
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

func onlyTheScore(k *check, c *sample) {
	f := k.f
	want, wantMeta := foreign(c.record)
	check := func(method string, call func(d *crawldb.Datum)) {
		d := c.record
		d.Signature = slices.Clone(d.Signature)
		call(&d)
		got, meta := foreign(d)
		if method != "Injected" && method != "Discovered" && slices.Contains(k.h.Marks, got.Status) {
			got.Status = want.Status
		}
		if !reflect.DeepEqual(got, want) || meta != wantMeta {
			k.Failf("%s changed other fields, from %+v with %s to %+v with %s", method, want, wantMeta, got, meta)
		}
	}
	old := c.record
	check("Injected", f.Injected)
	check("Discovered", f.Discovered)
	check("Updated", func(d *crawldb.Datum) { f.Updated(&old, d, c.flow) })
	check("Updated of a new record", func(d *crawldb.Datum) { f.Updated(nil, d, c.flow) })
	check("Orphaned", func(d *crawldb.Datum) { f.Orphaned(d, c.flow.Time.Add(1000*time.Hour)) })
}

func readOnly(k *check, c *sample) {
	f := k.f
	d := c.record
	d.Signature = slices.Clone(d.Signature)
	if f.Priority(&d, d.Score); !reflect.DeepEqual(d, c.record) {
		k.Failf("Priority changed the record to %+v", d)
	}
	if f.Boost(&d, 1); !reflect.DeepEqual(d, c.record) {
		k.Failf("Boost changed the record to %+v", d)
	}
	links, p := c.out(), c.page(&d)
	if f.Distribute(p, links); !reflect.DeepEqual(p, c.page(&c.record)) {
		k.Failf("Distribute changed the page to %+v, with the record %+v", p, d)
	}
	for i, l := range links {
		state, _ := l.Meta.Get("another.state")
		if l.From != c.links[i].From || l.URL != c.links[i].URL || state != l.URL {
			k.Failf("Distribute changed link %d from %+v to %+v", i, c.links[i], l)
		}
	}
	in := slices.Clone(c.flow.In)
	next := c.record
	f.Updated(&d, &next, c.flow)
	switch {
	case !reflect.DeepEqual(d, c.record):
		k.Failf("Updated changed the old record to %+v", d)
	case !reflect.DeepEqual(in, c.flow.In):
		k.Failf("Updated changed the links from %+v to %+v", in, c.flow.In)
	}
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

func isAFunction(k *check) {
	one, other := k.f, k.h.New()
	cases := slices.Collect(k.h.samples())
	want := make([]result, len(cases))
	for i, c := range cases {
		want[i] = ask(one, c)
	}
	k.Together(4, func(w int) {
		f := one
		if w == 0 {
			f = other
		}
		for i := range cases {
			i = (len(cases) - 1 - i + w*7) % len(cases) // in another order
			if got := ask(f, cases[i]); !reflect.DeepEqual(got, want[i]) {
				k.Failf("%s: %+v at first, %+v later", cases[i].name, want[i], got)
			}
		}
	})
}

func baseIsNeutral(k *check, c *sample) {
	f := k.f
	want := ask(f, c)
	for _, chain := range []scoring.Chain{{f}, {scoring.Base{}, f}, {f, scoring.Base{}}, {scoring.Chain{}, f}} {
		if got := ask(chain, c); !reflect.DeepEqual(got, want) {
			k.Failf("%+v alone, %+v in a chain", want, got)
		}
	}
}

func droppedIsDropped(k *check, c *sample) {
	f := k.f
	links := c.out()
	f.Distribute(c.page(&c.record), links)
	for i, l := range links {
		if c.links[i].Drop && !reflect.DeepEqual(l, c.links[i]) {
			k.Failf("dropped link %d changed from %+v to %+v", i, c.links[i], l)
		}
	}
}

func newRecord(k *check, c *sample) {
	f := k.f
	d := crawldb.Datum{URL: c.record.URL}
	f.Discovered(&d)
	flow := c.flow
	flow.Gave, flow.Visited = 0, false
	f.Updated(nil, &d, flow)
	if flow = (scoring.Flow{Time: flow.Time}); math.IsNaN(float64(d.Score)) {
		k.Failf("score %v", d.Score)
	}
	f.Updated(nil, &d, flow)
}

// near allows for rounding in a few additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func cashIsConserved(k *check, c *sample) {
	k.Need(k.h.Cash != nil, "Harness.Cash is nil")
	f := k.f
	if c.wild {
		return // such numbers cannot be added up exactly
	}
	d, old := c.record, c.record
	f.Updated(&old, &d, c.flow)
	want := k.h.Cash(&c.record) - c.flow.Gave
	for _, l := range c.flow.In {
		want += l.Score
	}
	want += c.flow.Shared
	if got := k.h.Cash(&d); !near(got, want) {
		k.Failf("had %v, gave %v, received %v, now has %v; want %v", k.h.Cash(&c.record), c.flow.Gave, c.flow.In, got, want)
	}
	// What the page received since it was selected is not lost: d may be the record of
	// the fetch list, old is the record as it is now.
	old, d = d, c.record
	now := k.h.Cash(&old)
	f.Updated(&old, &d, scoring.Flow{Visited: true, Time: c.flow.Time})
	if got := k.h.Cash(&d); !near(got, now) {
		k.Failf("has %v after a visit that gave nothing, but had %v", got, now)
	}
}

func givesWhatItHas(k *check, c *sample) {
	k.Need(k.h.Cash != nil, "Harness.Cash is nil")
	f := k.f
	if c.wild {
		return
	}
	links := c.out()
	gave, sum := f.Distribute(c.page(&c.record), links), 0.0
	for _, l := range links {
		if l.Score < 0 {
			k.Failf("a link receives %v", l.Score)
		}
		sum += l.Score
	}
	if has := k.h.Cash(&c.record); gave < sum && !near(gave, sum) || gave > has && !near(gave, has) {
		k.Failf("has %v, gave %v, but the links received %v", has, gave, sum)
	}
}

func anyOrder(k *check, c *sample) {
	k.Need(k.h.Same != nil, "Harness.Same is nil")
	f := k.f
	if c.wild {
		return
	}
	a, b, old := c.record, c.record, c.record
	f.Updated(&old, &a, c.flow)
	flow := c.flow
	flow.In = slices.Clone(flow.In)
	slices.Reverse(flow.In)
	f.Updated(&old, &b, flow)
	if !k.h.Same(&a, &b) {
		k.Failf("the score is %v, but %v with the links in reverse order", a.Score, b.Score)
	}
}
