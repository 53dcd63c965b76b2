package generate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

const day = 24 * time.Hour

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

func put(t *testing.T, s crawldb.Store, data ...crawldb.Datum) {
	t.Helper()
	putAll(t, s, data)
}

func putAll(t testing.TB, s crawldb.Store, data []crawldb.Datum) {
	t.Helper()
	slices.SortFunc(data, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	urls := make([]string, len(data))
	for i := range data {
		urls[i] = data[i].URL
	}
	err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// due is a record that is due.
func due(url string, priority float32) crawldb.Datum {
	return crawldb.Datum{URL: url, Status: crawldb.Unfetched, FetchTime: now.Add(-time.Hour), Interval: day, Score: priority, Priority: priority}
}

// many makes records of some hosts, many of them with equal priorities.
func many(n, hosts int) []crawldb.Datum {
	rnd := rand.New(rand.NewPCG(1, 2))
	var data []crawldb.Datum
	for i := range n {
		data = append(data, due(fmt.Sprintf("http://h%d.example.test/%d", i%hosts, i), float32(rnd.IntN(20))))
	}
	return data
}

func run(t *testing.T, crawl crawldb.Store, segments segment.Store, o generate.Options) generate.Report {
	t.Helper()
	if o.Now == nil {
		o.Now = clock
	}
	r, err := generate.Run(t.Context(), crawl, segments, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func list(t *testing.T, s segment.Store, name string) []crawldb.Datum {
	t.Helper()
	var out []crawldb.Datum
	for d, err := range segment.Records[crawldb.Datum](t.Context(), s, name) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func urls(data []crawldb.Datum) []string {
	var out []string
	for _, d := range data {
		out = append(out, d.URL)
	}
	slices.SortFunc(out, crawldb.Compare)
	return out
}

// lists returns the URLs of each segment of a report, by key.
func lists(t *testing.T, s segment.Store, r generate.Report) [][]string {
	t.Helper()
	var out [][]string
	n := 0
	for _, name := range r.Segments {
		out = append(out, urls(list(t, s, name)))
		n += len(out[len(out)-1])
	}
	if n != r.Selected {
		t.Errorf("%d selected, %d listed", r.Selected, n)
	}
	return out
}

// best returns the first n by priority, equal ones by key.
func best(data []crawldb.Datum, n int) []string {
	data = slices.Clone(data)
	slices.SortFunc(data, func(a, b crawldb.Datum) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), crawldb.Compare(a.URL, b.URL))
	})
	return urls(data[:min(n, len(data))])
}

func TestTopN(t *testing.T) {
	data := many(300, 7)
	for _, n := range []int{1, 2, 37, 299, 300, 301, 0} {
		for _, chunk := range []int{1, 10, 10_000} {
			db := &memstore.DB{}
			put(t, db.Crawl(), data...)
			r := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: n}.WithChunk(chunk))
			want := n
			if n == 0 || n > 300 {
				want = 300
			}
			got := lists(t, db.Segments(), r)
			if len(got) != 1 || !slices.Equal(got[0], best(data, want)) {
				t.Errorf("TopN %d: %d selected, not the best %d", n, r.Selected, want)
			}
		}
	}
}

func TestNothingIsDue(t *testing.T) {
	db := &memstore.DB{}
	d := due("http://a.example.test/", 1)
	d.FetchTime = now.Add(time.Hour)
	put(t, db.Crawl(), d)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{})
	if len(r.Segments) != 0 || r.Selected != 0 || !r.NextDue.Equal(d.FetchTime) {
		t.Errorf("%+v", r)
	}
	for name := range db.Segments().List(t.Context()) {
		t.Errorf("segment %s", name)
	}
}

