// Package simulate tries a schedule on the histories of pages before a crawl uses it: it counts the
// visits and the missed changes, and measures how old the copies were. It runs the code of a crawl,
// update.Next and the schedule, in simulated time, where a year takes a millisecond; it makes no
// requests. Start with [Run] for single pages and with [Compare] for a population within a budget.
//
// A history is what happened to a page and when: see [ParseHistory] for a file
// of them, and [Every], [Poisson] and [Never] for made-up pages.
package simulate

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// Page is the history of one page.
type Page struct {
	URL string
	// ContentType is the media type, for schedules that go by it; empty means
	// text/html.
	ContentType string
	// Weight is the importance of the page relative to others, if above zero. [Run]
	// ignores it.
	Weight float64
	// Events are in ascending order. A page whose first event is not Appears exists
	// before it, and so does a page without events.
	Events []Event
	// Seen are the events that the signature of the crawl detects, if different: the
	// schedule learns of these. Signatures has those of every signature in the history: see
	// [BySignature].
	Seen       []Event
	Signatures map[string][]Event
	// AlwaysDiffer lists the signatures that differ at every visit; SignatureAlwaysDiffers says that the
	// crawl's signature does.
	AlwaysDiffer           []string
	SignatureAlwaysDiffers bool
	// Until is the end of the history, if that is after its events.
	Until time.Time
}

// Event is one thing that happened to a page.
type Event struct {
	Time time.Time
	Kind Kind
}

// Kind says what happened to a page.
type Kind byte

const (
	Appears  Kind = 'A' // it exists, with content that it never had before
	Modified Kind = 'M' // its content has changed
	Deleted  Kind = 'D' // it is gone: the server answers 404

	// Not every signature sees these: see [BySignature].
	BytesModified Kind = 'B' // its text is the same
	WordsModified Kind = 'T' // its text has changed, but not the more frequent words
)

// state returns what a visit at that time finds: how many events there were, and whether
// the page exists.
func (p *Page) state(at time.Time) (events int, there bool) {
	n, found := slices.BinarySearchFunc(p.Events, at, func(e Event, t time.Time) int { return e.Time.Compare(t) })
	for found && n < len(p.Events) && p.Events[n].Time.Equal(at) {
		n++
	}
	switch {
	case n > 0:
		return n, p.Events[n-1].Kind != Deleted
	case len(p.Events) > 0:
		return 0, p.Events[0].Kind != Appears
	}
	return 0, true
}

// Options say how the crawler looks. The zero value looks every hour.
type Options struct {
	// Start is when the pages become known; zero means when they appear, and for pages
	// that exist before any event the first event of all, or 1 January 2026 if there is
	// none.
	Start time.Time
	// Duration is how long to continue, 146 years at most; zero means until the
	// last event of all, but at least for a year.
	Duration time.Duration
	// Step is how often the crawler looks for what is due: a page is visited at
	// the first step at which it is. Zero means an hour.
	Step time.Duration
	// LastModified makes the server say when the content last changed.
	LastModified bool
	// Conditional makes the server answer "not modified" to a visit that knows the
	// content. Otherwise it sends it again, and the signature decides.
	Conditional bool
	// Update has the rules for records: MaxRetries, NutchCompat and the like. Its
	// Schedule and Now are ignored.
	Update update.Options
}

// Result is the result of Run.
type Result struct {
	Start, End time.Time
	Pages      []PageResult
	// Total adds up the pages; its Freshness and Age are means over those that were
	// visited.
	Total Totals
}

// PageResult is what happened to one page.
type PageResult struct {
	Page   Page
	Visits []Visit
	Total  Totals
}

// Totals count what happened between Start and End.
type Totals struct {
	// Visits counts the visits, News those that found the page changed, gone or
	// back, the first visit included.
	Visits, News int
	// Changes counts the events after the first visit. Of these Missed were
	// overtaken by another before a visit came, and Pending were not seen at the
	// end.
	Changes, Missed, Pending int
	// Freshness is the share of the time since the first visit in which the copy
	// matched the page. Age is the mean over this time of how long it had not, counting
	// zero while it did (Cho and Garcia-Molina, Synchronizing a database to improve
	// freshness, 2000).
	Freshness float64
	Age       time.Duration
}

// Visit is one visit.
type Visit struct {
	Time time.Time
	// Status is what the record had after it, and Changed whether it found the
	// page changed, gone or back.
	Status  crawldb.Status
	Changed bool
	// Events counts the events since the visit before: all but the last of them were
	// missed. Late is how long ago the first was.
	Events int
	Late   time.Duration
	// Interval and Next are what the schedule has set.
	Interval time.Duration
	Next     time.Time
}

