package fetch_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// A host that failed in former rounds and is well again is not given up because
// a visit has to wait for one that is under way, which is to tell.
func TestFailuresCountAcrossRounds(t *testing.T) {
	for _, threads := range []int{1, 3} {
		for _, known := range []bool{false, true} { // robots.txt
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second}
				r := newRig(t, s, pageURLs(host, 6)...)
				r.o.Politeness.ThreadsPerHost, r.o.Politeness.NoRobots = threads, known
				err := r.o.Hosts.Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
					h := hostdb.Host{Backoff: 5, LastFetch: time.Now().Add(-time.Hour), NextFetch: time.Now().Add(-time.Minute)}
					h.Stats.Failures = 5
					return &h, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				rep := r.run(seg)
				if rep.Visits[protocol.Success] != 6 {
					t.Errorf("%d threads, no robots.txt %v: %v", threads, known, rep.Visits)
				}
			})
		}
	}
}

func TestHostThatFails(t *testing.T) {
	for _, c := range []struct{ max, requests int }{{0, 5}, {2, 2}, {-1, 8}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(string) protocol.Response { return code(protocol.Failed) }}
			r := newRig(t, s, pageURLs(host, 8)...)
			r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait = c.max, 3*time.Hour
			var told int
			r.o.OnVisit = func(segment.Visit, fetch.Progress) { told++ }
			rep := r.run(seg)
			if n := len(s.of(host)) - 1; n != c.requests || rep.Visits[protocol.Failed] != n || rep.Visits[protocol.Skipped] != 8-n {
				t.Errorf("MaxFailures %d: %d requests, %v", c.max, n, rep.Visits)
			}
			if told != 8 {
				t.Errorf("OnVisit got %d visits of 8", told)
			}
			r.visits(seg)
			aligned(t, r.db.Segments(), seg)
		})
	}
}

func TestHostThatWasDownCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		s := &site{answer: func(string) protocol.Response {
			if down {
				return code(protocol.Failed)
			}
			return body("text/html", "x")
		}}
		r := newRig(t, s, pageURLs(host, 10)...)
		r.run(seg)
		for round := range 3 {
			time.Sleep(12 * time.Hour) // robots.txt still holds, or no longer
			before := len(s.of(host)) - len(s.of("robots.txt"))
			name := fmt.Sprint("down", round)
			r.list(name, pageURLs(host, 10)...)
			r.run(name)
			if n := len(s.of(host)) - len(s.of("robots.txt")) - before; n != 1 {
				t.Errorf("round %d: %d pages were asked for, want 1", round, n)
			}
			if n := r.codes(name)[protocol.Skipped]; n != 9 {
				t.Errorf("round %d: %d skipped", round, n)
			}
		}
		// When it is up again it is crawled again, whether robots.txt has to be
		// asked for first or not.
		time.Sleep(25 * time.Hour)
		down = false
		r.list("up", pageURLs(host, 10)...)
		if rep := r.run("up"); rep.Visits[protocol.Success] != 10 || rep.Robots != 1 {
			t.Errorf("up again: %+v", rep)
		}
	})
}

// MaxWait is about waits beyond the usual pause, which are logged.
func TestMaxWait(t *testing.T) {
	for _, c := range []struct {
		wait, after time.Duration
		skipped     int
		told        string
	}{
		{time.Second, 0, 0, ""},
		{time.Second, 20 * time.Second, 0, ""}, // it is what the host is due anyway
		{time.Second, 21 * time.Second, 3, "skipped for this round"},
		{25 * time.Second, 25 * time.Second, 0, "waiting for host"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{robots: "User-agent: *\nCrawl-delay: 20"}
			s.answer = func(string) protocol.Response {
				r := body("text/html", "x")
				if len(s.of(host)) == 2 {
					r.Outcome.RetryAfter = c.after
				}
				return r
			}
			var log bytes.Buffer
			r := newRig(t, s, pageURLs(host, 4)...)
			r.o.Politeness.MaxWait, r.o.Logger = c.wait, slog.New(slog.NewTextHandler(&log, nil))
			if rep := r.run(seg); rep.Visits[protocol.Skipped] != c.skipped {
				t.Errorf("%v, %v: %v", c.wait, c.after, rep.Visits)
			}
			told := log.String()
			if (told == "") != (c.told == "") || !strings.Contains(told, c.told) || strings.Count(told, "\n") > 1 {
				t.Errorf("%v, %v: the Logger heard %q, want %q", c.wait, c.after, told, c.told)
			}
		})
	}
}
