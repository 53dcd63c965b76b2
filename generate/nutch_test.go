package generate_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// both runs a test as Nutch does and as we do.
func both(t *testing.T, test func(t *testing.T, o generate.Options)) {
	for _, compat := range []bool{false, true} {
		t.Run(fmt.Sprint("NutchCompat=", compat), func(t *testing.T) { test(t, generate.Options{NutchCompat: compat}) })
	}
}

// selected returns what is in each segment.
func selected(t *testing.T, o generate.Options, data ...crawldb.Datum) ([][]string, generate.Report) {
	t.Helper()
	db := &memstore.DB{}
	put(t, db.Crawl(), slices.Clone(data)...)
	r := run(t, db.Crawl(), db.Segments(), o)
	return lists(t, db.Segments(), r), r
}

// Nutch's TestGenerator.

func TestGenerateHighest(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		var data []crawldb.Datum
		for i := range 101 {
			data = append(data, due(fmt.Sprintf("http://aaa/%03d", i), float32(i)))
		}
		o.TopN = 2
		if got, _ := selected(t, o, data...); len(got) != 1 || !slices.Equal(got[0], []string{"http://aaa/099", "http://aaa/100"}) {
			t.Error(got)
		}
	})
}

func TestGenerateHostLimit(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		data := []crawldb.Datum{due("http://www.example.com/index1.html", 1), due("http://www.example.com/index2.html", 1), due("http://www.example.com/index3.html", 1)}
		for o.MaxPerHost = range 4 {
			want := o.MaxPerHost
			if want == 0 {
				want = 3
			}
			if got, r := selected(t, o, data...); len(got) != 1 || len(got[0]) != want || r.Rejected[generate.HostFull] != 3-want {
				t.Errorf("%d: %v, %+v", o.MaxPerHost, got, r)
			}
		}
	})
}

func TestGenerateDomainLimit(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		data := []crawldb.Datum{due("http://a.example.com/index.html", 1), due("http://b.example.com/index.html", 1), due("http://c.example.com/index.html", 1)}
		o.By = hostdb.ByDomain
		for o.MaxPerHost = 1; o.MaxPerHost <= 3; o.MaxPerHost++ {
			if got, _ := selected(t, o, data...); len(got) != 1 || len(got[0]) != o.MaxPerHost {
				t.Errorf("%d: %v", o.MaxPerHost, got)
			}
		}
	})
}

func TestFilter(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		data := []crawldb.Datum{due("http://www.example.com/1.html", 1), due("http://www.example.com/2.html", 1), due("http://www.example.com/3.html", 1)}
		o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(string) bool { return false })}}
		if got, r := selected(t, o, data...); len(got) != 0 || r.Rejected[generate.URLFilters] != 3 {
			t.Error(got, r)
		}
		o.NoFilter = true
		if got, _ := selected(t, o, data...); len(got) != 1 || len(got[0]) != 3 {
			t.Error(got)
		}
	})
}

func TestURLNoHost(t *testing.T) {
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain} {
		data := []crawldb.Datum{due("file:/path/index.html", 1), due("xyz://foobar/path/index.html", 1)}
		got, r := selected(t, generate.Options{By: by, NutchCompat: true}, data...)
		if len(got) != 1 || !slices.Equal(got[0], []string{"file:/path/index.html"}) || r.Rejected[generate.Malformed] != 1 {
			t.Error(got, r)
		}
		// A protocol of one's own may know the scheme.
		if got, _ := selected(t, generate.Options{By: by}, data...); len(got) != 1 || len(got[0]) != 2 {
			t.Error(got)
		}
	}
}

// letters makes records of words such as "A1 B1": a letter is a host, the best
// come first.
func letters(in string) (data []crawldb.Datum, names map[string]string) {
	names = map[string]string{}
	for i, s := range strings.Fields(in) {
		u := fmt.Sprintf("http://%s.example.test/%s", strings.ToLower(s[:1]), s[1:])
		names[u] = s
		data = append(data, due(u, float32(100-i)))
	}
	return data, names
}

