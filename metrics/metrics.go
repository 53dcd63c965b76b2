// Package metrics reads the figures of a crawl, under names that do not depend on a library for
// metrics. It exports nothing to a monitoring system: packages metrics/prom and metrics/otel do, and
// are where to start. No label is a host or a URL, so the number of time series is bounded.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Kind says what the values of an instrument are.
type Kind uint8

const (
	// Gauge is a value that goes up and down.
	Gauge Kind = iota
	// Counter is a value that only grows, from the start of the process on.
	Counter
	// Histogram is a distribution, of values that are recorded one by one.
	Histogram
)

// Instrument describes a figure.
type Instrument struct {
	// Name is the name in OpenTelemetry's spelling, such as "recrawl.visits". Unit is its UCUM
	// code, such as "s", "By" or "{page}".
	Name, Unit, Help string
	Kind             Kind
	// Label is the name of the only attribute, empty if there is none.
	Label string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Recorded says that Observe records the values one by one. The others are read from a Source.
	Recorded bool
}

// Record receives a value of the instrument with an index in the result of [Instruments]. label is
// the value of its attribute.
type Record func(instrument int, label string, value float64)

// The indexes of Instruments.
const (
	visitDuration = iota
	visitSize
	stageDuration
	stageErrors
	rounds
	visits
	received
	stage
	queuePages
	queueHosts
	activeVisits
	nextDue
	damagedSegments
	pages
	backlog
	freshness
	copyAge
	estimateTime
	budget
	budgetUsed
	consumerEvents
	consumerBytes
	consumerAge
	consumerLapses
	storeSize
	diskFree
	readErrors
	instrumentCount
)

// Instruments returns all figures, always in the same order.
func Instruments() []Instrument {
	return []Instrument{
		visitDuration: {"recrawl.visit.duration", "s", "How long visits took that made a request.", Histogram, "", []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, true},
		visitSize:     {"recrawl.visit.size", "By", "Bytes of the body that a visit received, as sent.", Histogram, "", []float64{0, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24}, true},
		stageDuration: {"recrawl.stage.duration", "s", "How long stages took; stage round is a whole round.", Histogram, "stage", []float64{.01, .1, 1, 10, 60, 600, 3600, 6 * 3600}, true},
		stageErrors:   {"recrawl.stage.errors", "{error}", "Stages that ended with an error other than that they were cancelled.", Counter, "stage", nil, true},

		rounds:          {"recrawl.rounds", "{round}", "Rounds that worked on a segment.", Counter, "", nil, false},
		visits:          {"recrawl.visits", "{visit}", "Visits, by outcome.", Counter, "outcome", nil, false},
		received:        {"recrawl.received", "By", "Bytes of bodies that visits received, as sent.", Counter, "", nil, false},
		stage:           {"recrawl.stage", "{stage}", "1 for the stage under way; none if no round is made.", Gauge, "stage", nil, false},
		queuePages:      {"recrawl.queue.pages", "{page}", "Pages read from the fetch list that are not visited yet.", Gauge, "", nil, false},
		queueHosts:      {"recrawl.queue.hosts", "{host}", "Hosts with pages waiting or being visited.", Gauge, "", nil, false},
		activeVisits:    {"recrawl.visits.active", "{visit}", "Visits under way.", Gauge, "", nil, false},
		nextDue:         {"recrawl.next.due.time", "s", "When the next page is due, as a Unix time, as far as the last selection could tell.", Gauge, "", nil, false},
		damagedSegments: {"recrawl.segments.damaged", "{segment}", "Segments that were found damaged and set aside.", Gauge, "", nil, false},

		pages:        {"recrawl.pages", "{page}", "Known pages: copies have content, never were not visited yet, other are redirects, gone or unreadable. Estimated.", Gauge, "state", nil, false},
		backlog:      {"recrawl.backlog", "{page}", "Pages that wait for a visit: overdue for another one, never for their first. Estimated.", Gauge, "kind", nil, false},
		freshness:    {"recrawl.freshness", "1", "Share of copies that are expected to match their pages, by pages and by importance. Estimated.", Gauge, "by", nil, false},
		copyAge:      {"recrawl.copy.age", "s", "How long copies have been out of date on average, zero for a fresh one. Estimated.", Gauge, "by", nil, false},
		estimateTime: {"recrawl.estimate.time", "s", "When the estimates were made, as a Unix time.", Gauge, "", nil, false},
		budget:       {"recrawl.budget", "{visit}/d", "Visits a day that the plan of the schedule makes.", Gauge, "", nil, false},
		budgetUsed:   {"recrawl.budget.used", "{visit}/d", "Visits of the last day.", Gauge, "", nil, false},

		consumerEvents: {"recrawl.consumer.lag.events", "{event}", "Events that a consumer has yet to read, at most.", Gauge, "consumer", nil, false},
		consumerBytes:  {"recrawl.consumer.lag.size", "By", "Bytes of the segments that a consumer has not acknowledged.", Gauge, "consumer", nil, false},
		consumerAge:    {"recrawl.consumer.lag.age", "s", "How long ago the first segment was published that a consumer has not acknowledged.", Gauge, "consumer", nil, false},
		consumerLapses: {"recrawl.consumer.lapses", "{lapse}", "How often a consumer lost events, since it was added.", Counter, "consumer", nil, false},

		storeSize:  {"recrawl.store.size", "By", "Bytes of the store on disk.", Gauge, "part", nil, false},
		diskFree:   {"recrawl.disk.free", "By", "Free bytes on the disk of the store.", Gauge, "", nil, false},
		readErrors: {"recrawl.read.errors", "{error}", "Figures that could not be read; the others were.", Counter, "", nil, false},
	}
}

