// Customschedule crawls with a schedule of its own: the pages of an intranet change on working
// days only, so none is visited again on a weekend. The web and its clock are simulated.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

const day = 24 * time.Hour

// workdays is the adaptive schedule, except that a visit that would fall on a weekend waits
// for Monday. The interval stays what was learned: only FetchTime moves. Pages that are gone
// are looked for on any day.
//
// Due is that of Adaptive, which takes a fetch time beyond MaxInterval for the mistake of a
// clock, so AdaptiveMax leaves room for a weekend.
type workdays struct{ schedule.Adaptive }

func newWorkdays() workdays {
	return workdays{schedule.Adaptive{
		Default:     schedule.Default{DefaultInterval: day, MaxInterval: 90 * day},
		MinInterval: time.Hour, AdaptiveMax: 60 * day,
	}}
}

func (s workdays) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d = s.Adaptive.Fetched(d, v)
	d.FetchTime = afterWeekend(d.FetchTime)
	return d
}

func (s workdays) Retry(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d = s.Adaptive.Retry(d, v)
	d.FetchTime = afterWeekend(d.FetchTime)
	return d
}

// afterWeekend returns t, or Monday at six if t lies between Friday at eight in the evening
// and then (UTC).
func afterWeekend(t time.Time) time.Time {
	monday := t.UTC().Truncate(7 * day) // the zero time is a Monday
	if t.Sub(monday) < 4*day+20*time.Hour {
		return t
	}
	return monday.Add(7*day + 6*time.Hour)
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	clock := webtest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // a Thursday
	web := &webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true, Start: clock.Now(), Now: clock.Now, Periods: []time.Duration{day, 7 * day}}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{
		Agent: "customschedule", Protocol: web.Protocol(), Now: clock.Now,
		Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Schedule: newWorkdays(),
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		return err
	}
	for range 8 {
		visits := 0
		date := clock.Now()
		for range 12 { // a service has one Run, with Wait
			r, err := crawler.Run(ctx)
			if err != nil {
				return err
			}
			visits += r.Visited()
			clock.Advance(2 * time.Hour)
		}
		fmt.Fprintf(out, "%s %d visits\n", date.Format("Mon 2 Jan:"), visits)
	}
	return nil
}
