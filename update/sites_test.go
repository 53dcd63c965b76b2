package update_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// trapped makes a segment: some visits to www.example.org, from number first on, whose pages link
// to some URLs of each kind, and one visit to another domain.
func (w *world) trapped(name string, first, visits, links int) {
	var list []crawldb.Datum
	var made []segment.Visit
	var parses []segment.Parse
	page := func(url string, links []segment.Link) {
		v := visitAt(noon, protocol.Success)
		v.URL = url
		list = append(list, crawldb.Datum{URL: url, Status: crawldb.Unfetched})
		made = append(made, *v)
		parses = append(parses, segment.Parse{URL: url, Signature: []byte("same"), Links: links})
	}
	for i := range visits {
		var out []segment.Link
		for n := range links {
			out = append(out, segment.Link{URL: fmt.Sprintf("http://www.example.org/search?p=%d-%d", first+i, n), Score: 1},
				segment.Link{URL: fmt.Sprintf("http://www.example.org/plain/%c%c%c", 'a'+first+i, 'a'+n/26, 'a'+n%26), Score: 1})
		}
		page(fmt.Sprintf("http://www.example.org/page/%c", 'a'+first+i), out)
	}
	page(fmt.Sprintf("http://other.example.com/%d", first), []segment.Link{{URL: fmt.Sprintf("http://other.example.com/x?%d", first), Score: 1}})
	write(w, name, list)
	write(w, name, made)
	write(w, name, parses)
}

// records counts the records whose URL contains a text.
func (w *world) records(text string) (n int) {
	w.t.Helper()
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(d.URL, text) {
			n++
		}
	}
	return n
}

func (w *world) account(domain string) frontier.Account {
	w.t.Helper()
	a, _, err := frontier.Load(w.t.Context(), w.crawl, domain)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func growing(growth, free int) update.Options {
	return update.Options{MaxGrowth: growth, FreeGrowth: free, Now: func() time.Time { return noon.Add(time.Hour) }}.WithChunk(16)
}

// The account of a domain to which nothing happens but links is not written again.
func TestUnchangedAccountOfADomainIsNotWritten(t *testing.T) {
	const second, third = "20260106080000-000", "20260107080000-000"
	w := newWorld(t)
	w.trapped(seg, 0, 3, 2)
	run := func(name string) {
		t.Helper()
		if _, err := update.Run(t.Context(), w.crawl, w.segments, name, growing(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name string, links ...segment.Link) {
		t.Helper()
		v := visitAt(noon.Add(time.Hour), protocol.Success)
		v.URL = "http://third.example.net/"
		write(w, name, []crawldb.Datum{{URL: v.URL, Status: crawldb.Unfetched}})
		write(w, name, []segment.Visit{*v})
		write(w, name, []segment.Parse{{URL: v.URL, Signature: []byte("third"), Links: links}})
		run(name)
	}
	run(seg)
	before := w.account("example.org")
	link(second, segment.Link{URL: "http://www.example.org/page/a", Score: 1})
	if a := w.account("example.org"); !reflect.DeepEqual(a, before) || before.Visits != 3 {
		t.Errorf("%+v became %+v", before, a)
	}
	if a := w.account("example.net"); a.Visits != 1 || a.Segment != second {
		t.Errorf("the domain that was visited has %+v", a)
	}
	link(third, segment.Link{URL: "http://www.example.org/new", Score: 1})
	if a := w.account("example.org"); a.Added != before.Added+1 || a.Visits != 3 {
		t.Errorf("a link to a new page made %+v of %+v", a, before)
	}
}

// A domain gets ten new records for a visit, a few in any case and plain ones more
// freely; what is left out is taken up when there is room.
func TestGrowth(t *testing.T) {
	const second = "20260106080000-000"
	for _, c := range []struct {
		name          string
		o             update.Options
		search, plain int
	}{
		// Plain URLs come first, in the order of keys: 60 of them.
		{"free", growing(10, 200), 60, 60},
		{"ten a visit", growing(10, 20), 0, 60},
		{"thirty a visit", growing(30, 20), 29, 60}, // of 3 visits: 90 less the one that began it
		{"even plain ones", growing(10, 5), 0, 29},
		{"by default", growing(0, 0), 60, 60},
		{"no bound", growing(-1, 1), 60, 60},
		{"a bound beyond all numbers", growing(math.MaxInt/2, 1), 60, 60},
		{"as Nutch does", update.Options{NutchCompat: true, MaxGrowth: 1, FreeGrowth: 1}, 60, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.trapped(seg, 0, 3, 20)
			r, err := update.Run(t.Context(), w.crawl, w.segments, seg, c.o)
			if err != nil {
				t.Fatal(err)
			}
			search, plain := w.records("/search?"), w.records("/plain/")
			if search != c.search || plain != c.plain || r.Overgrown != 120-c.search-c.plain {
				t.Errorf("%d and %d records, %d left out; want %d and %d", search, plain, r.Overgrown, c.search, c.plain)
			}
			if w.records("other.example.com") != 2 {
				t.Error("another domain is bounded")
			}
			if a := w.account("example.org"); !c.o.NutchCompat && (a.Visits != 3 || a.Added != int64(search+plain)) {
				t.Errorf("%+v", a)
			}
		})
	}
	w := newWorld(t)
	w.trapped(seg, 0, 3, 20)
	w.trapped(second, 3, 7, 0)
	const third = "20260107080000-000"
	w.trapped(third, 0, 3, 20)
	for _, name := range []string{seg, second, third} {
		if _, err := update.Run(t.Context(), w.crawl, w.segments, name, growing(10, 20)); err != nil {
			t.Fatal(err)
		}
	}
	// 13 visits allow 129 records.
	if search, plain := w.records("/search?"), w.records("/plain/"); search != 60 || plain != 60 {
		t.Errorf("with more visits %d and %d records", search, plain)
	}
	// The second visit of a page says nothing about what is new.
	a := w.account("example.org")
	if p := a.Part("www.example.org/page/"); p == nil || p.Sampled != 10 || p.SampledNew != 1 {
		t.Errorf("%+v", p)
	}
}

// The accounts are as if nothing had died, and so is what is left out.
func TestGrowthIsCountedOnceAcrossKills(t *testing.T) {
	o := growing(30, 20)
	calm := newWorld(t)
	calm.trapped(seg, 0, 3, 20)
	if _, err := update.Run(t.Context(), calm.crawl, calm.segments, seg, o); err != nil {
		t.Fatal(err)
	}
	want, account := calm.dump(), calm.account("example.org")
	for _, applies := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.trapped(seg, 0, 3, 20)
			_, err := update.Run(t.Context(), &dying{w.crawl, n, applies}, w.segments, seg, o)
			if err == nil {
				break
			}
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
				t.Fatal(err)
			}
			if a := w.account("example.org"); w.dump() != want || a.Encode() != account.Encode() {
				t.Fatalf("died at step %d (applied: %v): the crawl db or the account differs: %+v", n, applies, a)
			}
		}
	}
}

