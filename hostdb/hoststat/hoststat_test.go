package hoststat_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func clock() time.Time { return now }

// crawlOf returns a crawl db with these records.
func crawlOf(t testing.TB, records ...crawldb.Datum) *memstore.Crawl {
	t.Helper()
	s := new(memstore.Crawl)
	put(t, s, records...)
	return s
}

func put(t testing.TB, s crawldb.Store, records ...crawldb.Datum) {
	t.Helper()
	slices.SortFunc(records, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	urls := make([]string, len(records))
	for i := range records {
		urls[i] = records[i].URL
	}
	if err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }}); err != nil {
		t.Fatal(err)
	}
}

func putHosts(t testing.TB, s hostdb.Store, hosts ...hostdb.Host) {
	t.Helper()
	for _, h := range hosts {
		if err := s.Update(t.Context(), h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t testing.TB, crawl crawldb.Store, hosts hostdb.Store, o hoststat.Options) hoststat.Report {
	t.Helper()
	if o.Now == nil {
		o.Now = clock
	}
	r, err := hoststat.Run(t.Context(), crawl, hosts, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func all(t testing.TB, hosts hostdb.Store) map[string]hostdb.Host {
	t.Helper()
	m := map[string]hostdb.Host{}
	for h, err := range hosts.Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		m[h.Name] = h
	}
	return m
}

// page is a record of a page that was fetched.
func page(url string, meta ...string) crawldb.Datum {
	return crawldb.Datum{URL: url, Status: crawldb.Fetched, FetchTime: now, Meta: crawldb.MetaOf(meta...)}
}

func TestRun(t *testing.T) {
	crawl := crawlOf(t,
		page("http://a.example/", "Content-Type", "text/html", "_rs_", "100"),
		page("http://a.example/1", "Content-Type", "text/html", "_rs_", "300"),
		crawldb.Datum{URL: "http://a.example/2", Status: crawldb.NotModified, Meta: crawldb.MetaOf("Content-Type", "text/plain", "_rs_", "200")},
		crawldb.Datum{URL: "http://a.example/3", Status: crawldb.Unfetched, FetchTime: now.Add(-48*time.Hour - 1e6)},
		crawldb.Datum{URL: "http://a.example/4", Status: crawldb.Unfetched, FetchTime: now.Add(-48 * time.Hour), Retries: 2},
		crawldb.Datum{URL: "http://a.example/5", Status: crawldb.Gone, Retries: 3, Meta: crawldb.MetaOf("Content-Type", "text/html", "_rs_", "1")},
		crawldb.Datum{URL: "http://a.example/6", Status: crawldb.RedirTemp},
		crawldb.Datum{URL: "http://a.example/7", Status: crawldb.RedirPerm},
		crawldb.Datum{URL: "http://a.example/8", Status: crawldb.Duplicate},
		crawldb.Datum{URL: "http://a.example/9", Status: crawldb.Orphan},
		crawldb.Datum{URL: "http://a.example/a", Status: crawldb.ParseFailed},
		crawldb.Datum{URL: "http://b.example/1", Status: crawldb.Unfetched, FetchTime: now},
		crawldb.Datum{URL: "mailto:a@a.example", Status: crawldb.Unfetched},
	)
	hosts := new(memstore.Hosts)
	robots := []hostdb.Robots{{Origin: "http://a.example", Status: 404}}
	putHosts(t, hosts,
		hostdb.Host{Name: "a.example", NextFetch: now, Robots: robots, Stats: hostdb.Stats{Fetched: 3}, Score: 2, DNSFailures: 1, LastCheck: now.Add(-time.Hour),
			Pages: hostdb.Pages{Gone: 99}, Fields: map[string]float64{"Content-Type.image/png": 4}, ConnectionFailures: 7, Homepage: "http://old.example/", Overdue: 5},
		hostdb.Host{Name: "gone.example", Pages: hostdb.Pages{Fetched: 1}, Homepage: "http://gone.example/", Counted: now},
	)
	r := run(t, crawl, hosts, hoststat.Options{Scores: map[string]float32{"b.example": 0.5, "a.example": -1}})
	if want := (hoststat.Report{Records: 13, NoHost: 1, Hosts: 3, Empty: 1}); r != want {
		t.Errorf("report is %+v, want %+v", r, want)
	}
	want := map[string]hostdb.Host{
		"a.example": {Name: "a.example", NextFetch: now, Robots: robots, Stats: hostdb.Stats{Fetched: 3}, Score: 2, DNSFailures: 1, LastCheck: now.Add(-time.Hour),
			Pages:    hostdb.Pages{Unfetched: 2, Fetched: 2, Gone: 1, RedirTemp: 1, RedirPerm: 1, NotModified: 1, Duplicate: 1, Orphan: 1, ParseFailed: 1},
			Homepage: "http://a.example/", ConnectionFailures: 2, Overdue: 1, Counted: now,
			Fields: map[string]float64{"Content-Type.text/html": 2, "Content-Type.text/plain": 1, "min._rs_": 100, "max._rs_": 300, "avg._rs_": 200,
				"pct50._rs_": 200, "pct75._rs_": 300, "pct95._rs_": 300, "pct99._rs_": 300}},
		"b.example":    {Name: "b.example", Score: .5, Pages: hostdb.Pages{Unfetched: 1}, Counted: now, Fields: map[string]float64{}},
		"gone.example": {Name: "gone.example", Counted: now, Fields: map[string]float64{}},
	}
	if got := all(t, hosts); !reflect.DeepEqual(got, want) {
		t.Errorf("hosts are\n%+v, want\n%+v", got, want)
	}
	// A second run finds the same.
	run(t, crawl, hosts, hoststat.Options{})
	if got := all(t, hosts); !reflect.DeepEqual(got, want) {
		t.Errorf("after a second run hosts are\n%+v, want\n%+v", got, want)
	}
}

func TestPercentiles(t *testing.T) {
	var records []crawldb.Datum
	for i := range 1000 {
		records = append(records, page(fmt.Sprintf("http://a.example/%d", i), "_rs_", fmt.Sprint(i+1)))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(records), func(i, k int) { records[i].Meta, records[k].Meta = records[k].Meta, records[i].Meta })
	crawl := crawlOf(t, records...)
	fields := func(o hoststat.Options) map[string]float64 {
		hosts := new(memstore.Hosts)
		run(t, crawl, hosts, o)
		return all(t, hosts)["a.example"].Fields
	}
	want := map[string]float64{"min._rs_": 1, "max._rs_": 1000, "avg._rs_": 500.5, "pct50._rs_": 501, "pct75._rs_": 751, "pct95._rs_": 951, "pct99._rs_": 991}
	if got := fields(hoststat.Options{}); !maps.Equal(got, want) {
		t.Errorf("fields are %v, want %v", got, want)
	}
	if got := fields(hoststat.Options{Percentiles: []float64{0, 99.9, 100}}); got["pct0._rs_"] != 1 || got["pct99.9._rs_"] != 1000 || got["pct100._rs_"] != 1000 {
		t.Errorf("fields are %v", got)
	}
	// A sample is random, and always the same; only percentiles are made of it.
	got := fields(hoststat.Options{Sample: 100})
	if got["min._rs_"] != 1 || got["max._rs_"] != 1000 || got["avg._rs_"] != 500.5 {
		t.Errorf("fields of a sample are %v", got)
	}
	if p := got["pct50._rs_"]; p < 350 || p > 650 {
		t.Errorf("the median of a sample is %v", p)
	}
	if again := fields(hoststat.Options{Sample: 100}); !maps.Equal(got, again) {
		t.Errorf("one sample is %v, another %v", got, again)
	}
}

// Of n values in order the one at floor(P·n/100) is the P-th percentile, counted
// with whole numbers.
func TestPercentilesAreExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 7, 99, 100, 101, 5500} {
		values := make([]int, n)
		var records []crawldb.Datum
		for i := range values {
			values[i] = rnd.IntN(2*n) - n
			records = append(records, page(fmt.Sprintf("http://a.example/%d", i), "v", fmt.Sprint(values[i])))
		}
		slices.Sort(values)
		var tenths []int
		var asked []float64
		for range 40 {
			k := rnd.IntN(1001)
			tenths, asked = append(tenths, k, 14), append(asked, float64(k)/10, 1.4)
		}
		hosts := new(memstore.Hosts)
		run(t, crawlOf(t, records...), hosts, hoststat.Options{Numbers: []string{"v"}, Percentiles: asked})
		fields := all(t, hosts)["a.example"].Fields
		for i, k := range tenths {
			if got, want := fields[fmt.Sprintf("pct%v.v", asked[i])], float64(values[min(k*n/1000, n-1)]); got != want {
				t.Errorf("percentile %v of %d values is %v, want %v", asked[i], n, got, want)
			}
		}
	}
}

func TestMeanOfHugeValues(t *testing.T) {
	hosts := new(memstore.Hosts)
	run(t, crawlOf(t, page("http://a.example/1", "v", "1e308"), page("http://a.example/2", "v", "1.5e308")), hosts, hoststat.Options{Numbers: []string{"v"}})
	if got := all(t, hosts)["a.example"].Fields["avg.v"]; got != math.MaxFloat64 {
		t.Errorf("the mean is %v", got)
	}
}

func TestValues(t *testing.T) {
	var records []crawldb.Datum
	for i, v := range []string{"1", "2.5", "-3", "", "x", "NaN", "Inf", "1e400", "0x10", " 4"} {
		records = append(records, page(fmt.Sprintf("http://n.example/%d", i), "n", v, "t", v))
	}
	for i := range 300 {
		records = append(records, page(fmt.Sprintf("http://t.example/%03d", i), "t", fmt.Sprint("v", i)))
	}
	records = append(records, page("http://t.example/300", "t", "v250"), page("http://t.example/301", "t", strings.Repeat("x", 257)))
	hosts := new(memstore.Hosts)
	run(t, crawlOf(t, records...), hosts, hoststat.Options{Numbers: []string{"n"}, Texts: []string{"t"}, Percentiles: []float64{50}})
	n := all(t, hosts)["n.example"].Fields
	want := map[string]float64{"min.n": -3, "max.n": 2.5, "avg.n": .5 / 3, "pct50.n": 1}
	maps.DeleteFunc(n, func(k string, _ float64) bool { return strings.HasPrefix(k, "t.") })
	if !maps.Equal(n, want) {
		t.Errorf("fields are %v, want %v", n, want)
	}
	if f := all(t, hosts)["t.example"].Fields; len(f) != 100 || f["t.v250"] != 2 || f["t.v0"] != 1 {
		t.Errorf("%d texts are kept, v250 %v times: want the 100 most frequent", len(f), f["t.v250"])
	}
}

func TestHomepage(t *testing.T) {
	at := func(url string, s crawldb.Status, meta ...string) crawldb.Datum {
		return crawldb.Datum{URL: url, Status: s, Meta: crawldb.MetaOf(meta...)}
	}
	moved := func(url, target string) crawldb.Datum {
		return at(url, crawldb.RedirPerm, "_pst_", "moved(12), lastModified=0: "+target)
	}
	for _, test := range []struct {
		name    string
		by      hostdb.By
		records []crawldb.Datum
		want    string
	}{
		{"fetched", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.Fetched)}, "http://a.example/"},
		{"not fetched", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.Unfetched)}, ""},
		{"a path", hostdb.ByHost, []crawldb.Datum{at("http://a.example/index.html", crawldb.Fetched)}, ""},
		{"a query", hostdb.ByHost, []crawldb.Datum{at("http://a.example/?", crawldb.Fetched)}, ""},
		{"a port", hostdb.ByHost, []crawldb.Datum{at("http://a.example:8080/", crawldb.Fetched)}, ""},
		{"a user", hostdb.ByHost, []crawldb.Datum{at("http://me@a.example/", crawldb.Fetched)}, ""},
		{"no path", hostdb.ByHost, []crawldb.Datum{at("http://a.example", crawldb.Fetched)}, ""},
		{"gone", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.Gone)}, "http://a.example/"},
		{"a redirect", hostdb.ByHost, []crawldb.Datum{moved("http://a.example/", "https://www.a.example/en")}, "https://www.a.example/en"},
		{"a redirect to somewhere", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.RedirTemp)}, ""},
		{"a redirect to nowhere", hostdb.ByHost, []crawldb.Datum{moved("http://a.example/", "")}, ""},
		{"https is better", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.Fetched), at("https://a.example/", crawldb.NotModified)}, "https://a.example/"},
		{"a page is better than a redirect", hostdb.ByHost, []crawldb.Datum{at("http://a.example/", crawldb.Fetched), moved("https://a.example/", "http://a.example/")}, "http://a.example/"},
		{"a redirect is better than nothing", hostdb.ByHost, []crawldb.Datum{moved("http://a.example/", "http://b.example/"), at("https://a.example/", crawldb.Gone)}, "http://b.example/"},
		{"www of a domain", hostdb.ByDomain, []crawldb.Datum{at("https://www.a.com/", crawldb.Fetched), at("http://b.a.com/", crawldb.Fetched)}, "https://www.a.com/"},
		{"a domain", hostdb.ByDomain, []crawldb.Datum{at("https://www.a.com/", crawldb.Fetched), at("http://a.com/", crawldb.Fetched)}, "http://a.com/"},
	} {
		hosts := new(memstore.Hosts)
		run(t, crawlOf(t, test.records...), hosts, hoststat.Options{By: test.by})
		name := "a.example"
		if test.by == hostdb.ByDomain {
			name = "a.com"
		}
		if got := all(t, hosts)[name].Homepage; got != test.want {
			t.Errorf("%s: the homepage is %q, want %q", test.name, got, test.want)
		}
	}
}

