package schedule

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// A Planner is a schedule that follows a [Plan] of the crawl as a whole, as [Learned] does. A
// recrawl.Crawler makes the plans, keeps the latest with the crawl, and hands it to the schedule
// by WithPlan; no round selects more than a budget above zero has left.
type Planner interface {
	PrioritySchedule
	// VisitsPerDay is the budget that plans are made for: see [Learned].Budget.
	VisitsPerDay() float64
	// CurrentPlan returns the plan that the schedule follows, nil if it has none.
	CurrentPlan() *Plan
	// WithPlan returns a schedule that follows the plan and is otherwise the same; the receiver
	// does not change. A type that embeds a Planner needs a WithPlan of its own, since the one
	// that it inherits returns the embedded schedule alone: see [ReplacePlan].
	WithPlan(p *Plan) Planner
	// NewSample begins a plan as of now, to follow the current one.
	NewSample(now time.Time) Sample
	// InLine reports whether the stored Priority of a record is one that this schedule gives at
	// a time. A Crawler replaces the others when it makes a plan: a page that another schedule, or a
	// wrong plan, has left behind might wait forever.
	InLine(d *crawldb.Datum, now time.Time) bool
}

// A Sample is shown all records of a crawl db, in any order, and makes a [Plan] from them. It is
// for use by one goroutine.
type Sample interface {
	// Add shows the sample a record, which it does not keep.
	Add(d *crawldb.Datum)
	// Plan makes the plan, with Made, Visits and Asked, which say when a new one is due: see
	// [Plan.For].
	Plan(o PlanOptions) *Plan
}

// An Estimator is a [Planner] that can tell how fresh copies are, and why it visits a page when it
// does: [Learned], and types that embed it. recrawl.Crawler.Freshness and Explain use it.
type Estimator interface {
	Planner
	NewCensus(now time.Time) *Census
	Explain(d *crawldb.Datum) Worth
	Fresh(d *crawldb.Datum, now time.Time) (probability float64, elapsed time.Duration)
	MaxIntervals() (set, inForce time.Duration)
}

var _ Estimator = Learned{}

// ReplacePlan is s.WithPlan(p), and returns an error if the result is a schedule of another type:
// then s embeds a Planner and has no WithPlan of its own. A value and a pointer to it are the same
// type in this respect.
func ReplacePlan(s Planner, p *Plan) (Planner, error) {
	next := s.WithPlan(p)
	if PlannerName(next) != PlannerName(s) {
		return nil, fmt.Errorf("schedule: WithPlan of a %T returns a %T: a type that embeds a schedule.Planner needs a WithPlan of its own", s, next)
	}
	return next, nil
}

// MadeBy reports whether the plan was made by a schedule of the type of s.
func (p *Plan) MadeBy(s Planner) bool {
	return cmp.Or(p.Planner, PlannerName(Learned{})) == PlannerName(s)
}

// PlannerName names the type of a schedule, for [Plan].Planner.
func PlannerName(s FetchSchedule) string {
	t := reflect.TypeOf(s)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	return t.PkgPath() + "." + t.String()[len(t.String())-len(t.Name()):]
}

// VisitsPerDay implements [Planner]: it returns Budget.
func (s Learned) VisitsPerDay() float64 { return s.Budget }

// CurrentPlan implements [Planner]: it returns Plan.
func (s Learned) CurrentPlan() *Plan { return s.Plan }

// WithPlan implements [Planner]: it replaces Plan.
func (s Learned) WithPlan(p *Plan) Planner {
	s.Plan = p
	return s
}
