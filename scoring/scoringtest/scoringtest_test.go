package scoringtest_test

import (
	"math"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/scoringtest"
)

func same(a, b *crawldb.Datum) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-6*max(1, math.Abs(x)) }
	return near(float64(a.Score), float64(b.Score)) && near(scoring.Cash(a), scoring.Cash(b))
}

func harness(f scoring.Filter) scoringtest.Harness {
	return scoringtest.Harness{New: func() scoring.Filter { return f }, Cash: scoring.Cash, Same: same}
}

var marks = []crawldb.Status{crawldb.Gone, crawldb.Orphan, crawldb.Unfetched}

func plain(f scoring.Filter) scoringtest.Harness {
	return scoringtest.Harness{New: func() scoring.Filter { return f }, Same: same}
}

func marking(f scoring.Filter) scoringtest.Harness {
	h := plain(f)
	h.Marks = marks
	return h
}

func TestStock(t *testing.T) {
	for name, h := range map[string]scoringtest.Harness{
		"OPIC":         harness(scoring.OPIC{}),
		"OPICSplit":    harness(scoring.OPIC{InternalFactor: 0.1, ExternalFactor: 1e300, Window: time.Hour}),
		"OPICOut":      harness(scoring.OPIC{InternalFactor: -1}),
		"OPICKeep":     harness(scoring.OPIC{InternalFactor: -1, ExternalFactor: math.NaN()}),
		"OPICNutch":    {New: func() scoring.Filter { return scoring.OPIC{NutchCompat: true, InternalFactor: 1e300} }, Same: same},
		"OPICFiltered": harness(scoring.OPIC{CountFiltered: true, ScorePower: 3}),
		"Depth":        plain(scoring.Depth{}),
		"DepthMax":     plain(scoring.Depth{Max: 2, BreadthFirst: true, Override: regexp.MustCompile("example"), OverrideMax: 1}),
		"DepthNutch":   plain(scoring.Depth{NutchCompat: true, Max: math.MaxInt}),
		"Orphan":       marking(scoring.Orphan{}),
		"OrphanSoon":   marking(scoring.Orphan{GoneAfter: time.Nanosecond, OrphanAfter: -1}),
		"OrphanNutch":  marking(scoring.Orphan{NutchCompat: true}),
		"Metadata":     plain(scoring.Metadata{DB: []string{"seed"}, Parse: []string{"seed", "parent", "page.title"}}),
		"URLMeta":      plain(scoring.URLMeta("seed", "page.title")),
		"Link":         plain(scoring.LinkAnalysis{Normalize: 1e38}),
		"LinkNutch":    plain(scoring.LinkAnalysis{NutchCompat: true}),
		"All": func() scoringtest.Harness {
			h := harness(scoring.Chain{scoring.Depth{Max: 2}, scoring.OPIC{}, scoring.Orphan{}, scoring.URLMeta("seed")})
			h.Marks = marks
			return h
		}(),
		"Base":     {New: func() scoring.Filter { return scoring.Base{} }, Same: same},
		"Chain":    harness(scoring.Chain{scoring.Base{}, scoring.OPIC{}}),
		"no Chain": {New: func() scoring.Filter { return scoring.Chain(nil) }, Same: same},
	} {
		t.Run(name, func(t *testing.T) { scoringtest.Run(t, h) })
	}
}

// mutant is OPIC with one fault.
type mutant struct {
	scoring.OPIC
	injected   func(d *crawldb.Datum)
	priority   func(d *crawldb.Datum, p float32) float32
	distribute func(from *crawldb.Datum, links []scoring.Link, gave float64) float64
	updated    func(old, d *crawldb.Datum, f scoring.Flow)
	orphaned   func(d *crawldb.Datum)
	boost      func(d *crawldb.Datum, b float32) float32
	page       func(p scoring.Page, links []scoring.Link)
}

func (m mutant) Orphaned(d *crawldb.Datum, _ time.Time) {
	if m.orphaned != nil {
		m.orphaned(d)
	}
}

