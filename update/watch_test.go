package update_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// Orphans are judged by the days on which somebody looked, whatever the clock shows.
func TestOrphansAreJudgedByDaysOfTheCrawl(t *testing.T) {
	const (
		day   = 24 * time.Hour
		year  = 365 * day
		round = 6 * time.Hour
	)
	begin := time.Date(2037, 12, 1, 0, 0, 0, 0, time.UTC) // and over 2^31 seconds
	for _, test := range []struct {
		name string
		// off is by what the clock is wrong in a round, rounds are counted from 0.
		off func(n int) time.Duration
		// The round at which the page becomes an orphan, and not before. It counts as gone 10 days, or
		// 40 rounds, before.
		least, most int
	}{
		{"a clock that is right", func(int) time.Duration { return 0 }, 160, 162},
		{"a year ahead for a round", func(n int) time.Duration { return pick(n == 3, year) }, 120, 162},
		{"ten years ahead for a day", func(n int) time.Duration { return pick(n >= 3 && n < 8, 10*year) }, 120, 162},
		{"a year ahead since", func(n int) time.Duration { return pick(n >= 3, year) }, 120, 162},
		{"a year behind for a day", func(n int) time.Duration { return pick(n >= 3 && n < 8, -year) }, 120, 170},
		{"every other round by a host that is a year ahead", func(n int) time.Duration { return pick(n%2 == 1, year) }, 120, 170},
		{"no update for a year", func(n int) time.Duration { return pick(n >= 3, year) }, 120, 162},
		{"no update for a year, twice", func(n int) time.Duration { return pick(n >= 3, year) + pick(n >= 50, year) }, 90, 162},
	} {
		t.Run(test.name, func(t *testing.T) {
			crawl := new(memstore.Crawl)
			url := "http://example.com/"
			old := crawldb.Datum{URL: url, Status: crawldb.Fetched}
			old.Meta.Set(scoring.OrphanKey, strconv.FormatInt(begin.Unix(), 10))
			err := crawl.Update(t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &old, nil }})
			if err != nil {
				t.Fatal(err)
			}
			gone, orphan := -1, -1
			for n := 0; n < 200 && orphan < 0; n++ {
				now := begin.Add(time.Duration(n)*round + test.off(n))
				o := update.SweepOptions{Orphans: true, PurgeOrphans: true, Scoring: scoring.Chain{&scoring.OPIC{}, scoring.Orphan{}}, Now: func() time.Time { return now }}
				if _, err := update.Sweep(t.Context(), crawl, o); err != nil {
					t.Fatal(err)
				}
				d, err := crawl.Get(t.Context(), url)
				if err != nil {
					t.Fatal(n, err)
				}
				if d.Status == crawldb.Gone && gone < 0 {
					gone = n
				}
				if d.Status == crawldb.Orphan {
					orphan = n
				}
			}
			if orphan < test.least || orphan > test.most || gone < orphan-42 || gone >= orphan {
				t.Errorf("gone in round %d, an orphan in round %d, want %d to %d", gone, orphan, test.least, test.most)
			}
		})
	}
}

func pick(wrong bool, by time.Duration) time.Duration {
	if wrong {
		return by
	}
	return 0
}

// A time that a clock gave which was ahead, before orphans had a clock of their own, is
// mended, by a link and without one.
func TestOrphanSeenInTheFuture(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, in := range [][]scoring.Link{nil, {{Score: 1}}} {
		for after, want := range map[time.Duration]time.Duration{366 * 24 * time.Hour: 0, 20 * 24 * time.Hour: 20 * 24 * time.Hour} {
			d := crawldb.Datum{Status: crawldb.Fetched}
			d.Meta.Set(scoring.OrphanKey, strconv.FormatInt(now.Add(after).Unix(), 10))
			scoring.Orphan{}.Updated(nil, &d, scoring.Flow{In: in, Time: now.Add(time.Hour), Clock: now})
			if got, _ := d.Meta.Get(scoring.OrphanKey); got != fmt.Sprint(now.Add(want).Unix()) || d.Status != crawldb.Fetched {
				t.Errorf("%d links, seen %v ahead: %s, %v", len(in), after, got, d.Status)
			}
		}
	}
}

// A crawl that tells no orphans, or does so as Nutch, has no such clock.
func TestNoOrphanClockWithoutOrphans(t *testing.T) {
	for _, s := range []scoring.Filter{nil, scoring.OPIC{}, scoring.Orphan{NutchCompat: true}, scoring.Orphan{GoneAfter: -1, OrphanAfter: -1}} {
		crawl := new(memstore.Crawl)
		if _, err := update.Sweep(t.Context(), crawl, update.SweepOptions{Orphans: true, Scoring: s}); err != nil {
			t.Fatal(err)
		}
		if mark, err := crawl.Mark(t.Context(), "orphans"); mark != "" || err != nil {
			t.Errorf("%T: %q, %v", s, mark, err)
		}
	}
}
