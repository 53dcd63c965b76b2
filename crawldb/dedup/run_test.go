package dedup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

var epoch = time.UnixMilli(1534945979532).UTC()

func put(t testing.TB, s crawldb.Store, records ...crawldb.Datum) {
	t.Helper()
	slices.SortFunc(records, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	var urls []string
	for _, d := range records {
		urls = append(urls, d.URL)
	}
	err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// statuses returns the status of each page.
func statuses(t testing.TB, s crawldb.Store) map[string]crawldb.Status {
	t.Helper()
	m := map[string]crawldb.Status{}
	for d, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		m[d.URL] = d.Status
	}
	return m
}

// rec makes a record that was fetched some minutes after the epoch.
func rec(url, signature string, score float32, minutes int) crawldb.Datum {
	at := epoch.Add(time.Duration(minutes) * time.Minute)
	return crawldb.Datum{URL: url, Status: crawldb.Fetched, Signature: []byte(signature), Score: score, LastFetch: at, FetchTime: at.Add(time.Hour), Interval: time.Hour}
}

func order(t testing.TB, s string) []Criterion {
	t.Helper()
	o, err := ParseOrder(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestNutchFixture has the crawl db of Nutch's TestCrawlDbDeduplication: two
// spellings of one page, others with signatures of their own, redirects without.
func TestNutchFixture(t *testing.T) {
	const http, https = "http://nutch.apache.org/", "https://nutch.apache.org/"
	for _, compat := range []bool{false, true} {
		for _, c := range []struct{ order, duplicate string }{
			{"fetchTime,urlLength,score", https},
			{"httpsOverHttp,fetchTime,urlLength,score", http},
		} {
			t.Run(fmt.Sprint(c.order, compat), func(t *testing.T) {
				var db memstore.DB
				interval := 604800 * time.Second
				for i, u := range []string{https, http} {
					due := time.UnixMilli([]int64{1534945979532, 1534945981316}[i]).UTC()
					put(t, db.Crawl(), crawldb.Datum{URL: u, Status: crawldb.Fetched, FetchTime: due, LastFetch: due.Add(-interval), Interval: interval,
						Signature: []byte("\xda\x0f\xfb\xf1\x97\x68\xea\x2c\xab\x9f\xfa\x0f\xb4\xa7\x78\xa7")})
				}
				put(t, db.Crawl(), rec("https://en.wikipedia.org/wiki/Apache_Nutch", "one", 0, 0), rec("https://en.wikipedia.org/wiki/Nutch", "two", 0, 0))
				for i := range 6 {
					put(t, db.Crawl(), crawldb.Datum{URL: fmt.Sprintf("http://en.wikipedia.org/%d", i), Status: crawldb.RedirPerm, Interval: interval})
				}
				want := statuses(t, db.Crawl())
				want[c.duplicate] = crawldb.Duplicate
				r, err := Run(t.Context(), db.Crawl(), Options{Order: order(t, c.order), NutchCompat: compat})
				if err != nil || r != (Report{Candidates: 4, Groups: 1, Duplicates: 1}) {
					t.Errorf("%+v, %v", r, err)
				}
				if got := statuses(t, db.Crawl()); !maps.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
}

func TestOrderPicksPageThatStays(t *testing.T) {
	gone := rec("http://a.example/gone", "s", 9, 9)
	gone.Status = crawldb.Gone
	unsigned := rec("http://a.example/unsigned", "", 9, 9)
	unsigned.Signature = nil
	nothing := rec("http://a.example/nothing", "", 1, 1) // and so have nothing in common
	nothing.Signature = nil
	late := rec("http://a.example/b", "s", 1, 0)
	late.FetchTime = epoch.AddDate(1, 0, 0) // a long interval is no later fetch
	marked := rec("http://a.example/b", "s", 2, 0)
	marked.Status = crawldb.Duplicate
	unchanged := rec("http://a.example/a", "s", 1, 0)
	unchanged.Status = crawldb.NotModified

	for _, c := range []struct {
		name    string
		records []crawldb.Datum
		o       Options
		stay    string // paths, and compat's if they are others
		compat  string
	}{
		{name: "the higher score", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 1), rec("http://a.example/b", "s", 2, 0)}, stay: "b"},
		{name: "then the later fetch", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 0), rec("http://a.example/b", "s", 1, 1)}, stay: "b"},
		{name: "and not the later date", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 1), late}, stay: "a", compat: "b"},
		{name: "then the shorter URL", records: []crawldb.Datum{rec("http://a.example/aa", "s", 1, 1), rec("http://a.example/b", "s", 1, 1)}, stay: "b"},
		{name: "of equals one", records: []crawldb.Datum{rec("http://a.example/c", "s", 1, 1), rec("http://a.example/b", "s", 1, 1), rec("http://a.example/d", "s", 1, 1)}, stay: "b", compat: "b c d"},
		{name: "gone pages have no claim", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 1), gone}, stay: "a"},
		{name: "nor have pages without a signature", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 1), unsigned, nothing}, stay: "a nothing unsigned"},
		{name: "a duplicate whose original is gone", records: []crawldb.Datum{marked, gone}, stay: "b", compat: "-"},
		{name: "a duplicate with a better claim", records: []crawldb.Datum{unchanged, marked}, stay: "b", compat: "a"},
		{name: "hosts apart", records: []crawldb.Datum{rec("http://a.example.com/a", "s", 1, 0), rec("http://b.example.com/b", "s", 1, 0)}, o: Options{Group: ByHost}, stay: "a b"},
		{name: "domains together", records: []crawldb.Datum{rec("http://a.example.com/a", "s", 2, 0), rec("http://b.example.com/b", "s", 1, 0)}, o: Options{Group: ByDomain}, stay: "a"},
		{name: "domains apart", records: []crawldb.Datum{rec("http://a.example.com/a", "s", 1, 0), rec("http://b.example.org/b", "s", 1, 0)}, o: Options{Group: ByDomain}, stay: "a b"},
		{name: "no host is a host, too", records: []crawldb.Datum{rec("urn:/a", "s", 2, 0), rec("urn:/b", "s", 1, 0)}, o: Options{Group: ByHost}, stay: "a"},
		{name: "signatures that begin alike", records: []crawldb.Datum{rec("http://a.example/a", "s", 1, 0), rec("http://a.example/b", "s\x00", 1, 0), rec("http://a.example/c", "s\x00\x01", 1, 0)}, stay: "a b c"},
	} {
		for _, compat := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, compat), func(t *testing.T) {
				var db memstore.DB
				put(t, db.Crawl(), c.records...)
				o := c.o
				want := c.stay
				if o.NutchCompat = compat; compat && c.compat != "" {
					want = strings.TrimPrefix(c.compat, "-")
				}
				if _, err := Run(t.Context(), db.Crawl(), o); err != nil {
					t.Fatal(err)
				}
				var stay []string
				for u, s := range statuses(t, db.Crawl()) {
					if s == crawldb.Fetched || s == crawldb.NotModified {
						stay = append(stay, u[strings.LastIndexByte(u, '/')+1:])
					}
				}
				slices.Sort(stay)
				if got := strings.Join(stay, " "); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// TestHTTPSInAnyPlace shows that https counts at its place in the order, and that the
// original does not depend on chance when comparisons of pairs form a cycle.
func TestHTTPSInAnyPlace(t *testing.T) {
	// https beats http, http beats other by score, other beats https by score.
	circle := []crawldb.Datum{rec("http://a.example/x", "s", 3, 0), rec("https://a.example/x", "s", 1, 0), rec("http://a.example/other", "s", 2, 0)}
	for want, o := range map[string]string{
		"http://a.example/other": "httpsOverHttp,score",
		"http://a.example/x":     "score,httpsOverHttp",
		"https://a.example/x":    "httpsOverHttp,urlLength",
	} {
		var db memstore.DB
		put(t, db.Crawl(), circle...)
		if _, err := Run(t.Context(), db.Crawl(), Options{Order: order(t, o)}); err != nil {
			t.Fatal(err)
		}
		if got := statuses(t, db.Crawl()); got[want] != crawldb.Fetched {
			t.Errorf("%s: %v, want %s", o, got, want)
		}
	}
}

// stays is the rule in the words of the documentation: criterion by criterion
// only the best go on, and in the end the smallest key.
func stays(o []Criterion, group []crawldb.Datum) string {
	left := make([]*page, len(group))
	for i, d := range group {
		left[i] = &page{url: d.URL, key: crawldb.Key(d.URL), score: d.Score, time: d.LastFetch.UnixMilli(), length: -1}
	}
	for _, c := range o {
		left = slices.DeleteFunc(slices.Clone(left), func(p *page) bool {
			return slices.ContainsFunc(left, func(q *page) bool { return c.compare(q, p) > 0 })
		})
	}
	return slices.MinFunc(left, func(a, b *page) int { return strings.Compare(a.key, b.key) }).url
}

func random(rnd *rand.Rand) []crawldb.Datum {
	var all []crawldb.Datum
	seen := map[string]bool{}
	for range 3 + rnd.IntN(40) {
		u := fmt.Sprintf("%s://h%d.example/%s", []string{"http", "https"}[rnd.IntN(2)], rnd.IntN(2), strings.Repeat("x", rnd.IntN(4)))
		if seen[u] {
			continue
		}
		seen[u] = true
		d := rec(u, fmt.Sprint("s", rnd.IntN(3)), float32(rnd.IntN(3)), rnd.IntN(3))
		d.FetchTime = epoch.Add(time.Duration(rnd.IntN(3)) * time.Hour)
		d.Status = []crawldb.Status{crawldb.Fetched, crawldb.NotModified, crawldb.Duplicate}[rnd.IntN(3)]
		all = append(all, d)
	}
	return all
}

func TestRunAgreesWithModel(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		records := random(rnd)
		o := Options{Order: []Criterion{Score, FetchTime, HTTPSOverHTTP, URLLength}, chunk: 1 + rnd.IntN(4)}
		rnd.Shuffle(4, func(i, j int) { o.Order[i], o.Order[j] = o.Order[j], o.Order[i] })
		o.Order = o.Order[:rnd.IntN(5)]
		var db memstore.DB
		put(t, db.Crawl(), slices.Clone(records)...)
		groups := map[string][]crawldb.Datum{}
		for _, d := range records {
			groups[string(d.Signature)] = append(groups[string(d.Signature)], d)
		}
		want := map[string]crawldb.Status{}
		marked, restored, several := 0, 0, 0
		for _, g := range groups {
			best := stays(o.Order, g)
			if len(g) > 1 {
				several++
			}
			for _, d := range g {
				switch want[d.URL] = crawldb.Duplicate; {
				case d.URL != best && d.Status != crawldb.Duplicate:
					marked++
				case d.URL == best && d.Status == crawldb.Duplicate:
					want[d.URL] = crawldb.Fetched
					restored++
				case d.URL == best:
					want[d.URL] = d.Status
				}
			}
		}
		r, err := Run(t.Context(), db.Crawl(), o)
		if err != nil || r != (Report{Candidates: len(records), Groups: several, Duplicates: marked, Restored: restored}) {
			t.Errorf("seed %d: %+v, %v; want %d marked, %d restored", seed, r, err, marked, restored)
		}
		if got := statuses(t, db.Crawl()); !maps.Equal(got, want) {
			t.Fatalf("seed %d, %v: %v, want %v", seed, o.Order, got, want)
		}
		// Again is nothing.
		if r, err := Run(t.Context(), db.Crawl(), o); err != nil || r.Duplicates+r.Restored > 0 {
			t.Errorf("seed %d, again: %+v, %v", seed, r, err)
		}
	}
}

