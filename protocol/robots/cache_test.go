package robots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
)

const (
	noX    = "User-agent: *\nDisallow: /x\n"
	origin = "http://example.com"
	file   = origin + "/robots.txt"
)

// says names what rules say of /x and of /y.
func says(r *robots.Rules) string {
	switch x, y := r.Allowed(origin+"/x"), r.Allowed(origin+"/y"); {
	case r.Unavailable && !x && !y:
		return "wait"
	case r.Unavailable:
		return "unavailable, but allowed"
	case x && y:
		return "all"
	case !x && y:
		return "file"
	case !x && !y:
		return "none"
	}
	return "nonsense"
}

// TestRulesByStatusOfRobotsTxt is the table of RFC 9309 section 2.3.1: what the rules say after an
// answer when nothing was known, when there was a good copy, and after 30 days;
// and how long the first answer holds.
func TestRulesByStatusOfRobotsTxt(t *testing.T) {
	const day = 24 * time.Hour
	chain := func(n int, hosts bool) map[string]protocol.Response {
		m := make(map[string]protocol.Response)
		from := file
		for i := range n {
			to := fmt.Sprintf("%s/%d", origin, i)
			if hosts {
				to = fmt.Sprintf("https://h%d.example.org/robots.txt", i)
			}
			m[from] = redirect(to)
			from = to
		}
		m[from] = status(200, noX)
		return m
	}
	one := func(r protocol.Response) map[string]protocol.Response {
		return map[string]protocol.Response{file: r}
	}
	after := func(r protocol.Response, d time.Duration) protocol.Response {
		r.Outcome.RetryAfter = d
		return r
	}
	cut := func(r protocol.Response) protocol.Response {
		r.Content.Truncated = true
		return r
	}
	for _, tt := range []struct {
		name               string
		answers            map[string]protocol.Response
		first, copy, later string
		holds              time.Duration
	}{
		{"200", one(status(200, noX)), "file", "file", "file", day},
		{"200, empty", one(status(200)), "all", "all", "all", day},
		{"200, a web page", one(status(200, "<!DOCTYPE html><html><body>Hello</body></html>")), "all", "all", "all", day},
		{"200, cut within a line", one(cut(status(200, noX, "Disallow: /"))), "file", "file", "file", time.Hour},
		{"200, cut at once", one(cut(status(200, "User-agent: *"))), "wait", "file", "all", time.Minute},
		{"success of another protocol", one(protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success}, Content: page.Content{Body: []byte(noX)}}), "file", "file", "file", day},
		{"204", one(status(204)), "all", "all", "all", day},
		{"302 once", chain(1, false), "file", "file", "file", day},
		{"302 five times", chain(5, false), "file", "file", "file", day},
		{"302 five times over hosts", chain(5, true), "file", "file", "file", day},
		{"302 six times", chain(6, false), "all", "all", "all", day},
		{"302 in a circle", one(redirect(file)), "all", "all", "all", day},
		{"302 to nowhere", one(redirect("")), "all", "all", "all", day},
		{"302 to nonsense", one(redirect("http://[")), "all", "all", "all", day},
		{"302 to a file", one(redirect("file:///etc/passwd")), "wait", "file", "all", time.Minute},
		{"302 to a host that is down", one(redirect("http://down.example.com/")), "wait", "file", "all", time.Minute},
		{"302 to 404", map[string]protocol.Response{file: redirect("/gone"), origin + "/gone": status(404)}, "all", "all", "all", day},
		{"302, relative", map[string]protocol.Response{file: redirect("r.txt#top"), origin + "/r.txt": status(200, noX)}, "file", "file", "file", day},
		{"304", one(status(304)), "wait", "file", "all", time.Minute},
		{"400", one(status(400)), "all", "all", "all", day},
		{"401", one(status(401)), "all", "all", "all", day},
		{"403", one(status(403)), "all", "all", "all", day},
		{"404", one(status(404)), "all", "all", "all", day},
		{"410", one(status(410)), "all", "all", "all", day},
		{"418", one(status(418)), "all", "all", "all", day},
		{"not found in another protocol", one(failure(protocol.NotFound)), "all", "all", "all", day},
		{"429", one(status(429)), "wait", "file", "all", time.Minute},
		{"429 with Retry-After", one(after(status(429), 2*time.Hour)), "wait", "file", "all", 2 * time.Hour},
		{"500", one(status(500)), "wait", "file", "all", time.Minute},
		{"503", one(status(503)), "wait", "file", "all", time.Minute},
		{"503 with a short Retry-After", one(after(status(503), time.Second)), "wait", "file", "all", time.Minute},
		{"503 until the year 9999", one(after(status(503), 1<<63-1)), "wait", "file", "all", day},
		{"599", one(status(599)), "wait", "file", "all", time.Minute},
		{"no answer", nil, "wait", "file", "all", time.Minute},
		{"an unknown code", one(failure(99)), "wait", "file", "all", time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				fetch := func(c *robots.Cache) *robots.Rules {
					t.Helper()
					r, err := c.Fetch(ctx, origin+"/x")
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				cached := func(c *robots.Cache) bool {
					t.Helper()
					_, ok, err := c.Cached(ctx, origin+"/x")
					if err != nil {
						t.Fatal(err)
					}
					return ok
				}
				s := &site{answers: tt.answers}
				c := &robots.Cache{Protocol: s, Hosts: new(hosts)}
				if got := says(fetch(c)); got != tt.first {
					t.Errorf("first it is %q, want %q", got, tt.first)
				}
				time.Sleep(tt.holds - time.Millisecond)
				if !cached(c) {
					t.Errorf("the answer does not hold for %v", tt.holds)
				}
				time.Sleep(time.Millisecond)
				if cached(c) {
					t.Errorf("the answer holds for more than %v", tt.holds)
				}

				good := &site{answers: map[string]protocol.Response{file: status(200, noX)}}
				c = &robots.Cache{Protocol: good, Hosts: new(hosts)}
				fetch(c)
				time.Sleep(day)
				c.Protocol = s
				start := time.Now()
				if got := says(fetch(c)); got != tt.copy {
					t.Errorf("with a good copy it is %q, want %q", got, tt.copy)
				}
				for time.Since(start) < 31*day {
					if !cached(c) {
						got, want := says(fetch(c)), tt.copy
						if time.Since(start) >= 30*day {
							want = tt.later
						}
						if got != want {
							t.Fatalf("after %v it is %q, want %q", time.Since(start), got, want)
						}
					}
					time.Sleep(30 * time.Minute)
				}
				c.Protocol = good
				time.Sleep(day)
				if got := says(fetch(c)); got != "file" {
					t.Errorf("in the end it is %q", got)
				}
			})
		})
	}
}

