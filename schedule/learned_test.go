package schedule_test

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/scheduletest"
)

func TestLearnedKit(t *testing.T) {
	plan := &schedule.Plan{Mu: 3, HostMu: map[string]float64{"host1.example": 40}, Mean: 1, HostPrior: map[string]schedule.Rate{"host2.example": {Shape: 1, Days: 2}}}
	for name, s := range map[string]schedule.Learned{
		"zero":   {},
		"plan":   {Plan: plan},
		"bounds": {Plan: plan, MinInterval: -1, Default: schedule.Default{MaxInterval: 10 * 24 * time.Hour}, HostIntervals: map[string]schedule.Bounds{"host3.example": {Min: time.Hour, Max: 2 * time.Hour}}},
	} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Run(t, scheduletest.Harness{New: func() schedule.FetchSchedule { return s }, Seed: 7})
		})
	}
}

// The cost of a record: what an update asks of the schedule for each visit.
func BenchmarkLearned(b *testing.B) {
	s := schedule.Learned{Plan: &schedule.Plan{Mu: 3, Mean: 1}}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := s.Init(crawldb.Datum{URL: "https://www.example.com/section/page-17.html", Status: crawldb.Fetched, Score: 0.3, Signature: []byte{1}}, at)
	d.Meta = crawldb.MetaOf("opic.cash", "12345678", "opic.history", "1234567812345678")
	d = s.Fetched(d, schedule.Visit{Time: at})
	var f schedule.FetchSchedule = s
	var n crawldb.Datum
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v := schedule.Visit{Time: at.Add(7 * 24 * time.Hour), PrevFetch: at, Change: schedule.Changed + schedule.Change(i%2), ContentType: "text/html"}
		n = f.Fetched(d, v)
		n.Priority = schedule.Priority(f, &n, n.Score)
	}
}
