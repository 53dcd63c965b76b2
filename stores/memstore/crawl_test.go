package memstore_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestCrawl(t *testing.T) {
	crawldbtest.Run(t, crawldbtest.Harness{
		Open:      func() (crawldb.Store, error) { return new(memstore.Crawl), nil },
		Sequences: *sequences,
	})
}

var sequences = flag.Int("sequences", 10, "how many sequences of steps are compared with a map; 10000 is the long form")

// TestReadsDoNotWaitForNext checks that an update under way stops no reader.
func TestReadsDoNotWaitForNext(t *testing.T) {
	var s memstore.Crawl
	put := func(url string, during func()) {
		err := s.Update(t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			during()
			return &crawldb.Datum{Status: crawldb.Unfetched}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("http://example.com/a", func() {})
	put("http://example.com/b", func() {
		if _, err := s.Get(t.Context(), "http://example.com/a"); err != nil {
			t.Error(err)
		}
		n := 0
		for _, err := range s.Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("a scan beside the update saw %d records, want the 1 before it", n)
		}
	})
}

// TestPanicInNext checks that a caller's panic leaves the store in order.
func TestPanicInNext(t *testing.T) {
	var s memstore.Crawl
	func() {
		defer func() { _ = recover() }()
		_ = s.Update(t.Context(), crawldb.Batch{URLs: []string{"a", "b"}, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			if i == 1 {
				panic("a fault of the caller")
			}
			return &crawldb.Datum{}, nil
		}})
	}()
	if err := s.Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("job", "on")}); err != nil {
		t.Fatal(err)
	}
	for d := range s.Scan(t.Context(), crawldb.Range{}) {
		t.Errorf("%q was kept", d.URL)
	}
}

// million returns a store of a million records and their URLs, in key order.
func million(b *testing.B) (*memstore.Crawl, []string) {
	s := new(memstore.Crawl)
	urls := make([]string, 1_000_000)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%04d.example.com/%06d", i/100, i)
	}
	for from := 0; from < len(urls); from += 10_000 {
		update(b, s, urls[from:from+10_000])
	}
	return s, urls
}

func update(b *testing.B, s *memstore.Crawl, urls []string) {
	err := s.Update(b.Context(), crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := crawldb.Datum{Status: crawldb.Unfetched, Score: 1}
		if old != nil {
			d.Retries = old.Retries + 1
		}
		return &d, nil
	}})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkScan1M(b *testing.B) {
	s, _ := million(b)
	for b.Loop() {
		for _, err := range s.Scan(b.Context(), crawldb.Range{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkGet1M(b *testing.B) {
	s, urls := million(b)
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(urls)
		if _, err := s.Get(b.Context(), urls[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate10kOf1M changes every hundredth record.
func BenchmarkUpdate10kOf1M(b *testing.B) {
	s, urls := million(b)
	var some []string
	for i := 0; i < len(urls); i += 100 {
		some = append(some, urls[i])
	}
	for b.Loop() {
		update(b, s, some)
	}
}
