package inject_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func run(t *testing.T, s crawldb.Store, file string, o inject.Options) inject.Report {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return now }
	}
	r, err := inject.Run(t.Context(), s, inject.Read(strings.NewReader(file)), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show is a record in one line, without the mark of a seed.
func show(d crawldb.Datum) string {
	s := fmt.Sprintf("%v score %g priority %g every %v", d.Status, d.Score, d.Priority, d.Interval)
	for k, v := range d.Meta.All() {
		if k == crawldb.SeedKey {
			continue
		}
		s += fmt.Sprintf(" %s=%s", k, v)
	}
	return s
}

func get(t *testing.T, s crawldb.Store, url string) crawldb.Datum {
	t.Helper()
	d, err := s.Get(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The record of a seed says so. What exists is not changed unless that is asked for, and Nutch
// knows no such mark.
func TestRecordOfSeedIsMarked(t *testing.T) {
	const u = "http://a.test/"
	for _, c := range []struct {
		name  string
		known bool
		o     inject.Options
		want  bool
	}{
		{"new", false, inject.Options{}, true},
		{"known", true, inject.Options{}, false},
		{"updated", true, inject.Options{Update: true}, true},
		{"overwritten", true, inject.Options{Overwrite: true}, true},
		{"new to Nutch", false, inject.Options{NutchCompat: true}, false},
		{"updated by Nutch", true, inject.Options{NutchCompat: true, Update: true}, false},
	} {
		s := new(memstore.Crawl)
		if c.known {
			put(t, s, fetched(u))
		}
		run(t, s, u, c.o)
		if d := get(t, s, u); d.IsSeed() != c.want {
			t.Errorf("%s: a seed is marked: %v", c.name, d.IsSeed())
		}
	}
}

func TestSeeds(t *testing.T) {
	for line, want := range map[string]string{
		"http://a.test/":                                               "db_unfetched score 1 priority 1 every 720h0m0s",
		"  http://a.test/ \r":                                          "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/\tnutch.score=2.5":                              "db_unfetched score 2.5 priority 2.5 every 720h0m0s",
		"http://a.test/\tnutch.score=-2":                               "db_unfetched score -2 priority -2 every 720h0m0s",
		"http://a.test/\tnutch.fetchInterval=171717":                   "db_unfetched score 1 priority 1 every 47h41m57s",
		"http://a.test/\tnutch.fetchInterval.fixed=60":                 "db_unfetched score 1 priority 1 every 1m0s schedule.fixed=60",
		"http://a.test/\tkey=value":                                    "db_unfetched score 1 priority 1 every 720h0m0s key=value",
		"http://a.test/ \t b = 2 = x \t\t a=\t":                        "db_unfetched score 1 priority 1 every 720h0m0s a= b=2 = x",
		"http://a.test/\ta=1\ta=2":                                     "db_unfetched score 1 priority 1 every 720h0m0s a=2",
		"\ufeffhttp://a.test/":                                         "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/ \t nutch.score=3 \t nutch.fetchInterval = 60 ": "db_unfetched score 3 priority 3 every 1m0s",
	} {
		s := new(memstore.Crawl)
		r := run(t, s, line, inject.Options{})
		if r.New != 1 || r.Seeds != 1 {
			t.Errorf("%q: %+v", line, r)
			continue
		}
		d := get(t, s, "http://a.test/")
		if got := show(d); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", line, got, want)
		}
		if !d.FetchTime.Equal(now) || !d.LastFetch.IsZero() || !d.Modified.IsZero() || d.Retries != 0 || d.Signature != nil {
			t.Errorf("%q: %+v", line, d)
		}
	}
}

func TestInvalidSeedLines(t *testing.T) {
	s := new(memstore.Crawl)
	if r := run(t, s, "\n \n# http://a.test/\n\t# x\n\t\t\n\r\r# x\r\x1a", inject.Options{}); r.Seeds != 0 {
		t.Errorf("%+v", r)
	}
}

// Lines of any system are lines, and are counted as editors count them.
func TestEndsOfLines(t *testing.T) {
	seed := func(n int, url string, meta ...string) inject.Seed { return inject.Seed{URL: url, Line: n, Meta: meta} }
	for file, want := range map[string][]inject.Seed{
		"a\nb\n\nc":                 {seed(1, "a"), seed(2, "b"), seed(4, "c")},
		"a\tk=v\r\nb\r\n\r\nc\r\n":  {seed(1, "a", "k=v"), seed(2, "b"), seed(4, "c")},
		"a\rb\tk=v\r\rc\r":          {seed(1, "a"), seed(2, "b", "k=v"), seed(4, "c")},
		"\ufeffa\r\n\rb\n\rc\n\x1a": {seed(1, "a"), seed(3, "b"), seed(5, "c")},
	} {
		for _, r := range []io.Reader{strings.NewReader(file), iotest.OneByteReader(strings.NewReader(file))} {
			var got []inject.Seed
			for s, err := range inject.Read(r) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %+v, want %+v", file, got, want)
			}
		}
	}
}

// An editor that calls UTF-16 "Unicode" has spoilt the whole file.
func TestSeedsInUTF16(t *testing.T) {
	for _, file := range []string{"\xff\xfeh\x00t\x00", "\xfe\xff\x00h\x00t"} {
		n := 0
		for s, err := range inject.Read(strings.NewReader(file)) {
			if n++; err == nil || !strings.Contains(err.Error(), "UTF-16") {
				t.Errorf("%q: %+v, %v", file, s, err)
			}
		}
		if n != 1 {
			t.Errorf("%q: %d seeds or errors, want one", file, n)
		}
	}
}

// A blank instead of a tab would make another page of the seed.
func TestMetadataAfterBlank(t *testing.T) {
	const line = "http://a.test/ nutch.score=2\tkey=value"
	s := new(memstore.Crawl)
	r := run(t, s, line, inject.Options{})
	if r.New != 0 || r.Invalid != 1 || !strings.Contains(r.Bad[0].Error(), "want a tab") {
		t.Errorf("%+v", r)
	}
	if r := run(t, s, line, inject.Options{NutchCompat: true}); r.New != 1 {
		t.Errorf("Nutch takes it: %+v", r)
	}
	if r := run(t, s, "http://a.test/a b=c", inject.Options{}); r.New != 1 {
		t.Errorf("a blank in a URL: %+v", r)
	}
}

func TestBadSeedsAreNamed(t *testing.T) {
	file := "http://a.test/\n\n" +
		"http://b.test/\tnutch.score=high\n" + // 3
		"http://c.test/\tnutch.score=NaN\n" +
		"http://d.test/\tnutch.score=1e39\n" +
		"http://e.test/\tnutch.fetchInterval=0\n" +
		"http://f.test/\tnutch.fetchInterval=99999999999\n" +
		"http://g.test/\tnutch.fetchInterval.fixed=-1\n" +
		"http://h.test/\tnoequals\n" +
		"http://i.test/\t=value\n" +
		"\tkey=value\n" + // 11
		"no url at all\n" +
		"https://x.test/\n" +
		"http://" + strings.Repeat("x", 5000) + ".test/\n" +
		"http://z.test/ok\n"
	s := new(memstore.Crawl)
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, urlfilter.FilterFunc(func(u string) bool { return strings.HasPrefix(u, "http:") }))
	r := run(t, s, file, inject.Options{Rules: rules})
	if r.Seeds != 14 || r.New != 2 || r.Filtered+r.Invalid != 12 || r.Filtered == 0 || len(r.Bad) != 12 {
		t.Errorf("%+v", r)
	}
	for i, b := range r.Bad {
		if b.Seed.Line != i+3 || !strings.Contains(b.Error(), fmt.Sprintf("line %d:", i+3)) || b.Err == nil || len(b.Error()) > 600 {
			t.Errorf("bad seed %d: %v", i, b)
		}
	}
	var many []string
	for range 300 {
		many = append(many, "")
	}
	r, err := inject.Run(t.Context(), s, inject.URLs(many...), inject.Options{})
	if err != nil || r.Invalid != 300 || len(r.Bad) != 100 {
		t.Errorf("%d invalid, %d named, %v", r.Invalid, len(r.Bad), err)
	}
	if b := r.Bad[0]; strings.Contains(b.Error(), "line") || errors.Unwrap(b) == nil {
		t.Errorf("%v", b)
	}
}

