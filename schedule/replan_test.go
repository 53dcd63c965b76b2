package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Every plan can be read again, whatever the pages and budgets: a crawl that lost its plan with
// its process would have a different result.
func TestWhatIsPlannedCanBeRead(t *testing.T) {
	curves := 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := Learned{Budget: math.Exp(rnd.Float64()*24 - 8)}
		if seed%8 == 0 {
			s.MaxInterval = -1
		}
		sample := s.NewSample(at)
		for i := range 1 + rnd.IntN(30) {
			visited := at.Add(-time.Duration(rnd.IntN(60)) * day)
			d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://h%d.example/%d", rnd.IntN(3), i), Status: crawldb.Fetched, Score: float32(math.Exp(rnd.NormFloat64() * 3))}, visited)
			for n := range rnd.IntN(6) {
				v := Visit{Time: visited, Change: []Change{Unchanged, Changed}[rnd.IntN(2)]}
				if n > 0 {
					v.PrevFetch = d.LastFetch
				}
				d = s.Fetched(d, v)
				d.LastFetch, d.Signature = visited, []byte{1}
				visited = visited.Add(time.Duration(rnd.IntN(1000)) * time.Hour / 24)
			}
			if d.LastFetch.IsZero() {
				d.Status = crawldb.Unfetched
			}
			sample.Add(&d)
		}
		o := PlanOptions{Visits: int64(rnd.IntN(100)), Outlook: true}
		if most := math.Exp(rnd.Float64()*20 - 8); rnd.IntN(2) == 0 {
			o.Hosts = func(string) float64 { return most }
		}
		p := sample.Plan(o)
		if p.Outlook.Forecast != nil {
			curves++
		}
		text, err := p.Encode()
		if err == nil {
			_, err = DecodePlan(text)
		}
		if err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
		}
	}
	if curves < 100 {
		t.Errorf("only %d forecasts", curves)
	}
}
