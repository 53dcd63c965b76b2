package crawldb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

var now = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

// dueStore returns a store of n records with few distinct priorities; every
// fourth is not due.
func dueStore(t *testing.T, n int) (*memstore.Crawl, []crawldb.Datum) {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	data := make([]crawldb.Datum, n)
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}
	for i := range data {
		data[i] = crawldb.Datum{URL: fmt.Sprintf("http://h%d.example.com/%04d", i*10/n, i), Status: crawldb.Unfetched, FetchTime: now, Priority: float32(rnd.IntN(5) - 1)}
		if i%4 == 0 {
			data[i].FetchTime = now.Add(time.Hour)
		}
		b.URLs = append(b.URLs, data[i].URL)
	}
	s := new(memstore.Crawl)
	if err := s.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s, data
}

// wanted returns what Due must yield, in order.
func wanted(data []crawldb.Datum, due func(crawldb.Datum) bool) []string {
	data = slices.DeleteFunc(slices.Clone(data), func(d crawldb.Datum) bool { return !due(d) })
	slices.SortFunc(data, func(a, b crawldb.Datum) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), crawldb.Compare(a.URL, b.URL))
	})
	var urls []string
	for _, d := range data {
		urls = append(urls, d.URL)
	}
	return urls
}

func yielded(t *testing.T, seq iter.Seq2[crawldb.Candidate, error]) []string {
	t.Helper()
	var urls []string
	for c, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, c.URL)
	}
	return urls
}

func TestDueByScanInPasses(t *testing.T) {
	s, data := dueStore(t, 400)
	isDue := func(d crawldb.Datum) bool { return !d.FetchTime.After(now) }
	all := wanted(data, isDue)
	for _, pass := range []int{1, 2, 7, 100, 299, 300, 301, 1000} {
		for _, limit := range []int{0, 1, 6, 7, 8, 99, 299, 300, 301} {
			q := crawldb.DueQuery{Now: now, Limit: limit}
			want := all
			if limit > 0 {
				want = all[:min(limit, len(all))]
			}
			seq := crawldb.DueInPasses(t.Context(), s, q, nil, pass)
			for range 2 { // the sequence can be run again
				if got := yielded(t, seq); !slices.Equal(got, want) {
					t.Fatalf("passes of %d, limit %d: %d candidates %.200q, want %d %.200q", pass, limit, len(got), got, len(want), want)
				}
			}
		}
	}
}

func TestDueByScanWant(t *testing.T) {
	s, _ := dueStore(t, 400)
	for _, pass := range []int{1, 3, 50, 1000} {
		for _, limit := range []int{0, 5, 20, 27, 100} {
			// At most 3 of a host, and none of h4.
			taken := map[string]int{}
			q := crawldb.DueQuery{Now: now, Limit: limit, WantHost: func(host string) bool { return taken[host] < 3 && host != "h4.example.com" }}
			n := 0
			for c, err := range crawldb.DueInPasses(t.Context(), s, q, nil, pass) {
				if err != nil {
					t.Fatal(err)
				}
				taken[crawldb.Host(c.URL)]++
				n++
			}
			// Nine hosts are left, so 27 candidates.
			if want := 27; limit > 0 && n != min(limit, want) || limit == 0 && n != want {
				t.Errorf("passes of %d, limit %d: %d candidates", pass, limit, n)
			}
			for host, n := range taken {
				if n > 3 || host == "h4.example.com" {
					t.Errorf("passes of %d, limit %d: %d candidates of %s", pass, limit, n, host)
				}
			}
		}
	}
}

func TestDueByScanSeen(t *testing.T) {
	s, data := dueStore(t, 100)
	for _, pass := range []int{1, 10, 1000} {
		seen := map[string]int{}
		q := crawldb.DueQuery{Now: now, NotDue: func(d *crawldb.Datum) { seen[d.URL]++ }}
		yielded(t, crawldb.DueInPasses(t.Context(), s, q, nil, pass))
		for _, d := range data {
			want := 0
			if d.FetchTime.After(now) {
				want = 1
			}
			if seen[d.URL] != want {
				t.Errorf("passes of %d: %s was seen %d times, want %d", pass, d.URL, seen[d.URL], want)
			}
		}
	}
}

// TestDueByScanOtherDue checks that a schedule's answer replaces the times and
// nothing else.
func TestDueByScanOtherDue(t *testing.T) {
	s, data := dueStore(t, 100)
	late := func(d *crawldb.Datum) bool { return d.FetchTime.After(now) }
	seen := 0
	q := crawldb.DueQuery{Now: now, MinPriority: 2, WantHost: func(host string) bool { return host != "h3.example.com" }, NotDue: func(*crawldb.Datum) { seen++ }}
	got := yielded(t, crawldb.DueByScan(t.Context(), s, q, late))
	want := wanted(data, func(d crawldb.Datum) bool {
		return late(&d) && d.Priority >= 2 && crawldb.Host(d.URL) != "h3.example.com"
	})
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("candidates are %q, want %q", got, want)
	}
	if seen != 75 {
		t.Errorf("%d records were seen, want the 75 that are not due", seen)
	}
}