// Whatever the spelling of a URL, its host has one record with all pages.
func TestGroups(t *testing.T) {
	urls := []string{
		"http://a.example/", "http://a.example/1", "https://a.example/", "http://a.example:8080/", "http://a.example?x", "http://a.example", "HTTP://A.EXAMPLE/2", "http://me@a.example/", "http://a.example./",
		"http://b.a.example/", "http://c.a.example/", "http://z.example/", "http://me@only.example/",
		// Hosts under a name that the public suffix list does not have are domains of
		// their own, and lie within each other.
		"http://a.a.nosuchtld/", "http://a.nosuchtld/", "http://b.a.nosuchtld/", "http://a.b.a.nosuchtld/", "http://b.nosuchtld/", "http://www.a.co.uk/", "http://b.a.co.uk/", "http://co.uk/",
		"http://amazonaws.com/", "http://a.compute.amazonaws.com/", "http://b.compute.amazonaws.com/", "http://compute.amazonaws.com/", "http://x.amazonaws.com/",
		"http://192.0.2.1/", "http://192.0.2.10/", "http://[::1]/", "http://[::1]:80/", "http://localhost/", "news:x", "",
	}
	var records []crawldb.Datum
	for _, u := range urls {
		records = append(records, crawldb.Datum{URL: u, Status: crawldb.Fetched})
	}
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain} {
		want := map[string]int64{}
		for _, u := range urls {
			if k := by.Key(u); k != "" {
				want[k]++
			}
		}
		hosts, got := new(memstore.Hosts), map[string]int64{}
		begun := map[string]int{}
		r := run(t, crawlOf(t, records...), hosts, hoststat.Options{By: by, Processors: []hoststat.Processor{
			func(host string) (func(*crawldb.Datum), func(*hostdb.Host)) {
				begun[host]++
				n := 0
				return func(d *crawldb.Datum) { n++ }, func(h *hostdb.Host) { h.Fields["seen"] = float64(n) }
			},
			func(string) (func(*crawldb.Datum), func(*hostdb.Host)) { return nil, nil },
		}})
		for name, h := range all(t, hosts) {
			got[name] = h.Pages.Total()
			if h.Fields["seen"] != float64(h.Pages.Total()) || begun[name] != 1 {
				t.Errorf("%v: a processor was begun %d times for %s and saw %v records of %d", by, begun[name], name, h.Fields["seen"], h.Pages.Total())
			}
		}
		if !maps.Equal(got, want) || r.Hosts != len(want) || r.NoHost != 2 {
			t.Errorf("%v: %+v; hosts have\n%v, want\n%v", by, r, got, want)
		}
	}
}

