package schedule

import (
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Signal is a signal that a page has changed since its last visit: what a sitemap or a
// feed says, or a service.
type Signal struct {
	// Time is the earliest time for a visit because of it.
	Time time.Time
	// Precision is the share of such signals that are true, Recall the share of
	// changes that have one.
	Precision, Recall float64
}

// A SignalSchedule knows what a signal is worth, as [Learned] does.
type SignalSchedule interface {
	FetchSchedule
	// Signalled returns the record as changed by a signal, which may move FetchTime.
	Signalled(d crawldb.Datum, g Signal) crawldb.Datum
}

// Signalled returns the record as changed by a signal, and whether the schedule is a
// [SignalSchedule].
func Signalled(s FetchSchedule, d crawldb.Datum, g Signal) (crawldb.Datum, bool) {
	l, ok := s.(SignalSchedule)
	if !ok {
		return d, false
	}
	return l.Signalled(d, g), true
}

// Signalled counts a signal, and moves the next fetch to an earlier time if that makes an
// earlier visit worthwhile. A sign counts as the passing of time: as much as it would
// take, at the rate of changes without a signal, until the page is as likely to have changed
// as the signal says:
//
//	β = -ln(1-precision) / ((1-recall)·rate)
//
// (Busa-Fekete et al., 2025, arXiv:2502.02430.) So several signals add up, and false
// ones count for little. If the plan knows what the signals of the host are worth (see
// Plan.HostSignals), that takes precedence over what the signal says of itself, and the visit is
// due when the time and the signals since the last one make it worth the threshold: a page that
// is not worth any visit is left alone, whatever the signals say.
func (s Learned) Signalled(d crawldb.Datum, g Signal) crawldb.Datum {
	if _, ok := fixedInterval(d); ok || d.LastFetch.IsZero() || !(g.Precision > 0) {
		return d
	}
	n := SignalsOf(&d) + 1
	setSignals(&d, n)
	l, seen := s.rate(&d)
	least, most := s.bounds(d.URL)
	var at time.Time
	if known, w := s.Plan.hostSignalModel(d.URL); known {
		if w == nil {
			return d
		}
		perDay := s.Plan.pace(&l, l.Rate, seen).PerDay()
		x := w.inverse(s.threshold(d.URL) * perDay / s.weight(&d, float64(d.Score)))
		if math.IsInf(x, 1) {
			return d
		}
		at = since(&d, d.LastFetch)
		if wait := (x - float64(n)*w.beta) / perDay * day.Seconds(); wait > 0 {
			at = at.Add(seconds(wait, 0, most))
		}
	} else {
		unseen := 1 - max(0, min(g.Recall, 0.99))
		beta := -math.Log1p(-min(g.Precision, 1)) / (unseen * l.PerDay())
		at = d.FetchTime.Add(-seconds(beta*day.Seconds(), 0, most))
	}
	for _, no := range []time.Time{g.Time, d.LastFetch.Add(least)} {
		if at.Before(no) {
			at = no
		}
	}
	if at.Before(d.FetchTime) {
		d.FetchTime = at
	}
	return d
}

// hostSignalModel returns whether a host is known to have signals, and what they are worth; nil
// if that is nothing.
func (p *Plan) hostSignalModel(url string) (known bool, w *signalModel) {
	if p == nil || len(p.HostSignals) == 0 {
		return false, nil
	}
	host := crawldb.Host(url)
	_, known = p.HostSignals[host]
	return known, p.signalModels[host]
}

// knowsSignals reports whether it is known what the signals of a host are worth.
func (p *Plan) knowsSignals(url string) bool {
	known, _ := p.hostSignalModel(url)
	return known
}