func TestLimits(t *testing.T) {
	// A letter is a host, a digit a page; the best come first.
	for _, c := range []struct {
		in                      string
		perHost, topN, segments int
		want                    string
		overLimit, affected     int
	}{
		{"A1 A2 A3 B1 B2 B3 C1", 1, 10, 1, "A1 B1 C1", 4, 2},
		{"A1 A2 A3 B1 B2 B3 C1", 2, 10, 1, "A1 A2 B1 B2 C1", 2, 2},
		{"A1 A2 A3 B1 B2 B3 C1", 2, 3, 1, "A1 A2 B1", 1, 1},
		{"A1 A2 A3 A4 A5", 2, 100, 2, "A1 A2 | A3 A4", 1, 1},
		{"A1 A2 A3 A4 A5", 2, 3, 2, "A1 A2 | A3 A4", 1, 1},
		{"A1 A2 A3 B1 B2 C1 D1", 0, 3, 2, "A1 A2 A3 | B1 B2 C1", 0, 0},
		{"A1 B1 A2 B2 A3 B3 C1 C2 C3 D1 D2", 1, 3, 3, "A1 B1 C1 | A2 B2 C2 | A3 B3 C3", 0, 0},
		{"A1 B1 C1 C2 D1", 1, 2, 2, "A1 B1 | C1 D1", 1, 1}, // Nutch gives C two
		{"A1 A2", 1, 1, 5, "A1 | A2", 0, 0},
		{"A1 B1 C1", 0, 2, 5, "A1 B1 | C1", 0, 0},
	} {
		var data []crawldb.Datum
		names := map[string]string{}
		for i, s := range strings.Fields(c.in) {
			u := fmt.Sprintf("http://%s.example.test/%s", strings.ToLower(s[:1]), s[1:])
			names[u] = s
			data = append(data, due(u, float32(100-i)))
		}
		for _, chunk := range []int{1, 2, 10_000} {
			db := &memstore.DB{}
			put(t, db.Crawl(), data...)
			r := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: c.topN, MaxPerHost: c.perHost, Segments: c.segments}.WithChunk(chunk))
			var got []string
			for _, l := range lists(t, db.Segments(), r) {
				var s []string
				for _, u := range l {
					s = append(s, names[u])
				}
				slices.Sort(s)
				got = append(got, strings.Join(s, " "))
			}
			if s := strings.Join(got, " | "); s != c.want {
				t.Errorf("%s with %d a host, %d in each of %d: %s, want %s", c.in, c.perHost, c.topN, c.segments, s, c.want)
			}
			if n := r.Rejected[generate.HostFull]; n != c.overLimit || r.HostsAffected != c.affected {
				t.Errorf("%s: %d over the limit of %d hosts, want %d of %d", c.in, n, r.HostsAffected, c.overLimit, c.affected)
			}
		}
	}
}

func TestLimitByDomain(t *testing.T) {
	data := []crawldb.Datum{due("http://a.shop.com/", 5), due("http://b.shop.com/", 4), due("http://c.shop.com/", 3), due("http://shop.co.uk/", 2), due("http://x.shop.co.uk/", 1)}
	for perHost, want := range map[int][]int{1: {0, 3}, 2: {0, 1, 3, 4}, 3: {0, 1, 2, 3, 4}} {
		db := &memstore.DB{}
		put(t, db.Crawl(), slices.Clone(data)...)
		r := run(t, db.Crawl(), db.Segments(), generate.Options{MaxPerHost: perHost, By: hostdb.ByDomain})
		var w []crawldb.Datum
		for _, i := range want {
			w = append(w, data[i])
		}
		if got := lists(t, db.Segments(), r); !slices.Equal(got[0], urls(w)) {
			t.Errorf("%d a domain: %v", perHost, got)
		}
	}
}

func TestMinScore(t *testing.T) {
	for _, s := range []schedule.FetchSchedule{nil, oddDays{schedule.Default{}}} {
		db := &memstore.DB{}
		put(t, db.Crawl(), due("http://a.example.test/1", 0.49), due("http://a.example.test/3", 0.5), due("http://a.example.test/5", 2))
		r := run(t, db.Crawl(), db.Segments(), generate.Options{MinScore: 0.5, Schedule: s})
		if got := lists(t, db.Segments(), r); len(got) != 1 || len(got[0]) != 2 || got[0][0] != "http://a.example.test/3" {
			t.Errorf("%v", got)
		}
	}
}

