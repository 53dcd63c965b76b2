package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// refresh is a page that leads on by itself.
func refresh(to string) protocol.Response {
	return body("text/html", `<meta http-equiv=refresh content="0; url=`+to+`"><a href="/x">x</a>`)
}

func moved(to string) protocol.Response {
	r := code(protocol.MovedTemp)
	r.Outcome.Status, r.Outcome.Location = 302, to
	return r
}

// leading answers with redirects; a target that begins with "refresh " is one of
// a page.
func leading(to map[string]string) func(string) protocol.Response {
	return func(url string) protocol.Response {
		switch t, ok := to[url]; {
		case !ok:
			return body("text/html", `<a href="/out">x</a>`)
		case strings.HasPrefix(t, "refresh "):
			return refresh(strings.TrimPrefix(t, "refresh "))
		default:
			return moved(t)
		}
	}
}

// trail is how a visit is to look: its outcome, hops and reason.
type trail struct {
	code   protocol.Code
	hops   int
	via    string
	reason string
}

func TestRedirectsAreFollowedAtOnce(t *testing.T) {
	const a, b, c, d = "http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"
	ok, mv := protocol.Success, protocol.MovedTemp
	for _, test := range []struct {
		name   string
		to     map[string]string
		list   []string
		max    int
		skip   bool
		robots string
		filter string
		edit   func(*fetch.Options)
		want   map[string]trail
		links  []string // of a
		counts fetch.Redirects
	}{
		{name: "deferred", to: map[string]string{a: b}, want: map[string]trail{a: {code: mv}}, links: []string{b}},
		{name: "a chain", to: map[string]string{a: b, b: c, c: d}, max: 3, links: []string{b}, counts: fetch.Redirects{Followed: 3},
			want: map[string]trail{a: {code: mv}, b: {mv, 1, a, ""}, c: {mv, 2, b, ""}, d: {ok, 3, c, ""}}},
		{name: "one too many", to: map[string]string{a: b, b: c, c: d}, max: 2, links: []string{b}, counts: fetch.Redirects{Followed: 2, Limit: 1},
			want: map[string]trail{a: {code: mv}, b: {mv, 1, a, ""}, c: {mv, 2, b, "one redirect too many"}}},
		{name: "refreshes", to: map[string]string{a: "refresh " + b, b: "refresh " + c, c: d}, max: 5, links: []string{b, a + "x"}, counts: fetch.Redirects{Followed: 3},
			want: map[string]trail{a: {code: ok}, b: {ok, 1, a, ""}, c: {mv, 2, b, ""}, d: {ok, 3, c, ""}}},
		{name: "to itself", to: map[string]string{a: a}, max: 5, counts: fetch.Redirects{Loops: 1},
			want: map[string]trail{a: {mv, 0, "", "leads to itself"}}},
		{name: "refresh of itself", to: map[string]string{a: "refresh " + a}, max: 5, links: []string{a + "x"},
			want: map[string]trail{a: {code: ok}}},
		{name: "there and back", to: map[string]string{a: b, b: c, c: b}, max: 5, links: []string{b}, counts: fetch.Redirects{Followed: 2, Loops: 1},
			want: map[string]trail{a: {code: mv}, b: {mv, 1, a, ""}, c: {mv, 2, b, "a loop: leads back to a page on the way"}}},
		{name: "to what is on the list", to: map[string]string{a: b, b: a}, list: []string{a, b}, max: 5, links: []string{b},
			want: map[string]trail{a: {code: mv}, b: {code: mv}}},
		{name: "two to one, by two ways", to: map[string]string{a: c, b: d, d: c}, list: []string{a, b}, max: 5, links: []string{c}, counts: fetch.Redirects{Followed: 2},
			want: map[string]trail{a: {code: mv}, b: {code: mv}, c: {ok, 1, a, ""}, d: {mv, 1, b, ""}}},
		{name: "rejected", to: map[string]string{a: b, b: c}, filter: "-c.test\n+.", max: 5, links: []string{b}, counts: fetch.Redirects{Followed: 1, Rejected: 1},
			want: map[string]trail{a: {code: mv}, b: {mv, 1, a, "the rules reject where it leads"}}},
		{name: "external", to: map[string]string{a: a + "2", a + "2": b}, edit: func(o *fetch.Options) { o.Links.IgnoreExternal = true }, max: 5, links: []string{a + "2"}, counts: fetch.Redirects{Followed: 1, Rejected: 1},
			want: map[string]trail{a: {code: mv}, a + "2": {mv, 1, a, "the rules reject where it leads"}}},
		{name: "external, but for redirects", to: map[string]string{a: b}, edit: func(o *fetch.Options) { o.Links.IgnoreExternal, o.Following.ExemptRedirects = true, true }, max: 5, links: []string{b}, counts: fetch.Redirects{Followed: 1},
			want: map[string]trail{a: {code: mv}, b: {ok, 1, a, ""}}},
		{name: "too long", to: map[string]string{a: b + strings.Repeat("x", 5000)}, max: 5, counts: fetch.Redirects{Rejected: 1},
			want: map[string]trail{a: {mv, 0, "", "the rules reject where it leads"}}},
		{name: "forbidden there", to: map[string]string{a: b + "no", b + "no": c}, robots: "User-agent: *\nDisallow: /no", max: 5, links: []string{b + "no"}, counts: fetch.Redirects{Followed: 1},
			want: map[string]trail{a: {code: mv}, b + "no": {protocol.RobotsDenied, 1, a, "robots.txt"}}},
		{name: "skip what exceeds", to: map[string]string{a: "refresh " + b, b: c, c: d}, max: 1, skip: true, links: []string{b, a + "x"}, counts: fetch.Redirects{Followed: 1, Limit: 1},
			want: map[string]trail{a: {code: ok}, b: {mv, 1, a, "one redirect too many"}}},
		{name: "downgrades", to: map[string]string{a: "https://b.test/", "https://b.test/": "HTTP://c.test/", "HTTP://c.test/": "refresh https://d.test/", "https://d.test/": "refresh http://d.test/"}, max: 9, links: []string{"https://b.test/"}, counts: fetch.Redirects{Followed: 4, Downgrades: 2},
			want: map[string]trail{a: {code: mv}, "https://b.test/": {mv, 1, a, "leads from https to http"}, "HTTP://c.test/": {ok, 2, "https://b.test/", ""}, "https://d.test/": {ok, 3, "HTTP://c.test/", ""}, "http://d.test/": {ok, 4, "https://d.test/", ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second, robots: test.robots, answer: leading(test.to)}
				r := newRig(t, s, append(test.list, []string{a}[len(test.list)/2:]...)...)
				r.o.Following.MaxRedirects, r.o.Following.SkipExceeded = test.max, test.skip
				if test.filter != "" {
					f, err := urlfilter.ParseRegex(strings.NewReader(test.filter), urlfilter.Options{})
					if err != nil {
						t.Fatal(err)
					}
					r.o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{f}}
				}
				if test.edit != nil {
					test.edit(&r.o)
				}
				rep := r.run(seg)
				got := map[string]trail{}
				for u, v := range r.visits(seg) {
					got[u] = trail{v.Outcome.Code, v.Hops, v.Via, v.Outcome.Reason}
				}
				if !maps.Equal(got, test.want) {
					t.Errorf("visits: %v\nwant    %v", got, test.want)
				}
				if rep.Redirects != test.counts || rep.Listed != max(1, len(test.list)) {
					t.Errorf("%+v of %d, want %+v", rep.Redirects, rep.Listed, test.counts)
				}
				var links []string
				for _, l := range r.parses(seg)[a].Links {
					links = append(links, l.URL)
				}
				if !slices.Equal(links, test.links) {
					t.Errorf("links %q, want %q", links, test.links)
				}
				aligned(t, r.db.Segments(), seg)
				polite(t, s, hostdb.ByHost, five)
				if test.skip {
					if p := r.parses(seg)[b]; len(p.Links) != 0 {
						t.Errorf("what exceeds the limit is a link: %v", p.Links)
					}
				}
			})
		})
	}
}

