package update_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// normalizer is a function that is a urlfilter.Normalizer.
type normalizer func(url string) (string, error)

func (n normalizer) Normalize(_ urlfilter.Scope, url string) (string, error) { return n(url) }

// lower brings a URL to lower case and drops what follows '#'.
var lower = normalizer(func(url string) (string, error) {
	url, _, _ = strings.Cut(strings.ToLower(url), "#")
	return url, nil
})

func sweeping(o update.SweepOptions) update.SweepOptions {
	o.Now = func() time.Time { return noon }
	return o
}

func (w *world) sweep(o update.SweepOptions) update.SweepReport {
	w.t.Helper()
	r, err := update.Sweep(w.t.Context(), w.crawl, sweeping(o))
	if err != nil {
		w.t.Fatal(err)
	}
	if at, err := w.crawl.Mark(w.t.Context(), "sweep/"); at != "" || err != nil {
		w.t.Errorf("mark %q, %v", at, err)
	}
	return r
}

func (w *world) urls() (urls []string) {
	w.t.Helper()
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		urls = append(urls, d.URL)
	}
	return urls
}

// Nutch's TestCrawlDbFilter.
func TestSweepPurgesGone(t *testing.T) {
	for _, nutch := range []bool{false, true} {
		w := newWorld(t)
		w.put(
			crawldb.Datum{URL: "http://www.example.com", Status: crawldb.Gone},
			crawldb.Datum{URL: "http://www.example1.com", Status: crawldb.Fetched},
			crawldb.Datum{URL: "http://www.example2.com", Status: crawldb.Unfetched},
			crawldb.Datum{URL: "http://www.example3.com", Status: crawldb.Orphan},
		)
		o := update.SweepOptions{PurgeGone: true, Normalize: true, Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{lower}}, NutchCompat: nutch}
		if r := w.sweep(o); r.Records != 4 || r.Gone != 1 || r.Orphans != 0 {
			t.Errorf("%+v", r)
		}
		if r := w.sweep(update.SweepOptions{PurgeOrphans: true, NutchCompat: nutch}); r.Records != 3 || r.Orphans != 1 {
			t.Errorf("%+v", r)
		}
		if got := w.urls(); fmt.Sprint(got) != "[http://www.example1.com http://www.example2.com]" {
			t.Errorf("%v", got)
		}
	}
}

// Nutch's TestCrawlDbFilterExceptionHandling.
func TestSweepWithRulesThatFail(t *testing.T) {
	asked := 0
	counting := urlfilter.FilterFunc(func(string) bool { asked++; return true })
	for _, c := range []struct {
		name  string
		rules urlfilter.Rules
		want  update.SweepReport
		kept  bool
		asked int
	}{
		{"a normalizer refuses", urlfilter.Rules{Normalizers: []urlfilter.Normalizer{normalizer(func(string) (string, error) { return "", errors.New("malformed") })}, Filters: []urlfilter.Filter{counting}},
			update.SweepReport{Invalid: 1}, false, 0},
		{"a normalizer panics", urlfilter.Rules{Normalizers: []urlfilter.Normalizer{normalizer(func(string) (string, error) { panic("bug") })}, Filters: []urlfilter.Filter{counting}},
			update.SweepReport{Troubled: 1}, true, 1},
		{"a filter panics", urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(string) bool { panic("bug") })}},
			update.SweepReport{Troubled: 1}, true, 0},
		{"a filter rejects", urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(string) bool { return false })}},
			update.SweepReport{Filtered: 1}, false, 0},
		{"long URLs", urlfilter.Rules{MaxLength: 5, Filters: []urlfilter.Filter{counting}}, update.SweepReport{}, true, 1},
	} {
		asked = 0
		w := newWorld(t)
		w.put(crawldb.Datum{URL: "http://example.com", Status: crawldb.Fetched})
		before := w.dump()
		r := w.sweep(update.SweepOptions{Normalize: true, Filter: true, Rules: &c.rules})
		if (r.Trouble != nil) != (r.Troubled > 0) || r.Troubled > 0 && !strings.Contains(r.Trouble.Error(), `a rule panicked over "http://example.com": bug`) {
			t.Errorf("%s: %v", c.name, r.Trouble)
		}
		r.Trouble = nil
		if c.want.Records = 1; r != c.want || asked != c.asked || (w.dump() == before) != c.kept {
			t.Errorf("%s: %+v, the filter was asked %d times, kept is %v", c.name, r, asked, w.urls())
		}
	}
}