func TestLeases(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Crawl(), many(10, 2)...)
	first := run(t, db.Crawl(), db.Segments(), generate.Options{Lease: 2 * day, TopN: 6})
	for _, d := range list(t, db.Segments(), first.Segments[0]) {
		if d.LeasedBy != "" || !d.LeasedUntil.IsZero() {
			t.Errorf("the list has %s as leased", d.URL)
		}
		rec, err := db.Crawl().Get(t.Context(), d.URL)
		if err != nil || rec.LeasedBy != first.Segments[0] || !rec.LeasedUntil.Equal(now.Add(2*day)) {
			t.Errorf("%+v, %v", rec, err)
		}
		if rec.LeasedBy, rec.LeasedUntil = "", (time.Time{}); fmt.Sprint(rec) != fmt.Sprint(d) {
			t.Errorf("listed %+v\nrecord %+v", d, rec)
		}
	}
	second := run(t, db.Crawl(), db.Segments(), generate.Options{})
	if second.Selected != 4 {
		t.Errorf("%d selected beside 6 of 10", second.Selected)
	}
	third := run(t, db.Crawl(), db.Segments(), generate.Options{})
	if third.Selected != 0 || !third.NextDue.Equal(now.Add(2*day)) {
		t.Errorf("%+v", third)
	}
	// Ahead does not end leases.
	if r := run(t, db.Crawl(), db.Segments(), generate.Options{Ahead: 3 * day}); r.Selected != 0 || r.Rejected[generate.WaitUpdate] != 10 {
		t.Errorf("%+v", r)
	}
	// The end of the lease does.
	for at, want := range map[time.Duration]int{2*day - time.Millisecond: 0, 2 * day: 6} {
		o := generate.Options{Now: func() time.Time { return now.Add(at) }, Lease: time.Millisecond}
		if r := run(t, db.Crawl(), db.Segments(), o); r.Selected != want {
			t.Errorf("after %v: %d selected, want %d", at, r.Selected, want)
		}
	}
}

func TestAhead(t *testing.T) {
	db := &memstore.DB{}
	var data []crawldb.Datum
	for i := range 10 {
		d := due(fmt.Sprintf("http://a.example.test/%d", i), 1)
		d.FetchTime = now.Add(time.Duration(i) * day)
		data = append(data, d)
	}
	put(t, db.Crawl(), data...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{Ahead: 4 * day})
	if r.Selected != 5 || !r.NextDue.Equal(now.Add(5*day)) {
		t.Errorf("%+v", r)
	}
	for _, d := range list(t, db.Segments(), r.Segments[0]) {
		rec, _ := db.Crawl().Get(t.Context(), d.URL)
		if !rec.LeasedUntil.Equal(now.Add(7 * day)) {
			t.Errorf("leased until %v", rec.LeasedUntil)
		}
	}
}

func TestClockThatWasWrong(t *testing.T) {
	db := &memstore.DB{}
	near, far := due("http://a.example.test/near", 1), due("http://a.example.test/far", 1)
	near.FetchTime, far.FetchTime = now.Add(90*day), now.Add(90*day+time.Second)
	put(t, db.Crawl(), near, far)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{})
	if got := lists(t, db.Segments(), r); len(got) != 1 || !slices.Equal(got[0], []string{far.URL}) || !r.NextDue.Equal(near.FetchTime) {
		t.Errorf("%v, next %v", got, r.NextDue)
	}
}