// What cannot be asked for now stays the link that it is.
func TestRedirectToAHostThatMustWait(t *testing.T) {
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: leading(map[string]string{"http://a.test/": "http://b.test/"})}
			r := newRig(t, s, "http://a.test/")
			r.o.Following.MaxRedirects = 3
			if broken {
				r.o.Protocol = failingRobots{s, "http://b.test/robots.txt"}
				r.renew()
			} else if err := r.o.Hosts.Update(t.Context(), "b.test", func(*hostdb.Host) (*hostdb.Host, error) {
				return &hostdb.Host{LastFetch: time.Now(), NextFetch: time.Now().Add(time.Hour)}, nil
			}); err != nil {
				t.Fatal(err)
			}
			rep := r.run(seg)
			if v := r.visits(seg); len(v) != 1 || rep.Redirects != (fetch.Redirects{Waiting: 1}) || len(r.parses(seg)["http://a.test/"].Links) != 1 {
				t.Errorf("%v, %+v", v, rep.Redirects)
			}
		})
	}
}

type failingRobots struct {
	protocol.Protocol
	url string
}

func (f failingRobots) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == f.url {
		return code(protocol.Failed), nil
	}
	return f.Protocol.Fetch(ctx, r)
}

// The rest of a chain goes with the time that there is.
func TestRedirectsEndWithTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, answer: leading(map[string]string{"http://a.test/": "http://a.test/2", "http://a.test/2": "http://a.test/3"})}
		r := newRig(t, s, "http://a.test/")
		r.o.Following.MaxRedirects, r.o.Limits.TimeLimit = 3, 10*time.Second
		if rep := r.run(seg); rep.TimedOut != 0 || rep.Redirects.Followed != 0 || len(r.visits(seg)) != 1 {
			t.Errorf("%+v", rep)
		}
	})
}