// A server that fails is asked after one minute, one more, then twice as long,
// up to an hour; after 30 days all is allowed, and it is still asked.
func TestPauseOfAFailingServerDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(site)
		c := &robots.Cache{Protocol: s, Hosts: new(hosts)}
		start := time.Now()
		var at []time.Duration
		for time.Since(start) < 31*24*time.Hour {
			r, ok, err := c.Cached(t.Context(), origin)
			if !ok && err == nil {
				at = append(at, time.Since(start))
				r, err = c.Fetch(t.Context(), origin)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := "wait"
			if time.Since(start) >= 30*24*time.Hour {
				want = "all"
			}
			// The last answer before the end of the 30 days holds a little longer.
			if got := says(r); got != want && !(got == "wait" && time.Since(start) < 30*24*time.Hour+time.Hour) {
				t.Fatalf("after %v: %q, want %q", time.Since(start), got, want)
			}
			time.Sleep(time.Minute)
		}
		const m = time.Minute
		want := []time.Duration{0, 1 * m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 64 * m, 124 * m, 184 * m}
		if len(at) < len(want) || !slices.Equal(at[:len(want)], want) {
			t.Errorf("asked after %v, want %v", at[:min(len(at), len(want))], want)
		}
		if n := len(at); n < 31*24 || n > 31*24+8 {
			t.Errorf("asked %d times in 31 days", n)
		}
	})
}

func TestGoodCopyOfAnEmptyFile(t *testing.T) {
	s, now := new(site), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: new(hosts), Now: func() time.Time { return now }}
	for i, step := range []struct {
		answer protocol.Response
		want   string
	}{
		{status(500), "wait"},
		{status(200), "all"},
		{status(500), "all"}, // the copy says so, though it is empty
		{status(404), "all"},
		{status(500), "wait"}, // there is no copy
		{status(200, noX), "file"},
	} {
		s.set(file, step.answer)
		r, err := c.Fetch(t.Context(), origin)
		if err != nil {
			t.Fatal(err)
		}
		if got := says(r); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		now = now.Add(24 * time.Hour)
	}
}