func TestRulesAreAskedAgain(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Crawl(), due("http://a.example.test/no", 9), due("http://a.example.test/yes", 1), due("http://A.example.test:80/other", 5))
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, urlfilter.FilterFunc(func(u string) bool { return !strings.HasSuffix(u, "no") }))
	r := run(t, db.Crawl(), db.Segments(), generate.Options{Rules: rules, TopN: 1})
	if got := lists(t, db.Segments(), r); len(got) != 1 || !slices.Equal(got[0], []string{"http://a.example.test/yes"}) || r.Rejected[generate.URLFilters] != 2 {
		t.Errorf("%v, %+v", got, r)
	}
}

// oddDays has pages due whose URL ends in an odd digit, whatever the record
// says. It does not say that an index could stand in for it.
type oddDays struct{ inner schedule.FetchSchedule }

func (s oddDays) Init(d crawldb.Datum, now time.Time) crawldb.Datum { return s.inner.Init(d, now) }
func (s oddDays) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	return s.inner.Fetched(d, v)
}
func (s oddDays) Retry(d crawldb.Datum, v schedule.Visit) crawldb.Datum { return s.inner.Retry(d, v) }
func (s oddDays) Gone(d crawldb.Datum, v schedule.Visit) crawldb.Datum  { return s.inner.Gone(d, v) }
func (s oddDays) Force(d crawldb.Datum, now time.Time) crawldb.Datum    { return s.inner.Force(d, now) }
func (s oddDays) Due(d *crawldb.Datum, _ time.Time) bool                { return (d.URL[len(d.URL)-1]-'0')%2 == 1 }

func TestScheduleOfItsOwnIsAskedAboutEveryRecord(t *testing.T) {
	mem := &memstore.DB{}
	data := many(50, 3)
	for i := range data {
		data[i].FetchTime = now.Add(10 * day)
	}
	put(t, mem.Crawl(), data...)
	// An index, of a store that has one, is not asked.
	indexed := hints{Crawl: mem.Crawl(), t: t, never: true}
	r := run(t, indexed, mem.Segments(), generate.Options{Schedule: oddDays{schedule.Default{}}})
	if r.Selected != 25 {
		t.Errorf("%+v", r)
	}
	for _, u := range lists(t, mem.Segments(), r)[0] {
		if (u[len(u)-1]-'0')%2 != 1 {
			t.Errorf("%s", u)
		}
	}
}

// hints is a store whose Due is as weak as it may be: it yields URLs twice, some
// that are not due, and some that are not there.
type hints struct {
	*memstore.Crawl
	t     *testing.T
	never bool
	extra []crawldb.Candidate
}

func (s hints) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	if s.never {
		s.t.Error("Due was called")
	}
	return func(yield func(crawldb.Candidate, error) bool) {
		all := s.extra
		for c, err := range crawldb.DueByScan(ctx, s.Crawl, q, nil) {
			if err != nil {
				yield(c, err)
				return
			}
			all = append(all, c, c)
		}
		slices.SortStableFunc(all, func(a, b crawldb.Candidate) int { return cmp.Compare(b.Priority, a.Priority) })
		for i, c := range all {
			if !yield(c, nil) {
				return
			}
			if i%5 == 0 && !yield(all[i/2], nil) { // and once more, much later
				return
			}
		}
	}
}