func TestDueByTimes(t *testing.T) {
	s := new(memstore.Crawl)
	put := func(name string, d crawldb.Datum) {
		err := s.Update(t.Context(), crawldb.Batch{URLs: []string{name}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
		if err != nil {
			t.Fatal(err)
		}
	}
	ms := time.Millisecond
	put("never", crawldb.Datum{})
	put("just", crawldb.Datum{FetchTime: now})
	put("later", crawldb.Datum{FetchTime: now.Add(ms)})
	put("at the bound", crawldb.Datum{FetchTime: now.Add(time.Hour)})
	put("beyond", crawldb.Datum{FetchTime: now.Add(time.Hour + ms)})
	put("leased", crawldb.Datum{LeasedUntil: now.Add(ms)})
	put("lease over", crawldb.Datum{LeasedUntil: now})
	put("beyond and leased", crawldb.Datum{FetchTime: now.Add(2 * time.Hour), LeasedUntil: now.Add(ms)})
	for _, test := range []struct {
		q    crawldb.DueQuery
		want []string
	}{
		{crawldb.DueQuery{Now: now}, []string{"just", "lease over", "never"}},
		{crawldb.DueQuery{Now: now, DueBeyond: now.Add(time.Hour)}, []string{"beyond", "just", "lease over", "never"}},
		{crawldb.DueQuery{Now: now.Add(ms)}, []string{"just", "later", "lease over", "leased", "never"}},
		{crawldb.DueQuery{}, []string{"never"}}, // a clock in the year 1
	} {
		got := yielded(t, crawldb.Due(t.Context(), s, test.q))
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("at %v, beyond %v: %q, want %q", test.q.Now, test.q.DueBeyond, got, test.want)
		}
	}
}

func TestDueNaNIsLast(t *testing.T) {
	s := new(memstore.Crawl)
	priorities := []float32{float32(math.NaN()), 1, float32(math.Inf(1)), -1, 0, float32(math.NaN())}
	urls := []string{"a", "b", "c", "d", "e", "f"}
	err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Priority: priorities[i]}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, pass := range []int{1, 10} {
		if got, want := yielded(t, crawldb.DueInPasses(t.Context(), s, crawldb.DueQuery{Now: now}, nil, pass)), []string{"c", "b", "e", "d", "a", "f"}; !slices.Equal(got, want) {
			t.Errorf("passes of %d: order is %q, want %q", pass, got, want)
		}
	}
	if got, want := yielded(t, crawldb.Due(t.Context(), s, crawldb.DueQuery{Now: now, MinPriority: 0.5})), []string{"c", "b"}; !slices.Equal(got, want) {
		t.Errorf("from 0.5 on: %q, want %q", got, want)
	}
}

// indexed answers Due itself.
type indexed struct{ crawldb.Store }

func (indexed) Due(context.Context, crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) { yield(crawldb.Candidate{URL: "indexed"}, nil) }
}

type wrapped struct{ crawldb.Store }

func (w wrapped) Unwrap() crawldb.Store { return w.Store }

// opaque hides what it wraps.
type opaque struct{ crawldb.Store }

func TestDueUsesDueStore(t *testing.T) {
	for _, test := range []struct {
		name  string
		store crawldb.Store
		want  []string
	}{
		{"an index", indexed{new(memstore.Crawl)}, []string{"indexed"}},
		{"an index, wrapped", wrapped{wrapped{indexed{new(memstore.Crawl)}}}, []string{"indexed"}},
		{"an index, hidden", wrapped{opaque{indexed{new(memstore.Crawl)}}}, nil},
		{"no index", wrapped{new(memstore.Crawl)}, nil},
		{"nothing in it", wrapped{opaque{new(memstore.Crawl)}}, nil},
	} {
		if got := yielded(t, crawldb.Due(t.Context(), test.store, crawldb.DueQuery{Now: now})); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// failing ends each scan with an error after n records.
type failing struct {
	crawldb.Store
	n *int
}

var errDisk = errors.New("disk on fire")

func (f failing) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for d, err := range f.Store.Scan(ctx, r) {
			if *f.n--; *f.n < 0 {
				yield(crawldb.Datum{}, errDisk)
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func TestDueByScanErrors(t *testing.T) {
	s, _ := dueStore(t, 100)
	for _, n := range []int{0, 50, 150, 250} {
		left := n
		var errs []error
		got := 0
		for c, err := range crawldb.DueInPasses(t.Context(), failing{s, &left}, crawldb.DueQuery{Now: now}, nil, 20) {
			if err != nil {
				if c != (crawldb.Candidate{}) {
					t.Errorf("candidate %+v came with an error", c)
				}
				errs = append(errs, err)
				continue
			}
			got++
		}
		if len(errs) != 1 || !errors.Is(errs[0], errDisk) || got != n/100*20 {
			t.Errorf("a scan that fails after %d records: %d candidates, then errors %v", n, got, errs)
		}
	}
	n := 0
	crawldb.DueInPasses(t.Context(), s, crawldb.DueQuery{Now: now}, nil, 2)(func(crawldb.Candidate, error) bool {
		n++
		return n < 3
	})
	if n != 3 {
		t.Errorf("a loop that breaks at 3 was called %d times", n)
	}
}
