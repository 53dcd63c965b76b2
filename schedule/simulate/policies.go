package simulate

import (
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// Optimum is the policy by which others are measured: it knows the rates of change, and keeps
// as much of the importance fresh as the budget can. For a page with a history, the rate is the
// mean while the page exists; a policy that follows its present changes may do better.
func Optimum() Policy {
	return Policy{Name: "optimum, rates known", Allocation: optimal, Order: ByValue}
}

// SignalOptimum is the optimum that also knows what signs of changes are worth. It cannot tell
// meaningless signs ([Signals].PerDay) from others.
func SignalOptimum() Policy {
	return Policy{Name: "optimum, rates and signals known", Allocation: optimal, Order: ByValue, Signals: true}
}

// Learning returns the policy of a schedule that plans, such as schedule.Learned, with plans for
// the budget as a recrawl.Crawler makes them.
func Learning(name string, s schedule.Planner) Policy {
	return Policy{Name: name, Schedule: s, Plan: func(old schedule.FetchSchedule, k PlanInput) (schedule.FetchSchedule, error) {
		s, ok := old.(schedule.Planner)
		if !ok {
			return nil, fmt.Errorf("the schedule is a %T", old)
		}
		sample := s.NewSample(k.Now)
		for i := range k.Records {
			sample.Add(&k.Records[i])
		}
		return schedule.ReplacePlan(s, sample.Plan(schedule.PlanOptions{Budget: k.PerDay, Visits: k.Visits, Signals: k.Signals}))
	}}
}

// constantInterval returns the policy that visits all pages in turn, at the one interval at which those
// that have appeared and are not gone (pages of them at first) take a budget of perDay fetches.
// Without a budget it is 30 days.
func constantInterval(pages int, perDay float64) Policy {
	const day = 24 * time.Hour
	p := Policy{Name: "constant interval", Order: OldestFirst}
	at := func(interval time.Duration) alike {
		return alike{schedule.Default{DefaultInterval: interval, MaxInterval: 100 * 365 * day}}
	}
	if p.Schedule = at(30 * day); perDay > 0 {
		p.Schedule = at(inDays(float64(pages) / perDay))
		p.Plan = func(old schedule.FetchSchedule, k PlanInput) (schedule.FetchSchedule, error) {
			there := 0
			for i := range k.Records {
				if k.Records[i].Status != crawldb.Gone {
					there++
				}
			}
			if there == 0 {
				return old, nil
			}
			return at(inDays(float64(there) / k.PerDay)), nil
		}
	}
	return p
}

// alike gives all existing pages its own interval, whatever that of the record is.
type alike struct{ schedule.Default }

func (s alike) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d.Interval = s.DefaultInterval
	return s.Default.Fetched(d, v)
}

// Stock returns the stock policies for a budget of perDay fetches and a number of pages, and
// those that know the rates of change, the optimum last.
func Stock(pages int, perDay float64) []Policy {
	nutch := func(sync float64) schedule.FetchSchedule {
		return schedule.Adaptive{Default: schedule.Default{NutchCompat: true}, SyncRate: sync}
	}
	p := []Policy{
		Learning("learned", schedule.Learned{}),
		{Name: "default, 30 days", Schedule: schedule.Default{}, Order: OldestFirst},
		constantInterval(pages, perDay),
		{Name: "adaptive, by score", Schedule: schedule.Adaptive{}},
		{Name: "adaptive, oldest first", Schedule: schedule.Adaptive{}, Order: OldestFirst},
		{Name: "adaptive, no sync, oldest first", Schedule: schedule.Adaptive{SyncRate: -1}, Order: OldestFirst},
		{Name: "mime adaptive, oldest first", Schedule: schedule.MimeAdaptive{Types: map[string]schedule.AdaptiveRates{"text/html": {Inc: 0.5, Dec: 0.2}}}, Order: OldestFirst},
		{Name: "Nutch adaptive, by score", Schedule: nutch(0), NutchCompat: true},
		{Name: "Nutch adaptive, no sync, by score", Schedule: nutch(-1), NutchCompat: true},
		{Name: "Nutch adaptive, oldest first", Schedule: nutch(0), NutchCompat: true, Order: OldestFirst},
		{Name: "Nutch adaptive, no sync, oldest first", Schedule: nutch(-1), NutchCompat: true, Order: OldestFirst},
		{Name: "Nutch adaptive, no sync, at random", Schedule: nutch(-1), NutchCompat: true, Order: AtRandom},
	}
	if perDay > 0 {
		p = append(p,
			Policy{Name: "proportional, rates known", Allocation: proportional, Order: OldestFirst},
			Policy{Name: "Azar, rates known", Allocation: azar, Order: OldestFirst},
			Policy{Name: "LambdaCrawl, rates known", Allocation: lambdaCrawl, Order: OldestFirst},
			Optimum())
	}
	return p
}