func (m mutant) Boost(d *crawldb.Datum, b float32) float32 {
	if m.boost != nil {
		return m.boost(d, b)
	}
	return m.OPIC.Boost(d, b)
}

func (m mutant) Injected(d *crawldb.Datum) {
	m.OPIC.Injected(d)
	if m.injected != nil {
		m.injected(d)
	}
}

func (m mutant) Priority(d *crawldb.Datum, p float32) float32 {
	if m.priority != nil {
		return m.priority(d, p)
	}
	return p
}

func (m mutant) Distribute(from scoring.Page, links []scoring.Link) float64 {
	gave := m.OPIC.Distribute(from, links)
	if m.page != nil {
		m.page(from, links)
	}
	if m.distribute != nil {
		return m.distribute(from.Datum, links, gave)
	}
	return gave
}

func (m mutant) Updated(old, d *crawldb.Datum, f scoring.Flow) {
	if m.updated != nil {
		m.updated(old, d, f)
		return
	}
	m.OPIC.Updated(old, d, f)
}

// TestRulesFindFaults runs over filters with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	type D = crawldb.Datum
	type L = scoring.Link
	var opic scoring.OPIC
	var calls atomic.Int64
	var all []kit.Mutant[scoringtest.Harness]
	for _, c := range []struct {
		name, rule string
		m          scoring.Filter
	}{
		{"priority by logarithm", "no score is NaN or infinite", mutant{priority: func(d *D, _ float32) float32 { return float32(math.Log(float64(d.Score))) }}},
		{"Nutch's sum", "no score is NaN or infinite", mutant{updated: func(_, d *D, f scoring.Flow) {
			for _, l := range f.In {
				d.Score += float32(l.Score)
			}
		}}},
		{"share of nothing", "no score is NaN or infinite", mutant{distribute: func(*D, []L, float64) float64 { return math.NaN() }}},
		{"Injected makes the seed due", "only the score and the filter's own Meta change", mutant{injected: func(d *D) { d.FetchTime = time.Time{} }}},
		{"Injected empties Meta", "only the score and the filter's own Meta change", mutant{injected: func(d *D) { d.Meta = crawldb.Meta{} }}},
		{"Updated sets the priority", "only the score and the filter's own Meta change", mutant{updated: func(old, d *D, f scoring.Flow) {
			opic.Updated(old, d, f)
			d.Priority = d.Score
		}}},
		{"Distribute empties the record", "arguments that are only read are not changed", mutant{distribute: func(from *D, _ []L, gave float64) float64 {
			from.Meta.Delete("opic.cash")
			return gave
		}}},
		{"Distribute sorts the links", "arguments that are only read are not changed", mutant{distribute: func(_ *D, links []L, gave float64) float64 {
			slices.Reverse(links)
			return gave
		}}},
		{"Updated sorts the links", "arguments that are only read are not changed", mutant{updated: func(old, d *D, f scoring.Flow) {
			slices.Reverse(f.In)
			if len(f.In) > 0 {
				f.In[0].From += "/"
			}
			opic.Updated(old, d, f)
		}}},
		{"Updated writes to the old record", "arguments that are only read are not changed", mutant{updated: func(old, d *D, f scoring.Flow) {
			opic.Updated(old, d, f)
			if old != nil {
				old.Score = d.Score
			}
		}}},
		{"priority by lot", "the same arguments give the same result", mutant{priority: func(_ *D, p float32) float32 { return p + float32(calls.Add(1)%97) }}},
		{"links are added to in a chain", "Base is neutral in a chain", chained{}},
		{"a boost by division", "no score is NaN or infinite", mutant{boost: func(d *D, b float32) float32 {
			if d == nil {
				return b
			}
			return b / d.Score
		}}},
		{"a boost for records only", "no score is NaN or infinite", mutant{boost: func(d *D, b float32) float32 { return b * d.Score }}},
		{"an orphan scores nothing divided by nothing", "no score is NaN or infinite", mutant{orphaned: func(d *D) { d.Score = float32(math.NaN()) }}},
		{"Orphaned forgets", "only the score and the filter's own Meta change", mutant{orphaned: func(d *D) { d.Meta = crawldb.Meta{} }}},
		{"Orphaned deletes by status", "only the score and the filter's own Meta change", mutant{orphaned: func(d *D) { d.Status = crawldb.Gone }}},
		{"Boost counts", "arguments that are only read are not changed", mutant{boost: func(d *D, b float32) float32 {
			if d != nil {
				d.Score++
			}
			return b
		}}},
		{"Distribute reads the text away", "arguments that are only read are not changed", mutant{page: func(p scoring.Page, _ []L) {
			if p.Parsed != nil {
				p.Parsed.Text = ""
			}
		}}},
		{"Distribute empties the Meta of links", "arguments that are only read are not changed", mutant{page: func(_ scoring.Page, links []L) {
			for i := range links {
				links[i].Meta = crawldb.Meta{}
			}
		}}},
		{"the boost by lot", "the same arguments give the same result", mutant{boost: func(_ *D, b float32) float32 { return b + float32(calls.Add(1)%97) }}},
		{"what was dropped is picked up", "a dropped link is left alone", mutant{page: func(_ scoring.Page, links []L) {
			for i := range links {
				links[i].Drop = false
			}
		}}},
		{"what was dropped is paid for", "a dropped link is left alone", mutant{page: func(_ scoring.Page, links []L) {
			for i := range links {
				links[i].Score++
			}
		}}},
		{"what all share is lost", "a page loses what it gives and keeps what it receives", mutant{updated: func(old, d *D, f scoring.Flow) {
			f.Shared = 0
			opic.Updated(old, d, f)
		}}},
		{"every page is known", "a new record can be updated", mutant{updated: func(old, d *D, f scoring.Flow) {
			d.Score = old.Score
			opic.Updated(old, d, f)
		}}},
		{"no page loses", "a page loses what it gives and keeps what it receives", mutant{updated: func(old, d *D, f scoring.Flow) {
			f.Gave = 0
			opic.Updated(old, d, f)
		}}},
		{"the fetch list is believed", "a page loses what it gives and keeps what it receives", mutant{updated: func(_, d *D, f scoring.Flow) { opic.Updated(nil, d, f) }}},
		{"the first link is lost", "a page loses what it gives and keeps what it receives", mutant{updated: func(old, d *D, f scoring.Flow) {
			f.In = f.In[min(1, len(f.In)):]
			opic.Updated(old, d, f)
		}}},
		{"everyone gets all", "a page gives at least what its links receive, and at most what it has", mutant{distribute: func(from *D, links []L, gave float64) float64 {
			for i := range links {
				links[i].Score = scoring.Cash(from)
			}
			return gave
		}}},
		{"more is given than there is", "a page gives at least what its links receive, and at most what it has", mutant{distribute: func(_ *D, links []L, gave float64) float64 {
			for i := range links {
				links[i].Score *= 2
			}
			return gave * 2
		}}},
		{"the best link counts more", "the order of the links to a page makes no difference", mutant{updated: func(old, d *D, f scoring.Flow) {
			f.In = slices.Clone(f.In)
			for i := range f.In {
				f.In[i].Score /= float64(i + 1)
			}
			opic.Updated(old, d, f)
		}}},
	} {
		all = append(all, kit.Mutant[scoringtest.Harness]{Fault: c.name, Rule: c.rule, Harness: harness(c.m)})
	}
	kit.Catch(t, scoringtest.Kit, all, nil)
}

// chained gives another answer every second time it is asked about the same
// links, as a filter does that remembers having seen them.
type chained struct{ scoring.OPIC }

var asked atomic.Int64

func (c chained) Distribute(from scoring.Page, links []scoring.Link) float64 {
	gave := c.OPIC.Distribute(from, links)
	if len(links) > 0 && asked.Add(1)%2 == 0 {
		links[0].Score++
	}
	return gave
}
