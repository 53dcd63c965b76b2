package fetch_test

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

// broken is an answer that is an error of the server.
func broken() protocol.Response {
	r := code(protocol.Failed)
	r.Outcome.Status = 503
	return r
}

// The pause of a host that is down follows from how often it has failed and what it says;
// its pages wait with it.
func TestPauseOfAHostThatIsDown(t *testing.T) {
	const most = 720 * time.Hour
	for _, c := range []struct {
		name     string
		failures int64 // before the one visit
		answer   protocol.Response
		set      func(*rig)
		pause    time.Duration
		after    int64 // failures then
		wait     time.Duration
	}{
		{name: "as often as a round bears", failures: 4, pause: 5 * time.Second, after: 5},
		{name: "once more", failures: 5, pause: time.Hour, after: 6},
		{name: "seven times", failures: 11, pause: 18 * time.Hour, after: 12},
		{name: "eight times", failures: 12, pause: 27 * time.Hour, after: 13, wait: 27 * time.Hour},
		{name: "for ever", failures: 1 << 62, pause: most, after: 1<<62 + 1, wait: most},
		{name: "with errors for answers", failures: 90, answer: broken(), pause: 18 * time.Hour, after: 12},
		{name: "with a first error", failures: 7, answer: broken(), pause: 3 * time.Hour, after: 8},
		{name: "and its address others'", failures: 90, set: func(r *rig) { r.o.Politeness.By = hostdb.ByDomain }, pause: 18 * time.Hour, after: 12},
		{name: "within a bound", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = 50 * time.Hour }, pause: 50 * time.Hour, after: 91, wait: 50 * time.Hour},
		{name: "beyond the bound", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = 5000 * time.Hour }, pause: most, after: 91, wait: most},
		{name: "without", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = -1 }, pause: 5 * time.Second, after: 91},
		{name: "as Nutch", failures: 90, set: func(r *rig) { r.o.NutchCompat = true }, pause: 5 * time.Second, after: 91},
		{name: "by no limit", failures: 90, set: func(r *rig) { r.o.Politeness.MaxFailures, r.o.Limits.TimeLimit = -1, time.Second }, pause: 5 * time.Second, after: 91},
		{name: "and then up", failures: 90, answer: code(protocol.NotFound), set: func(r *rig) { r.o.Limits.TimeLimit = time.Second }, pause: 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.answer.Outcome.Code == 0 {
					c.answer = code(protocol.Failed)
				}
				s := &site{answer: func(string) protocol.Response { return c.answer }}
				name := "www.example.com"
				r := newRig(t, s, urlSet(name, 3)...)
				r.o.Politeness.NoRobots = true
				if c.set != nil {
					c.set(r)
				}
				key := r.o.Politeness.By.Key("http://" + name + "/")
				err := r.db.Hosts().Update(t.Context(), key, func(*hostdb.Host) (*hostdb.Host, error) {
					return &hostdb.Host{Stats: hostdb.Stats{Failures: c.failures}, LastFetch: time.Now().Add(-time.Hour), NextFetch: time.Now()}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r.run(seg)
				h := hostOf(t, r, key)
				if pause := h.NextFetch.Sub(h.LastFetch); pause != c.pause || h.Stats.Failures != c.after || len(s.of(name)) != 1 {
					t.Errorf("%d requests, then a pause of %v, %d failures; want %v, %d", len(s.of(name)), pause, h.Stats.Failures, c.pause, c.after)
				}
				for url, v := range r.visits(seg) {
					if o := v.Outcome; o.Code == protocol.Skipped && o.RetryAfter != c.wait {
						t.Errorf("%s waits %v, want %v", url, o.RetryAfter, c.wait)
					}
				}
			})
		})
	}
}