func TestAnotherCacheReadsAnswersFromHosts(t *testing.T) {
	ctx, now := t.Context(), time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.FixedZone("", 3600))
	clock := func() time.Time { return now }
	for _, tt := range []struct {
		answer protocol.Response
		want   string
	}{
		{status(200, noX), "file"}, {status(404), "all"}, {status(503), "wait"},
	} {
		s, db := new(site), new(hosts)
		s.set(file, tt.answer)
		open := func() *robots.Cache { return &robots.Cache{Protocol: s, Hosts: db, Now: clock} }
		if _, ok, err := open().Cached(ctx, origin); ok || err != nil {
			t.Fatalf("nothing is known, but: %v, %v", ok, err)
		}
		if _, err := open().Fetch(ctx, origin+"/a"); err != nil {
			t.Fatal(err)
		}
		r, ok, err := open().Cached(ctx, "HTTP://Example.COM:80/b?c")
		if err != nil || !ok {
			t.Fatalf("%s: lost: %v", tt.want, err)
		}
		if got := says(r); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		rec := db.m["example.com"].Robots[0]
		if rec.Origin != origin || rec.Status != tt.answer.Outcome.Status || !rec.Fetched.Equal(now.Truncate(time.Millisecond)) || rec.Fetched.Location() != time.UTC {
			t.Errorf("kept %+v", rec)
		}
		if s.count() != 1 {
			t.Errorf("asked %d times", s.count())
		}
	}
}

// What a server redirects to is asked for over http and https, and nothing else,
// whatever the Protocol could read.
func TestRedirectToAnotherSchemeIsAFailure(t *testing.T) {
	const file = "http://a.test/robots.txt"
	for _, to := range []string{"file:///etc/robots.txt", "ftp://a.test/robots.txt", "data:,Disallow", "javascript:x"} {
		s := &site{answers: map[string]protocol.Response{file: redirect(to), to: status(200)}}
		c := &robots.Cache{Protocol: s, Hosts: new(hosts)}
		if r, err := c.Fetch(t.Context(), file); err != nil || !r.Unavailable || len(s.asked) != 1 {
			t.Errorf("%s: %+v, %v, asked %q", to, r, err, s.asked)
		}
	}
}

// Another origin has another file: other scheme, other port, other host.
func TestOrigins(t *testing.T) {
	ctx, s, db := t.Context(), new(site), new(hosts)
	c := &robots.Cache{Protocol: s, Hosts: db}
	for _, o := range []string{"http://example.com", "https://example.com", "http://example.com:8080", "https://example.com:80", "http://a.example.com", "http://[::1]:81"} {
		s.set(o+"/robots.txt", status(200, "User-agent: *\nAllow: /\nSitemap: "+o+"\n"))
	}
	for url, want := range map[string]string{
		"http://example.com/a":           "http://example.com",
		"http://example.com:80/a":        "http://example.com",
		"http://user:pw@example.com/a@b": "http://example.com",
		"http://EXAMPLE.com?a":           "http://example.com",
		"https://example.com:443#a":      "https://example.com",
		"http://example.com:8080/":       "http://example.com:8080",
		"https://example.com:80/":        "https://example.com:80",
		"http://a.example.com/%zz":       "http://a.example.com",
		"http://[::1]:81/":               "http://[::1]:81",
	} {
		r, err := c.Fetch(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Sitemaps) != 1 || r.Sitemaps[0] != want {
			t.Errorf("%s has the rules of %q, want %s", url, r.Sitemaps, want)
		}
		if r, ok, err := c.Cached(ctx, url); !ok || err != nil || r.Sitemaps[0] != want {
			t.Errorf("%s: %v, %v", url, ok, err)
		}
	}
	if got := len(db.m["example.com"].Robots); got != 4 {
		t.Errorf("%d origins of example.com", got)
	}
	asked := s.count()
	for url, want := range map[string]bool{
		"file:///a": true, "ftp://h/a": true, "mailto:a@b": true, "": true, "/a": true,
		"http://": false, "http:///a": false, "http:a": false, "https:/a": false, "http://:80/a": false,
	} {
		r, ok, err := c.Cached(ctx, url)
		if err != nil || !ok || r.Allowed(url) != want {
			t.Errorf("Cached(%q): %v, %v, %v", url, r, ok, err)
		}
		if r, err := c.Fetch(ctx, url); err != nil || r.Allowed(url) != want {
			t.Errorf("Fetch(%q): %v, %v", url, r, err)
		}
	}
	if s.count() != asked {
		t.Errorf("asked for %q", s.asked[asked:])
	}
}

