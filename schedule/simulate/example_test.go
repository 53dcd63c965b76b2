package simulate_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

// Which interval to begin with, for a page that changes once a week?
func ExampleRun() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	pages := []simulate.Page{simulate.Every("http://example.org/", start, 365*day, 7*day)}
	for _, first := range []time.Duration{day, 30 * day} {
		r, err := simulate.Run(context.Background(), pages, schedule.Adaptive{Default: schedule.Default{DefaultInterval: first}}, simulate.Options{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.0f days: %v\n", first.Hours()/24, r.Total)
	}
	r, err := simulate.Run(context.Background(), pages, schedule.Default{DefaultInterval: 30 * day}, simulate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Pages[0].WriteTable(os.Stdout, 4); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 days: 91 visits, 52 of them with news; 52 changes, 0 missed and 1 not yet seen; fresh 68.2% of the time, 12h 9m old on average
	// 30 days: 65 visits, 43 of them with news; 52 changes, 9 missed and 1 not yet seen; fresh 46.3% of the time, 2d 13h old on average
	// http://example.org/
	// visit  time                 state               interval  next                 missed  change seen
	//     1  2026-01-01T00:00:00Z db_fetched               30d  2026-01-31T00:00:00Z      0
	//     2  2026-01-31T00:00:00Z db_fetched               30d  2026-03-02T00:00:00Z      3      23d old
	//     3  2026-03-02T00:00:00Z db_fetched               30d  2026-04-01T00:00:00Z      3      25d old
	//   ...  (9 more)
	//    13  2026-12-27T00:00:00Z db_fetched               30d  2027-01-26T00:00:00Z      3      24d old
	// 13 visits, 13 of them with news; 52 changes, 39 missed and 1 not yet seen; fresh 14.8% of the time, 11d 1h old on average
}

// Is it worthwhile to learn how often pages change? 500 pages, with a budget of a fetch of each in
// 30 days.
func ExampleCompare() {
	pages, err := simulate.Synthetic(simulate.Cho5, simulate.Zipf, 500, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	perDay := float64(len(pages)) / 30
	policies := []simulate.Policy{
		{Name: "every 30 days", Schedule: schedule.Default{}},
		simulate.Learning("learned", schedule.Learned{}),
		simulate.Optimum(),
	}
	outcomes, err := simulate.Compare(context.Background(), pages, policies, simulate.CrawlOptions{PerDay: perDay})
	if err != nil {
		fmt.Println(err)
		return
	}
	slices.SortFunc(outcomes, func(a, b simulate.Outcome) int { return cmp.Compare(b.Weighted, a.Weighted) })
	for _, o := range outcomes {
		fmt.Println(o.Policy)
	}
	// Output:
	// optimum, rates known
	// learned
	// every 30 days
}