// The pages of a host that is down for good are gone one by one, those that were visited lately excepted, and cost
// no more requests than others that wait.
func TestPagesOfAHostThatIsDownForGood(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name     string
		failures int64 // with that of the one visit
		answer   protocol.Response
		set      func(*rig)
		gone     bool
		wait     time.Duration
	}{
		{name: "88 days", failures: 5 + 17, wait: 30 * day},
		{name: "118 days", failures: 5 + 18, gone: true, wait: 30 * day},
		{name: "for ever", failures: 1 << 62, gone: true, wait: 30 * day},
		{name: "118 days of 119", failures: 5 + 18, set: func(r *rig) { r.o.Politeness.GoneAfter = 119 * day }, wait: 30 * day},
		{name: "118 days of 118", failures: 5 + 18, set: func(r *rig) { r.o.Politeness.GoneAfter = 118 * day }, gone: true, wait: 30 * day},
		{name: "never", failures: 1 << 62, set: func(r *rig) { r.o.Politeness.GoneAfter = -1 }, wait: 30 * day},
		{name: "two days of one hour", failures: 5 + 8, set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }, gone: true, wait: 27 * time.Hour},
		{name: "31 hours of one", failures: 5 + 7, set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }},
		{name: "with errors for answers", failures: 5 + 7, answer: broken(), set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }},
		{name: "with others in its queue", failures: 5 + 7, set: func(r *rig) { r.o.Politeness.By, r.o.Politeness.GoneAfter = hostdb.ByDomain, time.Hour }},
		{name: "with short pauses", failures: 5 + 1000, set: func(r *rig) { r.o.Politeness.MaxPause = time.Hour }},
		{name: "with more of them", failures: 5 + 2200, set: func(r *rig) { r.o.Politeness.MaxPause = time.Hour }, gone: true},
		{name: "without pauses", failures: 1 << 62, set: func(r *rig) { r.o.Politeness.MaxPause = -1 }},
		{name: "as Nutch", failures: 1 << 62, set: func(r *rig) { r.o.NutchCompat = true }},
		{name: "and then up", failures: 1 << 62, answer: code(protocol.NotFound), set: func(r *rig) { r.o.Limits.TimeLimit = time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.answer.Outcome.Code == 0 {
					c.answer = code(protocol.Failed)
				}
				s := &site{answer: func(string) protocol.Response { return c.answer }}
				name := "www.example.com"
				r := newRig(t, s)
				r.o.Politeness.NoRobots = true
				if c.set != nil {
					c.set(r)
				}
				now, urls := time.Now(), urlSet(name, 5)
				after := cmp.Or(max(r.o.Politeness.GoneAfter, 0), 90*day)
				list := []crawldb.Datum{
					{URL: urls[0]}, // is asked for
					{URL: urls[1]},
					{URL: urls[2], LastFetch: now.Add(time.Minute - after)},
					{URL: urls[3], LastFetch: now.Add(-after)},
					{URL: urls[4], LastFetch: now.AddDate(-1, 0, 0)},
				}
				r.records("s2", list...)
				key := r.o.Politeness.By.Key(urls[0])
				err := r.db.Hosts().Update(t.Context(), key, func(*hostdb.Host) (*hostdb.Host, error) {
					return &hostdb.Host{Stats: hostdb.Stats{Failures: c.failures - 1}, LastFetch: now.Add(-time.Hour), NextFetch: now}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r.run("s2")
				if n := len(s.of(name)); n != 1 {
					t.Errorf("%d requests", n)
				}
				visits := r.visits("s2")
				for i, d := range list[1:] {
					v, ok := visits[d.URL]
					want := protocol.Skipped
					if c.gone && i != 1 {
						want = protocol.Refused
					}
					if up := c.answer.Outcome.Code == protocol.NotFound; up != !ok || ok && (v.Outcome.Code != want || v.Outcome.RetryAfter != c.wait || v.Outcome.Reason == "") {
						t.Errorf("%s, visited %v: %+v, want %v, %v", d.URL, d.LastFetch, v.Outcome, want, c.wait)
					}
				}
			})
		})
	}
}

// A crawl that runs every few hours asks a dead host less and less often, but never waits longer
// than half the time it has been dead, and asks for all pages at once when it answers.
func TestDeadHostCostsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		up := false
		s := &site{answer: func(string) protocol.Response {
			if up {
				return body("text/html", "x")
			}
			return code(protocol.Failed)
		}}
		r := newRig(t, s)
		r.o.Politeness.NoRobots = true
		began, last := time.Now(), time.Now()
		round := func(n int) (asked bool) {
			before, name := len(s.of(host)), fmt.Sprint("round", n)
			r.list(name, urlSet(host, 4)...)
			r.run(name)
			return len(s.of(host)) > before
		}
		n := 0
		for ; time.Since(began) < year; time.Sleep(6 * time.Hour) {
			n++
			if round(n) {
				if gap, down := time.Since(last), time.Since(began); gap > 30*24*time.Hour+6*time.Hour || gap > down/3+12*time.Hour {
					t.Errorf("asked %v after the last time, having been down for %v", gap, down)
				}
				last = time.Now()
			}
		}
		if asked := len(s.of(host)); asked > 40 {
			t.Errorf("%d requests in a year", asked)
		}
		if h := hostOf(t, r, host); len(h.Busy) > 0 || time.Until(h.NextFetch) > 30*24*time.Hour {
			t.Errorf("%+v", h)
		}
		time.Sleep(31 * 24 * time.Hour)
		up = true
		r.list("up", urlSet(host, 4)...)
		if rep := r.run("up"); rep.Visits[protocol.Success] != 4 {
			t.Errorf("up again: %v", rep.Visits)
		}
		if h := hostOf(t, r, host); h.Stats.Failures != 0 || h.NextFetch.Sub(h.LastFetch) > time.Minute {
			t.Errorf("up again: %+v", h)
		}
	})
}

// Requests that were under way at the same time say of a host what one of them says, and one
// that was given up is asked for one page, however many may be asked for at once.
func TestFailuresAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, answer: func(string) protocol.Response { return code(protocol.Failed) }}
		r := newRig(t, s, urlSet(host, 60)...)
		r.o.Politeness.NoRobots, r.o.Politeness.ThreadsPerHost, r.o.Politeness.MinDelay = true, 40, -1
		r.run(seg)
		if h := hostOf(t, r, host); h.Stats.Failed != 40 || h.Stats.Failures != 5 || h.NextFetch.Sub(h.LastFetch) > time.Hour {
			t.Errorf("%+v", h)
		}
		time.Sleep(24 * time.Hour) // what makes requests one at a time is forgotten
		r.list("later", urlSet(host, 60)...)
		r.run("later")
		if h := hostOf(t, r, host); h.Stats.Failed != 41 || h.Stats.Failures != 6 || h.NextFetch.Sub(h.LastFetch) != time.Hour {
			t.Errorf("%+v", h)
		}
	})
}

// A clock that was ahead does not keep anybody from a host for longer than a day.
func TestClockThatWasAheadAndAHostThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response { return body("text/html", "x") }}
		r := newRig(t, s, urlSet(host, 3)...)
		r.o.Politeness.NoRobots = true
		ahead := time.Now().Add(10 * 365 * 24 * time.Hour)
		err := r.db.Hosts().Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{Stats: hostdb.Stats{Failures: 90}, LastFetch: ahead, NextFetch: ahead.Add(720 * time.Hour)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.run(seg)
		time.Sleep(24*time.Hour + time.Second)
		r.list("later", urlSet(host, 3)...)
		if rep := r.run("later"); rep.Visits[protocol.Success] != 3 {
			t.Errorf("%v, %+v", rep.Visits, hostOf(t, r, host))
		}
	})
}