func TestCandidatesOfTheStoreAreChecked(t *testing.T) {
	data := many(120, 4)
	var sleeping []crawldb.Datum
	var extra []crawldb.Candidate
	for i := range 40 {
		d := due(fmt.Sprintf("http://h%d.example.test/later%d", i%4, i), float32(i))
		if d.FetchTime = now.Add(day); i%2 == 0 {
			d.FetchTime, d.LeasedBy, d.LeasedUntil = now.Add(-day), "20260101000000-000", now.Add(day)
		}
		sleeping = append(sleeping, d)
		extra = append(extra, crawldb.Candidate{URL: d.URL, Priority: d.Priority}, crawldb.Candidate{URL: fmt.Sprintf("http://h1.example.test/none%d", i), Priority: float32(i)})
	}
	for _, chunk := range []int{1, 3, 50, 10_000} {
		for _, o := range []generate.Options{{}, {TopN: 30}, {TopN: 30, Segments: 3}} {
			db := &memstore.DB{}
			put(t, db.Crawl(), slices.Concat(data, sleeping)...)
			r := run(t, hints{Crawl: db.Crawl(), t: t, extra: slices.Clone(extra)}, db.Segments(), o.WithChunk(chunk))
			n := len(data)
			if o.TopN > 0 {
				n = o.TopN * max(o.Segments, 1)
			}
			if got := slices.Concat(lists(t, db.Segments(), r)...); len(got) != n {
				t.Errorf("%+v: %d selected of %d", o, len(got), n)
			} else if slices.SortFunc(got, crawldb.Compare); !slices.Equal(got, best(data, n)) {
				t.Errorf("%+v: not the best", o)
			}
		}
		// No segment exceeds its limits.
		for _, o := range []generate.Options{{TopN: 7, Segments: 4, MaxPerHost: 2}, {MaxPerHost: 1, Segments: 3}, {TopN: 5, Segments: 2, MaxPerHost: 3}} {
			db := &memstore.DB{}
			put(t, db.Crawl(), slices.Concat(data, sleeping)...)
			r := run(t, hints{Crawl: db.Crawl(), t: t, extra: slices.Clone(extra)}, db.Segments(), o.WithChunk(chunk))
			for _, l := range lists(t, db.Segments(), r) {
				hosts := map[string]int{}
				for _, u := range l {
					hosts[crawldb.Host(u)]++
				}
				for h, n := range hosts {
					if n > o.MaxPerHost {
						t.Errorf("%+v: %d pages of %s", o, n, h)
					}
				}
				if o.TopN > 0 && len(l) > o.TopN {
					t.Errorf("%+v: %d pages in a segment", o, len(l))
				}
			}
		}
	}
}

// A URL that an index yields again, thousands of candidates later, takes no place
// and counts as nothing.
func TestCandidatesWithPrioritiesFarApart(t *testing.T) {
	var data []crawldb.Datum
	for i := range 3000 {
		data = append(data, due(fmt.Sprintf("http://h%d.example.test/%d", i%1500, i), float32(3000-i)))
	}
	for _, chunk := range []int{500, 10_000} {
		o := generate.Options{TopN: 2500, MaxPerHost: 2}
		db := &memstore.DB{}
		put(t, db.Crawl(), slices.Clone(data)...)
		var again []crawldb.Candidate
		for i, d := range data[:1200] { // as if its priority had been another
			again = append(again, crawldb.Candidate{URL: d.URL, Priority: 1600 - float32(i)/2})
		}
		r := run(t, hints{Crawl: db.Crawl(), t: t, extra: again}, db.Segments(), o.WithChunk(chunk))
		got := slices.Concat(lists(t, db.Segments(), r)...)
		if slices.SortFunc(got, crawldb.Compare); !slices.Equal(got, best(data, 2500)) {
			t.Errorf("chunk %d: %d selected, not the best", chunk, len(got))
		}
		for why, n := range r.Rejected {
			t.Errorf("chunk %d: %d rejected: %s", chunk, n, why)
		}
	}
}

// racing changes records between their selection and their lease.
type racing struct {
	*memstore.Crawl
	change func()
}

func (s *racing) Update(ctx context.Context, b crawldb.Batch) error {
	if s.change != nil {
		s.change()
		s.change = nil
	}
	return s.Crawl.Update(ctx, b)
}

