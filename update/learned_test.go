package update_test

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/update"
)

// What a claim moves depends on how often those of the host were true; the same
// claim counts once, and a visit that finds it false is a visit like another.
func TestSignalsMoveALearnedVisit(t *testing.T) {
	o := update.Options{Now: func() time.Time { return noon }, Schedule: schedule.Learned{}}
	at := func(l hostdb.SignalStats, h *crawldb.SitemapEntry) *crawldb.Datum {
		old := known(crawldb.Fetched, 0, "A")
		old.LeasedBy, old.LeasedUntil = "", time.Time{}
		old.LastFetch, old.Interval, old.FetchTime = noon.Add(-day), 40*day, noon.Add(39*day)
		return update.Next(&old, update.Input{URL: page, Segment: seg, SitemapEntry: h, Trusted: l.Trusted(), Signals: l}, o)
	}
	news := claim(noon.Add(-time.Hour), time.Second)
	good := at(hostdb.SignalStats{Hits: 60, Truth: 3, Tests: 1}, news)
	if !good.FetchTime.Equal(noon) {
		t.Errorf("a host that tells the truth: due at %v", good.FetchTime)
	}
	bad := at(hostdb.SignalStats{Hits: 3, False: 80, Misses: 5, Truth: 1, Tests: 12}, news)
	if !bad.FetchTime.After(noon.Add(25*day)) || !bad.FetchTime.Before(noon.Add(38*day)) {
		t.Errorf("a host that does not: due at %v", bad.FetchTime)
	}
	if !(good.Priority > bad.Priority) {
		t.Errorf("priorities %v and %v", good.Priority, bad.Priority)
	}
	in := update.Input{URL: page, Segment: seg, SitemapEntry: news, Signals: hostdb.SignalStats{Hits: 3, False: 80, Misses: 5, Truth: 1, Tests: 12}}
	if again := update.Next(bad, in, o); again != bad {
		t.Errorf("the same claim once more: %+v", again)
	}
	in.SitemapEntry = claim(noon.Add(-time.Minute), time.Second)
	if again := update.Next(bad, in, o); !again.FetchTime.Before(bad.FetchTime) {
		t.Errorf("another claim: due at %v", again.FetchTime)
	}
	visited := update.Next(good, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success), Parse: parsed("A")}, o)
	if r, ok := schedule.RateOf(visited); !ok || r != (schedule.Rate{Shape: 0.5, Days: 16}) || !visited.FetchTime.Equal(noon.Add(visited.Interval)) {
		t.Errorf("a false claim: %+v, due at %v", r, visited.FetchTime)
	}
}