func TestScoresAreWrittenAsNumbers(t *testing.T) {
	for _, score := range []string{"", "1_0", "1,5", "1 000", "Infinity", "-inf", "1e39", "1f"} {
		if r := run(t, new(memstore.Crawl), "http://a.test/\tnutch.score="+score, inject.Options{}); r.Invalid != 1 {
			t.Errorf("%q: %+v", score, r)
		}
	}
}

// fetched is a record that has a past, with the state of a policy.
func fetched(url string) crawldb.Datum {
	d := crawldb.Datum{URL: url, Status: crawldb.Fetched, Score: 5, Priority: 5, Interval: 3 * day, FetchTime: now.Add(day), LastFetch: now.Add(-day),
		Modified: now.Add(-2 * day), Signature: []byte("s"), ETag: "e", Retries: 1, LeasedBy: "20260101000000-000", LeasedUntil: now.Add(day),
		Meta: crawldb.MetaOf("key", "old", "keep", "x")}
	return d
}

func put(t *testing.T, s crawldb.Store, d crawldb.Datum) {
	t.Helper()
	err := s.Update(t.Context(), crawldb.Batch{URLs: []string{d.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecordsThatExist(t *testing.T) {
	const u = "http://a.test/"
	for _, c := range []struct {
		name, line string
		o          inject.Options
		want       string // how the record differs; nothing if it does not
		known      int
	}{
		{"keep", u + "\tnutch.score=9\tkey=new\tnutch.fetchInterval=60", inject.Options{}, "", 1},
		{"update metadata", u + "\tkey=new\tmore=1", inject.Options{Update: true}, "db_fetched score 5 priority 5 every 72h0m0s keep=x key=new more=1", 0},
		{"update score", u + "\tnutch.score=9", inject.Options{Update: true}, "db_fetched score 9 priority 9 every 72h0m0s keep=x key=old", 0},
		{"update score to the default", u + "\tnutch.score=1", inject.Options{Update: true}, "db_fetched score 1 priority 1 every 72h0m0s keep=x key=old", 0},
		{"update interval", u + "\tnutch.fetchInterval=60", inject.Options{Update: true}, "db_fetched score 5 priority 5 every 1m0s keep=x key=old", 0},
		{"update fixed interval", u + "\tnutch.fetchInterval.fixed=60", inject.Options{Update: true}, "db_fetched score 5 priority 5 every 1m0s keep=x key=old schedule.fixed=60", 0},
		{"update nothing", u, inject.Options{Update: true}, "db_fetched score 5 priority 5 every 72h0m0s keep=x key=old", 0},
		{"overwrite", u + "\tkey=new", inject.Options{Overwrite: true}, "db_unfetched score 1 priority 1 every 720h0m0s key=new", 0},
		{"overwrite and update", u + "\tkey=new", inject.Options{Overwrite: true, Update: true}, "db_unfetched score 1 priority 1 every 720h0m0s key=new", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(memstore.Crawl)
			old := fetched(u)
			put(t, s, old)
			r := run(t, s, c.line, c.o)
			if r.Known != c.known || r.Merged != 1-c.known || r.New != 0 {
				t.Errorf("%+v", r)
			}
			d := get(t, s, u)
			want := c.want
			if want == "" {
				want = show(old)
			}
			if got := show(d); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if c.o.Overwrite {
				if d.Signature != nil || d.ETag != "" || d.LeasedBy != "" || d.Retries != 0 || !d.FetchTime.Equal(now) || !d.LastFetch.IsZero() {
					t.Errorf("the past survives: %+v", d)
				}
			} else if string(d.Signature) != "s" || !d.FetchTime.Equal(old.FetchTime) || d.LeasedBy != old.LeasedBy || d.Retries != 1 || !d.Modified.Equal(old.Modified) {
				t.Errorf("the past was changed: %+v", d)
			}
		})
	}
}

func TestUpdatedSeedCreatesNoCash(t *testing.T) {
	s := new(memstore.Crawl)
	o := inject.Options{Scoring: scoring.OPIC{}, Update: true}
	run(t, s, "http://a.test/", o)
	d := get(t, s, "http://a.test/")
	if scoring.Cash(&d) != 1 {
		t.Fatalf("cash %g", scoring.Cash(&d))
	}
	// The page gives all away.
	old := d
	(scoring.OPIC{}).Updated(&old, &d, scoring.Flow{Gave: 1, Visited: true, Time: now})
	put(t, s, d)
	run(t, s, "http://a.test/\tkey=1", o)
	if d := get(t, s, "http://a.test/"); scoring.Cash(&d) != 0 {
		t.Errorf("cash %g after an update", scoring.Cash(&d))
	}
}

// The score that a seed asks for is where OPIC starts; it creates no cash.
func TestUpdatedScoreStays(t *testing.T) {
	s := new(memstore.Crawl)
	f := scoring.OPIC{}
	o := inject.Options{Scoring: f, Update: true}
	run(t, s, "http://a.test/", o)
	d := get(t, s, "http://a.test/")
	old := d
	f.Updated(&old, &d, scoring.Flow{Visited: true, In: []scoring.Link{{Score: 2}}, Time: now})
	put(t, s, d)
	run(t, s, "http://a.test/\tnutch.score=9", o)
	if d = get(t, s, "http://a.test/"); d.Score != 9 || d.Priority != 9 {
		t.Errorf("%s", show(d))
	}
	old = d
	f.Updated(&old, &d, scoring.Flow{Visited: true, In: []scoring.Link{{Score: 1}}, Time: now.Add(day)})
	if d.Score != 10 || scoring.Cash(&d) != 4 {
		t.Errorf("score %v and cash %v after the next visit, want 10 and 4", d.Score, scoring.Cash(&d))
	}
	// A seed that names no score leaves it alone.
	put(t, s, d)
	run(t, s, "http://a.test/\tkey=1", o)
	if d = get(t, s, "http://a.test/"); d.Score != 10 {
		t.Errorf("%s", show(d))
	}
}

func TestDuplicates(t *testing.T) {
	file := "http://a.test/\ta=1\tnutch.score=2\nhttp://b.test/\nhttp://a.test/\tb=2\nHTTP://A.test:80/\tc=3\n"
	for name, c := range map[string]struct {
		o    inject.Options
		want string
	}{
		"first counts": {inject.Options{}, "db_unfetched score 2 priority 2 every 720h0m0s a=1"},
		"all count":    {inject.Options{Update: true}, "db_unfetched score 2 priority 2 every 720h0m0s a=1 b=2 c=3"},
		"last counts":  {inject.Options{Overwrite: true}, "db_unfetched score 1 priority 1 every 720h0m0s c=3"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Rules = urlfilter.Default()
			s := new(memstore.Crawl)
			r := run(t, s, file, c.o)
			if r.Seeds != 4 || r.New != 2 || r.Duplicate != 2 || r.Merged+r.Known != 0 {
				t.Errorf("%+v", r)
			}
			if got := show(get(t, s, "http://a.test/")); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			// The same as one run for each.
			one := new(memstore.Crawl)
			for line := range strings.Lines(file) {
				run(t, one, line, c.o)
			}
			if got := show(get(t, one, "http://a.test/")); got != c.want {
				t.Errorf("line by line: %s", got)
			}
		})
	}
}

func TestManySeeds(t *testing.T) {
	// Around the border of a chunk of 20,000; the last seeds are the first again.
	for _, n := range []int{0, 1, 19_999, 20_000, 20_001} {
		var urls []string
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://h%d.test/%d", i%11, i))
		}
		s := new(memstore.Crawl)
		r, err := inject.Run(t.Context(), s, inject.URLs(append(urls, urls[:min(n, 5)]...)...), inject.Options{})
		if err != nil || r.New != n || r.Seeds != n+min(n, 5) || r.Duplicate+r.Known != min(n, 5) {
			t.Errorf("%d seeds: %+v, %v", n, r, err)
		}
		records := 0
		for range s.Scan(t.Context(), crawldb.Range{}) {
			records++
		}
		if records != n {
			t.Errorf("%d records of %d seeds", records, n)
		}
	}
}

// Nutch's TestInjector.
func TestSeedKeepsMetadataOfEarlierSeed(t *testing.T) {
	s := new(memstore.Crawl)
	var first, second strings.Builder
	for i := range 100 {
		fmt.Fprintf(&first, "http://zzz.com/%d.html\tnutch.score=2.%d\tnutch.fetchInterval=171717\tkey=value\n", i, i)
		fmt.Fprintf(&second, "http://xxx.com/%d.html\nhttp://zzz.com/%d.html\n", i, i)
	}
	run(t, s, first.String(), inject.Options{})
	if r := run(t, s, second.String(), inject.Options{}); r.New != 100 || r.Known != 100 {
		t.Errorf("%+v", r)
	}
	n := 0
	for d, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if v, _ := d.Meta.Get("key"); strings.Contains(d.URL, "zzz") && (d.Interval != 171717*time.Second || d.Score == 1 || v != "value") {
			t.Errorf("%+v", d)
		}
	}
	if n != 200 {
		t.Errorf("%d records", n)
	}
}