// What links gave to records that were left out goes to the next visit of their
// domain, once, whatever dies in between: the crawl db and the account together have
// what the seeds brought.
func TestCashOfRejectedLinksIsKeptAcrossKills(t *testing.T) {
	f := scoring.OPIC{}
	o := growing(1, 10)
	o.Scoring = f
	var dumps []string
	for _, dies := range []bool{false, true} {
		w, r, left := newWorld(t), rand.New(rand.NewPCG(1, 2)), 0
		for i := range 20 {
			d := crawldb.Datum{URL: url(i), Status: crawldb.Unfetched, Score: float32(i%3) + 0.5}
			f.Injected(&d)
			w.put(d)
		}
		want, owed := w.cash(), 0.0
		for n := range testlevel.Pick(15, 30) {
			name := fmt.Sprintf("2026%04d", n)
			w.visitAll(name, f, func(*crawldb.Datum) bool { return r.IntN(3) > 0 }, func(d *crawldb.Datum) (out []string) {
				for k := range 1 + r.IntN(5) {
					out = append(out, url(r.IntN(100)*5+k))
				}
				return out
			}, noon.Add(time.Duration(n)*day), r)
			for step := 1; ; step++ {
				var crawl crawldb.Store = w.crawl
				if dies && step < 9 {
					crawl = &dying{w.crawl, 1 + step%3, step%2 == 0}
				}
				report, err := update.Run(t.Context(), crawl, w.segments, name, o)
				left += report.Overgrown
				if err == nil {
					break
				}
				if !errors.Is(err, errDied) {
					t.Fatal(err)
				}
			}
			owes := 0.0
			for i := range 7 {
				owes += w.account(hostdb.Domain(crawldb.Host(url(i)))).Undistributed
			}
			if got := w.cash() + owes; math.Abs(got-want) > 1e-6 {
				t.Fatalf("dies %v: cash is %v after %d rounds, want %v", dies, got, n+1, want)
			}
			owed = max(owed, owes)
		}
		if left == 0 || owed == 0 || owed > want/2 {
			t.Errorf("dies %v: %d were left out, %v of %v owed at most", dies, left, owed, want)
		}
		dumps = append(dumps, w.dump())
	}
	if dumps[0] != dumps[1] {
		t.Error("updates that die make another crawl db")
	}
}

// A link from a page that gave nothing away carries no cash, whatever its score.
func TestScoresWithoutCash(t *testing.T) {
	w := newWorld(t)
	w.trapped(seg, 0, 3, 20)
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, growing(10, 5))
	if a := w.account("example.org"); err != nil || r.Overgrown == 0 || a.Undistributed != 0 {
		t.Errorf("%+v, %+v, %v", r, a, err)
	}
}

// A damaged account is started over, and the report says so.
func TestDamagedAccount(t *testing.T) {
	w := newWorld(t)
	w.trapped(seg, 0, 3, 20)
	if err := w.crawl.Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(frontier.MarkName("example.org"), "\xff")}); err != nil {
		t.Fatal(err)
	}
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, growing(10, 5))
	if err != nil || r.Damaged != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if a := w.account("example.org"); a.Visits != 3 || a.Added != 29 {
		t.Errorf("%+v", a)
	}
}
