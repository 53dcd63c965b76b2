package robots_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/robots/temotorobots"
)

func TestAliases(t *testing.T) {
	const text = "User-agent: mybot\nDisallow: /mine\nCrawl-delay: 3\n\nUser-agent: OldBot/1.2\nDisallow: /old\nCrawl-delay: 7\n\nUser-agent: *\nDisallow: /all\n"
	for _, tt := range []struct {
		products  []string
		forbidden string // of /mine, /old and /all
		delay     float64
	}{
		{[]string{"mybot"}, "/mine", 3},
		{[]string{"mybot", "oldbot"}, "/mine /old", 7},
		{[]string{"oldbot", "mybot"}, "/mine /old", 7},
		{[]string{"mybot", "", "*"}, "/mine", 3},
		{[]string{"", "oldbot"}, "/old", 7},
		{[]string{"other", "OLDBOT/2.0 (+https://bot.example/)"}, "/old", 7},
		{[]string{"other", "another"}, "/all", 0},
		{[]string{"*"}, "/all", 0},
		{[]string{""}, "/all", 0},
		{nil, "/all", 0},
	} {
		s := new(site)
		s.set(file, status(200, text))
		c := &robots.Cache{Protocol: s, Hosts: new(hosts)}
		if len(tt.products) > 0 {
			c.Product, c.Aliases = tt.products[0], tt.products[1:]
		}
		kept, err := c.Fetch(t.Context(), origin)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range []*robots.Rules{robots.Parse([]byte(text), tt.products...), kept} {
			got := ""
			for _, path := range []string{"/mine", "/old", "/all"} {
				if !r.Allowed(path) {
					got += " " + path
				}
			}
			if got != " "+tt.forbidden || r.CrawlDelay.Seconds() != tt.delay {
				t.Errorf("%d: %q: forbidden are%s, delay %v", i, tt.products, got, r.CrawlDelay)
			}
		}
	}
	// Another parser hears of all names, and one that knows no groups together
	// takes the first that there is.
	if r := temotorobots.Parse([]byte(strings.Replace(text, "OldBot/1.2", "OldBot", 1)), "other", "oldbot", "mybot"); r.Allowed("/old") || !r.Allowed("/mine") || !r.Allowed("/all") {
		t.Error("temotorobots took another group than that of oldbot")
	}
	if r := temotorobots.Parse([]byte(text), "other", "another"); r.Allowed("/all") {
		t.Error("temotorobots took no group")
	}
}

func TestExempt(t *testing.T) {
	for _, tt := range []struct {
		url    string
		exempt bool
	}{
		{"http://example.org/x", true},
		{"https://example.org:8443/x", true},
		{"http://EXAMPLE.org./x", true},
		{"http://www.example.org/x", true},
		{"http://a.b.example.org/x", true},
		{"http://badexample.org/x", false},
		{"http://example.org.bad.test/x", false},
		{"http://example.orgs/x", false},
		{"http://org/x", false},
		{"http://bad.test/example.org", false},
		{"http://example.org@bad.test/x", false},
		{"http://below.test/x", false},
		{"http://www.below.test/x", true},
		{"http://192.0.2.1/x", true},
		{"http://1192.0.2.1/x", false},
		{"http://other.test/x", false},
	} {
		s := new(site)
		c := &robots.Cache{Protocol: s, Hosts: new(hosts), Policy: robots.Policy{Exempt: []string{"", "example.org", ".below.test", "192.0.2.1"}}}
		r, known, err := c.Cached(t.Context(), tt.url)
		if err != nil || known != tt.exempt || known && !r.Allowed(tt.url) {
			t.Errorf("%s: %+v, %t, %v", tt.url, r, known, err)
		}
		r, err = c.Fetch(t.Context(), tt.url)
		if err != nil || r.Unavailable == tt.exempt || (s.count() == 0) != tt.exempt {
			t.Errorf("%s: %+v, %v after %d requests", tt.url, r, err, s.count())
		}
	}
}

// What 403 means is decided when rules are read, not when they are fetched: a
// crawler that shares the hosts may see it otherwise.
func TestDeny403(t *testing.T) {
	for code, want := range map[int][2]string{200: {"file", "file"}, 401: {"all", "all"}, 403: {"all", "none"}, 404: {"all", "all"}, 410: {"all", "all"}, 451: {"all", "all"}, 503: {"wait", "wait"}} {
		s, db := new(site), new(hosts)
		s.set(file, status(code, noX))
		strict := &robots.Cache{Protocol: s, Hosts: db, Policy: robots.Policy{Deny403: true}}
		r, err := strict.Fetch(t.Context(), origin)
		if err != nil || says(r) != want[1] {
			t.Errorf("%d: %s, %v", code, says(r), err)
		}
		for i, c := range []*robots.Cache{{Hosts: db}, {Hosts: db, Policy: strict.Policy}} {
			if r, ok, err := c.Cached(t.Context(), origin); !ok || err != nil || says(r) != want[i] {
				t.Errorf("%d: %s, %t, %v", code, says(r), ok, err)
			}
		}
	}
}
