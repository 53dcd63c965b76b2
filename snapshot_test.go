package recrawl_test

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
)

// A consumer that is down for longer than the disk has room lapses, is shown and logged, and has the same
// index in the end as one that never was.
func TestConsumerBehindTheLimitOfBytesStartsAgainFromASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		var log strings.Builder
		s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s.opts.Retention = recrawl.Retention{Bytes: 30_000}
		c := s.seeded(t)
		defer c.Close()
		s.consumer(t, c, "up", recrawl.ConsumerOptions{})
		s.consumer(t, c, "down", recrawl.ConsumerOptions{})
		var up, down signatures
		day := func(read bool) {
			for range 2 {
				if _, err := c.Round(t.Context()); err != nil {
					t.Fatal(err)
				}
				up.read(t, c, "up", -1)
				if read {
					down.read(t, c, "down", -1)
				}
			}
			s.now = s.now.AddDate(0, 0, 1)
		}
		for range 4 {
			day(true)
		}
		// A page that the crawl forgets meanwhile.
		forgotten := slices.Sorted(maps.Keys(down.pages))[3]
		if err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{forgotten}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }}); err != nil {
			t.Fatal(err)
		}
		delete(up.pages, forgotten)
		for range 20 {
			day(false)
		}
		st := status(t, c, "down")
		if st.Lapses != 1 || st.Lapsed.IsZero() || !st.Snapshot || st.Segments != 0 || !strings.Contains(log.String(), "consumer=down") {
			t.Errorf("%+v, log %s", st, &log)
		}
		if st := status(t, c, "up"); st.Lapses > 0 || st.Snapshot || strings.Contains(log.String(), "consumer=up") {
			t.Errorf("%+v, log %s", st, &log)
		}
		// It reads again, dies in its snapshot, and the crawl goes on.
		c.Close()
		c = s.crawler(t)
		for range 3 {
			if n := down.read(t, c, "down", 5); n != 5 {
				t.Errorf("%d events of the snapshot", n)
			}
			day(false)
		}
		down.read(t, c, "down", -1)
		want := s.signatures(t)
		if len(want) < 12 || !maps.Equal(up.pages, want) || !maps.Equal(down.pages, want) {
			t.Errorf("up %q, down %q", differing(up.pages, want), differing(down.pages, want))
		}
		day(true)
		if st := status(t, c, "down"); st.Snapshot || st.Segments > 0 {
			t.Errorf("%+v", st)
		}
		if !maps.Equal(up.pages, down.pages) {
			t.Error("the indexes differ later")
		}
	})
}

// A segment that is lost or damaged is no end of the feed.
func TestConsumerLapsesAtALostSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		c := s.seeded(t)
		defer c.Close()
		s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		s.live(t, c, 2)
		var x signatures
		x.read(t, c, "index", 10)
		names := segments(t, s)
		if err := s.db.Segments().Remove(t.Context(), names[len(names)-2]); err != nil {
			t.Fatal(err)
		}
		s.live(t, c, 1)
		x.read(t, c, "index", -1)
		if want := s.signatures(t); len(want) < 12 || !maps.Equal(x.pages, want) {
			t.Errorf("%d pages in the index, want %d", len(x.pages), len(want))
		}
		if st := status(t, c, "index"); st.Lapses != 1 || st.Snapshot || st.Segments > 0 {
			t.Errorf("%+v", st)
		}
	})
}