func named(segments [][]string, names map[string]string) string {
	var out []string
	for _, l := range segments {
		var s []string
		for _, u := range l {
			s = append(s, names[u])
		}
		slices.Sort(s)
		out = append(out, strings.Join(s, " "))
	}
	return strings.Join(out, " | ")
}

// Nutch's reducer, compared with ours.
func TestSegmentsOfNutch(t *testing.T) {
	for _, c := range []struct {
		in                      string
		perHost, topN, segments int
		nutch, ours             string
		skipped, affected       int // Nutch's
	}{
		{"A1 B1 C1 C2 D1", 1, 2, 2, "A1 B1 | C1 C2", "A1 B1 | C1 D1", 0, 0},
		{"A1 A2 A3 A4 A5", 2, 100, 2, "A1 A2 | A3 A4", "A1 A2 | A3 A4", 1, 1},
		{"A1 A2 A3 A4 A5", 2, 3, 2, "A1 A2 | A3 A4", "A1 A2 | A3 A4", 1, 1},
		{"A1 A2 A3 B1 B2 C1 D1", 0, 3, 2, "A1 A2 A3 | B1 B2 C1", "A1 A2 A3 | B1 B2 C1", 0, 0},
		{"A1 A2 A3 B1 B2 B3 C1", 1, 10, 1, "A1 B1 C1", "A1 B1 C1", 4, 2},
		{"A1 B1 A2 B2 A3 B3 C1 C2 C3 D1 D2", 1, 3, 3, "A1 B1 C1 | A2 B2 C2 | A3 B3 C3", "A1 B1 C1 | A2 B2 C2 | A3 B3 C3", 0, 0},
		// Hosts that skip ahead overfill the last segment; we keep the best.
		{"A1 A2 A3 B1 B2 B3", 1, 2, 2, "A1 B1 | A2 B2", "A1 B1 | A2 B2", 1, 1},
		{"A1 A2 B1 B2 C1 C2", 1, 3, 2, "A1 B1 C1 | A2 B2 C2", "A1 B1 C1 | A2 B2 C2", 0, 0},
		{"A1 A2 B1 B2 B3", 2, 2, 2, "A1 A2 | B1 B2", "A1 A2 | B1 B2", 0, 0},
	} {
		for _, compat := range []bool{true, false} {
			want := c.ours
			if compat {
				want = c.nutch
			}
			data, names := letters(c.in)
			got, r := selected(t, generate.Options{MaxPerHost: c.perHost, TopN: c.topN, Segments: c.segments, NutchCompat: compat}, data...)
			if s := named(got, names); s != want {
				t.Errorf("%s; %d, %d, %d, NutchCompat %v: %s, want %s", c.in, c.perHost, c.topN, c.segments, compat, s, want)
			}
			if n := r.Rejected[generate.HostFull]; compat && (n != c.skipped || r.HostsAffected != c.affected) {
				t.Errorf("%s: %d skipped of %d hosts, want %d of %d", c.in, n, r.HostsAffected, c.skipped, c.affected)
			}
		}
	}
}

func TestHashOrder(t *testing.T) {
	for _, c := range []struct {
		url           string
		with, without int32
	}{
		{"http://a.org/x", -1338585893, 1619387795},
		{"http://www.example.com/", -487653027, 1646837242},
		{"http://nutch.apache.org/", 118133972, -550378556},
		{"http://example.com/", 354775856, 1258370371},
		{"http://example.com/a", 1426538032, 877301348},
		{"https://a.org/x", 1535717983, -1335934032},
		{"http://example.com/b", 1637888945, 468477123},
	} {
		if h := generate.HashOrder(c.url); h != c.with {
			t.Errorf("%s: %d, want %d", c.url, h, c.with)
		}
		if h := generate.HashBytes(c.url); h != c.without {
			t.Errorf("%s without its length: %d, want %d", c.url, h, c.without)
		}
	}
	// Under NutchCompat the list is in that order.
	var data []crawldb.Datum
	for i := range 50 {
		data = append(data, due(fmt.Sprintf("http://h%d.example.test/%s", i%3, strings.Repeat("x", 5*i)), float32(i)))
	}
	db := &memstore.DB{}
	put(t, db.Crawl(), data...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{NutchCompat: true})
	got := list(t, db.Segments(), r.Segments[0])
	if len(got) != 50 || !slices.IsSortedFunc(got, func(a, b crawldb.Datum) int {
		return cmp.Compare(generate.HashOrder(a.URL), generate.HashOrder(b.URL))
	}) {
		t.Error("not in the order of the hash")
	}
}