// web makes a web of redirects at random, some of them refreshes, and a list.
func web(rnd *rand.Rand, refreshes bool) (to map[string]string, list []string) {
	to = map[string]string{}
	url := func() string { return fmt.Sprintf("http://h%d.test/%d", rnd.IntN(9), rnd.IntN(9)) }
	for range 60 {
		u, t := url(), url()
		if refreshes && rnd.IntN(4) == 0 {
			t = "refresh " + t
		}
		to[u] = t
	}
	seen := map[string]bool{}
	for range 40 {
		if u := url(); !seen[u] {
			seen[u] = true
			list = append(list, u)
		}
	}
	return to, list
}

// remains are all that a segment keeps of a fetch but times.
type remains struct {
	visits map[string]segment.Visit
	parses map[string]segment.Parse
}

func (r *rig) remains() remains {
	k := remains{r.visits(seg), r.parses(seg)}
	for u, v := range k.visits {
		v.Time, v.Elapsed = time.Time{}, 0
		k.visits[u] = v
	}
	return k
}

// The contents of a segment depend on the list and the web alone, not on the number of
// workers or on kills. Pauses are kept all the time.
func TestRedirectsOfRandomWebs(t *testing.T) {
	asks, followed := 0, 0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		to, list := web(rnd, seed%2 == 0)
		limit := 1 + rnd.IntN(5)
		var want remains
		for i, run := range []struct {
			threads int
			killed  bool
			later   bool // parsed
		}{{threads: 1}, {threads: 3}, {threads: 16}, {threads: 4, killed: true}, {threads: 4, later: true}, {threads: 4, killed: true, later: true}} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second, slow: map[string]time.Duration{}, answer: leading(to)}
				for u := range to {
					s.slow[u] = time.Duration(rnd.IntN(20)) * time.Second
				}
				r := newRig(t, s)
				var listed []crawldb.Datum
				for i, u := range list {
					listed = append(listed, crawldb.Datum{URL: u, Status: crawldb.Unfetched, Score: float32(i + 1)})
				}
				r.relist(listed)
				r.o.Threads, r.o.Following.MaxRedirects = run.threads, limit
				r.o.Scoring = scoring.Chain{scoring.OPIC{}, scoring.Depth{}}
				parser := r.o.Parser
				if run.later {
					r.o.Parser = nil
				}
				for run.killed {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+rnd.IntN(100))*time.Second)
					_, err := fetch.Run(ctx, r.db.Segments(), seg, r.o)
					cancel()
					if err == nil {
						break
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
					r.renew()
				}
				if !run.killed {
					followed += r.run(seg).Redirects.Followed
				}
				if run.later {
					r.o.Parser = parser
					if _, err := fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
						t.Fatal(err)
					}
				}
				asks += polite(t, s, hostdb.ByHost, five)
				if seen := map[string]bool{}; !run.killed {
					for _, a := range s.of("") {
						if seen[a.url] {
							t.Errorf("%s was asked for twice", a.url)
						}
						seen[a.url] = true
					}
				}
				aligned(t, r.db.Segments(), seg)
				if run.later && seed%2 == 0 { // refreshes are not followed then
					return
				}
				switch got := r.remains(); {
				case i == 0:
					want = got
				case !reflect.DeepEqual(got, want):
					for u := range want.visits {
						if !reflect.DeepEqual(got.visits[u], want.visits[u]) || !reflect.DeepEqual(got.parses[u], want.parses[u]) {
							t.Errorf("web %d, %+v: %+v %+v\nwant %+v %+v", seed, run, got.visits[u], got.parses[u], want.visits[u], want.parses[u])
						}
					}
					t.Errorf("web %d, %+v: %d visits, want %d", seed, run, len(got.visits), len(want.visits))
				}
			})
		}
	}
	t.Logf("%d requests, %d redirects followed", asks, followed)
	if asks < 2000 || followed < 200 {
		t.Errorf("only %d requests, %d redirects followed", asks, followed)
	}
}

