package generate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

func early(d *crawldb.Datum) time.Duration { return d.Interval / 100 }

func gather(t *testing.T, crawl crawldb.Store, segments segment.Store, o generate.Options) []string {
	t.Helper()
	o.Now = clock
	g := generate.Gatherer{Early: early}
	r, err := g.Run(t.Context(), crawl, segments, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range r.Segments {
		for _, d := range list(t, segments, name) {
			got = append(got, d.URL)
		}
	}
	if len(got) != r.Selected {
		t.Errorf("%d selected, %d listed", r.Selected, len(got))
	}
	return got
}

func TestGather(t *testing.T) {
	page := func(name string, in, interval time.Duration) crawldb.Datum {
		d := due("http://"+name, 1)
		d.FetchTime, d.Interval = now.Add(in), interval
		return d
	}
	leased := page("a.test/leased", 3*time.Minute, time.Hour)
	leased.LeasedUntil, leased.LeasedBy = now.Add(time.Hour), "another"
	low := page("a.test/low", 3*time.Minute, time.Hour)
	low.Priority = 0.1
	first := page("a.test/first", -time.Second, 100*day) // may be visited a day early
	for _, test := range []struct {
		name string
		data []crawldb.Datum
		o    generate.Options
		want []string
	}{
		{"nothing is due", []crawldb.Datum{page("a.test/", time.Second, 100*day)}, generate.Options{}, nil},
		{"in the order of time", []crawldb.Datum{first, page("a.test/3", 3*time.Hour, 50*day), page("a.test/1", time.Minute, 50*day), page("a.test/2", 2*time.Hour, 50*day)}, generate.Options{},
			[]string{"a.test/first", "a.test/1", "a.test/2", "a.test/3"}},
		{"up to the first that must not be visited so early", []crawldb.Datum{first, page("a.test/1", time.Minute, 50*day), page("b.test/hourly", 5*time.Minute, time.Hour), page("a.test/2", 6*time.Minute, 50*day)}, generate.Options{},
			[]string{"a.test/first", "a.test/1"}},
		{"no further than what is due might be visited early", []crawldb.Datum{page("a.test/first", 0, 100*time.Minute), page("a.test/1", time.Minute, 50*day), page("a.test/2", 2*time.Minute, 50*day)}, generate.Options{},
			[]string{"a.test/first", "a.test/1"}},
		{"no further than an index is quick", []crawldb.Datum{page("a.test/first", 0, 1000*day), page("a.test/1", 22*time.Hour, 1000*day), page("a.test/2", 30*time.Hour, 1000*day)}, generate.Options{},
			[]string{"a.test/first", "a.test/1"}},
		{"what may not be selected is not in the way", []crawldb.Datum{first, leased, low, page("a.test/1", 5*time.Minute, 50*day)}, generate.Options{MinScore: 0.5},
			[]string{"a.test/first", "a.test/1"}},
		{"up to the first of a host that has no room", []crawldb.Datum{first, page("a.test/1", 1*time.Minute, 50*day), page("b.test/1", 2*time.Minute, 50*day), page("a.test/2", 3*time.Minute, 50*day), page("b.test/2", 4*time.Minute, 50*day)}, generate.Options{MaxPerHost: 2},
			[]string{"a.test/first", "a.test/1", "b.test/1"}},
		{"a host that is full of what is due", []crawldb.Datum{first, page("a.test/second", -time.Minute, day), page("a.test/1", time.Minute, day), page("b.test/1", 2*time.Minute, 50*day)}, generate.Options{MaxPerHost: 1},
			[]string{"a.test/first", "b.test/1"}},
		{"the first of TopN", []crawldb.Datum{first, page("a.test/3", 3*time.Hour, 50*day), page("a.test/1", time.Minute, 50*day), page("a.test/2", 2*time.Hour, 50*day)}, generate.Options{TopN: 3},
			[]string{"a.test/first", "a.test/1", "a.test/2"}},
		{"TopN are due", []crawldb.Datum{first, page("a.test/1", time.Minute, 50*day)}, generate.Options{TopN: 1},
			[]string{"a.test/first"}},
		{"NutchCompat", []crawldb.Datum{first, page("a.test/1", time.Minute, 50*day)}, generate.Options{NutchCompat: true},
			[]string{"a.test/first"}},
		{"a schedule that decides by more than the time", []crawldb.Datum{first, page("a.test/1", time.Minute, 50*day)}, generate.Options{Schedule: struct{ schedule.FetchSchedule }{schedule.Default{}}},
			[]string{"a.test/first"}},
	} {
		for _, indexed := range []bool{false, true} {
			db := &memstore.DB{}
			put(t, db.Crawl(), slices.Clone(test.data)...)
			var crawl crawldb.Store = db.Crawl()
			if indexed {
				crawl = lazy{crawl, rand.New(rand.NewPCG(1, 2))}
			}
			got := gather(t, crawl, db.Segments(), test.o)
			want := slices.Clone(test.want)
			for i := range want {
				want[i] = "http://" + want[i]
			}
			if slices.Contains(want, "http://b.test/1") { // each host has its turn
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", test.name, got, want)
			}
		}
	}
}

// What is due now is selected as by Run, best first. What else is on the list comes before all that
// is not, and none of it too early.
func TestGatherTakesAPrefixInTime(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var data []crawldb.Datum
		for i := range 20 + rnd.IntN(300) {
			d := due(fmt.Sprintf("http://h%d.test/%d", rnd.IntN(1+rnd.IntN(30)), i), float32(rnd.IntN(20)))
			d.Interval = time.Duration(1+rnd.IntN(200)) * 6 * time.Hour
			if rnd.IntN(1+int(seed%5)) > 0 {
				d.FetchTime = now.Add(time.Duration(rnd.ExpFloat64() * float64(time.Hour))).Truncate(time.Millisecond)
			}
			data = append(data, d)
		}
		o := generate.Options{TopN: []int{0, 5, 50}[seed%3], MaxPerHost: []int{0, 3, 1}[seed%7%3]}
		var both [2][]string
		for i, indexed := range []bool{false, true} {
			db, other := &memstore.DB{}, &memstore.DB{}
			put(t, db.Crawl(), slices.Clone(data)...)
			put(t, other.Crawl(), slices.Clone(data)...)
			var crawl crawldb.Store = db.Crawl()
			if indexed {
				crawl = lazy{crawl, rand.New(rand.NewPCG(1, 2))}
			}
			now, soon, end := []string(nil), 0, time.Time{}
			for _, u := range gather(t, crawl, db.Segments(), o) {
				both[i] = append(both[i], u)
				d := data[slices.IndexFunc(data, func(d crawldb.Datum) bool { return d.URL == u })]
				if !d.FetchTime.After(clock()) {
					now = append(now, u)
					continue
				}
				soon++
				if d.FetchTime.Sub(clock()) > early(&d) {
					t.Errorf("seed %d: %s is selected %v early", seed, u, d.FetchTime.Sub(clock()))
				}
				if d.FetchTime.After(end) {
					end = d.FetchTime
				}
			}
			r := run(t, other.Crawl(), other.Segments(), o)
			var want []string
			for _, l := range lists(t, other.Segments(), r) {
				want = append(want, l...)
			}
			slices.SortFunc(now, crawldb.Compare)
			if !slices.Equal(now, want) {
				t.Errorf("seed %d: of what is due %v is selected, want %v", seed, now, want)
			}
			full := map[string]int{}
			for _, u := range want {
				full[crawldb.Host(u)]++
			}
			for _, d := range data {
				if soon > 0 && d.FetchTime.After(clock()) && d.FetchTime.Before(end) && !slices.Contains(both[i], d.URL) && !(o.MaxPerHost > 0 && full[crawldb.Host(d.URL)] >= o.MaxPerHost) {
					t.Errorf("seed %d: %s is due before some that are selected", seed, d.URL)
				}
			}
		}
		if !slices.Equal(both[0], both[1]) {
			t.Errorf("seed %d: a scan selects %v, an index %v", seed, both[0], both[1])
		}
	}
}