// Run visits each page of a history whenever it is due. The same arguments give the same
// result, and are not changed. If the context ends, so does Run, with an error that is
// ctx.Err().
func Run(ctx context.Context, history []Page, s schedule.FetchSchedule, o Options) (Result, error) {
	whenTheyAppear := o.Start.IsZero()
	o = o.withDefaults(history)
	o.Update.Schedule = s
	r := Result{Start: o.Start, End: o.Start.Add(o.Duration)}
	t := &r.Total
	var fresh, age, visited float64
	for _, p := range history {
		from := o.Start
		if len(p.Events) > 0 && p.Events[0].Kind == Appears && whenTheyAppear {
			from = p.Events[0].Time
		}
		c, err := o.run(ctx, p, s, from)
		if err != nil {
			return r, err
		}
		r.Pages = append(r.Pages, c)
		t.Visits += c.Total.Visits
		t.News += c.Total.News
		t.Changes += c.Total.Changes
		t.Missed += c.Total.Missed
		t.Pending += c.Total.Pending
		if c.Total.Visits > 0 {
			fresh += c.Total.Freshness
			age += c.Total.Age.Seconds()
			visited++
		}
	}
	if visited > 0 {
		t.Freshness = fresh / visited
		t.Age = time.Duration(age / visited * float64(time.Second)).Round(time.Second)
	}
	return r, nil
}

func (o Options) withDefaults(history []Page) Options {
	var first, last time.Time
	for _, p := range history {
		if n := len(p.Events); n > 0 {
			if e := p.Events[0].Time; first.IsZero() || e.Before(first) {
				first = e
			}
			if e := p.Events[n-1].Time; e.After(last) {
				last = e
			}
		}
		if p.Until.After(last) {
			last = p.Until
		}
	}
	if o.Start.IsZero() {
		if o.Start = first; first.IsZero() {
			o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
	if o.Duration <= 0 {
		o.Duration = max(last.Sub(o.Start), 365*24*time.Hour)
	}
	o.Duration = min(o.Duration, longest)
	if o.Step <= 0 {
		o.Step = time.Hour
	}
	o.Step = min(o.Step, longest)
	return o
}

// longest is the maximum of Duration: what is added to it must still be a time.Duration.
const longest = math.MaxInt64 / 2

const segmentName = "simulated-000"

func (o Options) run(ctx context.Context, p Page, s schedule.FetchSchedule, at time.Time) (PageResult, error) {
	c := PageResult{Page: p}
	end := o.Start.Add(o.Duration)
	o.Update.Now = func() time.Time { return at }
	d := s.Init(crawldb.Datum{URL: p.URL, Status: crawldb.Unfetched}, at)
	for ; at.Before(end); at = o.next(s, &d, at) {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		if !s.Due(&d, at) {
			continue
		}
		listed := schedule.Selected(s, d, at)
		in := update.Input{URL: p.URL, Segment: segmentName, Listed: &listed}
		events, there := p.state(at)
		in.Visit, in.Parse = o.visit(&p, &listed, at, events, there)
		before := d
		d = *update.Next(&before, in, o.Update)
		c.add(&d, at, events)
	}
	c.measure(end)
	return c, nil
}

// next returns the step at which to look again.
func (o Options) next(s schedule.FetchSchedule, d *crawldb.Datum, at time.Time) time.Time {
	ahead, indexable := schedule.Horizon(s)
	wait := min(d.FetchTime.Sub(at), o.Duration) // nothing is looked at beyond that
	if !indexable || wait <= o.Step || ahead > 0 && wait > ahead {
		return at.Add(o.Step)
	}
	return at.Add((wait + o.Step - 1) / o.Step * o.Step)
}

// visit returns the answer of the server.
func (o Options) visit(p *Page, listed *crawldb.Datum, at time.Time, events int, there bool) (*segment.Visit, *segment.Parse) {
	f := found{there: there}
	f.sees(p.Events, p.Seen, p.SignatureAlwaysDiffers, events, at)
	return f.answer(p.URL, p.ContentType, at, listed, o.LastModified, o.Conditional)
}

// add records a visit.
func (c *PageResult) add(d *crawldb.Datum, at time.Time, events int) {
	v := Visit{Time: at, Status: d.Status, Interval: d.Interval, Next: d.FetchTime}
	if n := len(c.Visits); n == 0 {
		v.Changed = true
	} else {
		seen, _ := c.Page.state(c.Visits[n-1].Time)
		if v.Events = events - seen; v.Events > 0 {
			v.Changed = true
			v.Late = at.Sub(c.Page.Events[seen].Time)
		}
	}
	c.Visits = append(c.Visits, v)
}

// measure adds up the visits.
func (c *PageResult) measure(end time.Time) {
	t := &c.Total
	t.Visits = len(c.Visits)
	var stale, age float64 // seconds, and their squares over two
	for i, v := range c.Visits {
		until := end
		if i+1 < len(c.Visits) {
			until = c.Visits[i+1].Time
		}
		seen, _ := c.Page.state(v.Time)
		upTo, _ := c.Page.state(until)
		if i+1 == len(c.Visits) {
			t.Pending = upTo - seen
			t.Changes += t.Pending
		}
		if upTo > seen {
			s := until.Sub(c.Page.Events[seen].Time).Seconds()
			stale += s
			age += s * s / 2
		}
		if v.Changed {
			t.News++
		}
		t.Changes += v.Events
		t.Missed += max(0, v.Events-1)
	}
	if len(c.Visits) == 0 {
		return
	}
	all := end.Sub(c.Visits[0].Time).Seconds()
	t.Freshness = 1 - stale/all
	t.Age = time.Duration(age / all * float64(time.Second)).Round(time.Second)
}
