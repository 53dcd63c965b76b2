package hostile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/urlfilter"
)

// The rows about redirects once more, with redirects that are followed at once.

// maxRedirects is how many in a row the crawls of these rows follow.
const maxRedirects = 5

// atOnce makes another row of one whose redirects are links.
func atOnce(r row, id string) row {
	if r.domain == "" {
		r.domain = strings.ToLower(r.id) + ".test"
	}
	edit := r.edit
	r.id = id
	r.edit = func(c *crawl) {
		if edit != nil {
			edit(c)
		}
		c.opts.Fetch.Following.MaxRedirects = maxRedirects
	}
	return r
}

func hopRows() []row {
	return []row{s3AtOnce(), s4AtOnce(), s5AtOnce(), s5Robots(), s6AtOnce(), p14AtOnce()}
}

// s3AtOnce demands the exact number of requests in one round for each shape of a redirect.
func s3AtOnce() row {
	r := atOnce(s3(), "S3a")
	found := func(location string) string { return answer("302 Found", "Location: "+location+"\r\n", "") }
	growing := func(next func(uri string) string) func(*conn) {
		return replying(func(r *http.Request) string {
			if r.RequestURI == "/robots.txt" {
				return nothing
			}
			return next(r.RequestURI)
		})
	}
	refresh := func(to string) string {
		return answer("200 OK", "Content-Type: text/html\r\nRefresh: 0; url="+to+"\r\n", "x")
	}
	r.sites = append(r.sites,
		site{name: "query", handle: growing(func(uri string) string { return found(uri + "?x") })},
		site{name: "path", handle: growing(func(uri string) string { return found(fmt.Sprintf("%sx%d/", uri, len(uri))) })},
		site{name: "hosts", handle: growing(func(uri string) string { return found("http://peer.s3.test" + uri + "a") })},
		site{name: "peer", silent: true, handle: growing(func(uri string) string { return found("http://hosts.s3.test" + uri + "b") })},
		site{name: "refresh", handle: growing(func(uri string) string { return refresh(uri + "x") })},
		site{name: "mixed", handle: growing(func(uri string) string {
			if len(uri)%2 == 0 {
				return refresh(uri + "x")
			}
			return found(uri + "x")
		})},
	)
	// Requests for pages, and what the last of the chain has to say.
	want := map[string]struct {
		requests int
		last     string
	}{
		"itself": {1, "leads to itself"}, "two": {2, "a loop: leads back to a page on the way"}, "three": {3, "a loop: leads back to a page on the way"},
		"see-other": {2, ""}, "empty": {1, ""}, "missing": {1, ""}, "scheme": {1, "leads to itself"}, "fragment": {1, "leads to itself"},
		"bytes": {2, ""}, "latin": {2, ""}, "long": {1, ""}, "twice": {2, ""}, "bracket": {1, ""}, "port": {1, ""}, "body": {1, "leads to itself"},
		"query": {6, "one redirect too many"}, "path": {6, "one redirect too many"}, "hosts": {3, "one redirect too many"}, "peer": {3, ""},
		"refresh": {6, ""}, "mixed": {6, ""},
	}
	r.input += ", growing with each hop by query, path, host, refresh"
	r.outcome = "followed at once, each target once, five in a row at most; loops are found, and the next hop is a link to a later round"
	r.figure = fmt.Sprintf("%d shapes: exact numbers of requests in a round, ≤ %d for a chain", len(r.sites), maxRedirects+1)
	edit := r.edit
	r.edit = func(c *crawl) {
		edit(c)
		c.opts.Run.Rounds = 1
	}
	r.check = func(t testing.TB, c *crawl) {
		reasons := map[string]string{}
		for u, vs := range c.visits {
			v := vs[len(vs)-1]
			if host := strings.Split(u, "/")[2]; v.Outcome.Code.Redirect() && v.Outcome.Reason != "" {
				reasons[host] = v.Outcome.Reason
			}
			if len(vs) > 1 || v.Hops > maxRedirects || (v.Hops > 0) != (v.Via != "") {
				t.Errorf("%s: %d visits, %d hops by %q", u, len(vs), v.Hops, v.Via)
			}
		}
		for name, w := range want {
			reason := reasons[c.host[name]]
			if name == "hosts" { // an odd number of hops, so the last is the other's
				reason = reasons[c.host["peer"]]
			} else if name == "peer" {
				reason = reasons[c.host["hosts"]]
			}
			n := 0
			for _, r := range c.servers[name].requests() {
				if r.path != "/robots.txt" {
					n++
				}
			}
			if n != w.requests || reason != w.last {
				t.Errorf("%s: %d requests, %q; want %d, %q", name, n, reason, w.requests, w.last)
			}
		}
	}
	return r
}

func s4AtOnce() row {
	r := atOnce(s4(), "S4a")
	r.input += ", followed at once"
	return r
}

func s5AtOnce() row {
	r := atOnce(s5(), "S5a")
	r.input += ", followed at once"
	r.outcome = "each hop obeys the robots.txt of its own origin, in the round that meets it"
	check := r.check
	r.check = func(t testing.TB, c *crawl) {
		check(t, c)
		for _, u := range []string{"redirect", "meta", "header", "chain"} {
			if v := c.visit(t, "http://guarded.s5.test/"+u); v.Hops == 0 {
				t.Errorf("%s was not followed at once", u)
			}
		}
		if v := c.visit(t, "http://guarded.s5.test/chain"); v.Hops != 2 || v.Via != "http://hop.s5.test/" {
			t.Errorf("%+v", v)
		}
	}
	return r
}