// relist replaces the fetch list.
func (r *rig) relist(list []crawldb.Datum) {
	r.t.Helper()
	if err := r.db.Segments().Remove(r.t.Context(), seg); err != nil {
		r.t.Fatal(err)
	}
	w, err := segment.NewWriter[crawldb.Datum](r.t.Context(), r.db.Segments(), seg, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(w.Append(r.t.Context(), list), w.Commit(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
}

// Lists that are fetched apart share no host: what leads elsewhere is a link.
func TestRedirectsInLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, list := map[string]string{}, []string(nil)
		for h := range 4 {
			at := fmt.Sprintf("http://h%d.test/", h)
			to[at], to[at+"2"], to[at+"3"] = at+"2", at+"3", fmt.Sprintf("http://h%d.test/end", (h+1)%4)
			to[at+"x"] = at + "2"
			list = append(list, at, at+"x")
		}
		s := &site{answer: leading(to)}
		r := newRig(t, s)
		r.spread("lists", 2, list...)
		r.o.Following.MaxRedirects = 9
		for _, i := range []int{1, 0} {
			r.o.Lists = []int{i}
			r.run("lists")
		}
		visits := r.visits("lists")
		if len(visits) != 16 {
			t.Errorf("%d visits, want those of /, /x, /2, /3 of 4 hosts", len(visits))
		}
		for u, v := range visits {
			if n := strings.Count("23", u[len(u)-1:]); (n > 0) != (v.Hops > 0) || strings.HasSuffix(u, "end") {
				t.Errorf("%s: %d hops", u, v.Hops)
			}
		}
	})
}

