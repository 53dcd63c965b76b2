package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Plan is what a [Learned] schedule is told of the crawl as a whole. It is made of a
// sample of the records: see [Sample.Plan]. The nil Plan knows nothing. It must not
// be changed while it is in use.
type Plan struct {
	// Made is when it was made, Begun when the first plan of the crawl was, and Visits
	// how many visits the crawl had made then.
	Made, Begun time.Time
	Visits      int64
	// Budget is how many visits a day it is for, and Scale by how much more it plans
	// than that, because of visits that come later than they are due. Asked is what the
	// schedule had for its Budget: another asks for another plan.
	Budget, Scale float64
	Asked         float64 `json:",omitempty"`
	// Mu is what a visit must be worth, in units of importance times days: the
	// Lagrange multiplier of the budget. Zero means that there is no budget.
	Mu float64
	// HostMu is that of hosts that can be visited less often than they would be by
	// Mu, because of their politeness. It is greater than Mu.
	HostMu map[string]float64 `json:",omitempty"`
	// Mean is the mean importance of the pages; zero means 1.
	Mean float64
	// Prior is what is expected of a page before a visit found it changed or not;
	// the zero Rate stands for a change in 30 days, with the weight of half a change.
	// HostPrior and KindPrior are those of hosts, and of kinds of content ("page",
	// "feed", "text", "document", "media", "other"), that are known to differ.
	Prior     Rate
	HostPrior map[string]Rate `json:",omitempty"`
	KindPrior map[string]Rate `json:",omitempty"`
	// Drift is by how much all pages change more often than they once did, HostDrift by how
	// much those of some hosts do.
	Drift     Drift
	HostDrift map[string]Drift `json:",omitempty"`
	// Likeness is how far pages change alike.
	Likeness Likeness
	// Gain is by what share more importance is expected to be fresh than by a constant interval.
	// Even says that this is not worth telling pages apart: all are visited as if they changed
	// alike. Apart is for how many days they have been told apart, and Returned says that it
	// was tried, and not worth it.
	Gain     float64 `json:",omitempty"`
	Even     bool    `json:",omitempty"`
	Apart    float64 `json:",omitempty"`
	Returned bool    `json:",omitempty"`
	// Noise is how many times a day the pages of noisy hosts are taken to change, by the name of
	// the host or, without a name, of all others: once between two visits if all had as many, whatever
	// visits find. Zero is for a host that is not noisy, where all others are. If pages are not told
	// apart none is taken to change more often. See [Noisy].
	Noise map[string]float64 `json:",omitempty"`
	// HostSignals is what the signs of the changes of pages are worth, of hosts that have some
	// and for the pages of which there was one. They count in plans that [Sample.Plan] or
	// [DecodePlan] has made.
	HostSignals map[string]Signals `json:",omitempty"`
	// Pages is for how many pages it is, those among them that were never visited
	// being New. Backlog is how many others were due when it was made.
	Pages, New, Backlog float64
	// Needed is how many visits a day it comes to. It exceeds the budget if that is
	// not enough for the greatest intervals.
	Needed float64
	// Stretch is what the greatest intervals are multiplied by; zero means 1. It is more if
	// the budget is not enough for them: then pages are late, each by no more than that
	// in turn. It is less if nothing else is worth a visit, and the budget is not to be
	// left unused.
	Stretch float64 `json:",omitempty"`
	// Unused is for how many days part of the budget has been left unused, with nothing
	// waiting.
	Unused float64 `json:",omitempty"`
	// Counted is since when visits are counted to see whether the budget is used, CountedVisits how
	// many the crawl had made then; zero stands for Made and Visits.
	Counted       time.Time `json:",omitzero"`
	CountedVisits int64     `json:",omitempty"`
	// Outlook is how up to date the copies were when it was made, if whoever made it has
	// set it: see [Sample.Outlook].
	Outlook *Outlook `json:",omitempty"`

	worth map[string]*signalled // by host: see prepare
}

func (p *Plan) mu(url string) float64 {
	if p == nil {
		return 0
	}
	if len(p.HostMu) > 0 {
		return p.muOf(crawldb.Host(url))
	}
	return p.Mu
}

// own reports whether the host of a page has a threshold of its own.
func (p *Plan) own(url string) bool {
	if p == nil || len(p.HostMu) == 0 {
		return false
	}
	_, ok := p.HostMu[crawldb.Host(url)]
	return ok
}

// muOf is the threshold of a host.
func (p *Plan) muOf(host string) float64 { return max(p.Mu, p.HostMu[host]) }

func (p *Plan) mean() float64 {
	if p == nil || !(p.Mean > 0) {
		return 1
	}
	return p.Mean
}

func (p *Plan) prior(url string, k kind) Rate {
	if p == nil {
		return Rate{0.5, 15}
	}
	if len(p.HostPrior) > 0 {
		if r := p.HostPrior[crawldb.Host(url)]; r.Known() {
			return r
		}
	}
	if len(p.KindPrior) > 0 {
		if r := p.KindPrior[k.String()]; r.Known() {
			return r
		}
	}
	if p.Prior.Known() {
		return p.Prior
	}
	return Rate{0.5, 15}
}

// Encode returns the plan as text, which [DecodePlan] reads: for who keeps it where
// the crawl is kept.
func (p *Plan) Encode() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("schedule: encode a plan: %w", err)
	}
	return string(b), nil
}

// ErrNotPlan says that a text is none that [Plan.Encode] returned.
var ErrNotPlan = errors.New("schedule: not a plan")

// DecodePlan reads what [Plan.Encode] returned. Any error is [ErrNotPlan].
func DecodePlan(text string) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	p.prepare(nil)
	return &p, nil
}

// check: JSON has no number that is none.
func (p *Plan) check() error {
	for _, f := range []float64{p.Budget, p.Scale, p.Mu, p.Mean, p.Pages, p.New, p.Backlog, p.Needed, p.Stretch, p.Unused, p.Apart} {
		if f < 0 || f > math.MaxFloat64/1e10 {
			return errors.New("a number is out of range")
		}
	}
	if !p.Drift.valid() {
		return errors.New("a drift is out of range")
	}
	if !p.Likeness.valid() {
		return errors.New("a likeness is out of range")
	}
	if !(math.Abs(p.Gain) < 1e10) {
		return errors.New("a gain is out of range")
	}
	for _, f := range p.Noise {
		if !(f >= 0 && f < 1e10) {
			return errors.New("a rate of noise is out of range")
		}
	}
	for _, f := range p.HostDrift {
		if !f.valid() {
			return errors.New("a drift is out of range")
		}
	}
	if !p.Outlook.valid() {
		return errors.New("a curve is out of range")
	}
	for _, g := range p.HostSignals {
		if !(g.Precision >= 0 && g.Precision <= 1 && g.Recall >= 0 && g.Recall <= 1) {
			return errors.New("a precision or recall is out of range")
		}
	}
	return nil
}

// stretch is Stretch where there is a plan.
func (p *Plan) stretch() float64 {
	if p == nil || !(p.Stretch > 0) {
		return 1
	}
	return p.Stretch
}