// s5Robots has robots.txt files that have moved to where they must not be asked
// for.
func s5Robots() row {
	to := func(location string) func(*conn) { return robotsTxt(redirect(location)) }
	r := row{
		id: "S5b", input: "robots.txt that redirect into what robots.txt or the filter of the crawl forbids, by one hop and by chains, to each other, and to a robots.txt that may be fetched",
		outcome: "each hop obeys the rules, the robots.txt of its origin and the turn of its host; a robots.txt that cannot be reached this way is unavailable, and its pages wait",
		sites: []site{
			{name: "guarded", silent: true, handle: paths(map[string]string{"/robots.txt": file("User-agent: *\nDisallow: /secret\nDisallow: /hop"), "/hop": redirect("/secret")})},
			{name: "filtered", silent: true, handle: replying(func(*http.Request) string { return file("") })},
			{name: "stern", silent: true, handle: robotsTxt(file(denyAll))},
			{name: "forbidden", code: protocol.RobotsFailed, handle: to("http://guarded.s5b.test/secret"),
				reason: "robots.txt is unavailable: robots.txt leads to http://guarded.s5b.test/secret, which the robots.txt there does not allow"},
			{name: "chain", code: protocol.RobotsFailed, handle: to("http://relay.s5b.test/robots.txt"),
				reason: "robots.txt is unavailable: robots.txt leads to http://guarded.s5b.test/hop, which the robots.txt there does not allow"},
			{name: "relay", silent: true, handle: to("http://guarded.s5b.test/hop")},
			{name: "outside", code: protocol.RobotsFailed, handle: to("http://filtered.s5b.test/robots.txt"),
				reason: "robots.txt is unavailable: robots.txt leads to http://filtered.s5b.test/robots.txt, which the rules reject"},
			{name: "outside-page", code: protocol.RobotsFailed, handle: to("http://guarded.s5b.test/no/rules"),
				reason: "robots.txt is unavailable: robots.txt leads to http://guarded.s5b.test/no/rules, which the rules reject"},
			{name: "one", code: protocol.Success, handle: to("http://other.s5b.test/robots.txt")},
			{name: "other", code: protocol.Success, handle: to("http://one.s5b.test/robots.txt")},
			{name: "lent", code: protocol.RobotsDenied, handle: to("http://stern.s5b.test/robots.txt")},
		},
		edit: func(c *crawl) {
			f, err := urlfilter.NewRegex("-filtered", "-/no/", "+.")
			if err != nil {
				c.t.Fatal(err)
			}
			c.opts.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{f}}
			c.opts.Run.Rounds = 2
		},
	}
	r.figure = fmt.Sprintf("%d sites: 0 requests for what is forbidden or filtered, exact outcomes", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		for _, name := range []string{"guarded", "filtered", "stern", "relay"} {
			for _, r := range c.servers[name].seen {
				if r.path != "/robots.txt" || name == "filtered" {
					t.Errorf("%s: %s was asked for", name, r.path)
				}
			}
		}
	}
	return r
}

func s6AtOnce() row {
	r := atOnce(s6(), "S6a")
	r.input += ", followed at once"
	r.outcome = "as S6, along each hop"
	check := r.check
	r.check = func(t testing.TB, c *crawl) {
		check(t, c)
		if v := c.visit(t, "http://other.s6.test/last"); v.Hops == 0 {
			t.Error("the redirect was not followed at once")
		}
	}
	return r
}

// p14AtOnce has pages with several ways to them besides.
func p14AtOnce() row {
	r := p14()
	r.id = "P14a"
	for i, s := range s3AtOnce().sites[len(s3().sites):] {
		s.name = fmt.Sprintf("%s-now%d", s.name, i)
		r.sites = append(r.sites, s)
	}
	for i := range 4 {
		answers := map[string]string{"/": html("<a href=/a>a</a><a href=/b>b</a><a href=/c>c</a><a href=/d>d</a>")}
		for j := range 4 {
			answers["/"+string(rune('a'+j))] = redirect(fmt.Sprintf("http://ways%d.p14a.test/%d", (i+j)%4, (i+2*j)%3))
			answers[fmt.Sprintf("/%d", j)] = redirect(fmt.Sprintf("http://ways%d.p14a.test/end", (i*j)%4))
		}
		answers["/end"] = html("<a href=/last>x</a>")
		r.sites = append(r.sites, site{name: fmt.Sprintf("ways%d", i), code: protocol.Success, handle: paths(answers)})
	}
	r.input += ", with redirects that are followed at once, many to one page"
	r.figure = fmt.Sprintf("%d servers, 3 crawls: 0 bytes differ", len(r.sites))
	edit := r.edit
	r.edit = func(c *crawl) {
		edit(c)
		c.opts.Fetch.Following.MaxRedirects = maxRedirects
		c.opts.Run.Rounds = 3
	}
	return r
}
