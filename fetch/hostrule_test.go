package fetch_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // so that Europe/Berlin is there

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/update"
)

// named is a reader that has a name, as a file has.
type named struct {
	io.Reader
	name string
}

func (n named) Name() string { return n.name }

func rules(t testing.TB, text string) *fetch.HostRules {
	t.Helper()
	r, err := fetch.ParseHostRules(named{strings.NewReader(text), "rules.txt"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseHostRules(t *testing.T) {
	r := rules(t, "\ufeff"+`.marked.example requests=4
# comment
WWW.Example.com.   requests=1000 bytes=200M   # with a comment
.example.org  window=22:00-06:00 window=12:00-13:30 zone=Europe/Berlin
.deep.example.org requests=1
bücher.example requests=2
[2001:DB8::1] requests=3
127.1 bytes=1
paused.example closed
* requests=9
`)
	for queue, want := range map[string]string{
		"www.example.com":       "{1000 209715200 [] false}",
		"example.com":           "{9 0 [] false}",
		"example.org":           "{0 0 [22:00-06:00 Europe/Berlin 12:00-13:30 Europe/Berlin] false}",
		"a.b.example.org":       "{0 0 [22:00-06:00 Europe/Berlin 12:00-13:30 Europe/Berlin] false}",
		"x.deep.example.org":    "{1 0 [] false}",
		"notexample.org":        "{9 0 [] false}",
		"xn--bcher-kva.example": "{2 0 [] false}",
		"[2001:db8::1]":         "{3 0 [] false}",
		"127.0.0.1":             "{0 1 [] false}",
		"":                      "{9 0 [] false}",
		"paused.example":        "{0 0 [] true}",
		"a.marked.example":      "{4 0 [] false}",
	} {
		if got := fmt.Sprint(r.Rule(queue)); got != want {
			t.Errorf("the rule for %q is %s, want %s", queue, got, want)
		}
	}
	if got := (*fetch.HostRules)(nil).Rule("x"); got.Requests != 0 {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		"a.example":                                    `rules.txt:1: an empty rule; want requests=, bytes=, window=, zone= or closed`,
		"\na.example request=1":                        `rules.txt:2: unknown setting "request=1"; want requests=, bytes=, window=, zone= or closed`,
		"a.example requests=0":                         `rules.txt:1: "0" is not a number above zero`,
		"a.example requests=-5":                        `rules.txt:1: "-5" is not a number above zero`,
		"a.example bytes=1T":                           `rules.txt:1: "1T" is not a number of bytes above zero, such as 500, 200K, 10M or 2G`,
		"a.example bytes=9999999999G":                  `rules.txt:1: "9999999999G" is not a number of bytes above zero, such as 500, 200K, 10M or 2G`,
		"a.example window=22:00":                       `rules.txt:1: fetch: window "22:00": want HH:MM-HH:MM`,
		"a.example window=24:01-01:00":                 `rules.txt:1: fetch: window "24:01-01:00": "24:01" is not a time of day`,
		"a.example window=7:5-8:00":                    `rules.txt:1: fetch: window "7:5-8:00": "7:5" is not a time of day`,
		"a.example window=07:00-07:00":                 `rules.txt:1: fetch: window "07:00-07:00": it is empty`,
		"a.example window=07:00-08:00 zone=Mars/Base":  `rules.txt:1: unknown time zone "Mars/Base"`,
		"a.example window=07:00-08:00 zone=Local":      `rules.txt:1: "Local" is not a time zone`,
		"a.example zone=UTC":                           `rules.txt:1: zone= without window=`,
		"a.example requests=1 bytes=1 requests=2":      `rules.txt:1: requests= is given twice`,
		"a.example closed requests=1":                  `rules.txt:1: closed must stand alone`,
		"a.example closed=1":                           `rules.txt:1: unknown setting "closed=1"; want requests=, bytes=, window=, zone= or closed`,
		"http://a.example/ requests=1":                 `rules.txt:1: "http://a.example/" is not a host`,
		"*.example requests=1":                         `rules.txt:1: "*.example" is not a host`,
		". requests=1":                                 `rules.txt:1: "." is not a host`,
		"a.example requests=1\nA.EXAMPLE. bytes=1":     `rules.txt:2: line 1 already has a rule for A.EXAMPLE.`,
		"* requests=1\n* requests=1":                   `rules.txt:2: line 1 already has a rule for *`,
		"* requests=1\n#" + strings.Repeat("x", 1<<16): `rules.txt:2: bufio.Scanner: token too long`,
	} {
		if _, err := fetch.ParseHostRules(named{strings.NewReader(text), "rules.txt"}); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// A reader without a name is no file.
func TestParseHostRulesOfNoFile(t *testing.T) {
	_, err := fetch.ParseHostRules(strings.NewReader("* requests=1\na.example closed=1"))
	if err == nil || !strings.HasPrefix(err.Error(), "fetch: host rules, line 2: ") {
		t.Error(err)
	}
}

func FuzzParseHostRules(f *testing.F) {
	f.Add("a.example requests=1 bytes=2K window=22:00-06:00 zone=UTC\n* requests=9")
	f.Add(".example window=00:00-24:00\n[::1] bytes=1g # x")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := fetch.ParseHostRules(named{strings.NewReader(text), "f"})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("%v", err)
			}
			return
		}
		for _, queue := range []string{"", "a.example", "b.a.example", "[::1]"} {
			for _, w := range r.Rule(queue).Windows {
				if again, err := fetch.ParseWindow(w.String()); err != nil || again.String() != w.String() {
					t.Errorf("%v: %v", w, err)
				}
			}
		}
	})
}

// The times of a window are those of the wall, also when clocks are changed.
func TestWindowOpens(t *testing.T) {
	for _, c := range []struct{ window, at, want string }{
		{"22:00-06:00", "2026-01-05T08:00:00Z", "2026-01-05T22:00:00Z"},
		{"22:00-06:00", "2026-01-05T21:59:59.999Z", "2026-01-05T22:00:00Z"},
		{"22:00-06:00", "2026-01-05T22:00:00Z", ""},
		{"22:00-06:00", "2026-01-06T05:59:59.999Z", ""},
		{"22:00-06:00", "2026-01-06T06:00:00Z", "2026-01-06T22:00:00Z"},
		{"00:00-24:00", "2026-01-06T23:59:59Z", ""},
		{"12:00-24:00", "2026-01-06T03:00:00Z", "2026-01-06T12:00:00Z"},
		{"08:00-09:00 Europe/Berlin", "2026-01-06T03:00:00Z", "2026-01-06T07:00:00Z"},
		{"08:00-09:00 Europe/Berlin", "2026-07-06T03:00:00Z", "2026-07-06T06:00:00Z"},
		{"08:00-09:00 America/New_York", "2026-01-06T22:00:00Z", "2026-01-07T13:00:00Z"},
		// On 29 March there is no time from 2:00 to 3:00, on 25 October it is twice.
		{"02:10-02:50 Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-30T00:10:00Z"},
		{"02:30-04:00 Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		{"02:10-02:50 Europe/Berlin", "2026-10-25T00:55:00Z", "2026-10-25T01:10:00Z"},
		{"02:10-02:50 Europe/Berlin", "2026-10-25T01:20:00Z", ""},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		w, err2 := fetch.ParseWindow(c.window)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		want := at
		if c.want != "" {
			want, _ = time.Parse(time.RFC3339, c.want)
		}
		if got := fetch.Opens(w, at); !got.Equal(want) {
			t.Errorf("%s opens after %s at %v, want %v", c.window, c.at, got.UTC(), want)
		}
	}
}

// A budget is for a day, however often a fetch is restarted, and pages that it has no room
// for are due when it has.
func TestRequestsADayOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from 2000-01-01 00:00 UTC
		s := &site{}
		r := newRig(t, s)
		urls := pageURLs(host, 10)
		r.o.Politeness.HostRule = rules(t, host+" requests=4").Rule
		asked := func() int { return len(s.of(host)) }
		day := time.Now()
		for round, want := range []int{4, 4, 8, 12} { // with robots.txt once a day
			name := fmt.Sprint("round", round)
			if round > 1 {
				time.Sleep(time.Until(day.Add(24 * time.Hour)))
				day = day.Add(24 * time.Hour)
			}
			r.lease(name, time.Now(), urls...)
			r.run(name)
			if asked() != want {
				t.Errorf("round %d: %d requests, want %d", round, asked(), want)
			}
			if _, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), name, update.Options{}); err != nil {
				t.Fatal(err)
			}
			var next []string
			for _, v := range r.visits(name) {
				if v.Outcome.Code != protocol.Skipped {
					continue
				}
				if want := "the host has been sent its 4 requests of the day"; v.Outcome.Reason != want {
					t.Errorf("%q", v.Outcome.Reason)
				}
				d, err := r.db.Crawl().Get(t.Context(), v.URL)
				if err != nil {
					t.Fatal(err)
				}
				// The first four tomorrow, and so on.
				if wait := d.FetchTime.Sub(day); wait%(24*time.Hour) > time.Second || wait < 24*time.Hour || wait > 3*24*time.Hour {
					t.Errorf("round %d: %s is due after %v", round, v.URL, wait)
				}
				next = append(next, v.URL)
			}
			urls = next
			r.renew()
		}
	})
}

func TestBytesADayOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response { return body("text/html", strings.Repeat("x", 1000)) }}
		r := newRig(t, s, pageURLs(host, 10)...)
		r.o.Politeness.HostRule = rules(t, "* bytes=2500").Rule
		rep := r.run(seg)
		if rep.Visits[protocol.Success] != 3 || rep.Visits[protocol.Skipped] != 7 || hostOf(t, r, host).Spent.Bytes != 3000 {
			t.Errorf("%v, %+v", rep.Visits, hostOf(t, r, host).Spent)
		}
	})
}

// Near to midnight it is worth waiting for the new day.
func TestDailyLimitsBeginAnewAtMidnightUTC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - 2*time.Minute)
		s := &site{}
		r := newRig(t, s, pageURLs(host, 10)...)
		r.o.Politeness.HostRule = rules(t, "* requests=6").Rule
		midnight := time.Now().Add(2 * time.Minute)
		rep := r.run(seg)
		before := 0
		for _, a := range s.of(host) {
			if a.begin.Before(midnight) {
				before++
			}
		}
		if rep.Visits[protocol.Success] != 10 || before != 6 {
			t.Errorf("%v, %d before midnight", rep.Visits, before)
		}
	})
}

// A host is asked within its hours; what is put off is due when they begin.
func TestRequestsBeginInWindowsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, "http://a.example.test/", "http://b.example.test/", "http://c.example.test/", "http://d.example.test/")
		r.o.Politeness.HostRule = rules(t, "a.example.test window=06:00-07:00 zone=Europe/Berlin\nb.example.test window=00:04-00:05\nc.example.test window=23:00-01:00\n").Rule
		r.o.Politeness.NoRobots = true
		began := time.Now()
		r.run(seg)
		v := r.visits(seg)
		if a := v["http://a.example.test/"].Outcome; a.Code != protocol.Skipped || a.RetryAfter != 5*time.Hour || a.Reason != "the host may be asked only at other times of the day" {
			t.Errorf("%+v", a)
		}
		for url, after := range map[string]time.Duration{"http://b.example.test/": 4 * time.Minute, "http://c.example.test/": 0, "http://d.example.test/": 0} {
			if asks := s.of(url); len(asks) != 1 || asks[0].begin.Sub(began) != after {
				t.Errorf("%s: %v", url, asks)
			}
		}
		// Together with a budget that is spent the later of the two holds.
		r.o.Politeness.HostRule = rules(t, "* requests=1 window=03:00-04:00").Rule
		r.list("s2", "http://d.example.test/2")
		r.run("s2")
		if a := r.visits("s2")["http://d.example.test/2"].Outcome; a.RetryAfter.Round(time.Hour) != 27*time.Hour {
			t.Errorf("%+v", a)
		}
	})
}