func TestPartitionHash(t *testing.T) {
	for s, want := range map[string]int32{"example.com": -1944013059, "www.example.com": -1878290138, "a.org": 91062231, "": 0} {
		if h := generate.JavaHash(s); h != want {
			t.Errorf("%s: %d, want %d", s, h, want)
		}
	}
	for _, c := range []struct {
		hash, seed int32
		n, want    int
	}{{-1944013059, 0, 2, 1}, {-1944013059, 0, 5, 4}, {91062231, 0, 2, 1}, {91062231, 1, 2, 0}, {-1, -1, 7, 0}, {0, 0, 3, 0}} {
		if got := generate.Partition(c.hash, c.seed, c.n); got != c.want {
			t.Errorf("%d^%d of %d: %d, want %d", c.hash, c.seed, c.n, got, c.want)
		}
	}
}

// Nutch tests in this order, and counts what each test rejects.
func TestReasonsOfNutch(t *testing.T) {
	rules := &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "filtered") })}}
	var data []crawldb.Datum
	add := func(name string, change func(*crawldb.Datum)) {
		for _, filtered := range []string{"", "filtered"} {
			d := due("http://a.example.test/"+name+filtered, 5)
			d.Interval = day
			change(&d)
			data = append(data, d)
		}
	}
	add("good", func(*crawldb.Datum) {})
	add("later", func(d *crawldb.Datum) { d.FetchTime = now.Add(time.Hour) })
	add("leased", func(d *crawldb.Datum) { d.LeasedUntil, d.LeasedBy = now.Add(time.Hour), "other" })
	add("expr", func(d *crawldb.Datum) { d.Retries = 1 })
	add("status", func(d *crawldb.Datum) { d.Status = crawldb.Gone })
	add("score", func(d *crawldb.Datum) { d.Priority = 1 })
	add("interval", func(d *crawldb.Datum) { d.Interval = 2 * day })
	add("errs", func(d *crawldb.Datum) { d.Retries = 2 })
	errs := 0
	o := generate.Options{Rules: rules, Status: crawldb.Unfetched, MinScore: 2, MaxInterval: day, MaxPerHost: 1,
		Where: func(d *crawldb.Datum) (bool, error) {
			if d.Retries == 2 {
				errs++
				return true, fmt.Errorf("error %d", errs)
			}
			return d.Retries == 0, nil
		}}
	want := map[generate.Reason]int{generate.Schedule: 1, generate.WaitUpdate: 1, generate.Expr: 2, generate.StatusOther: 1, generate.ScoreTooLow: 1, generate.Interval: 1}
	check := func(o generate.Options, want map[generate.Reason]int) {
		t.Helper()
		errs = 0
		got, r := selected(t, o, data...)
		if len(got) != 1 || !slices.Equal(got[0], []string{"http://a.example.test/good"}) {
			t.Error(got)
		}
		if fmt.Sprint(r.Rejected) != fmt.Sprint(want) || r.ExprErrors == 0 || r.ExprError.Error() != "error 1" {
			t.Errorf("%+v\nwant %+v", r, want)
		}
	}
	want[generate.URLFilters] = 8
	o.NutchCompat = true
	check(o, want)
	// We ask the rules last, about what may be selected.
	want = map[generate.Reason]int{generate.Schedule: 2, generate.WaitUpdate: 2, generate.Expr: 4, generate.StatusOther: 2, generate.ScoreTooLow: 2, generate.Interval: 2, generate.URLFilters: 1}
	o.NutchCompat = false
	check(o, want)
}

