package crawldb_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

func storeOf(t testing.TB, records ...crawldb.Datum) crawldb.Store {
	t.Helper()
	s := new(memstore.Crawl)
	slices.SortFunc(records, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	urls := make([]string, len(records))
	for i := range records {
		urls[i] = records[i].URL
	}
	err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScanByURL(t *testing.T) {
	pieces := []string{"http://", "https://", "HTTP://", "", "a.example", "b.a.example", "a.example.org", "example", "192.0.2.1", "[::1]", "user@a.example", "A.example", "a.example.",
		":80", ":8080", "/", "?", "#", "/a", "/a/b", "!", "%", "\x00", "\xff", "\xff\xff", "é"}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{"": true, "http://a.example": true, "http://a.example/": true, "http://a.example:80/": true, "http://a.example?": true, "http://a.example.org/": true}
	for range 20_000 {
		url := pieces[rng.IntN(4)]
		for range rng.IntN(4) {
			url += pieces[rng.IntN(len(pieces))]
		}
		seen[url] = true
	}
	var records []crawldb.Datum
	var want []string
	for url := range seen {
		records = append(records, crawldb.Datum{URL: url})
		want = append(want, url)
	}
	slices.Sort(want)
	s := storeOf(t, records...)
	var got []string
	for d, err := range crawldb.ScanByURL(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.URL)
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%d of %d records; the one at %d is %q, want %q", len(got), len(want), i, got[i], want[i])
			}
		}
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	n := 0
	for range crawldb.ScanByURL(t.Context(), s) {
		if n++; n == 3 {
			break
		}
	}
}

// breaking yields an error after some records.
type breaking struct {
	crawldb.Store
	after int
}

func (f *breaking) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for d, err := range f.Store.Scan(ctx, r) {
			if f.after--; f.after < 0 {
				yield(crawldb.Datum{}, errBroken)
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

var errBroken = errors.New("broken")

func TestFailedScanIsReported(t *testing.T) {
	for after := range 4 {
		s := &breaking{storeOf(t, crawldb.Datum{URL: "http://a.example/"}, crawldb.Datum{URL: "http://b.example/"}), after}
		var last error
		for _, err := range crawldb.ScanByURL(t.Context(), s) {
			last = err
		}
		if !errors.Is(last, errBroken) {
			t.Errorf("a scan that fails after %d records ends with %v", after, last)
		}
	}
}