func TestSweepWithoutRules(t *testing.T) {
	w := newWorld(t)
	if _, err := update.Sweep(t.Context(), w.crawl, update.SweepOptions{Filter: true}); err == nil || !strings.Contains(err.Error(), "SweepOptions.Rules") {
		t.Errorf("%v", err)
	}
	if r, err := update.Sweep(t.Context(), w.crawl, update.SweepOptions{}); r != (update.SweepReport{}) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSweepMergesRecords(t *testing.T) {
	const to = "http://a.example.test/p"
	at := func(days int) time.Time { return noon.Add(time.Duration(days) * day) }
	a := crawldb.Datum{URL: to, Status: crawldb.Gone, LastFetch: at(-3), FetchTime: at(9), Signature: []byte("a")}
	b := crawldb.Datum{URL: to + "#b", Status: crawldb.Fetched, LastFetch: at(-1), FetchTime: at(1), Signature: []byte("b")}
	c := crawldb.Datum{URL: "HTTP://a.example.test/P", Status: crawldb.RedirTemp, LastFetch: at(-2), FetchTime: at(2), Signature: []byte("c")}
	rules := &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{lower}}
	for _, nutch := range []bool{false, true} {
		for _, put := range [][]crawldb.Datum{{a, b, c}, {b, c}, {b}, {a, c}} {
			want := "b"
			if nutch && len(put) > 1 {
				want = "c"
			}
			if put[0].URL == a.URL && nutch {
				want = "a" // it is due last
			} else if put[0].URL == a.URL && len(put) == 2 {
				want = "c"
			}
			hasA := put[0].URL == a.URL
			for _, size := range []int{1, 2, 100} {
				w := newWorld(t)
				w.put(slices.Clone(put)...)
				r := w.sweep(update.SweepOptions{Normalize: true, Rules: rules, NutchCompat: nutch}.WithChunk(size))
				moved, merged := len(put), len(put)-1
				if hasA {
					moved--
				}
				if r.Moved != moved || r.Merged != merged {
					t.Errorf("NutchCompat %v, %d records: %+v", nutch, len(put), r)
				}
				if got := w.urls(); len(got) != 1 || got[0] != to {
					t.Errorf("NutchCompat %v, %d records: %v", nutch, len(put), got)
				} else if d := w.get(to); string(d.Signature) != want {
					t.Errorf("NutchCompat %v, %d records, chunks of %d: %s stays, want %s", nutch, len(put), size, d.Signature, want)
				}
			}
		}
	}
}

// messy is a crawl db in which most URLs have two or three spellings.
func messy(t *testing.T) *world {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	var all []crawldb.Datum
	for i := range 60 {
		for _, u := range []string{url(i), url(i) + "#x", strings.ToUpper(url(i)), url(i) + "#Y"} {
			if rnd.IntN(3) == 0 {
				continue
			}
			d := crawldb.Datum{
				URL: u, Status: crawldb.Statuses()[rnd.IntN(9)], Interval: day, Score: float32(rnd.IntN(5)),
				FetchTime: noon.Add(time.Duration(rnd.IntN(3)) * day), LastFetch: noon.Add(-time.Duration(rnd.IntN(3)) * day),
			}
			if rnd.IntN(9) == 0 {
				d.LeasedBy, d.LeasedUntil = seg, noon.Add(day)
			}
			scoring.OPIC{}.Injected(&d)
			all = append(all, d)
		}
	}
	w.put(all...)
	return w
}