// What is put off is no reason for round after round.
func TestSkippedPagesAreNotDueBeforeTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{})
		r.o.Politeness.HostRule = rules(t, "* window=22:00-23:00").Rule
		r.lease("s2", time.Now(), pageURLs(host, 50)...)
		r.run("s2")
		if _, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), "s2", update.Options{}); err != nil {
			t.Fatal(err)
		}
		for d, err := range r.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if wait := time.Until(d.FetchTime); wait != 22*time.Hour || d.Retries != 0 || d.Status != crawldb.Unfetched {
				t.Errorf("%s is due in %v", d.URL, wait)
			}
		}
	})
}

// A host that is closed is asked for nothing, and as before once it is open.
func TestClosedHostGetsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, "http://a.example.test/", "http://b.example.test/")
		closed := true
		r.o.Politeness.HostRule = func(queue string) fetch.HostRule {
			return fetch.HostRule{Closed: closed && queue == "a.example.test", Requests: 1000}
		}
		r.run(seg)
		v := r.visits(seg)
		if a := v["http://a.example.test/"].Outcome; a.Code != protocol.Skipped || a.RetryAfter.Round(time.Second) != 24*time.Hour || a.Reason != "the rule for the host says closed" {
			t.Errorf("%+v", a)
		}
		if b := v["http://b.example.test/"].Outcome; b.Code != protocol.Success {
			t.Errorf("%+v", b)
		}
		if n := len(s.of("http://a.example.test/")) + len(s.of("http://a.example.test/robots.txt")); n != 0 {
			t.Errorf("the host that is closed was asked %d times", n)
		}
		closed = false
		r.list("s2", "http://a.example.test/")
		r.run("s2")
		if a := r.visits("s2")["http://a.example.test/"].Outcome; a.Code != protocol.Success {
			t.Errorf("%+v", a)
		}
	})
}