// Importance passes along a chain that is followed at once, and none is lost or created; a
// page at its end that the crawl db knows gives what it received, and keeps the rest.
func TestUpdateReadsFollowedRedirects(t *testing.T) {
	for _, compat := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const a, b, c, old = "http://a.test/", "http://b.test/", "http://c.test/", "http://old.test/"
			r := newRig(t, &site{answer: leading(map[string]string{a: b, b: c, "http://d.test/": old, "http://e.test/": old})})
			opic := scoring.OPIC{NutchCompat: compat}
			r.o.Scoring, r.o.Following.MaxRedirects, r.o.NutchCompat = opic, 5, compat
			now := time.Now().UTC()
			record := func(u string) crawldb.Datum {
				d := crawldb.Datum{URL: u, Status: crawldb.Unfetched, Score: 1, FetchTime: now}
				d.Meta.Set("mine", u)
				opic.Injected(&d)
				return d
			}
			var list, all []crawldb.Datum
			for _, u := range []string{a, "http://d.test/", "http://e.test/"} {
				list = append(list, record(u))
			}
			all = append(slices.Clone(list), record(old))
			slices.SortFunc(all, func(x, y crawldb.Datum) int { return crawldb.Compare(x.URL, y.URL) })
			urls := make([]string, len(all))
			for i := range all {
				urls[i] = all[i].URL
			}
			if err := r.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &all[i], nil }}); err != nil {
				t.Fatal(err)
			}
			r.relist(list)
			r.run(seg)
			rep, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), seg, update.Options{Scoring: opic, NutchCompat: compat})
			if err != nil || rep.Visits != 6 || rep.Unvisited != 0 {
				t.Fatalf("%+v, %v", rep, err)
			}
			cash := 0.0
			for d, err := range r.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				cash += scoring.Cash(&d)
			}
			get := func(u string) crawldb.Datum {
				d, err := r.db.Crawl().Get(t.Context(), u)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			for u, want := range map[string]crawldb.Status{a: crawldb.RedirTemp, b: crawldb.RedirTemp, c: crawldb.Fetched, old: crawldb.Fetched, "http://c.test/out": crawldb.Unfetched, "http://old.test/out": crawldb.Unfetched} {
				if d := get(u); d.Status != want || want != crawldb.Unfetched && !d.LastFetch.After(now) {
					t.Errorf("%s: %+v", u, d)
				}
			}
			end, o := get("http://c.test/out"), get(old)
			if !compat {
				out := get("http://old.test/out")
				if cash != 4 || scoring.Cash(&end) != 1 || scoring.Cash(&o) != 1 || scoring.Cash(&out) != 2 {
					t.Errorf("%v in all, %v at the end of the chain, %v kept, %v given", cash, scoring.Cash(&end), scoring.Cash(&o), scoring.Cash(&out))
				}
				return
			}
			// Nutch copies the record of the page that redirects, except for the score, which its OPIC
			// takes from the crawl db.
			mine, _ := o.Meta.Get("mine")
			repr, _ := o.Meta.Get("_repr_")
			from := r.visits(seg)[old].Via
			if o.Score != 1 || mine != from || repr != old || end.Score != 0 || o.Retries != 0 {
				t.Errorf("%+v by %s", o, from)
			}
			if d := get(c); d.Score != 0 || func() string { m, _ := d.Meta.Get("mine"); return m }() != a {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestRedirectTargets(t *testing.T) {
	for _, c := range []struct {
		name, to    string
		o           fetch.Options
		ours, nutch string
	}{
		{"anywhere", "http://c.com/", fetch.Options{}, "http://c.com/=1 rejected 0 cut 0", "http://c.com/=1 (x) rejected 0 cut 0"},
		{"outside", "http://c.com/", fetch.Options{Links: fetch.Links{IgnoreExternal: true}}, "rejected 1 cut 0", "rejected 1 cut 0"},
		{"outside, redirects apart", "http://c.com/", fetch.Options{Links: fetch.Links{IgnoreExternal: true}, Following: fetch.Following{ExemptRedirects: true}}, "http://c.com/=1 rejected 0 cut 0", "http://c.com/=1 (x) rejected 0 cut 0"},
		{"outside, exempt", "http://c.com/", fetch.Options{Links: fetch.Links{IgnoreExternal: true, Exempt: func(_, _ string) bool { return true }}}, "http://c.com/=1 rejected 0 cut 0", "rejected 1 cut 0"},
		{"within", "http://www.a.com/x", fetch.Options{Links: fetch.Links{IgnoreInternal: true}}, "rejected 1 cut 0", "rejected 1 cut 0"},
		{"within the domain", "http://b.a.com/x", fetch.Options{Links: fetch.Links{IgnoreInternal: true, By: hostdb.ByDomain}}, "rejected 1 cut 0", "http://b.a.com/x=1 (x) rejected 0 cut 0"},
		{"too long", "http://c.com/123", fetch.Options{Links: fetch.Links{MaxLength: 15}}, "rejected 1 cut 0", "rejected 1 cut 0"},
		{"switches are for outlinks", "http://C.com/no", fetch.Options{Links: fetch.Links{NoFilter: true, NoNormalize: true}, Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{lowercase{}}}}, "http://c.com/no=1 rejected 0 cut 0", "http://c.com/no=1 (x) rejected 0 cut 0"},
	} {
		for _, compat := range []bool{false, true} {
			resp := code(protocol.MovedPerm)
			resp.Outcome.Location = c.to
			want := map[bool]string{false: c.ours, true: c.nutch}[compat]
			c.o.NutchCompat = compat
			if got := accepted(t, c.o, false, resp); got != want {
				t.Errorf("%s, compat %v:\ngot  %s\nwant %s", c.name, compat, got, want)
			}
		}
	}
}