func TestFiltersAndLimit(t *testing.T) {
	crawl := func() *memstore.Crawl {
		return crawlOf(t, page("http://a.example/"), page("http://a.example/1"), page("http://b.example/"), page("http://c.example/"),
			crawldb.Datum{URL: "http://b.example/1", Status: crawldb.Duplicate}, crawldb.Datum{URL: "http://c.example/1", Status: crawldb.Unfetched})
	}
	with := func(hosts hostdb.Store) []string {
		var names []string
		for name, h := range all(t, hosts) {
			if !h.Counted.IsZero() {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	rules := &urlfilter.Rules{
		Normalizers: []urlfilter.Normalizer{rename{"http://b.example/", "http://a.example/"}},
		Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return u != "http://c.example/" })},
	}
	for _, test := range []struct {
		name string
		o    hoststat.Options
		want []string
		r    hoststat.Report
	}{
		{"none", hoststat.Options{}, []string{"a.example", "b.example", "c.example", "old.example"}, hoststat.Report{Records: 6, Hosts: 4, Empty: 1}},
		{"rules", hoststat.Options{Rules: rules}, []string{"a.example", "old.example"}, hoststat.Report{Records: 6, Hosts: 2, Empty: 1, Filtered: 2}},
		{"limit", hoststat.Options{URLLimit: 2}, []string{"a.example", "b.example", "c.example"}, hoststat.Report{Records: 6, Hosts: 3, BelowLimit: 1}},
		{"limit as Nutch counts", hoststat.Options{URLLimit: 2, NutchCompat: true}, []string{"a.example", "c.example"}, hoststat.Report{Records: 6, Hosts: 2, BelowLimit: 2}},
	} {
		hosts := new(memstore.Hosts)
		putHosts(t, hosts, hostdb.Host{Name: "b.example", NextFetch: now, Counted: now, Pages: hostdb.Pages{Gone: 1}}, hostdb.Host{Name: "c.example", Counted: now}, hostdb.Host{Name: "old.example", Counted: now})
		if r := run(t, crawl(), hosts, test.o); r != test.r {
			t.Errorf("%s: report is %+v, want %+v", test.name, r, test.r)
		}
		if got := with(hosts); !slices.Equal(got, test.want) {
			t.Errorf("%s: statistics have %v, want %v", test.name, got, test.want)
		}
		b, err := hosts.Get(t.Context(), "b.example")
		if err != nil || !b.NextFetch.Equal(now) || b.Pages.Gone != 0 {
			t.Errorf("%s: of b.example there is %+v, %v", test.name, b, err)
		}
		if _, err := hosts.Get(t.Context(), "c.example"); test.name == "rules" && !errors.Is(err, hostdb.ErrNotFound) {
			t.Errorf("%s: c.example is still there: %v", test.name, err)
		}
	}
}

