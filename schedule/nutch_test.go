package schedule

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

var t0 = time.UnixMilli(1e12).UTC()

func secs(t *testing.T, s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}

func table(t *testing.T, file string) (rows [][]string) {
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSpace(line), "\t"))
		}
	}
	return rows
}

func TestNutchAdaptive(t *testing.T) {
	for _, f := range table(t, "nutch-adaptive.tsv") {
		s := Adaptive{Default: Default{NutchCompat: true}, MinInterval: secs(t, f[3]), AdaptiveMax: secs(t, f[4])}
		d := crawldb.Datum{URL: "http://www.example.com/", Interval: secs(t, f[0])}
		v := Visit{Time: t0}
		for v.Change.String() != f[2] {
			v.Change++
		}
		if f[1] != "-" {
			v.PrevModified = t0.Add(-secs(t, f[1]) * 86400)
		}
		if f[5] != "-" {
			d.Meta.Set(FixedKey, f[5])
		}
		for name, s := range map[string]FetchSchedule{
			"Adaptive": s, "MimeAdaptive": MimeAdaptive{Adaptive: s, Types: map[string]AdaptiveRates{"x/y": {9, 9}}},
		} {
			got := s.Fetched(d, v)
			if got.Interval != secs(t, f[6]) || strconv.FormatInt(got.FetchTime.Sub(t0).Milliseconds(), 10) != f[7] {
				t.Errorf("%s %v: interval %v, next fetch after %d ms", name, f, got.Interval, got.FetchTime.Sub(t0).Milliseconds())
			}
			if f[5] != "-" && !got.Modified.IsZero() {
				t.Errorf("%s %v: modified is %v, want zero", name, f, got.Modified)
			}
		}
	}
}