// nutchStays is Nutch's reducer: the statuses that a group has after it.
func nutchStays(o []Criterion, group []crawldb.Datum, out map[string]crawldb.Status) {
	slices.SortFunc(group, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	var existing *page
	for _, d := range group {
		if out[d.URL] = d.Status; d.Status == crawldb.Duplicate {
			continue
		}
		p := &page{url: d.URL, score: d.Score, time: d.FetchTime.UnixMilli(), length: -1}
		if existing == nil {
			existing = p
			continue
		}
		if c := nutch(o, existing, p); c > 0 {
			out[p.url] = crawldb.Duplicate
		} else if c < 0 {
			out[existing.url] = crawldb.Duplicate
			existing = p
		}
	}
}

// mortal is a store that dies at one of its writes.
type mortal struct {
	crawldb.Store
	left int
}

var errKilled = errors.New("killed")

func (m *mortal) Update(ctx context.Context, b crawldb.Batch) error {
	if m.left--; m.left < 0 {
		return errKilled
	}
	return m.Store.Update(ctx, b)
}

// TestKilledRunIsRepeated ends a run at every write; the next one has the result of an undisturbed run.
func TestKilledRunIsRepeated(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		records := random(rnd)
		o := Options{Order: []Criterion{Score, FetchTime, HTTPSOverHTTP, URLLength}, NutchCompat: seed%2 == 0, chunk: 1 + rnd.IntN(3)}
		rnd.Shuffle(4, func(i, j int) { o.Order[i], o.Order[j] = o.Order[j], o.Order[i] })
		var undisturbed memstore.DB
		put(t, undisturbed.Crawl(), slices.Clone(records)...)
		if _, err := Run(t.Context(), undisturbed.Crawl(), o); err != nil {
			t.Fatal(err)
		}
		want := statuses(t, undisturbed.Crawl())
		if o.NutchCompat {
			model := map[string]crawldb.Status{}
			groups := map[string][]crawldb.Datum{}
			for _, d := range records {
				groups[string(d.Signature)] = append(groups[string(d.Signature)], d)
			}
			for _, g := range groups {
				nutchStays(o.Order, g, model)
			}
			if !maps.Equal(want, model) {
				t.Fatalf("seed %d: %v, and Nutch %v", seed, want, model)
			}
		}
		deaths := 0
		for ; ; deaths++ {
			var db memstore.DB
			put(t, db.Crawl(), slices.Clone(records)...)
			m := &mortal{Store: db.Crawl(), left: deaths}
			_, err := Run(t.Context(), m, o)
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			r, err := Run(t.Context(), db.Crawl(), o)
			if err != nil || r.Resumed != (o.NutchCompat && deaths > 0) {
				t.Fatalf("seed %d, death %d: %+v, %v", seed, deaths, r, err)
			}
			if got := statuses(t, db.Crawl()); !maps.Equal(got, want) {
				t.Fatalf("seed %d, death %d: %v, want %v", seed, deaths, got, want)
			}
			if mark, err := db.Crawl().Mark(t.Context(), markName); err != nil || mark != "" {
				t.Errorf("a mark is left: %q, %v", mark, err)
			}
		}
	}
}