func all() update.SweepOptions {
	return sweeping(update.SweepOptions{
		PurgeOrphans: true, Normalize: true, Filter: true, Orphans: true, Scoring: scoring.Chain{scoring.OPIC{}, &scoring.Orphan{}},
		Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{lower}, Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "h3") })}},
	})
}

func TestSweepIsIdempotent(t *testing.T) {
	want := ""
	for _, size := range []int{1, 7, 1000} {
		w := messy(t)
		o := all().WithChunk(size)
		w.sweep(o)
		got := w.dump()
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("chunks of %d make a difference", size)
		}
		if r := w.sweep(o); w.dump() != want || r.Gone+r.Orphans+r.Filtered+r.Invalid+r.Moved+r.Merged+r.Changed != 0 {
			t.Errorf("a second sweep: %+v", r)
		}
	}
}

func TestSweepKeepsCash(t *testing.T) {
	sum := func(w *world) (cash float64) {
		for d, err := range w.crawl.Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			cash += scoring.Cash(&d)
		}
		return cash
	}
	w := messy(t)
	before := sum(w)
	r := w.sweep(update.SweepOptions{Normalize: true, Rules: all().Rules, Scoring: scoring.OPIC{}})
	if after := sum(w); math.Abs(after-before) > 1e-9 || r.Merged == 0 {
		t.Errorf("%g before, %g after; %+v", before, after, r)
	}
}

// store does something before an Update.
type store struct {
	crawldb.Store
	before func(n int) error
	n      int
}

func (s *store) Update(ctx context.Context, b crawldb.Batch) error {
	s.n++
	if err := s.before(s.n); err != nil {
		return err
	}
	return s.Store.Update(ctx, b)
}

func TestKilledSweepIsContinued(t *testing.T) {
	calm := messy(t)
	calm.sweep(all())
	want := calm.dump()
	dead := errors.New("dead")
	w := messy(t)
	o := all().WithChunk(10)
	for kills := 0; ; kills++ {
		o := o
		o.Now = func() time.Time { return noon.Add(time.Duration(kills) * 365 * day) } // the first one counts
		r, err := update.Sweep(t.Context(), &store{Store: w.crawl, before: func(n int) error {
			if n > 3 {
				return dead
			}
			return nil
		}}, o)
		if r.Resumed != (kills > 0) {
			t.Errorf("run %d: resumed is %v", kills, r.Resumed)
		}
		if err == nil {
			if kills < 3 || w.dump() != want {
				t.Errorf("after %d deaths the crawl db differs: %v", kills, w.dump() != want)
			}
			return
		}
		if !errors.Is(err, dead) {
			t.Fatal(err)
		}
	}
}

// Records that change, come and go between the scan and the step are swept as
// they are then.
func TestSweepBesideAnotherWriter(t *testing.T) {
	w := newWorld(t)
	a, b, c := "http://a.example.test/p#1", "http://a.example.test/p#2", "http://a.example.test/p"
	w.put(crawldb.Datum{URL: a, Status: crawldb.Fetched, LastFetch: noon}, crawldb.Datum{URL: b, Status: crawldb.Fetched, LastFetch: noon.Add(-day)})
	s := &store{Store: w.crawl, before: func(n int) error {
		if n == 1 {
			w.put(crawldb.Datum{URL: b, Status: crawldb.Gone, LastFetch: noon.Add(day)}, crawldb.Datum{URL: c, Status: crawldb.Unfetched})
			return w.crawl.Update(t.Context(), crawldb.Batch{URLs: []string{a}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }})
		}
		return nil
	}}
	r, err := update.Sweep(t.Context(), s, sweeping(update.SweepOptions{Normalize: true, Rules: all().Rules}))
	if err != nil || r.Merged != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.urls(); len(got) != 1 || got[0] != c {
		t.Errorf("%v", got)
	} else if d := w.get(c); d.Status != crawldb.Gone || !d.LastFetch.Equal(noon.Add(day)) {
		t.Errorf("%+v", d)
	}
}