func TestStatusOfRecordIsKept(t *testing.T) {
	for _, status := range crawldb.Statuses() {
		s := new(memstore.Crawl)
		d := fetched("http://a.test/")
		d.Status = status
		put(t, s, d)
		run(t, s, d.URL, inject.Options{Score: 0.1})
		if got := get(t, s, d.URL); got.Status != status || got.Score != 5 {
			t.Errorf("%v became %v", status, got.Status)
		}
	}
}

func TestErrors(t *testing.T) {
	s := new(memstore.Crawl)
	broken := errors.New("broken")
	seeds := func(yield func(inject.Seed, error) bool) {
		_ = yield(inject.Seed{URL: "http://a.test/"}, nil) && yield(inject.Seed{}, broken)
	}
	if _, err := inject.Run(t.Context(), s, seeds, inject.Options{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	for _, compat := range []bool{false, true} {
		r := run(t, new(memstore.Crawl), "http://a.test/\n"+strings.Repeat("x", 2<<20)+"\nhttp://b.test/", inject.Options{NutchCompat: compat})
		if r.New != 2 || len(r.Bad) != 1 || r.Bad[0].Seed.Line != 2 || !errors.Is(r.Bad[0], bufio.ErrTooLong) {
			t.Errorf("a line of 2 MiB between two seeds: %+v", r)
		}
	}
	long := "http://a.test/long\tkey=" + strings.Repeat("x", 1<<20-100)
	if r := run(t, new(memstore.Crawl), "http://a.test/\n"+long+"\nhttp://b.test/", inject.Options{}); r.New != 3 {
		t.Errorf("a line of nearly a mebibyte: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inject.Run(ctx, s, inject.URLs("http://a.test/"), inject.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Close()
	if _, err := inject.Run(t.Context(), s, inject.URLs(), inject.Options{}); !errors.Is(err, crawldb.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestScheduleIsUsed(t *testing.T) {
	s := new(memstore.Crawl)
	run(t, s, "http://a.test/", inject.Options{Schedule: schedule.Default{DefaultInterval: day}, Score: 7})
	if got := show(get(t, s, "http://a.test/")); got != "db_unfetched score 7 priority 7 every 24h0m0s" {
		t.Errorf("%s", got)
	}
}

// marked reports whether a file begins with a byte order mark, of UTF-16 or UTF-8.
func marked(file string) bool {
	return strings.HasPrefix(file, "\xfe\xff") || strings.HasPrefix(file, "\xff\xfe") || strings.HasPrefix(file, "\ufeff")
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "http://a.test/", "http://a.test/\tnutch.score=2\tkey=value\n#\n\n\tx", "\ufeffx\r\n\ty", "a\t\t=\t", "a\rb\r\nc\x1a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		last := 0
		var again strings.Builder
		var seeds []inject.Seed
		for s, err := range inject.Read(strings.NewReader(file)) {
			if err != nil {
				if !marked(file) {
					t.Fatal(err)
				}
				return
			}
			if s.Line <= last || strings.TrimSpace(s.URL) != s.URL || strings.ContainsAny(s.URL, "\t\n\r") {
				t.Fatalf("%+v after line %d", s, last)
			}
			for _, m := range s.Meta {
				if strings.TrimSpace(m) == "" || strings.ContainsAny(m, "\t\n\r") {
					t.Fatalf("%+v", s)
				}
			}
			for ; last < s.Line-1; last++ {
				again.WriteString("\n")
			}
			last = s.Line
			again.WriteString(strings.Join(append([]string{s.URL}, s.Meta...), "\t") + "\n")
			seeds = append(seeds, s)
		}
		if marked(again.String()) {
			return // what was a URL behind control characters would be the mark of the file
		}
		// What was read can be written and read again.
		i := 0
		for s := range inject.Read(strings.NewReader(again.String())) {
			if i >= len(seeds) || s.URL != seeds[i].URL || s.Line != seeds[i].Line || !slices.EqualFunc(s.Meta, seeds[i].Meta, func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }) {
				t.Fatalf("%q: %+v", again.String(), s)
			}
			i++
		}
		if i != len(seeds) {
			t.Fatalf("%d seeds of %d", i, len(seeds))
		}
		r, err := inject.Run(t.Context(), new(memstore.Crawl), inject.Read(strings.NewReader(file)), inject.Options{})
		if err != nil || r.Seeds != len(seeds) || r.New+r.Duplicate+r.Invalid != r.Seeds {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

func TestBadSeedsAreNamedWithoutPasswords(t *testing.T) {
	for _, seed := range []string{"ftp://user:secret@a.test/x", "http://user:secret@a.test:x/", "http://:secret@[/", "http://a.test\tsecret=1\tnutch.score=x", "ftp://user:p@secret@a.test?x@y"} {
		r := run(t, new(memstore.Crawl), seed, inject.Options{Rules: urlfilter.Default()})
		if len(r.Bad) != 1 || strings.Contains(r.Bad[0].Error(), "secret") {
			t.Errorf("%q: %v", seed, r.Bad)
		}
	}
}