type rename [2]string

func (r rename) Normalize(_ urlfilter.Scope, url string) (string, error) {
	if url == r[0] {
		return r[1], nil
	}
	return url, nil
}

// What is no statistic stays when the statistics of a host are removed.
func TestDropKeepsTheRest(t *testing.T) {
	for field := range reflect.TypeFor[hostdb.Host]().NumField() {
		name := reflect.TypeFor[hostdb.Host]().Field(field).Name
		want := hostdb.Host{Name: "small.example"}
		full := reflect.ValueOf(hostdb.Host{
			NextFetch: now, LastFetch: now, Grants: []time.Time{now}, CrawlDelay: time.Second, Backoff: 1, Elapsed: time.Second,
			Spent: hostdb.Spent{Day: now, Requests: 1}, Robots: []hostdb.Robots{{Origin: "http://small.example", Status: 404}},
			Stats: hostdb.Stats{Fetched: 1}, Signals: hostdb.SignalStats{False: 2, Segment: "20260101000000-000"},
		}).Field(field)
		if name == "Name" || full.IsZero() {
			continue
		}
		reflect.ValueOf(&want).Elem().Field(field).Set(full)
		was := want
		was.Pages, was.Homepage, was.Score, was.DNSFailures, was.ConnectionFailures = hostdb.Pages{Fetched: 1}, "http://small.example/", 1, 1, 1
		was.LastCheck, was.Overdue, was.Fields, was.Counted = now, 1, map[string]float64{"avg._rs_": 1}, now
		hosts := new(memstore.Hosts)
		putHosts(t, hosts, was)
		run(t, crawlOf(t, page("http://small.example/")), hosts, hoststat.Options{URLLimit: 2})
		if got, err := hosts.Get(t.Context(), want.Name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: of the host there is %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// By domain, the records that hosts have for their robots.txt files are no
// domains, and lose the statistics that they have from before.
func TestHostsBesideDomains(t *testing.T) {
	hosts := new(memstore.Hosts)
	robots := []hostdb.Robots{{Origin: "http://www.a.com"}}
	putHosts(t, hosts,
		hostdb.Host{Name: "a.com", NextFetch: now}, hostdb.Host{Name: "www.a.com", Robots: robots}, hostdb.Host{Name: "x.a.com", Robots: robots, Counted: now, Pages: hostdb.Pages{Gone: 1}, Overdue: 1, LastCheck: now},
		hostdb.Host{Name: "y.a.com", Counted: now}, hostdb.Host{Name: "b.com"}, hostdb.Host{Name: ""})
	r := run(t, crawlOf(t, page("http://www.a.com/"), page("http://x.a.com/")), hosts, hoststat.Options{By: hostdb.ByDomain})
	if want := (hoststat.Report{Records: 2, Hosts: 2, Empty: 1}); r != want {
		t.Errorf("report is %+v, want %+v", r, want)
	}
	none := map[string]float64{}
	want := map[string]hostdb.Host{
		"":          {},
		"a.com":     {Name: "a.com", NextFetch: now, Pages: hostdb.Pages{Fetched: 2}, Homepage: "http://www.a.com/", Counted: now, Fields: none},
		"b.com":     {Name: "b.com", Counted: now, Fields: none},
		"www.a.com": {Name: "www.a.com", Robots: robots},
		"x.a.com":   {Name: "x.a.com", Robots: robots},
	}
	if got := all(t, hosts); !reflect.DeepEqual(got, want) {
		t.Errorf("hosts are\n%+v, want\n%+v", got, want)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []hoststat.Options{
		{Percentiles: []float64{101}}, {Percentiles: []float64{-1}},
		{URLLimit: -1}, {Sample: -1}, {OverdueAfter: -1}, {Recheck: -1}, {Resolvers: -1},
	} {
		if _, err := hoststat.Run(t.Context(), new(memstore.Crawl), new(memstore.Hosts), o); err == nil || !strings.HasPrefix(err.Error(), "hoststat: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

var errBroken = errors.New("broken")

type brokenCrawl struct{ crawldb.Store }

func (b brokenCrawl) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for d, err := range b.Store.Scan(ctx, r) {
			if !yield(d, err) {
				return
			}
		}
		yield(crawldb.Datum{}, errBroken)
	}
}

type brokenHosts struct {
	hostdb.Store
	get, update, scan, sync bool
}

func (b brokenHosts) Get(ctx context.Context, name string) (hostdb.Host, error) {
	if b.get {
		return hostdb.Host{}, errBroken
	}
	return b.Store.Get(ctx, name)
}

func (b brokenHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if b.update {
		return errBroken
	}
	return b.Store.Update(ctx, name, next)
}

func (b brokenHosts) Scan(ctx context.Context) iter.Seq2[hostdb.Host, error] {
	if b.scan {
		return func(yield func(hostdb.Host, error) bool) { yield(hostdb.Host{}, errBroken) }
	}
	return b.Store.Scan(ctx)
}

func (b brokenHosts) Sync(ctx context.Context) error {
	if b.sync {
		return errBroken
	}
	return b.Store.Sync(ctx)
}

func TestStoresThatFail(t *testing.T) {
	crawl := crawlOf(t, page("http://a.example/"), page("http://b.example/"))
	checks := hoststat.Options{CheckNew: true, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}}
	for name, run := range map[string]func() (hoststat.Report, error){
		"scan of the crawl db": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), brokenCrawl{crawl}, new(memstore.Hosts), hoststat.Options{})
		},
		"update": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), crawl, brokenHosts{Store: new(memstore.Hosts), update: true}, hoststat.Options{})
		},
		"update after a lookup": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), crawl, brokenHosts{Store: new(memstore.Hosts), update: true}, checks)
		},
		"get": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), crawl, brokenHosts{Store: new(memstore.Hosts), get: true}, checks)
		},
		"scan": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), crawl, brokenHosts{Store: new(memstore.Hosts), scan: true}, checks)
		},
		"sync": func() (hoststat.Report, error) {
			return hoststat.Run(t.Context(), crawl, brokenHosts{Store: new(memstore.Hosts), sync: true}, hoststat.Options{})
		},
	} {
		if _, err := run(); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	checks.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		cancel()
		<-ctx.Done()
		return nil, &net.DNSError{IsNotFound: true}
	}
	hosts := new(memstore.Hosts)
	if _, err := hoststat.Run(ctx, crawl, hosts, checks); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was cancelled: %v", err)
	}
	for name, h := range all(t, hosts) {
		if h.DNSFailures != 0 {
			t.Errorf("%s failed because the run was cancelled", name)
		}
	}
}