func TestMarkOfOtherOptions(t *testing.T) {
	var db memstore.DB
	put(t, db.Crawl(), rec("http://a.example/a", "s", 1, 0), rec("http://a.example/b", "s", 2, 0))
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(markName, "something else")}); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), db.Crawl(), Options{NutchCompat: true})
	if err != nil || r.Resumed || r.Duplicates != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBadOptions(t *testing.T) {
	var db memstore.DB
	for want, o := range map[string]Options{
		"unknown group 9":         {Group: 9},
		`unknown criterion ""`:    {Order: []Criterion{""}},
		`unknown criterion "age"`: {Order: []Criterion{Score, "age"}},
		"score twice":             {Order: []Criterion{Score, Score}},
		"urlLength is missing":    {Order: []Criterion{Score, FetchTime}, NutchCompat: true},
		"context canceled":        {},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if want == "context canceled" {
			cancel()
		}
		if _, err := Run(ctx, db.Crawl(), o); err == nil || !strings.HasPrefix(err.Error(), "dedup: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		cancel()
	}
}

// racing changes a page while it is being decided about.
type racing struct {
	crawldb.Store
	meanwhile func()
}

func (r *racing) Sync(ctx context.Context) error { return r.Store.Sync(ctx) }

func (r *racing) Update(ctx context.Context, b crawldb.Batch) error {
	r.meanwhile()
	return r.Store.Update(ctx, b)
}

func TestPagesThatChangeMeanwhile(t *testing.T) {
	const u = "http://a.example/"
	var db memstore.DB
	put(t, db.Crawl(), rec(u+"best", "s", 2, 0), rec(u+"news", "s", 1, 0), rec(u+"gone", "s", 1, 0), rec(u+"removed", "s", 1, 0), rec(u+"same", "s", 1, 0))
	gone := rec(u+"gone", "s", 1, 5)
	gone.Status = crawldb.Gone
	s := &racing{db.Crawl(), func() {
		put(t, db.Crawl(), rec(u+"news", "news", 1, 5), gone)
		remove := crawldb.Batch{URLs: []string{u + "removed"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }}
		if err := db.Crawl().Update(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := Run(t.Context(), s, Options{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]crawldb.Status{u + "best": crawldb.Fetched, u + "news": crawldb.Fetched, u + "gone": crawldb.Gone, u + "same": crawldb.Duplicate}
	if got := statuses(t, db.Crawl()); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestMemoryIsBounded sorts on disk, and leaves nothing there.
func TestMemoryIsBounded(t *testing.T) {
	var db memstore.DB
	var records []crawldb.Datum
	for i := range 5000 {
		records = append(records, rec(fmt.Sprintf("http://h%d.example/%d", i%7, i), fmt.Sprint("s", i%100), float32(i), 0))
	}
	put(t, db.Crawl(), records...)
	dir := t.TempDir()
	r, err := Run(t.Context(), db.Crawl(), Options{SortMemory: 50_000, TempDir: dir, chunk: 100})
	if err != nil || r != (Report{Candidates: 5000, Groups: 100, Duplicates: 4900}) {
		t.Errorf("%+v, %v", r, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for u, s := range statuses(t, db.Crawl()) {
		var h, i int
		if _, err := fmt.Sscanf(u, "http://h%d.example/%d", &h, &i); err != nil || (s == crawldb.Fetched) != (i >= 4900) {
			t.Fatalf("%s is %v, %v", u, s, err)
		}
	}
}

func BenchmarkRun100k(b *testing.B) {
	var db memstore.DB
	var records []crawldb.Datum
	for i := range 100_000 {
		records = append(records, rec(fmt.Sprintf("http://h%d.example/pages/%d", i%1000, i), fmt.Sprintf("%016d", i%80_000), float32(i%10), i%1000))
	}
	put(b, db.Crawl(), records...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(b.Context(), db.Crawl(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
