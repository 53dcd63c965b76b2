// Package otel exports the figures of a crawl and the spans of its rounds through OpenTelemetry, with
// attributes of the stable semantic conventions where there are such. It needs only the API: the SDK and
// its exporters are those of the program. Start with New.
package otel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// scope is the name of the instrumentation.
const scope = "github.com/recrawl/recrawl/metrics/otel"

// Options say where the telemetry goes. The zero value uses the global providers.
type Options struct {
	// Meters and Tracers are the providers; nil means the global one.
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
	// VisitSpans is the share of visits that get a span, if the trace of their round is sampled:
	// zero means a hundredth, negative none, and 1 all. They are chosen by counting. A span of a
	// visit names its URL, as the semantic conventions require; no metric does.
	VisitSpans float64
}

// Telemetry is the telemetry of a crawler. Its methods may be called from many goroutines at once.
type Telemetry struct {
	meter       metric.Meter
	tracer      trace.Tracer
	instruments []metrics.Instrument
	recorded    []recorded
	observed    []metric.Float64Observable
	unlabelled  metric.MeasurementOption
	every       uint64 // a visit of so many gets a span; zero: none
	visits      atomic.Uint64
	fetching    atomic.Pointer[context.Context] // that of the fetch under way
}

// recorded is an instrument whose values are recorded one by one; one field is set.
type recorded struct {
	histogram metric.Float64Histogram
	counter   metric.Float64Counter
}

// New returns the telemetry of a crawler that is yet to be made: call Observe with its options, then
// recrawl.New, then Watch. The error is that of the provider.
func New(o Options) (*Telemetry, error) {
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	t := &Telemetry{meter: o.Meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), tracer: o.Tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), instruments: metrics.Instruments(), unlabelled: metric.WithAttributeSet(*attribute.EmptySet())}
	switch {
	case o.VisitSpans == 0:
		t.every = 100
	case o.VisitSpans > 0:
		t.every = uint64(max(1, math.Round(1/o.VisitSpans)))
	}
	t.recorded = make([]recorded, len(t.instruments))
	t.observed = make([]metric.Float64Observable, len(t.instruments))
	for i := range t.instruments {
		if err := t.makeInstrument(i); err != nil {
			return nil, fmt.Errorf("otel: %w", err)
		}
	}
	return t, nil
}

func (t *Telemetry) makeInstrument(i int) (err error) {
	in := &t.instruments[i]
	unit, help := metric.WithUnit(in.Unit), metric.WithDescription(in.Help)
	switch {
	case in.Kind == metrics.Histogram:
		t.recorded[i].histogram, err = t.meter.Float64Histogram(in.Name, unit, help, metric.WithExplicitBucketBoundaries(in.Buckets...))
	case in.Recorded:
		t.recorded[i].counter, err = t.meter.Float64Counter(in.Name, unit, help)
	case in.Kind == metrics.Counter:
		t.observed[i], err = t.meter.Float64ObservableCounter(in.Name, unit, help)
	default:
		t.observed[i], err = t.meter.Float64ObservableGauge(in.Name, unit, help)
	}
	return err
}

// labelled returns the attribute of a value as an option.
func (t *Telemetry) labelled(i int, label string) metric.MeasurementOption {
	if t.instruments[i].Label == "" {
		return t.unlabelled
	}
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(t.instruments[i].Label, label)))
}

// Observe adds hooks to the options of a crawler that is yet to be made, for spans and histograms.
// Hooks that are set already are called, too. A round has a span, with one for each of its stages and
// for some of its visits. No trace context is sent to the servers that are crawled.
func (t *Telemetry) Observe(o *recrawl.Options) {
	metrics.Observe(o, t.record)
	onVisit, onStage := o.Fetch.OnVisit, o.Hooks.Stage
	o.Fetch.OnVisit = func(v segment.Visit, p fetch.Progress) {
		t.visited(&v)
		onVisit(v, p)
	}
	o.Hooks.Stage = func(ctx context.Context, stage, segment string) (context.Context, func(error)) {
		ctx, span := t.tracer.Start(ctx, "recrawl "+stage, trace.WithAttributes(attribute.String("recrawl.stage", stage)))
		if segment != "" {
			span.SetAttributes(attribute.String("recrawl.segment", segment))
		}
		if stage == "fetch" {
			t.fetching.Store(&ctx)
		}
		ctx, end := onStage(ctx, stage, segment)
		return ctx, func(err error) {
			end(err)
			if err != nil && !errors.Is(err, context.Canceled) {
				span.SetStatus(codes.Error, err.Error())
				span.SetAttributes(semconv.ErrorType(err))
			}
			span.End()
		}
	}
}

func (t *Telemetry) record(i int, label string, value float64) {
	if r := t.recorded[i]; r.histogram != nil {
		r.histogram.Record(context.Background(), value, t.labelled(i, label))
	} else {
		r.counter.Add(context.Background(), value, t.labelled(i, label))
	}
}

// visited makes the span of a visit that has ended, if it gets one.
func (t *Telemetry) visited(v *segment.Visit) {
	if t.every == 0 || !v.Outcome.Code.Asked() || t.visits.Add(1)%t.every != 0 {
		return
	}
	ctx := t.fetching.Load()
	if ctx == nil || !trace.SpanFromContext(*ctx).IsRecording() {
		return
	}
	end := time.Now()
	_, span := t.tracer.Start(*ctx, "GET", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(end.Add(-v.Elapsed)), trace.WithAttributes(visitAttributes(v)...))
	if v.Outcome.Code == protocol.Failed || v.Outcome.Status >= 400 {
		span.SetStatus(codes.Error, v.Outcome.Reason)
	}
	span.End(trace.WithTimestamp(end))
}

func visitAttributes(v *segment.Visit) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodGet, attribute.String("recrawl.outcome", v.Outcome.Code.String()), attribute.Int64("recrawl.received", v.Bytes),
	}
	if u, err := url.Parse(v.URL); err == nil {
		if u.User != nil {
			u.User = url.UserPassword("REDACTED", "REDACTED")
		}
		attributes = append(attributes, semconv.URLFull(u.String()), semconv.ServerAddress(u.Hostname()), semconv.ServerPort(portOf(u)))
	}
	switch status := v.Outcome.Status; {
	case status >= 400:
		attributes = append(attributes, semconv.HTTPResponseStatusCode(status), semconv.ErrorTypeKey.String(strconv.Itoa(status)))
	case status > 0:
		attributes = append(attributes, semconv.HTTPResponseStatusCode(status))
	case v.Outcome.Code == protocol.Failed:
		attributes = append(attributes, semconv.ErrorTypeKey.String(v.Outcome.Code.String()))
	}
	return attributes
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// Watch makes all other figures those of a crawler, which must stay open until stop was called. The
// store, such as a pebblestore.DB, may be nil. See [metrics.Source.KeepCensus] for exact figures of
// pages and backlog.
func (t *Telemetry) Watch(crawler *recrawl.Crawler, store metrics.Store) (s *metrics.Source, stop func() error, err error) {
	s = metrics.NewSource(crawler, store)
	var all []metric.Observable
	for _, o := range t.observed {
		if o != nil {
			all = append(all, o)
		}
	}
	registration, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s.Read(ctx, func(i int, label string, value float64) { o.ObserveFloat64(t.observed[i], value, t.labelled(i, label)) })
		return nil
	}, all...)
	if err != nil {
		return nil, nil, fmt.Errorf("otel: %w", err)
	}
	return s, registration.Unregister, nil
}