func TestCacheKeeps16OriginsOfAHost(t *testing.T) {
	ctx, s, db := t.Context(), new(site), new(hosts)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: db, Now: func() time.Time { return now }}
	for i := range 40 {
		port := 8000 + i*7%40 // not in order
		if _, err := c.Fetch(ctx, fmt.Sprintf("http://h:%d/", port)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	recs := db.m["h"].Robots
	if len(recs) != 16 || !slices.IsSortedFunc(recs, func(a, b hostdb.Robots) int { return strings.Compare(a.Origin, b.Origin) }) {
		t.Fatalf("%d origins: %v", len(recs), recs)
	}
	for _, r := range recs {
		if now.Sub(r.Fetched) > 16*time.Second {
			t.Errorf("%s is kept though others are newer", r.Origin)
		}
	}
}

func TestCrawlDelayOfAHost(t *testing.T) {
	ctx, s, db := t.Context(), new(site), &hosts{m: map[string]hostdb.Host{
		"example.com": {Name: "example.com", CrawlDelay: time.Hour, Backoff: 3, Stats: hostdb.Stats{Fetched: 7}},
	}}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: db, Product: "bot", Now: func() time.Time { return now }}
	const tls, another = "https://example.com/robots.txt", "https://example.com:8443/robots.txt"
	for _, step := range []struct {
		url, body string
		later     time.Duration
		want      time.Duration
	}{
		{file, "User-agent: *\nCrawl-delay: 7\n", 0, 7 * time.Second},
		{tls, "User-agent: bot\nCrawl-delay: 3\n", 0, 7 * time.Second}, // the longest
		{tls, "User-agent: bot\nCrawl-delay: 9\n", 0, 9 * time.Second},
		{another, "User-agent: bot\nCrawl-delay: 1\n", 0, 9 * time.Second},
		{tls, "User-agent: bot\nDisallow:\n", 0, 7 * time.Second}, // whichever is looked at last
		{tls, "", 24 * time.Hour, 0},                              // that of http no longer holds
	} {
		now = now.Add(step.later)
		s.set(step.url, status(200, step.body))
		if _, err := c.Fetch(ctx, step.url); err != nil {
			t.Fatal(err)
		}
		h := db.m["example.com"]
		if h.CrawlDelay != step.want {
			t.Errorf("after %q: %v, want %v", step.body, h.CrawlDelay, step.want)
		}
		if h.Backoff != 3 || h.Stats.Fetched != 7 {
			t.Errorf("what is not about robots.txt was changed: %+v", h)
		}
	}
}

// The clock of a crawl may go back: what was fetched later does not hold.
func TestFileFetchedInTheFutureIsFetchedAgain(t *testing.T) {
	ctx, s, db := t.Context(), new(site), new(hosts)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: db, Now: func() time.Time { return now }}
	s.set(file, status(200, noX))
	fetch := func() string {
		t.Helper()
		r, err := c.Fetch(ctx, origin)
		if err != nil {
			t.Fatal(err)
		}
		return says(r)
	}
	fetch()
	now = now.AddDate(-1, 0, 0)
	for _, c := range []*robots.Cache{c, {Protocol: s, Hosts: db, Now: c.Now}} {
		if _, ok, err := c.Cached(ctx, origin); ok || err != nil {
			t.Errorf("what was fetched next year holds: %v, %v", ok, err)
		}
	}
	s.set(file, status(500))
	if got := fetch(); got != "file" {
		t.Errorf("the copy is %q", got)
	}
	now = now.AddDate(-1, 0, 0)
	fetch()
	if since := db.m["example.com"].Robots[0].FailingSince; !since.Equal(now) {
		t.Errorf("failing since %v, which is yet to come", since)
	}
}

