package robots_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
)

// steps makes all requests of a fetch and returns the URLs it asked for.
func steps(t *testing.T, a *robots.Fetch) (asked []string) {
	t.Helper()
	for a.Next() != "" {
		if known, err := a.UseCached(t.Context()); err != nil {
			t.Fatal(err)
		} else if known {
			break
		}
		asked = append(asked, a.Next())
		if err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if a.Rules() == nil {
		t.Error("no rules")
	}
	return asked
}

func TestFetchMakesOneRequestAStep(t *testing.T) {
	s := &site{}
	s.set("http://a.test/robots.txt", redirect("/moved"))
	s.set("http://a.test/moved", redirect("http://b.test/robots.txt"))
	s.set("http://b.test/robots.txt", redirect("http://b.test/real.txt#x"))
	s.set("http://b.test/real.txt", status(200, "User-agent: *\nDisallow: /no"))
	c := &robots.Cache{Protocol: s, Hosts: &hosts{}}
	a := c.BeginFetch("http://a.test/page")
	type place struct {
		from, next      string
		elsewhere, file bool
	}
	for i, want := range []place{
		{"", "http://a.test/robots.txt", false, true},
		{"http://a.test/robots.txt", "http://a.test/moved", false, false},
		{"http://a.test/moved", "http://b.test/robots.txt", true, true},
		{"http://b.test/robots.txt", "http://b.test/real.txt", true, false},
		{"http://b.test/robots.txt", "", false, false},
	} {
		if got := (place{a.From(), a.Next(), a.NextElsewhere(), a.NextIsFile()}); got != want {
			t.Errorf("step %d: %+v, want %+v", i, got, want)
		}
		if known := a.Rules() != nil; known != (want.next == "") {
			t.Errorf("step %d: rules %v", i, known)
		}
		if err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r := a.Rules(); r.Allowed("/no") || !r.Allowed("/yes") {
		t.Error("the rules are not those of the file")
	}
	if r, known, err := c.Cached(t.Context(), "http://a.test/no"); err != nil || !known || r.Allowed("/no") {
		t.Errorf("not remembered: %v, %v", known, err)
	}
	// What is not the answer of /robots.txt itself says nothing of that origin.
	if _, known, _ := c.Cached(t.Context(), "http://b.test/no"); known {
		t.Error("b.test is known")
	}
	if r := c.BeginFetch("ftp://a.test/").Rules(); r == nil || !r.Allowed("/") {
		t.Error("there is nothing to ask, and still no rules")
	}
}

// RetryAfter is about the last step, whatever its result.
func TestFetchReportsRetryAfter(t *testing.T) {
	s := &site{}
	patient := func(r protocol.Response, wait time.Duration) protocol.Response {
		r.Outcome.RetryAfter = wait
		return r
	}
	s.set("http://a.test/robots.txt", patient(redirect("http://b.test/robots.txt"), time.Minute))
	s.set("http://b.test/robots.txt", patient(redirect("http://c.test/robots.txt"), -time.Minute))
	s.set("http://c.test/robots.txt", patient(status(503), 2*time.Hour))
	a := (&robots.Cache{Protocol: s, Hosts: &hosts{}}).BeginFetch("http://a.test/")
	for i, want := range []time.Duration{0, time.Minute, 0, 2 * time.Hour} {
		if got := a.RetryAfter(); got != want {
			t.Errorf("after %d steps: %v, want %v", i, got, want)
		}
		if err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The robots.txt of one origin that another leads to is asked for once.
func TestFetchUsesTheCachedFileOfAnotherOrigin(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name         string
		answer       int
		body         string
		allowed      bool
		unavailable  bool
		after, fresh time.Duration
	}{
		{name: "a file", answer: 200, body: "User-agent: *\nDisallow: /", after: 23 * time.Hour, fresh: time.Hour},
		{name: "none", answer: 404, allowed: true, after: 20 * time.Hour, fresh: 4 * time.Hour},
		{name: "failing", answer: 500, unavailable: true, after: 30 * time.Second, fresh: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := now
			s := &site{}
			s.set("http://b.test/robots.txt", status(c.answer, c.body))
			for _, o := range []string{"http://a.test", "http://c.test"} {
				s.set(o+"/robots.txt", redirect("http://b.test/robots.txt"))
			}
			cache := &robots.Cache{Protocol: s, Hosts: &hosts{}, Now: func() time.Time { return at }}
			if n := len(steps(t, cache.BeginFetch("http://a.test/"))); n != 2 {
				t.Errorf("%d requests for the first", n)
			}
			if r, known, _ := cache.Cached(t.Context(), "http://b.test/"); !known || r.Allowed("/") != c.allowed {
				t.Errorf("of the second it is known %v", known)
			}
			at = now.Add(c.after)
			a := cache.BeginFetch("http://c.test/")
			if n := len(steps(t, a)); n != 1 || a.Rules().Allowed("/") != c.allowed || a.Rules().Unavailable != c.unavailable {
				t.Errorf("%d requests for the third, %+v", n, a.Rules())
			}
			at = at.Add(c.fresh - time.Second)
			if _, known, _ := cache.Cached(t.Context(), "http://c.test/"); !known {
				t.Error("the third has to be asked again too early")
			}
			at = at.Add(2 * time.Second)
			if _, known, _ := cache.Cached(t.Context(), "http://c.test/"); known {
				t.Error("the third holds for longer than the second")
			}
		})
	}
}

func TestFetchEndsAtLoopsAndAtMaxRedirects(t *testing.T) {
	s := &site{}
	s.set("http://self.test/robots.txt", redirect("/robots.txt"))
	s.set("http://a.test/robots.txt", redirect("http://b.test/robots.txt"))
	s.set("http://b.test/robots.txt", redirect("http://a.test/robots.txt"))
	s.set("http://grow.test/robots.txt", redirect("/1"))
	for i := range 9 {
		s.set("http://grow.test/"+strings.Repeat("1", i+1), redirect("/"+strings.Repeat("1", i+2)))
	}
	for _, c := range []struct {
		url  string
		max  int
		asks int
	}{
		{"http://self.test/", 0, 1}, {"http://a.test/", 0, 2}, {"http://grow.test/", 0, 6},
		{"http://grow.test/", 2, 3}, {"http://grow.test/", -1, 1},
	} {
		cache := &robots.Cache{Protocol: s, Hosts: &hosts{}, Policy: robots.Policy{MaxRedirects: c.max}}
		a := cache.BeginFetch(c.url)
		if n := len(steps(t, a)); n != c.asks || !a.Rules().Allowed("/") {
			t.Errorf("%s, at most %d: %d requests, want %d; %+v", c.url, c.max, n, c.asks, a.Rules())
		}
	}
}

func TestGiveUp(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	h := &hosts{}
	s := &site{}
	s.set("http://a.test/robots.txt", redirect("http://b.test/robots.txt"))
	c := &robots.Cache{Protocol: s, Hosts: h, Now: func() time.Time { return at }}
	a := c.BeginFetch("http://a.test/")
	if err := a.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.GiveUp("we must not")
	a.GiveUp("twice")
	r, known, _ := c.Cached(t.Context(), "http://a.test/")
	if !known || r != a.Rules() || !r.Unavailable || r.Refused || r.Reason != "we must not" || r.Allowed("/") {
		t.Errorf("%v %+v", known, r)
	}
	if len(h.m) != 0 {
		t.Errorf("hosts know of it: %v", h.m)
	}
	// Even a server that does so for a month is not one without a robots.txt.
	at = at.Add(40 * 24 * time.Hour)
	if _, known, _ := c.Cached(t.Context(), "http://a.test/"); known {
		t.Error("known for longer than an hour")
	}
}

func TestOnRedirect(t *testing.T) {
	s := &site{}
	s.set("http://a.test/robots.txt", redirect("http://b.test/Moved"))
	s.set("http://b.test/moved", status(200, "User-agent: *\nDisallow: /no"))
	var seen []string
	no := errors.New("not there")
	c := &robots.Cache{Protocol: s, Hosts: &hosts{}}
	c.OnRedirect = func(_ context.Context, from, to string) (string, error) {
		seen = append(seen, from+" "+to)
		return strings.ToLower(to), nil
	}
	r, err := c.Fetch(t.Context(), "http://a.test/")
	if err != nil || r.Allowed("/no") || !slices.Equal(seen, []string{"http://a.test/robots.txt http://b.test/Moved"}) {
		t.Errorf("%v, %v, %q", r, err, seen)
	}
	c = &robots.Cache{Protocol: s, Hosts: &hosts{}}
	c.OnRedirect = func(context.Context, string, string) (string, error) { return "", no }
	before := s.count()
	if r, err := c.Fetch(t.Context(), "http://a.test/"); err != nil || !r.Unavailable || r.Reason != no.Error() || s.count() != before+1 {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.OnRedirect = func(context.Context, string, string) (string, error) { cancel(); return "", no }
	if _, err := c.Fetch(ctx, "http://a.test/"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A host that is not ASCII is left to IDNA, to which "İ" is no "i": the file is asked for
// where the page is.
func TestOriginsThatAreNotASCII(t *testing.T) {
	c := &robots.Cache{}
	for url, want := range map[string]string{
		"HTTP://WWW.Example.com:80/x": "http://www.example.com/robots.txt",
		"http://İstanbul.example/x":   "http://İstanbul.example/robots.txt",
	} {
		if got := c.BeginFetch(url).Next(); got != want {
			t.Errorf("%s: %s is asked for, want %s", url, got, want)
		}
	}
}
