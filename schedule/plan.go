package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Plan is what a [Planner] knows of the crawl as a whole. It is made from a sample of the
// records: see [Sample]. Most fields are those of [Learned]; another Planner has Extra. A nil Plan knows nothing. A Plan must
// not be changed while in use.
type Plan struct {
	// Made is when it was made, Begun when the first plan of the crawl was, and Visits
	// how many visits the crawl had made then.
	Made, Begun time.Time
	Visits      int64
	// Budget is how many visits a day it is for, and Scale by what factor it plans more
	// than that, because visits come later than they are due. Asked is the Budget that
	// the schedule had: a different one requires a new plan.
	Budget, Scale float64
	Asked         float64 `json:",omitempty"`
	// Mu is what a visit must be worth, in units of importance times days: the
	// Lagrange multiplier of the budget. Zero means that there is no budget.
	Mu float64
	// HostMu is the same for hosts that politeness does not allow to be visited as
	// often as Mu would have it. It is greater than Mu.
	HostMu map[string]float64 `json:",omitempty"`
	// Mean is the mean importance of the pages; zero means 1.
	Mean float64
	// Prior is what is expected of a page before any visit has found it changed or
	// unchanged; the zero Rate stands for a change in 30 days, with the weight of
	// half a change. HostPrior and KindPrior are the priors of hosts, and of kinds
	// of content ("page", "feed", "text", "document", "media", "other"), that are
	// known to differ.
	Prior     Rate
	HostPrior map[string]Rate `json:",omitempty"`
	KindPrior map[string]Rate `json:",omitempty"`
	// Drift is by what factor all pages have come to change more often, HostDrift the same
	// for the pages of some hosts.
	Drift     Drift
	HostDrift map[string]Drift `json:",omitempty"`
	// Homogeneity is how similarly pages change.
	Homogeneity Homogeneity `json:"Likeness"` // the name in stored plans
	// Gain is the share of importance expected to be fresh in excess of what a constant interval
	// keeps. Uniform says that this is too little to tell pages apart: all are visited as if they
	// changed alike. Apart is for how many days they have been told apart, and Returned says
	// that this was tried and not worth it.
	Gain     float64 `json:",omitempty"`
	Uniform  bool    `json:"Even,omitempty"` // the name in stored plans
	Apart    float64 `json:",omitempty"`
	Returned bool    `json:",omitempty"`
	// Doubt says that some pages, or hosts, have signatures that see noise, so that a page that has always changed is
	// not believed to change often until visits that came soon have shown it.
	Doubt bool `json:",omitempty"`
	// HostSignals is what signals are worth, for hosts that have some and for pages
	// that had one. They count in plans that [Sample.Plan] or [DecodePlan] has made.
	HostSignals map[string]SignalQuality `json:",omitempty"`
	// Pages is how many pages it covers, of which New were never visited. Backlog
	// is how many of the others were due when it was made.
	Pages, New, Backlog float64
	// Gone is how many are gone.
	Gone float64 `json:",omitempty"`
	// AllNew says that the budget allows the greatest intervals for New pages as well, or that these are few.
	AllNew bool `json:",omitempty"`
	// Needed is how many visits a day it takes. It exceeds the budget if that is
	// not enough for the greatest intervals.
	Needed float64
	// Stretch is what the greatest intervals are multiplied by; zero means 1. It is more
	// than 1 if the budget is not enough for them: then pages take turns, none later than
	// that. It is less than 1 if nothing else is worth a visit, so that the budget does not
	// go unused.
	Stretch float64 `json:",omitempty"`
	// Unused is for how many days part of the budget has gone unused with nothing
	// waiting.
	Unused float64 `json:",omitempty"`
	// Counted is the time from which visits are counted to see whether the budget is used,
	// CountedVisits how many the crawl had made by then; zero stands for Made and Visits.
	Counted       time.Time `json:",omitzero"`
	CountedVisits int64     `json:",omitempty"`
	// Outlook is how up to date the copies were when it was made; nil unless
	// PlanOptions.Outlook asked for it.
	Outlook *Outlook `json:",omitempty"`
	// Planner is the [PlannerName] of the schedule that it was made for, set by a
	// recrawl.Crawler, which makes a new plan for another one; empty stands for Learned. Extra
	// is for that schedule to use.
	Planner string          `json:",omitempty"`
	Extra   json.RawMessage `json:",omitempty"`

	signalModels map[string]*signalModel // by host: see prepare
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

// muOf returns the threshold of a host.
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

// Encode returns the plan as text, which [DecodePlan] reads, to be kept with the
// crawl.
func (p *Plan) Encode() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("schedule: encode a plan: %w", err)
	}
	return string(b), nil
}

// ErrNotPlan says that a text was not returned by [Plan.Encode].
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

// check: JSON has no NaN or infinity.
func (p *Plan) check() error {
	for _, f := range []float64{p.Budget, p.Scale, p.Mu, p.Mean, p.Pages, p.New, p.Backlog, p.Needed, p.Stretch, p.Unused, p.Apart, p.Gone} {
		if f < 0 || f > math.MaxFloat64/1e10 {
			return errors.New("a number is out of range")
		}
	}
	if !p.Drift.valid() {
		return errors.New("a drift is out of range")
	}
	if !p.Homogeneity.valid() {
		return errors.New("a likeness is out of range")
	}
	if !(math.Abs(p.Gain) < 1e10) {
		return errors.New("a gain is out of range")
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

// Holds returns for how long the plan holds, from Made on: a day, but in a young crawl only for as long
// as the crawl was old, and at least a minute.
func (p *Plan) Holds() time.Duration {
	return max(time.Minute, min(p.Made.Sub(p.Begun), day))
}

// every returns the mean interval of pages that are not known to be gone, in days.
func (p *Plan) every() float64 {
	if p == nil || !(p.Budget > 0) {
		return 30
	}
	return p.live() / p.Budget
}

// live returns how many pages are not known to be gone, at least one.
func (p *Plan) live() float64 { return max(p.Pages-p.Gone, 1) }

// stretch returns Stretch, or 1 if there is none.
func (p *Plan) stretch() float64 {
	if p == nil || !(p.Stretch > 0) {
		return 1
	}
	return p.Stretch
}