// What was taken away meanwhile leaves its place to the next best.
func TestCandidateThatIsTaken(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		data := []crawldb.Datum{due("http://a.test/1", 9), due("http://a.test/2", 8), due("http://b.test/1", 7), due("http://b.test/2", 6)}
		db := &memstore.DB{}
		put(t, db.Crawl(), slices.Clone(data)...)
		taken := data[0]
		taken.LeasedUntil, taken.LeasedBy = now.Add(day), "other"
		crawl := &racing{Crawl: db.Crawl(), change: func() { put(t, db.Crawl(), taken) }}
		o.TopN, o.MaxPerHost = 2, 1
		r := run(t, crawl, db.Segments(), o.WithChunk(1))
		want := []string{"http://a.test/2", "http://b.test/1"}
		if o.NutchCompat { // Nutch never finds out
			want = []string{"http://b.test/1"}
		}
		if got := lists(t, db.Segments(), r); len(got) != 1 || !slices.Equal(got[0], want) || r.Rejected[generate.WaitUpdate] != 1 {
			t.Errorf("%v, want %v; %+v", got, want, r)
		}
	})
}

func TestSegmentWhoseCandidatesFallThrough(t *testing.T) {
	db := &memstore.DB{}
	d := due("http://a.example.test/", 1)
	d.FetchTime = now.Add(day)
	put(t, db.Crawl(), d)
	r := run(t, hints{Crawl: db.Crawl(), t: t, extra: []crawldb.Candidate{{URL: d.URL}}}, db.Segments(), generate.Options{})
	if len(r.Segments) > 0 || r.Rejected[generate.Schedule] == 0 {
		t.Errorf("%+v", r)
	}
	for name := range db.Segments().List(t.Context()) {
		t.Errorf("segment %s is left", name)
	}
}

func TestListSpreadsHosts(t *testing.T) {
	db := &memstore.DB{}
	var data []crawldb.Datum
	for h := range 12 {
		for i := range 1 + h*3 {
			data = append(data, due(fmt.Sprintf("http://h%d.example.test/%d", h, i), float32(i)))
		}
	}
	put(t, db.Crawl(), data...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{})
	got := list(t, db.Segments(), r.Segments[0])
	hosts := map[string]float32{}
	for i, d := range got {
		h := crawldb.Host(d.URL)
		if last, ok := hosts[h]; ok && i < 12 {
			t.Errorf("%s is among the first 12 twice", h)
		} else if ok && d.Priority >= last {
			t.Errorf("%s: priority %g after %g", h, d.Priority, last)
		}
		hosts[h] = d.Priority
	}
	if len(got) != len(data) {
		t.Errorf("%d of %d", len(got), len(data))
	}
	// Neither of a turn's hosts is favoured for its name.
	if slices.IsSortedFunc(got[:12], func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) }) {
		t.Error("hosts are in the order of their names")
	}
}

func TestSameRecordsSameSegments(t *testing.T) {
	var want [][]crawldb.Datum
	for i := range 3 {
		db := &memstore.DB{}
		data := many(200, 9)
		rand.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
		put(t, db.Crawl(), data...)
		r := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: 40, Segments: 3, MaxPerHost: 8}.WithChunk(i*30))
		var got [][]crawldb.Datum
		for _, name := range r.Segments {
			got = append(got, list(t, db.Segments(), name))
		}
		if want == nil {
			want = got
		} else if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("run %d differs", i)
		}
	}
}

func TestNameThatIsTaken(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Crawl(), many(4, 4)...)
	asked := 0
	r := run(t, db.Crawl(), db.Segments(), generate.Options{Segments: 2, TopN: 2, Taken: func(_ context.Context, name string) (bool, error) {
		asked++
		return strings.HasSuffix(name, "-000") || strings.HasSuffix(name, "-002"), nil
	}})
	if !slices.Equal(r.Segments, []string{"20260105080000-001", "20260105080000-003"}) {
		t.Errorf("%v after %d questions", r.Segments, asked)
	}
	no := errors.New("no")
	_, err := generate.Run(t.Context(), db.Crawl(), db.Segments(), generate.Options{Ahead: 9 * day, Lease: time.Hour, Now: func() time.Time { return now.Add(8 * day) },
		Taken: func(context.Context, string) (bool, error) { return false, no }})
	if !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
}

// broken is a store whose scan, and whose index if it has one, ends with an error after some
// records.
type broken struct {
	crawldb.Store
	after int
}