// The checks of names, modelled by hand on Nutch's with its two inverted tests
// turned round.
func TestLookups(t *testing.T) {
	const hour = time.Hour
	yes := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	no := func(context.Context, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	slow := func(context.Context, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "timeout", IsTimeout: true}
	}
	empty := func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, test := range []struct {
		name   string
		o      hoststat.Options
		last   time.Time
		failed int64
		// What is left: purged if both are zero.
		wantLast   time.Time
		wantFailed int64
		want       hoststat.Report
	}{
		{"no check", hoststat.Options{Lookup: no}, time.Time{}, 0, time.Time{}, 0, hoststat.Report{}},
		{"new", hoststat.Options{Lookup: yes, CheckNew: true}, time.Time{}, 0, now, 0, hoststat.Report{Checked: 1, NewKnown: 1}},
		{"new, unknown", hoststat.Options{Lookup: no, CheckNew: true}, time.Time{}, 0, now, 1, hoststat.Report{Checked: 1, NewUnknown: 1}},
		{"new, without address", hoststat.Options{Lookup: empty, CheckNew: true}, time.Time{}, 0, now, 1, hoststat.Report{Checked: 1, NewUnknown: 1}},
		{"new, no answer", hoststat.Options{Lookup: slow, CheckNew: true}, time.Time{}, 0, time.Time{}, 0, hoststat.Report{Checked: 1, Unanswered: 1}},
		{"new, no answer but a panic", hoststat.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) { panic("oh") }, CheckNew: true}, time.Time{}, 0, time.Time{}, 0, hoststat.Report{Checked: 1, Unanswered: 1}},
		{"known since a time to come", hoststat.Options{Lookup: no, CheckKnown: true}, ago(-1000 * hour), 0, now, 1, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"new, no answer, as Nutch", hoststat.Options{Lookup: slow, CheckNew: true, NutchCompat: true}, time.Time{}, 0, now, 1, hoststat.Report{Checked: 1, NewUnknown: 1}},
		{"new, others wanted", hoststat.Options{Lookup: no, CheckKnown: true, CheckFailed: true, Force: true}, time.Time{}, 0, time.Time{}, 0, hoststat.Report{}},
		{"known, too early", hoststat.Options{Lookup: no, CheckKnown: true}, ago(23 * hour), 0, ago(23 * hour), 0, hoststat.Report{}},
		{"known, forced", hoststat.Options{Lookup: no, CheckKnown: true, Force: true}, ago(23 * hour), 0, now, 1, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"known, in time", hoststat.Options{Lookup: yes, CheckKnown: true}, ago(24 * hour), 0, now, 0, hoststat.Report{Checked: 1, ExistingKnown: 1}},
		{"known, lost", hoststat.Options{Lookup: no, CheckKnown: true}, ago(24 * hour), 0, now, 1, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"known, no answer", hoststat.Options{Lookup: slow, CheckKnown: true}, ago(24 * hour), 0, ago(24 * hour), 0, hoststat.Report{Checked: 1, Unanswered: 1}},
		{"known, others wanted", hoststat.Options{Lookup: no, CheckNew: true, CheckFailed: true, Force: true}, ago(99 * hour), 0, ago(99 * hour), 0, hoststat.Report{}},
		{"failed twice, too early", hoststat.Options{Lookup: yes, CheckFailed: true}, ago(47 * hour), 2, ago(47 * hour), 2, hoststat.Report{}},
		{"failed twice, in time", hoststat.Options{Lookup: yes, CheckFailed: true}, ago(48 * hour), 2, now, 0, hoststat.Report{Checked: 1, Rediscovered: 1}},
		{"failed twice, shorter wait", hoststat.Options{Lookup: yes, CheckFailed: true, Recheck: hour}, ago(2 * hour), 2, now, 0, hoststat.Report{Checked: 1, Rediscovered: 1}},
		{"failed again", hoststat.Options{Lookup: no, CheckFailed: true}, ago(48 * hour), 2, now, 3, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"failed too often", hoststat.Options{Lookup: no, CheckFailed: true}, ago(72 * hour), 3, time.Time{}, 0, hoststat.Report{Checked: 1, ExistingUnknown: 1, Purged: 1, Hosts: -1}},
		{"failed, never to be purged", hoststat.Options{Lookup: no, CheckFailed: true, PurgeAfter: -1}, ago(72 * hour), 3, now, 4, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"failed, purged late", hoststat.Options{Lookup: no, CheckFailed: true, PurgeAfter: 10}, ago(72 * hour), 3, now, 4, hoststat.Report{Checked: 1, ExistingUnknown: 1}},
		{"failed without end", hoststat.Options{Lookup: yes, CheckFailed: true}, ago(24 * hour), 1 << 62, ago(24 * hour), 1 << 62, hoststat.Report{}},
	} {
		for _, crawl := range []*memstore.Crawl{crawlOf(t, page("http://a.example/")), new(memstore.Crawl)} {
			hosts := new(memstore.Hosts)
			putHosts(t, hosts, hostdb.Host{Name: "a.example", LastCheck: test.last, DNSFailures: test.failed})
			r := run(t, crawl, hosts, test.o)
			test.want.Records, test.want.Empty = r.Records, 1-r.Records
			want := test.want
			want.Hosts++
			if r != want {
				t.Errorf("%s: report is %+v, want %+v", test.name, r, want)
			}
			h, ok := all(t, hosts)["a.example"]
			if ok == (want.Purged == 1) || !h.LastCheck.Equal(test.wantLast) || h.DNSFailures != test.wantFailed {
				t.Errorf("%s: there is (%t) %+v, want a check at %v with %d failures", test.name, ok, h, test.wantLast, test.wantFailed)
			}
			if ok && h.Pages.Fetched != int64(r.Records) {
				t.Errorf("%s: %d pages are counted", test.name, h.Pages.Fetched)
			}
		}
	}
}