func TestLimitOfTheFile(t *testing.T) {
	s, db := new(site), new(hosts)
	c := &robots.Cache{Protocol: s, Hosts: db}
	s.set(file, status(200, noX, strings.Repeat("# filling\n", 1<<17), "Disallow: /y\n"))
	r, err := c.Fetch(t.Context(), origin)
	if err != nil || says(r) != "file" {
		t.Errorf("%v, %v", r, err)
	}
	rec := db.m["example.com"].Robots[0]
	if n := len(rec.Body); n > robots.MaxBytes || n < robots.MaxBytes-10 || rec.Body[n-1] != '\n' {
		t.Errorf("%d bytes are kept", n)
	}
	if got := rec.Expires.Sub(rec.Fetched); got != 24*time.Hour {
		t.Errorf("a file beyond the limit holds for %v", got)
	}
}

func TestParseFieldReplacesTheParser(t *testing.T) {
	s, db := new(site), new(hosts)
	s.set(file, status(200, noX))
	c := &robots.Cache{Protocol: s, Hosts: db, Product: "bot", MaxOrigins: 1, Parse: func(body []byte, products ...string) *robots.Rules {
		if string(body) != noX || !slices.Equal(products, []string{"bot"}) {
			t.Errorf("given %q for %q", body, products)
		}
		return robots.NewRules(robots.RuleSet{Allow: func(path string) bool { return path == "/y" }})
	}}
	if r, err := c.Fetch(t.Context(), origin); err != nil || says(r) != "file" {
		t.Errorf("%v, %v", r, err)
	}
	// With one origin in memory the other is read again.
	for range 3 {
		for _, o := range []string{origin, "http://other"} {
			r, ok, err := c.Cached(t.Context(), o)
			if !ok && err == nil {
				r, err = c.Fetch(t.Context(), o)
			}
			if want := map[string]string{origin: "file", "http://other": "wait"}[o]; err != nil || says(r) != want {
				t.Errorf("%s: %q, %v", o, says(r), err)
			}
		}
	}
	if s.count() != 2 {
		t.Errorf("asked %d times", s.count())
	}
}

