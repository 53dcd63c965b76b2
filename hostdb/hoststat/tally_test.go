package hoststat_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
)

func TestShares(t *testing.T) {
	crawl := crawlOf(t,
		page("http://www.a.co.uk/"), page("https://www.a.co.uk:8443/"),
		crawldb.Datum{URL: "http://b.a.co.uk/", Status: crawldb.NotModified}, crawldb.Datum{URL: "http://b.a.co.uk/1", Status: crawldb.Gone},
		crawldb.Datum{URL: "http://c.example.com/", Status: crawldb.Unfetched}, crawldb.Datum{URL: "http://localhost/", Status: crawldb.Duplicate}, page("mailto:x"),
	)
	for level, want := range map[string]map[string]hoststat.Share{
		"host":   {"www.a.co.uk": {2, 0}, "b.a.co.uk": {1, 1}, "c.example.com": {0, 1}, "localhost": {0, 1}, "": {1, 0}},
		"domain": {"a.co.uk": {3, 1}, "example.com": {0, 1}, "localhost": {0, 1}, "": {1, 0}},
		"suffix": {"co.uk": {3, 1}, "com": {0, 1}, "": {1, 1}},
		"TLD":    {"uk": {3, 1}, "com": {0, 1}, "": {1, 1}},
	} {
		l, err := hoststat.ParseLevel(level)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hoststat.Shares(t.Context(), crawl, l)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", l, got, err, want)
		}
	}
	if _, err := hoststat.ParseLevel("path"); err == nil {
		t.Error("path is taken for a level")
	}
	if _, err := hoststat.Shares(t.Context(), brokenCrawl{crawl}, hoststat.Host); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func TestCodes(t *testing.T) {
	crawl := crawlOf(t, page("http://a.example/", "nutch.protocol.code", "200"), page("http://a.example/1", "nutch.protocol.code", "404"), page("http://a.example/2"), page("http://b.example/", "nutch.protocol.code", "200"))
	got, err := hoststat.Codes(t.Context(), crawl)
	if want := map[string]int64{"200": 2, "404": 1, "UNFETCHED": 1}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := hoststat.Codes(t.Context(), brokenCrawl{crawl}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}
