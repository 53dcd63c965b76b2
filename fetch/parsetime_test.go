package fetch_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
)

// A page has its time to be parsed, in the fetch and in the parse stage. What a
// parser found by then is kept; an error fails that page; and one that does not
// look at its context is waited for, and named.
func TestParseTimeout(t *testing.T) {
	const limit = 3 * time.Second
	p := parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
		found := page.Parsed{Text: "some", Outlinks: []page.Outlink{{URL: "http://a.example.test/found"}}}
		switch {
		case strings.HasSuffix(c.URL, "/partial"):
			<-ctx.Done()
			found.Truncated = true
			return found, nil
		case strings.HasSuffix(c.URL, "/fails"):
			<-ctx.Done()
			return page.Parsed{}, ctx.Err()
		case strings.HasSuffix(c.URL, "/deaf"):
			time.Sleep(4 * limit)
		}
		return found, nil
	})
	for _, later := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := newRig(t, &site{}, "http://a.example.test/partial", "http://b.example.test/fails", "http://c.example.test/deaf", "http://d.example.test/quick")
			r.o.Parser, r.o.Parsing.Timeout, r.o.Politeness.NoRobots = p, limit, true
			r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			start := time.Now()
			var rep fetch.Report
			if later {
				o := r.o
				r.o.Parser = nil
				r.run(seg)
				var err error
				if rep, err = fetch.Parse(t.Context(), r.db.Segments(), seg, o); err != nil {
					t.Fatal(err)
				}
			} else {
				rep = r.run(seg)
			}
			want := 4 * limit
			if later {
				want += 2 * limit // one after the other
			}
			if took := time.Since(start).Round(time.Second); took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
			if rep.Parsed != 3 || rep.ParseFailed != 1 || rep.ParseCut != 1 || rep.Links != 3 {
				t.Errorf("%+v", rep)
			}
			all := r.parses(seg)
			if got := all["http://a.example.test/partial"]; len(got.Links) != 1 || got.Signature == nil {
				t.Errorf("what was found in time is lost: %+v", got)
			}
			if got := all["http://b.example.test/fails"]; !strings.Contains(got.Error, "deadline") {
				t.Errorf("%+v", got)
			}
			if n := strings.Count(log.String(), "the parser did not end in time"); n != 1 || !strings.Contains(log.String(), "/deaf") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// Without a word a page has half a minute, and no bound only if that is asked for.
func TestParseTimeoutByDefault(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 30 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{}, "http://a.example.test/")
			r.o.Politeness.NoRobots, r.o.Parsing.Timeout = true, limit
			r.o.Parser = parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				return page.Parsed{Text: "some"}, nil
			})
			start := time.Now()
			if rep := r.run(seg); rep.Parsed != 1 {
				t.Errorf("%+v", rep)
			}
			if took := time.Since(start).Round(time.Second); took != want {
				t.Errorf("with %v it took %v, want %v", limit, took, want)
			}
		})
	}
}