// Observe adds hooks to the options of a crawler that call record with the values of histograms, and
// with 1 for each stage that failed. Hooks that are set already are called, too. record must be fast:
// visits wait for it.
func Observe(o *recrawl.Options, record Record) {
	onVisit, onStage := o.Fetch.OnVisit, o.Hooks.Stage
	o.Fetch.OnVisit = func(v segment.Visit, p fetch.Progress) {
		if v.Outcome.Code.Asked() {
			record(visitDuration, "", v.Elapsed.Seconds())
			record(visitSize, "", float64(v.Bytes))
		}
		if onVisit != nil {
			onVisit(v, p)
		}
	}
	o.Hooks.Stage = func(ctx context.Context, name, segment string) (context.Context, func(error)) {
		end := func(error) {}
		if onStage != nil {
			ctx, end = onStage(ctx, name, segment)
		}
		began := time.Now()
		return ctx, func(err error) {
			record(stageDuration, name, time.Since(began).Seconds())
			if err != nil && !errors.Is(err, context.Canceled) {
				record(stageErrors, name, 1)
			}
			end(err)
		}
	}
}

// Store says how much room a crawl takes. pebblestore.DB and pgstore.DB are Stores.
type Store interface {
	// Usage returns the size of each part of the store in bytes, and how much is free on its disk; a
	// negative number means that this is not known.
	Usage(ctx context.Context) (parts map[string]int64, free int64, err error)
}

// Source reads the figures of a crawler that are not recorded as they happen. Its methods may be
// called from many goroutines at once.
type Source struct {
	crawler *recrawl.Crawler
	store   Store

	mu     sync.Mutex
	census *recrawl.Freshness

	reading sync.Mutex // guards the fields below
	read    []value
	readAt  time.Time
	errors  int
}

// NewSource returns the source of a crawler. The store may be nil.
func NewSource(crawler *recrawl.Crawler, store Store) *Source {
	return &Source{crawler: crawler, store: store}
}

// maxConsumers is how many consumers have series of their own; the figures of the others are
// added up under "all others".
const maxConsumers = 50

// Read records the counters and gauges as they are now, each once for each label. What cannot be
// read is left out and counted. It reads the marks of the change feed and lists the files of the store,
// at most once a second.
func (s *Source) Read(ctx context.Context, record Record) {
	status := s.crawler.Status()
	s.recordStatus(&status, record)
	s.mu.Lock()
	estimate := s.census
	s.mu.Unlock()
	if f := status.Freshness; f != nil && (estimate == nil || f.At.After(estimate.At)) {
		estimate = f
	}
	if estimate != nil {
		recordEstimate(estimate, record)
	}
	for _, v := range s.readStores(ctx) {
		record(v.instrument, v.label, v.value)
	}
}

// value is one that was recorded.
type value struct {
	instrument int
	label      string
	value      float64
}

// storesFresh is for how long the figures that are read from the stores are used again, so that a
// client that asks in a loop costs the crawl little.
const storesFresh = time.Second