// A domain may have no address of its own; an address has no brackets when it is
// looked up.
func TestLookupNames(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	o := hoststat.Options{By: hostdb.ByDomain, CheckNew: true, Resolvers: 3, Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[host]++
		if host == "www.a.com" || host == "b.com" || host == "::1" {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		return nil, &net.DNSError{IsNotFound: true}
	}}
	var records []crawldb.Datum
	for i := range 20 {
		records = append(records, page(fmt.Sprintf("http://www.n%d.com/", i)))
	}
	records = append(records, page("http://www.a.com/"), page("http://x.a.com/"), page("http://www.b.com/"), page("http://[::1]/"))
	r := run(t, crawlOf(t, records...), new(memstore.Hosts), o)
	if want := (hoststat.Report{Records: 24, Hosts: 23, Checked: 23, NewKnown: 3, NewUnknown: 20}); r != want {
		t.Errorf("report is %+v, want %+v", r, want)
	}
	if len(asked) != 44 || asked["a.com"] != 1 || asked["www.b.com"] != 0 || asked["www.a.com"] != 1 || asked["::1"] != 1 {
		t.Errorf("asked for %v", asked)
	}
}

// By default names are looked up by the system, which takes an address for itself.
func TestLookupByTheSystem(t *testing.T) {
	r := run(t, crawlOf(t, page("http://192.0.2.1/"), page("http://[2001:db8::1]/")), new(memstore.Hosts), hoststat.Options{CheckNew: true})
	if want := (hoststat.Report{Records: 2, Hosts: 2, Checked: 2, NewKnown: 2}); r != want {
		t.Errorf("report is %+v, want %+v", r, want)
	}
}

