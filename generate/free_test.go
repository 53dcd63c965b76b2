package generate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

func lines(urls ...string) func(func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, u := range urls {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func TestFree(t *testing.T) {
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "no") }))
	in := []string{"http://b.test/", "http://a.test/x/../y", "http://A.test/y", "http://a.test/no", "what", "http://b.test/", "http://a.test/z"}
	for _, order := range []int{0, 1} {
		if order == 1 {
			slices.Reverse(in)
		}
		db := &memstore.DB{}
		r, err := generate.Free(t.Context(), db.Segments(), lines(in...), generate.Options{Rules: rules, Now: clock, Lists: generate.Lists{Count: 2},
			Schedule: &schedule.Default{DefaultInterval: 3 * day}, Scoring: &scoring.OPIC{},
			TopN: 1, MaxPerHost: 1, Hosts: hosts(t, hostdb.Host{Name: "a.test"}),
			HostLimit: func(*hostdb.Host) (float64, error) { return 0, nil },
			HostDelay: func(*hostdb.Host) (float64, error) { return 70, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if got := lists(t, db.Segments(), r); len(got) != 1 || !slices.Equal(got[0], []string{"http://a.test/y", "http://a.test/z", "http://b.test/"}) {
			t.Errorf("%v", got)
		}
		if r.Selected != 3 || r.Rejected[generate.URLFilters] != 1 || r.Rejected[generate.Malformed] != 1 {
			t.Errorf("%+v", r)
		}
		for _, d := range list(t, db.Segments(), r.Segments[0]) {
			if d.Status != crawldb.Unfetched || !d.FetchTime.Equal(now) || d.Interval != 3*day || d.LeasedBy != "" {
				t.Errorf("%+v", d)
			}
		}
		for u, turn := range turns(t, db.Segments(), r.Segments[0]) {
			if turn.Lists != 2 || (turn.Delay != 0) != strings.Contains(u, "a.test") {
				t.Errorf("%s: %+v", u, turn)
			}
		}
	}

	// Without rules a URL is what is given.
	db := &memstore.DB{}
	r, err := generate.Free(t.Context(), db.Segments(), lines(in...), generate.Options{Now: clock})
	if err != nil || r.Selected != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = generate.Free(t.Context(), db.Segments(), lines(in...), generate.Options{Now: clock, Rules: rules, NoFilter: true})
	if err != nil || r.Selected != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = generate.Free(t.Context(), db.Segments(), lines(in...), generate.Options{Now: clock, Rules: rules, NoNormalize: true})
	if err != nil || r.Selected != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	// Nothing makes no segment, and an error neither.
	db = &memstore.DB{}
	if r, err := generate.Free(t.Context(), db.Segments(), lines("what"), generate.Options{Now: clock}); err != nil || len(r.Segments) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	broken := errors.New("broken")
	_, err = generate.Free(t.Context(), db.Segments(), func(yield func(string, error) bool) {
		if yield("http://a.test/", nil) {
			yield("", broken)
		}
	}, generate.Options{Now: clock})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	for name := range db.Segments().List(t.Context()) {
		t.Errorf("segment %s", name)
	}
}

// What died in the making is gone after Recover.
func TestFreeSurvivesItsStore(t *testing.T) {
	for n := 1; ; n++ {
		db := &memstore.DB{}
		var open []segment.BlockWriter
		dead := dyingSegments{db.Segments(), &fuse{left: n, applies: n%2 == 0}, &open}
		_, err := generate.Free(t.Context(), dead, lines("http://a.test/", "http://b.test/"), generate.Options{Now: clock})
		if err == nil {
			if n < 5 {
				t.Errorf("only %d calls", n)
			}
			return
		}
		for _, w := range open { // its process is gone
			if w != nil {
				w.Close()
			}
		}
		if _, err := generate.Recover(t.Context(), db.Crawl(), db.Segments()); err != nil {
			t.Fatal(err)
		}
		for name := range db.Segments().List(t.Context()) {
			if got := list(t, db.Segments(), name); len(got) != 2 {
				t.Errorf("died at call %d: %v", n, fmt.Sprint(got))
			}
		}
	}
}

// The fetch list has the record of a URL in Known, except for validators and lease.
func TestFreeKnows(t *testing.T) {
	for _, compat := range []bool{false, true} {
		db := &memstore.DB{}
		known := crawldb.Datum{URL: "http://a.test/", Status: crawldb.NotModified, FetchTime: now.Add(9 * day), LastFetch: now.Add(-day), Interval: 10 * day,
			Score: 3, Priority: 4, Signature: []byte("s"), ETag: "e", LastModified: "m", LeasedBy: "other", LeasedUntil: now.Add(day), Meta: crawldb.MetaOf("k", "v")}
		if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{known.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &known, nil }}); err != nil {
			t.Fatal(err)
		}
		r, err := generate.Free(t.Context(), db.Segments(), lines("http://b.test/", "http://a.test/"), generate.Options{Now: clock, Known: db.Crawl(), NutchCompat: compat})
		if err != nil {
			t.Fatal(err)
		}
		var a, b crawldb.Datum
		for _, d := range list(t, db.Segments(), r.Segments[0]) {
			if d.URL == known.URL {
				a = d
			} else {
				b = d
			}
		}
		want := known
		want.ETag, want.LastModified, want.LeasedBy, want.LeasedUntil = "", "", "", time.Time{}
		if compat {
			want = b
			want.URL = known.URL
		}
		if b.Status != crawldb.Unfetched || b.Signature != nil || !reflect.DeepEqual(a, want) {
			t.Errorf("NutchCompat %v: %+v and %+v, want %+v", compat, a, b, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := generate.Free(ctx, db.Segments(), lines("http://a.test/"), generate.Options{Now: clock, Known: db.Crawl()}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