// readStores returns the figures that are read from the stores, which one goroutine at a time does.
func (s *Source) readStores(ctx context.Context) []value {
	s.reading.Lock()
	defer s.reading.Unlock()
	if time.Since(s.readAt) < storesFresh {
		return s.read
	}
	var read []value
	record := func(instrument int, label string, v float64) { read = append(read, value{instrument, label, v}) }
	if err := s.recordConsumers(ctx, record); err != nil {
		s.errors++
	}
	if s.store != nil {
		sizes, free, err := s.store.Usage(ctx)
		if err != nil {
			s.errors++
		} else {
			for _, part := range slices.Sorted(maps.Keys(sizes)) {
				record(storeSize, part, float64(sizes[part]))
			}
			if free >= 0 {
				record(diskFree, "", float64(free))
			}
		}
	}
	record(readErrors, "", float64(s.errors))
	s.read, s.readAt = read, time.Now()
	return read
}

func (s *Source) recordStatus(status *recrawl.Status, record Record) {
	record(rounds, "", float64(status.Rounds))
	for code := protocol.Success; code <= protocol.Skipped; code++ {
		record(visits, code.String(), float64(status.Visits[code]))
	}
	record(received, "", float64(status.Bytes))
	if status.Stage != "" {
		record(stage, status.Stage, 1)
	}
	p := status.Fetch
	if status.Stage != "fetch" {
		p = fetch.Progress{}
	}
	record(queuePages, "", float64(p.Listed-p.Done))
	record(queueHosts, "", float64(p.Hosts))
	record(activeVisits, "", float64(p.InFlight))
	if !status.NextDue.IsZero() {
		record(nextDue, "", unix(status.NextDue))
	}
	record(damagedSegments, "", float64(len(s.crawler.Damaged())))
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func recordEstimate(f *recrawl.Freshness, record Record) {
	record(pages, "copies", float64(f.Copies))
	record(pages, "never", float64(f.Never))
	record(pages, "other", float64(f.Pages-f.Copies-f.Never))
	record(backlog, "overdue", float64(f.Overdue))
	record(backlog, "never", float64(f.Never))
	if f.Estimated > 0 {
		record(freshness, "pages", f.Outlook.Freshness)
		record(freshness, "importance", f.Weighted)
		record(copyAge, "pages", f.Age.Seconds())
		record(copyAge, "importance", f.WeightedAge.Seconds())
	}
	record(estimateTime, "", unix(f.At))
	if f.Budget > 0 {
		record(budget, "", f.Budget)
		record(budgetUsed, "", f.Used)
	}
}

func (s *Source) recordConsumers(ctx context.Context, record Record) error {
	all, err := s.crawler.Consumers(ctx)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	var other recrawl.ConsumerStatus
	for i, c := range all {
		if i >= maxConsumers {
			other.Events, other.Bytes, other.Lapses = other.Events+c.Events, other.Bytes+c.Bytes, other.Lapses+c.Lapses
			if other.Oldest.IsZero() || !c.Oldest.IsZero() && c.Oldest.Before(other.Oldest) {
				other.Oldest = c.Oldest
			}
			continue
		}
		recordConsumer(&c, record)
	}
	if len(all) > maxConsumers {
		other.Name = "all others" // no consumer can have this name
		recordConsumer(&other, record)
	}
	return nil
}

func recordConsumer(c *recrawl.ConsumerStatus, record Record) {
	record(consumerEvents, c.Name, float64(c.Events))
	record(consumerBytes, c.Name, float64(c.Bytes))
	age := 0.0
	if !c.Oldest.IsZero() {
		age = max(0, time.Since(c.Oldest).Seconds())
	}
	record(consumerAge, c.Name, age)
	record(consumerLapses, c.Name, float64(c.Lapses))
}

// censusShare is the part of the time that KeepCensus reads records.
const censusShare = 0.01

// KeepCensus reads all records of the crawl db from time to time, so that pages, backlog and, with a
// schedule that learns, freshness are exact and not those of the last plan. Without such a schedule
// they are only known this way. It reads at most a hundredth of the time, and at most every 5 minutes.
// It returns when ctx ends, or when the records cannot be read.
func (s *Source) KeepCensus(ctx context.Context) error {
	for {
		began := time.Now()
		f, err := s.crawler.Freshness(ctx, 0)
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.mu.Lock()
		s.census = &f
		s.mu.Unlock()
		select {
		case <-time.After(max(5*time.Minute, time.Duration(float64(time.Since(began))/censusShare))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
