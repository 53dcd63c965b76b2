package simulate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Compare crawls a population with each of several policies, as many at a time as there
// are processors, and returns the outcomes in the order of the policies.
func Compare(ctx context.Context, pages Population, policies []Policy, o CrawlOptions) ([]Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]Outcome, len(policies))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(policies)) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(policies) || ctx.Err() != nil {
					return
				}
				var err error
				if out[i], err = Crawl(ctx, pages, policies[i], o); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// Budget is a budget and the outcomes within it.
type Budget struct {
	PerDay   float64
	Outcomes []Outcome
}

// Curve compares policies within one budget after the other. The policies may depend on
// the budget; their names and their number do not.
func Curve(ctx context.Context, pages Population, policies func(perDay float64) []Policy, o CrawlOptions, budgets []float64) ([]Budget, error) {
	var curve []Budget
	for _, perDay := range budgets {
		o.PerDay = perDay
		out, err := Compare(ctx, pages, policies(perDay), o)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i].Records, out[i].Pages, out[i].Timeline = nil, nil, nil // there may be many budgets
		}
		curve = append(curve, Budget{perDay, out})
	}
	return curve, nil
}

// WriteComparison prints a line for each outcome. If one of them has the name of [Optimum]
// or of [constantInterval], fresh importance is also shown as a share of that of this one.
func WriteComparison(w io.Writer, outcomes []Outcome) error {
	b := bufio.NewWriter(w)
	width := len("policy")
	best, constant := 0.0, 0.0
	for i := range outcomes {
		o := &outcomes[i]
		width = max(width, len(o.Policy))
		switch o.Policy {
		case Optimum().Name:
			best = o.Weighted
		case constantInterval(1, 0).Name:
			constant = o.Weighted
		}
	}
	share := func(part, of float64) string {
		if of > 0 {
			return fmt.Sprintf("%.1f%%", 100*part/of)
		}
		return "-"
	}
	fmt.Fprintf(b, "%-*s %9s %7s %8s %7s %7s %8s %8s %10s %9s %8s %8s\n", width, "", "important", "of the", "of the", "at", "pages", "age, by", "age, by", "fetches", "a page", "starved", "left")
	fmt.Fprintf(b, "%-*s %9s %7s %8s %7s %7s %8s %8s %10s %9s %8s %8s\n", width, "policy", "fresh", "optimum", "constant", "first", "fresh", "import.", "page", "", "every", "", "alone")
	for i := range outcomes {
		o := &outcomes[i]
		fmt.Fprintf(b, "%-*s %9.4f %7s %8s %7.4f %7.4f %8s %8s %10d %9s %7.1f%% %8s\n", width, o.Policy, o.Weighted, share(o.Weighted, best), share(o.Weighted, constant), o.First, o.Freshness,
			inUnits(o.WeightedAge), inUnits(o.Age), o.Fetches, inUnits(o.Every), 100*o.Starved, inUnits(o.Longest))
	}
	return b.Flush()
}

// WriteCurve prints the share of importance that is fresh at each budget, one policy per
// line.
func WriteCurve(w io.Writer, pages int, curve []Budget) error {
	if len(curve) == 0 {
		return nil
	}
	b := bufio.NewWriter(w)
	width := len("a page is fetched every")
	for _, o := range curve[0].Outcomes {
		width = max(width, len(o.Policy))
	}
	fmt.Fprintf(b, "%-*s", width, "a page is fetched every")
	for _, c := range curve {
		fmt.Fprintf(b, " %8s", inUnits(inDays(float64(pages)/c.PerDay)))
	}
	fmt.Fprintln(b)
	for i, o := range curve[0].Outcomes {
		fmt.Fprintf(b, "%-*s", width, o.Policy)
		for _, c := range curve {
			fmt.Fprintf(b, " %8.4f", c.Outcomes[i].Weighted)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// inUnits is a time in days, or hours if it is short.
func inUnits(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 2*time.Hour:
		return fmt.Sprintf("%.1fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1fh", d.Hours())
	}
	return fmt.Sprintf("%.1fd", days(d))
}