// What another parser keeps of a file may be many times as long as the file.
func TestMemoryOfRulesOfAnotherParser(t *testing.T) {
	s, parsed := new(site), 0
	c := &robots.Cache{Protocol: s, Hosts: new(hosts), Parse: func([]byte, ...string) *robots.Rules {
		parsed++
		return robots.NewRules(robots.RuleSet{Allow: func(string) bool { return true }})
	}}
	body := strings.Repeat("Disallow: /*a*b\n", robots.MaxBytes/16)
	urls := []string{"http://a/", "http://b/", "http://c/"}
	for _, url := range urls {
		s.set(url+"robots.txt", status(200, body))
		if _, err := c.Fetch(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	parsed = 0
	for i := range urls { // from the last used
		if _, ok, err := c.Cached(t.Context(), urls[len(urls)-1-i]); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if parsed == 0 {
		t.Errorf("the rules of %d files of %d bytes are all kept", len(urls), len(body))
	}
}

func TestErrorsNameTheOperation(t *testing.T) {
	broken := errors.New("disk on fire")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		cache *robots.Cache
		want  error
	}{
		{"store", t.Context(), &robots.Cache{Protocol: new(site), Hosts: &hosts{err: broken}}, broken},
		{"context", ended, &robots.Cache{Protocol: new(site), Hosts: new(hosts)}, context.Canceled},
		{"protocol", t.Context(), &robots.Cache{Protocol: &site{err: broken}, Hosts: new(hosts)}, broken},
	} {
		r, err := tt.cache.Fetch(tt.ctx, origin+"/a")
		if !errors.Is(err, tt.want) || r != nil || !strings.Contains(err.Error(), origin) {
			t.Errorf("%s: Fetch: %v, %v", tt.name, r, err)
		}
		if tt.name == "protocol" {
			continue
		}
		if _, ok, err := tt.cache.Cached(tt.ctx, origin+"/a"); !errors.Is(err, tt.want) || ok {
			t.Errorf("%s: Cached: %v, %v", tt.name, ok, err)
		}
	}
	var zero robots.Cache
	if _, err := zero.Fetch(t.Context(), origin); err == nil {
		t.Error("a Cache without a Protocol fetches")
	}
	if _, _, err := zero.Cached(t.Context(), origin); err == nil {
		t.Error("a Cache without Hosts knows something")
	}
}

type panicking struct{}

func (panicking) Fetch(context.Context, protocol.Request) (protocol.Response, error) { panic("oh") }

func TestFailuresAreLogged(t *testing.T) {
	var log bytes.Buffer
	c := &robots.Cache{Protocol: panicking{}, Hosts: new(hosts), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	r, err := c.Fetch(t.Context(), origin)
	if err != nil || says(r) != "wait" {
		t.Errorf("%v, %v", r, err)
	}
	for _, want := range []string{origin, "panicked: oh", "wait=true"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q does not say %q", log.String(), want)
		}
	}
}

type silent struct{}

func (silent) Fetch(ctx context.Context, _ protocol.Request) (protocol.Response, error) {
	<-ctx.Done()
	return protocol.Response{}, ctx.Err()
}

// A Protocol that has no limit of its own, and never answers, has failed before the
// grant of the host ends; the end of the caller is an error.
func TestProtocolThatNeverReturnsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &robots.Cache{Protocol: silent{}, Hosts: new(hosts)}
		began := time.Now()
		r, err := c.Fetch(t.Context(), origin)
		if took := time.Since(began); err != nil || says(r) != "wait" || !strings.Contains(r.Reason, "took longer than") || took >= hostdb.MaxGrant {
			t.Errorf("after %v: %+v, %v", took, r, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Fetch(ctx, "http://b.test/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of the caller is %v", err)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := new(site)
	c := &robots.Cache{Protocol: s, Hosts: new(hosts), MaxOrigins: 4}
	for i := range 8 {
		s.set(fmt.Sprintf("http://h%d/robots.txt", i), status(200, noX))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				url := fmt.Sprintf("http://h%d/x", (g+i)%8)
				r, ok, err := c.Cached(t.Context(), url)
				if !ok && err == nil {
					r, err = c.Fetch(t.Context(), url)
				}
				if err != nil || r.Allowed(url) {
					t.Errorf("%s: %v, %v", url, r, err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.count(); n < 8 || n > 64 {
		t.Errorf("asked %d times", n)
	}
}

func TestRefusedRequestIsNotRecorded(t *testing.T) {
	ctx := t.Context()
	var hosts hosts
	c := &robots.Cache{Protocol: &site{answers: map[string]protocol.Response{
		origin + "/robots.txt": {Outcome: protocol.Outcome{Code: protocol.Refused, Reason: "a private address"}},
	}}, Hosts: &hosts, Product: "bot"}
	r, err := c.Fetch(ctx, origin+"/x")
	if err != nil {
		t.Fatal(err)
	}
	if !r.Refused || !r.Unavailable || r.Allowed(origin+"/x") || r.Reason != "a private address" {
		t.Errorf("rules %+v", r)
	}
	if _, ok, err := c.Cached(ctx, origin+"/x"); err != nil || !ok {
		t.Errorf("it is asked again at once: %v, %v", ok, err)
	}
	// Another crawler on the same hosts may be allowed to ask.
	other := &robots.Cache{Protocol: c.Protocol, Hosts: &hosts, Product: "bot"}
	if _, ok, err := other.Cached(ctx, origin+"/x"); err != nil || ok {
		t.Errorf("the refusal was kept with the host: %v, %v", ok, err)
	}
}

// A cache knows why a file is unavailable as long as it lives; another one knows only
// that it is.
func TestReasonOfAnUnavailableFile(t *testing.T) {
	var hosts hosts
	c := &robots.Cache{Protocol: &site{answers: map[string]protocol.Response{
		origin + "/robots.txt": {Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "tls: handshake failed"}},
	}}, Hosts: &hosts, Product: "bot"}
	for range 2 {
		if r, err := c.Fetch(t.Context(), origin+"/x"); err != nil || !r.Unavailable || r.Reason != "tls: handshake failed" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	// So is a request while the record is written, which does not make the cache forget.
	both := &robots.Cache{Protocol: c.Protocol, Product: "bot"}
	both.Hosts = written{&hosts, func() {
		if r, ok, err := both.Cached(t.Context(), origin+"/x"); err != nil || !ok || r.Reason != "tls: handshake failed" {
			t.Errorf("%+v, %v, %v", r, ok, err)
		}
	}}
	if _, err := both.Fetch(t.Context(), origin+"/x"); err != nil {
		t.Error(err)
	}
	if r, _, err := both.Cached(t.Context(), origin+"/x"); err != nil || r.Reason != "tls: handshake failed" {
		t.Errorf("%+v, %v", r, err)
	}
	other := &robots.Cache{Protocol: c.Protocol, Hosts: &hosts, Product: "bot"}
	if r, ok, err := other.Cached(t.Context(), origin+"/x"); err != nil || !ok || !r.Unavailable || r.Reason != "" {
		t.Errorf("%+v, %v, %v", r, ok, err)
	}
}

// written tells when a record is in Hosts and its Update is not over yet.
type written struct {
	hostdb.Store
	tell func()
}

func (w written) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	err := w.Store.Update(ctx, name, next)
	w.tell()
	return err
}

// TestMegabyteOfAHost: whatever a host shows at its ports, little of it is kept,
// and what is forgotten is asked for again.
func TestCacheKeepsAMegabyteOfAHost(t *testing.T) {
	ctx, s, db := t.Context(), new(site), new(hosts)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: db, Now: func() time.Time { return now }, MaxOrigins: 1}
	port := func(i int) string { return fmt.Sprintf("http://h:%d", 8000+i) }
	kept := func() (names []string, size int) {
		for _, r := range db.m["h"].Robots {
			names, size = append(names, r.Origin), size+len(r.Body)
		}
		return names, size
	}
	for i := range 10 {
		body := noX + strings.Repeat("# filling\n", 40_000)
		if i == 8 {
			body = noX
		}
		s.set(port(i)+"/robots.txt", status(200, body))
		now = now.Add(time.Second)
		if _, err := c.Fetch(ctx, port(i)); err != nil {
			t.Fatal(err)
		}
		if _, size := kept(); size > 1<<20 {
			t.Fatalf("%d bytes are kept of one host", size)
		}
	}
	if names, _ := kept(); !slices.Equal(names, []string{port(7), port(8), port(9)}) {
		t.Errorf("kept are %q, want the newest", names)
	}
	for i, want := range []bool{7: true, 8: true, 9: true} {
		if _, ok, err := c.Cached(ctx, port(i)); ok != want || err != nil {
			t.Errorf("port %d is remembered: %v, %v", i, ok, err)
		}
	}
	// One file that is longer than all may be: it alone.
	c.MaxBytes = 2 << 20
	s.set(port(0)+"/robots.txt", status(200, noX+strings.Repeat("# filling\n", 160_000)))
	if r, err := c.Fetch(ctx, port(0)); err != nil || r.Allowed("/x") {
		t.Errorf("%v, %v", r, err)
	}
	if names, size := kept(); !slices.Equal(names, []string{port(0), port(8)}) && !slices.Equal(names, []string{port(0), port(8), port(9)}) || size > 2<<20 {
		t.Errorf("kept are %q of %d bytes", names, size)
	}
}

func TestMaxBytes(t *testing.T) {
	for _, tt := range []struct {
		max  int
		want string
	}{
		{0, "all"}, {-1, "all"}, {1000, "all"}, {robots.MaxBytes, "all"}, {1 << 20, "file"},
	} {
		s, db := new(site), new(hosts)
		c := &robots.Cache{Protocol: s, Hosts: db, MaxBytes: tt.max}
		s.set(file, status(200, strings.Repeat("# filling\n", robots.MaxBytes/10), noX))
		r, err := c.Fetch(t.Context(), origin)
		if err != nil || says(r) != tt.want {
			t.Errorf("MaxBytes %d: it is %q, %v; want %q", tt.max, says(r), err, tt.want)
		}
		if r := robots.Parse(db.m["example.com"].Robots[0].Body, ""); says(r) != "all" {
			t.Errorf("Parse reads beyond its limit: %q", says(r))
		}
		s.answers = nil
		again := &robots.Cache{Hosts: db, MaxBytes: tt.max}
		if r, ok, err := again.Cached(t.Context(), origin); !ok || err != nil || says(r) != tt.want {
			t.Errorf("MaxBytes %d: out of Hosts it is %q, %v", tt.max, says(r), err)
		}
	}
}

// A file is asked for again with the validators of what is kept, and an answer
// that it has not been modified is as good as the file.
func TestValidators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s, db := t.Context(), new(site), new(hosts)
		c := &robots.Cache{Protocol: s, Hosts: db}
		fetch := func(etag, modified, want string) {
			t.Helper()
			r, err := c.Fetch(ctx, origin)
			if err != nil || says(r) != want {
				t.Errorf("it is %q, %v; want %q", says(r), err, want)
			}
			if s.last.ETag != etag || s.last.LastModified != modified {
				t.Errorf("asked with validators %q and %q, want %q and %q", s.last.ETag, s.last.LastModified, etag, modified)
			}
			time.Sleep(25 * time.Hour)
		}
		const tag, date = `"1"`, "Thu, 29 Feb 2024 00:00:00 GMT"
		with := func(r protocol.Response) protocol.Response {
			r.ETag, r.LastModified = tag, date
			return r
		}
		s.set(file, with(status(200, noX)))
		fetch("", "", "file")
		s.set(file, status(304))
		fetch(tag, date, "file")
		fetch(tag, date, "file") // without a word of validators in the answer
		if rec := db.m["example.com"].Robots[0]; rec.Status != 304 || !rec.FailingSince.IsZero() || rec.Expires.Sub(rec.Fetched) != 24*time.Hour {
			t.Errorf("after a 304 the record is %+v", rec)
		}
		s.set(file, status(503))
		fetch(tag, date, "file")
		s.set(file, status(304))
		fetch(tag, date, "file")
		if rec := db.m["example.com"].Robots[0]; !rec.FailingSince.IsZero() {
			t.Error("a 304 after a failure does not end the run of failures")
		}
		// Another file, without validators.
		s.set(file, status(200, "User-agent: *\nDisallow: /\n"))
		fetch(tag, date, "none")
		fetch("", "", "none")
		// A 304 that was not asked for says nothing: the copy holds, as of a failure.
		s.set(file, status(304))
		fetch("", "", "none")
		if rec := db.m["example.com"].Robots[0]; rec.FailingSince.IsZero() {
			t.Error("a 304 to a request without validators is good")
		}
		// The validators of a redirect's target are not those of the file.
		s.set(file, redirect(origin+"/other"))
		s.set(origin+"/other", with(status(200, noX)))
		fetch("", "", "file")
		fetch("", "", "file")
		// A file that is cut must come whole again: the limit may be another then.
		long := with(status(200, noX, strings.Repeat("# filling\n", 1<<17)))
		s.set(file, long)
		fetch("", "", "file")
		fetch("", "", "file")
		long.Content.Body, long.Content.Truncated = []byte(noX+"Disallow"), true
		s.set(file, long)
		fetch("", "", "file")
		fetch("", "", "file")
		// No file, no validators.
		s.set(file, with(status(200, noX)))
		fetch("", "", "file")
		s.set(file, status(404))
		fetch(tag, date, "all")
		fetch("", "", "all")
	})
}

// The limit does not tear a line apart in UTF-16 either.
func TestLimitInUTF16(t *testing.T) {
	// Of each of these characters a byte is one that ends lines.
	for _, filling := range []string{"\u010a", "\u0a01", "\u0d0d"} {
		for _, order := range []bool{true, false} {
			var b bytes.Buffer
			write := func(s string) {
				for _, r := range s {
					if hi, lo := byte(r>>8), byte(r); order {
						b.Write([]byte{hi, lo})
					} else {
						b.Write([]byte{lo, hi})
					}
				}
			}
			write("\ufeff")
			write("User-agent: *\nDisallow: /x\nAllow: /" + filling)
			write(strings.Repeat(filling, (robots.MaxBytes-b.Len())/2-20))
			write("\nDisallow: /y" + strings.Repeat(filling, 100) + "\n") // the limit is in this line
			for cut := range 3 {
				r := robots.Parse(b.Bytes()[:b.Len()-cut], "")
				if torn := "/y" + strings.Repeat(filling, 99); r.Allowed("/x") || !r.Allowed("/y") || !r.Allowed(torn) {
					t.Errorf("%q, big endian %v: /x %v, /y %v, /y... %v", filling, order, r.Allowed("/x"), r.Allowed("/y"), r.Allowed(torn))
				}
			}
			s := new(site)
			s.set(file, status(200, b.String()))
			if r, err := (&robots.Cache{Protocol: s, Hosts: new(hosts)}).Fetch(t.Context(), origin); err != nil || says(r) != "file" {
				t.Errorf("%q, big endian %v: the cache says %q, %v", filling, order, says(r), err)
			}
		}
	}
}