// No more than Resolvers lookups are under way at once.
func TestLookupsAreBounded(t *testing.T) {
	var mu sync.Mutex
	active, most := 0, 0
	o := hoststat.Options{CheckNew: true, Resolvers: 4, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		active++
		most = max(most, active)
		mu.Unlock()
		defer func() { mu.Lock(); active--; mu.Unlock() }()
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}}
	var records []crawldb.Datum
	for i := range 200 {
		records = append(records, page(fmt.Sprintf("http://n%d.example/", i)))
	}
	r := run(t, crawlOf(t, records...), new(memstore.Hosts), o)
	if most > 4 || r.NewKnown != 200 {
		t.Errorf("%d lookups at once; %+v", most, r)
	}
}

// Sitemaps are no pages of their host.
func TestSitemapsDoNotCount(t *testing.T) {
	sitemap := page("http://a.example/sitemap.xml")
	crawldb.Sitemap{}.Set(&sitemap.Meta)
	hosts := new(memstore.Hosts)
	r, err := hoststat.Run(t.Context(), crawlOf(t, page("http://a.example/"), sitemap), hosts, hoststat.Options{Now: clock})
	if n := all(t, hosts)["a.example"].Pages.Total(); err != nil || r.Records != 1 || n != 1 {
		t.Errorf("%d pages, %+v, %v", n, r, err)
	}
}