var errBroken = errors.New("the disk is on fire")

func (b broken) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		n := 0
		for d, err := range b.Store.Scan(ctx, r) {
			if n++; err != nil || n > b.after || !yield(d, nil) {
				break
			}
		}
		if n > b.after {
			yield(crawldb.Datum{}, errBroken)
		}
	}
}

type brokenIndex struct{ broken }

func (b brokenIndex) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		for d, err := range b.Scan(ctx, crawldb.Range{}) {
			if !yield(crawldb.Candidate{URL: d.URL, Priority: d.Priority, Due: true}, err) || err != nil {
				return
			}
		}
	}
}

type brokenMarks struct{ crawldb.Store }

func (brokenMarks) Mark(context.Context, string) (string, error) { return "", errBroken }

// There is no half selection: if not everything can be read, that is an error, and nothing
// stays leased.
func TestStoreThatFailsHalfWay(t *testing.T) {
	fails := func(name string, o generate.Options, store func(crawldb.Store) crawldb.Store) {
		t.Helper()
		db := new(memstore.DB)
		put(t, db.Crawl(), many(40, 5)...)
		r, err := generate.Run(t.Context(), store(db.Crawl()), db.Segments(), o)
		if !errors.Is(err, errBroken) || r.Selected != 0 || len(r.Segments) != 0 {
			t.Errorf("%s, %+v: %+v, %v", name, o, r, err)
		}
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil || d.LeasedBy != "" {
				t.Fatalf("%s, %+v: %+v is leased, %v", name, o, d, err)
			}
		}
		for name := range db.Segments().List(t.Context()) {
			t.Errorf("segment %s is left", name)
		}
	}
	for _, o := range []generate.Options{{}, {ExactTopN: true}, {TopN: 30}, {TopN: 30, ExactTopN: true}, {MaxPerHost: 2}, {MaxPerHost: 2, NutchCompat: true}, {MaxPerPart: 3}, {Segments: 2, TopN: 10}} {
		for _, after := range []int{0, 1, 20} {
			fails("a scan", o, func(s crawldb.Store) crawldb.Store { return broken{s, after} })
			fails("an index", o, func(s crawldb.Store) crawldb.Store { return brokenIndex{broken{s, after}} })
		}
	}
	// What is known of a domain is asked for where its parts may take turns.
	fails("marks", generate.Options{TopN: 30}, func(s crawldb.Store) crawldb.Store { return brokenMarks{s} })
}

type brokenGet struct{ crawldb.Store }

func (brokenGet) Get(context.Context, string) (crawldb.Datum, error) {
	return crawldb.Datum{}, errBroken
}

// An index is asked for no more of a host than there is room for. Whether that is
// enough takes what is known of its domain, however few pages it has, and whether
// what the filters reject is a sitemap; neither is guessed if it cannot be read.
func TestUnreadableDomainIsAnErrorNotAGuess(t *testing.T) {
	var data []crawldb.Datum
	for i := range 12 {
		data = append(data, due(fmt.Sprintf("http://www.site%d.org/%d.gz", i%4, i), float32(i)))
	}
	whole := func(s crawldb.Store) crawldb.Store { return brokenIndex{broken{s, len(data)}} }
	o := generate.Options{TopN: 30, MaxPerHost: 2, Rules: &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(string) bool { return false })}}}
	for name, store := range map[string]func(crawldb.Store) crawldb.Store{
		"marks":   func(s crawldb.Store) crawldb.Store { return whole(brokenMarks{s}) },
		"records": func(s crawldb.Store) crawldb.Store { return whole(brokenGet{s}) },
		"nothing": whole,
	} {
		db := new(memstore.DB)
		put(t, db.Crawl(), data...)
		o.Now = clock
		r, err := generate.Run(t.Context(), store(db.Crawl()), db.Segments(), o)
		if name == "nothing" && err == nil {
			continue
		}
		if !errors.Is(err, errBroken) || r.Selected != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