// A lease is of the clock on the wall; in Nutch -adddays shifts what it is
// compared with, so that -adddays 8 passes over every lock.
func TestAheadAndLeases(t *testing.T) {
	leased := due("http://a.example.test/", 1)
	leased.LeasedUntil, leased.LeasedBy = now.Add(7*day), "other"
	for _, c := range []struct {
		compat bool
		want   int
	}{{false, 0}, {true, 1}} {
		_, r := selected(t, generate.Options{Ahead: 8 * day, NutchCompat: c.compat}, leased)
		if r.Selected != c.want || r.Rejected[generate.WaitUpdate] != 1-c.want {
			t.Errorf("NutchCompat %v: %+v", c.compat, r)
		}
	}
}

// generate.min.score is 0 by default, which negative scores do not reach.
func TestMinScoreOfZero(t *testing.T) {
	data := []crawldb.Datum{due("http://a.example.test/1", -1), due("http://a.example.test/2", 0)}
	for compat, want := range map[bool]int{false: 2, true: 1} {
		if _, r := selected(t, generate.Options{NutchCompat: compat}, data...); r.Selected != want {
			t.Errorf("NutchCompat %v: %+v", compat, r)
		}
	}
	if _, r := selected(t, generate.Options{MinScore: -0.5}, data...); r.Selected != 1 {
		t.Errorf("%+v", r)
	}
	both(t, func(t *testing.T, o generate.Options) { // the default of Nutch's code, which is off
		o.MinScore = float32(math.NaN())
		if _, r := selected(t, o, data...); r.Selected != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// A URL whose normal form is another has no place in a crawl; Nutch does not look.
func TestNormalFormIsAnother(t *testing.T) {
	d := due("http://a.example.test/x/../y", 1)
	for compat, want := range map[bool]int{false: 0, true: 1} {
		if _, r := selected(t, generate.Options{NutchCompat: compat, Rules: urlfilter.Default()}, d); r.Selected != want {
			t.Errorf("NutchCompat %v: %+v", compat, r)
		}
	}
	if _, r := selected(t, generate.Options{NoNormalize: true, Rules: urlfilter.Default()}, d); r.Selected != 1 {
		t.Errorf("%+v", r)
	}
}

// canon normalizes hosts such as m1.example.test to example.test in the scopes by
// which generate groups.
type canon struct{ scope urlfilter.Scope }

func (c canon) Normalize(scope urlfilter.Scope, url string) (string, error) {
	if scope == c.scope {
		if i := strings.Index(url, ".example.test"); i > 0 {
			return "http://example.test" + url[i+len(".example.test"):], nil
		}
	}
	return url, nil
}

func TestCountingNormalizes(t *testing.T) {
	both(t, func(t *testing.T, o generate.Options) {
		data := []crawldb.Datum{due("http://m1.example.test/a", 3), due("http://m2.example.test/b", 2), due("http://m3.example.test/c", 1)}
		o.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{canon{urlfilter.HostCount}}}
		o.MaxPerHost = 2
		if _, r := selected(t, o, data...); r.Selected != 2 || r.Rejected[generate.HostFull] != 1 {
			t.Errorf("%+v", r)
		}
		o.NoNormalize = true
		if _, r := selected(t, o, data...); r.Selected != 3 {
			t.Errorf("%+v", r)
		}
		// What a normalizer makes one host for the lists is on one list.
		o = generate.Options{NutchCompat: o.NutchCompat, Lists: generate.Lists{Count: 7}, Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{canon{urlfilter.Partition}}}}
		db := &memstore.DB{}
		put(t, db.Crawl(), data...)
		r := run(t, db.Crawl(), db.Segments(), o)
		on := map[int]bool{}
		for _, d := range list(t, db.Segments(), r.Segments[0]) {
			turn, err := segment.TakePlacement(&d)
			if err != nil {
				t.Fatal(err)
			}
			on[turn.List] = true
		}
		if len(on) != 1 {
			t.Errorf("on lists %v", on)
		}
		// Without normalizers each is a host of its own, but Nutch normalizes here
		// whatever its options.
		o.NoNormalize = true
		db = &memstore.DB{}
		put(t, db.Crawl(), data...)
		r = run(t, db.Crawl(), db.Segments(), o)
		clear(on)
		for _, turn := range turns(t, db.Segments(), r.Segments[0]) {
			on[turn.List] = true
		}
		if (len(on) == 1) != o.NutchCompat {
			t.Errorf("without normalizers on lists %v", on)
		}
	})
}