func TestSweepLeavesTheFetchListAlone(t *testing.T) {
	d := known(crawldb.Gone, 0, "")
	for nutch, want := range map[bool]int{false: 1, true: 0} {
		w := newWorld(t)
		w.put(d)
		r := w.sweep(update.SweepOptions{PurgeGone: true, NutchCompat: nutch})
		if len(w.urls()) != want || r.Leased != want {
			t.Errorf("NutchCompat %v: %+v", nutch, r)
		}
	}
}

// blame makes orphans of all it is asked about.
type blame struct{ scoring.Base }

func (blame) Orphaned(d *crawldb.Datum, _ time.Time) { d.Status = crawldb.Orphan }

// A segment that visits two of three pages that were gone; one is back.
func TestRunSweepsAndUpdates(t *testing.T) {
	for nutch, want := range map[bool]string{
		false: "db_fetched 0 db_gone 1 ",      // they are left alone, the third goes
		true:  "db_fetched 0 db_unfetched 1 ", // they went before, and came in as new
	} {
		for _, die := range []int{0, 1, 2, 3, 4, 5, 6} {
			w := newWorld(t)
			var list []crawldb.Datum
			for i := range 3 {
				d := known(crawldb.Gone, 1, "")
				d.URL = url(i)
				if i == 2 {
					d.LeasedBy, d.LeasedUntil = "", time.Time{}
				} else {
					list = append(list, d)
				}
				w.put(d)
			}
			visits := []segment.Visit{*visitAt(noon, protocol.Success), *visitAt(noon.Add(time.Minute), protocol.Failed)}
			if !nutch {
				visits[1].Outcome.Code = protocol.NotFound
			}
			visits[0].URL, visits[1].URL = url(0), url(1)
			write(w, seg, list)
			write(w, seg, visits)
			write(w, seg, []segment.Parse{{URL: url(0), Signature: []byte("A")}})
			o := update.Options{NutchCompat: nutch, Scoring: blame{}, Now: func() time.Time { return noon.Add(time.Hour) },
				Sweep: update.SweepOptions{PurgeGone: true, Orphans: true}}
			var err error
			if die > 0 {
				_, err = update.Run(t.Context(), &store{Store: w.crawl, before: func(n int) error {
					if n >= die {
						return errors.New("dead")
					}
					return nil
				}}, w.segments, seg, o)
			}
			if die == 0 || err != nil {
				r, err := update.Run(t.Context(), w.crawl, w.segments, seg, o)
				if err != nil {
					t.Fatal(err)
				}
				if die == 0 && (!nutch && r.Swept.Gone != 1 || nutch && r.Swept.Gone != 3) {
					t.Errorf("NutchCompat %v: %+v", nutch, r.Swept)
				}
			}
			got := ""
			for i := range 3 {
				if d, err := w.crawl.Get(t.Context(), url(i)); err == nil {
					got += fmt.Sprintf("%v %d ", d.Status, i)
				}
			}
			if got != want {
				t.Errorf("NutchCompat %v, died at step %d: %s, want %s", nutch, die, got, want)
			}
		}
	}
}

func TestSweepAsksAboutOrphans(t *testing.T) {
	w := newWorld(t)
	old, young := known(crawldb.Fetched, 0, "A"), known(crawldb.Fetched, 0, "A")
	old.LeasedUntil, young.LeasedUntil = time.Time{}, time.Time{}
	young.URL, young.LastFetch = url(1), noon
	w.put(old, young)
	r := w.sweep(update.SweepOptions{Orphans: true, Scoring: blame{}, Since: noon})
	if r.Changed != 1 || w.get(page).Status != crawldb.Orphan || w.get(url(1)).Status != crawldb.Fetched {
		t.Errorf("%+v", r)
	}
}