// The results of the formulas in Java, with random options and records.
func TestNutchArithmetic(t *testing.T) {
	for _, f := range table(t, "nutch-arithmetic.tsv") {
		share := func(s string) float64 {
			if s == "-" {
				return -1
			}
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		ms := func(s string) time.Time {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return time.UnixMilli(n).UTC()
		}
		base := Default{NutchCompat: true, DefaultInterval: secs(t, f[0]), MaxInterval: secs(t, f[1])}
		s := Adaptive{Default: base, IncRate: share(f[2]), DecRate: share(f[3]), MinInterval: secs(t, f[4]), AdaptiveMax: secs(t, f[5]), SyncRate: share(f[6])}
		retries, err := strconv.Atoi(f[12])
		if err != nil {
			t.Fatal(err)
		}
		d := crawldb.Datum{URL: "http://www.example.com/", Interval: secs(t, f[7]), Retries: retries, FetchTime: ms(f[13])}
		v := Visit{Time: ms(f[9]), PrevModified: ms(f[10])}
		for v.Change.String() != f[8] {
			v.Change++
		}
		fixed := d
		if f[11] != "-" {
			fixed.Meta.Set(FixedKey, f[11])
		}
		show := func(d crawldb.Datum) string {
			modified := int64(0)
			if !d.Modified.IsZero() {
				modified = d.Modified.UnixMilli()
			}
			return fmt.Sprintf("%d %d %d", d.Interval/time.Second, d.FetchTime.UnixMilli(), modified)
		}
		gone, retry, listed := s.Gone(d, v), s.Retry(d, v), s.Selected(d, v.Time)
		for i, got := range []string{
			show(base.Fetched(d, v)), show(s.Fetched(fixed, v)),
			fmt.Sprintf("%d %d", gone.Interval/time.Second, gone.FetchTime.UnixMilli()),
			fmt.Sprintf("%d %d %d", retry.Interval/time.Second, retry.FetchTime.UnixMilli(), int8(retry.Retries)),
			fmt.Sprintf("%v %d %d", s.Due(&d, v.Time), listed.Interval/time.Second, listed.FetchTime.UnixMilli()),
			fmt.Sprint(int64(s.Force(d, v.Time).Interval / time.Second)),
		} {
			if got != f[14+i] {
				t.Errorf("%v: %s, want %s", f[:14], got, f[14+i])
			}
		}
	}
}

func TestNutchAlwaysModified(t *testing.T) {
	s := Adaptive{Default: Default{NutchCompat: true}}
	var d crawldb.Datum
	at := t0
	for i, f := range table(t, "nutch-modified.txt") {
		v := Visit{Time: at, Change: Changed, PrevModified: d.Modified}
		if i == 0 {
			v.Change = Unknown
		}
		d = s.Fetched(d, v)
		if d.Interval != secs(t, f[0]) {
			t.Fatalf("visit %d: interval %v, want %s s", i, d.Interval, f[0])
		}
		at = d.FetchTime
	}
}

func TestNutchHostInterval(t *testing.T) {
	hosts := map[string]Bounds{"www.apache.org": {Min: 1296000 * time.Second, Max: 31536000 * time.Second}}
	s := Adaptive{Default: Default{NutchCompat: true}, HostIntervals: hosts}
	d := s.Fetched(crawldb.Datum{URL: "http://www.apache.org/", Interval: 100 * time.Second}, Visit{Time: t0, Change: Unchanged})
	if d.Interval != 1296000*time.Second {
		t.Errorf("interval %v", d.Interval)
	}
}

func TestNutchGone(t *testing.T) {
	s := Default{NutchCompat: true}
	for _, f := range table(t, "nutch-gone.tsv") {
		d := s.Gone(crawldb.Datum{Interval: secs(t, f[0])}, Visit{Time: t0})
		if d.Interval != secs(t, f[1]) || d.FetchTime.Sub(t0) != d.Interval {
			t.Errorf("%v: interval %v, next fetch after %v", f, d.Interval, d.FetchTime.Sub(t0))
		}
	}
}

func TestNutchBase(t *testing.T) {
	s := Default{NutchCompat: true}
	most := 90 * day

	d := crawldb.Datum{FetchTime: t0.Add(most)}
	if s.Due(&d, t0) {
		t.Error("a fetch time that lies the maximum ahead is due")
	}
	d.FetchTime = d.FetchTime.Add(time.Millisecond)
	if !s.Due(&d, t0) {
		t.Error("a fetch time that lies more than the maximum ahead is not due")
	}

	d = s.Init(crawldb.Datum{Retries: 3}, t0)
	if d.Interval != 30*day || !d.FetchTime.Equal(t0) || d.Retries != 0 {
		t.Errorf("Init: %+v", d)
	}
	d = s.Retry(crawldb.Datum{Interval: time.Hour, Retries: 1}, Visit{Time: t0})
	if d.Interval != time.Hour || d.FetchTime.Sub(t0) != day || d.Retries != 2 {
		t.Errorf("Retry: %+v", d)
	}
	d = s.Force(crawldb.Datum{Interval: 9999999 * time.Second, Signature: []byte{1}, Modified: t0, Retries: 1}, t0)
	if d.Interval != 6998400*time.Second || d.Signature != nil || !d.Modified.IsZero() || d.Retries != 0 || d.Status != crawldb.Unfetched {
		t.Errorf("Force: %+v", d)
	}
	d = s.Fetched(crawldb.Datum{}, Visit{Time: t0, Change: Unchanged, PrevModified: t0.Add(-time.Hour)})
	if d.Interval != 30*day || !d.Modified.Equal(t0.Add(-time.Hour)) {
		t.Errorf("Fetched, unchanged: %+v", d)
	}
}

// Nutch's TestAdaptiveFetchSchedule, as Nutch and as we do.
func TestAdaptiveFetchSchedule(t *testing.T) {
	for _, compat := range []bool{true, false} {
		s := Adaptive{Default: Default{NutchCompat: compat}}
		for change, want := range map[Change]time.Duration{Unknown: 100, Changed: 80, Unchanged: 140} {
			d := s.Fetched(crawldb.Datum{URL: "http://www.example.com", Interval: 100 * time.Second}, Visit{Time: t0, Change: change})
			if d.Interval != want*time.Second || d.FetchTime.Sub(t0) != d.Interval {
				t.Errorf("NutchCompat %v, %v: %v, next after %v", compat, change, d.Interval, d.FetchTime.Sub(t0))
			}
		}
		// Its testSetFetchSchedule1 to 3: days. They mean an unchanged page, and by a
		// mistake say nothing of the sort.
		for _, c := range []struct{ def, least, most, limit, prev, modified time.Duration }{
			{2, 1, 7, 7, 3, 30}, {1, 1, 2, 7, 1, 10}, {2, 1, 10, 10, 3, 180},
		} {
			for _, change := range []Change{Unknown, Unchanged} {
				s := Adaptive{
					Default:     Default{NutchCompat: compat, DefaultInterval: c.def * day, MaxInterval: c.limit * day},
					MinInterval: c.least * day, AdaptiveMax: c.most * day, SyncRate: 0.3,
				}
				d := s.Fetched(crawldb.Datum{URL: "http://www.example2.com", Interval: 100 * time.Second},
					Visit{Time: t0, Change: change, PrevFetch: t0.Add(-c.prev * day), PrevModified: t0.Add(-c.modified * day)})
				gap := d.FetchTime.Sub(t0)
				if gap < c.least*day || gap > c.most*day {
					t.Errorf("NutchCompat %v, %v, %+v: %v", compat, change, c, gap)
				}
				// In Nutch the age of the page takes the place of the interval.
				if (gap == c.most*day) != compat {
					t.Errorf("NutchCompat %v, %v, %+v: %v", compat, change, c, gap)
				}
			}
		}
	}
}

// crawl visits one page whenever it is due, as Nutch's TestCrawlDbStates does,
// with as much of Nutch's reducer as that takes. It returns the days of the
// visits and how many ended in which status.
func crawl(s FetchSchedule, first, step time.Duration, visit func(at time.Time, d *crawldb.Datum) (status crawldb.Status)) (days []int, count map[crawldb.Status]int) {
	most := 90 * day
	if h, ok := Horizon(s); ok {
		most = h
	}
	count = map[crawldb.Status]int{}
	d := s.Init(crawldb.Datum{Status: crawldb.Unfetched, Interval: first}, t0)
	for at := t0; at.Before(t0.Add(2 * 365 * day)); at = at.Add(step) {
		if !s.Due(&d, at) {
			continue
		}
		old := d
		d.Status = visit(at, &d)
		v := Visit{Time: at, PrevFetch: old.LastFetch, PrevModified: old.Modified}
		switch {
		case d.Status == crawldb.Gone:
			d = s.Gone(d, v)
		case d.Status == crawldb.NotModified:
			v.Change = Unchanged
			d = s.Fetched(d, v)
			d.Modified = old.Modified
		case old.Signature == nil:
			d = s.Fetched(d, v)
		default:
			v.Change = Changed
			d = s.Fetched(d, v)
		}
		d.LastFetch = at
		if d.Status != crawldb.Gone && d.Interval > most {
			next := d.FetchTime
			d = s.Force(d, at)
			d.FetchTime = next
		}
		days = append(days, int(at.Sub(t0)/day))
		count[d.Status]++
	}
	return days, count
}

// changesForAYear is a page that is another at every visit of the first year
// and the same ever after.
func changesForAYear() func(time.Time, *crawldb.Datum) crawldb.Status {
	content := byte(0)
	return func(at time.Time, d *crawldb.Datum) crawldb.Status {
		if at.Sub(t0) < 365*day {
			content++
		}
		if string(d.Signature) == string([]byte{content}) {
			return crawldb.NotModified
		}
		defer func() { d.Signature = []byte{content} }()
		return crawldb.Fetched
	}
}

func TestNutchTwoYears(t *testing.T) {
	for _, c := range []struct {
		name               string
		s                  FetchSchedule
		step, first        time.Duration
		fetched, same, new int
	}{
		{"default", Default{NutchCompat: true}, day, 0, 13, 12, 0},
		{"adaptive", Adaptive{Default: Default{NutchCompat: true}}, day, 0, 228, 8, 2},
		{"sync delta", Adaptive{Default: Default{NutchCompat: true, DefaultInterval: 2 * day, MaxInterval: 7 * day}, MinInterval: day, AdaptiveMax: 7 * day}, 8 * time.Hour, 0, 363, 61, 0},
	} {
		days, n := crawl(c.s, c.first, c.step, changesForAYear())
		if n[crawldb.Fetched] != c.fetched || n[crawldb.NotModified] != c.same || n[crawldb.Unfetched] != c.new {
			t.Errorf("%s: %v on days %v", c.name, n, days)
		}
	}
}

func TestNutchGoneForTwoYears(t *testing.T) {
	want := []int{0, 45, 113, 194, 275, 356, 437, 518, 599, 680}
	for _, s := range []FetchSchedule{Default{NutchCompat: true}, Adaptive{Default: Default{NutchCompat: true}}} {
		days, _ := crawl(s, 0, day, func(time.Time, *crawldb.Datum) crawldb.Status { return crawldb.Gone })
		if len(days) != len(want) {
			t.Fatalf("%T: visits on days %v, want %v", s, days, want)
		}
		for i := range days {
			if days[i] != want[i] {
				t.Errorf("%T: visits on days %v, want %v", s, days, want)
			}
		}
	}
}