// A host is forgotten if it has no page and nothing is left to do for it, and not before.
func TestOldHostsAreForgotten(t *testing.T) {
	const day = 24 * time.Hour
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for _, c := range []struct {
		name    string
		host    hostdb.Host
		records []crawldb.Datum
		forget  time.Duration
		by      hostdb.By
		stays   bool
	}{
		{"nothing left", hostdb.Host{LastFetch: ago(91 * day), NextFetch: ago(91 * day), Stats: hostdb.Stats{Fetched: 1, Failures: 9}}, nil, 90 * day, hostdb.ByHost, false},
		{"never asked", hostdb.Host{Pages: hostdb.Pages{Gone: 3}, Counted: now}, nil, 90 * day, hostdb.ByHost, false},
		{"not asked for", hostdb.Host{LastFetch: ago(91 * day)}, nil, 0, hostdb.ByHost, true},
		{"has a page", hostdb.Host{LastFetch: ago(91 * day)}, []crawldb.Datum{page("http://www.small.example/x")}, 90 * day, hostdb.ByHost, true},
		{"another has a page", hostdb.Host{LastFetch: ago(91 * day)}, []crawldb.Datum{page("http://small.example/x")}, 90 * day, hostdb.ByHost, false},
		{"has a sitemap", hostdb.Host{LastFetch: ago(91 * day)}, []crawldb.Datum{sitemapOf("http://www.small.example/")}, 90 * day, hostdb.ByHost, true},
		{"asked of late", hostdb.Host{LastFetch: ago(89 * day)}, nil, 90 * day, hostdb.ByHost, true},
		{"left alone", hostdb.Host{LastFetch: ago(91 * day), NextFetch: ago(-time.Hour)}, nil, 90 * day, hostdb.ByHost, true},
		{"asked now", hostdb.Host{LastFetch: ago(91 * day), Grants: []time.Time{ago(-time.Minute)}}, nil, 90 * day, hostdb.ByHost, true},
		{"has a score", hostdb.Host{LastFetch: ago(91 * day), Score: 2}, nil, 90 * day, hostdb.ByHost, true},
		{"robots.txt asked for", hostdb.Host{Robots: []hostdb.Robots{{Origin: "http://www.small.example", Fetched: now.Add(-day)}}}, nil, 90 * day, hostdb.ByHost, true},
		{"of a domain", hostdb.Host{LastFetch: ago(91 * day)}, []crawldb.Datum{page("http://small.example/x")}, 90 * day, hostdb.ByDomain, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.host.Name = "www.small.example"
			hosts := new(memstore.Hosts)
			putHosts(t, hosts, c.host)
			r := run(t, crawlOf(t, c.records...), hosts, hoststat.Options{Forget: c.forget, By: c.by})
			if _, ok := all(t, hosts)["www.small.example"]; ok != c.stays || (r.Forgotten == 0) != c.stays {
				t.Errorf("it stays %v, want %v; %+v", ok, c.stays, r)
			}
		})
	}
}

func sitemapOf(start string) crawldb.Datum {
	d := page(start + "sitemap.xml")
	crawldb.Sitemap{}.Set(&d.Meta)
	return d
}

// The records of a host count together wherever their keys are: those of a name that is
// not ASCII, or of an address in another notation, may come after the others.
func TestSpellingsOfHostAreCountedTogether(t *testing.T) {
	for _, c := range []struct{ name, plain, odd string }{
		{"xn--e1afmkfd.xn--p1ai", "http://xn--e1afmkfd.xn--p1ai/", "http://пример.рф/"},
		{"xn--bcher-kva.example", "http://xn--bcher-kva.example/", "http://bücher.example/"},
		{"127.0.0.1", "http://127.0.0.1/", "http://2130706433/"},
		{"192.0.2.1", "http://192.0.2.1/", "http://[::ffff:c000:201]/"},
		{"a.example", "http://a.example/", "http://user@a.example/"},
	} {
		t.Run(c.odd, func(t *testing.T) {
			crawl := crawlOf(t, page(c.plain+"1"), page(c.plain+"2"), page(c.odd+"3"), page("http://b.example/"), page("http://zz.zz/"))
			calls := map[string]int{}
			counting := func(host string) (func(*crawldb.Datum), func(*hostdb.Host)) {
				n := 0
				return func(*crawldb.Datum) { n++ }, func(*hostdb.Host) { calls[host] = n }
			}
			for limit := range int64(5) {
				hosts := new(memstore.Hosts)
				r := run(t, crawl, hosts, hoststat.Options{URLLimit: limit, Processors: []hoststat.Processor{counting}})
				want := hoststat.Report{Records: 5, Hosts: 3}
				if limit > 1 {
					want.Hosts, want.BelowLimit = 1, 2
				}
				if limit > 3 {
					want.Hosts, want.BelowLimit = 0, 3
				}
				if r != want {
					t.Errorf("limit %d: the report is %+v, want %+v", limit, r, want)
				}
				if got := all(t, hosts)[c.name].Pages.Fetched; got != 3 && limit < 4 {
					t.Errorf("limit %d: %d pages", limit, got)
				}
				if calls[c.name] != 3 {
					t.Errorf("limit %d: the processor saw %d records", limit, calls[c.name])
				}
			}
			reject := &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(string) bool { return false })}}
			if r, want := run(t, crawl, new(memstore.Hosts), hoststat.Options{Rules: reject}), (hoststat.Report{Records: 5, Filtered: 3}); r != want {
				t.Errorf("rejected: the report is %+v, want %+v", r, want)
			}
		})
	}
}

// The greatest sample is all values, without a sort for each of them.
func TestSampleWithoutBound(t *testing.T) {
	var records []crawldb.Datum
	const pages = 60_000
	for i := range pages {
		records = append(records, page(fmt.Sprintf("http://a.example/%05d", i), "_rs_", fmt.Sprint(i)))
	}
	hosts := new(memstore.Hosts)
	run(t, crawlOf(t, records...), hosts, hoststat.Options{Sample: math.MaxInt})
	if got := all(t, hosts)["a.example"].Fields["pct50._rs_"]; got != pages/2 {
		t.Errorf("the median is %v", got)
	}
}

// A text that is longer than any name of a type is not counted.
func TestLongTexts(t *testing.T) {
	hosts := new(memstore.Hosts)
	fits := strings.Repeat("x", 256)
	run(t, crawlOf(t, page("http://a.example/1", "Content-Type", fits), page("http://a.example/2", "Content-Type", fits+"x")), hosts, hoststat.Options{})
	if got, want := all(t, hosts)["a.example"].Fields, map[string]float64{"Content-Type." + fits: 1}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
