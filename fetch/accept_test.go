package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// linksOf is a parser that finds the links that a body lists, in its order; one
// that begins with "refresh:" is where a refresh leads.
func linksOf(_ context.Context, c *page.Content) (page.Parsed, error) {
	p := page.Parsed{}
	for _, l := range strings.Fields(string(c.Body)) {
		to, refresh := strings.CutPrefix(l, "refresh:")
		switch {
		case refresh:
			p.Refresh = to
		case l == "nofollow":
			p.NoFollow = true
		default:
			p.Outlinks = append(p.Outlinks, page.Outlink{URL: l, Anchor: "to " + l})
		}
	}
	return p, nil
}

const from = "http://www.a.com/"

// accepted fetches one page and returns the links that are kept of it, with what
// each is given.
func accepted(t *testing.T, o fetch.Options, apart bool, resp protocol.Response) string {
	t.Helper()
	links, rep := kept(t, o, apart, resp)
	out := ""
	for _, l := range links {
		out += fmt.Sprintf("%s=%g ", l.URL, l.Score)
		if v, ok := l.Meta.Get("seed"); ok {
			out += "(" + v + ") "
		}
	}
	return out + fmt.Sprintf("rejected %d cut %d", rep.LinksRejected, rep.LinksCut)
}

func kept(t *testing.T, o fetch.Options, apart bool, resp protocol.Response) (links []segment.Link, rep fetch.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{answer: func(string) protocol.Response { return resp }})
		const seg = "seeded"
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), seg, 0)
		d := crawldb.Datum{URL: from, Status: crawldb.Unfetched, Meta: crawldb.MetaOf("seed", "x")}
		if err := errors.Join(err, w.Append(t.Context(), []crawldb.Datum{d}), w.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		p := r.o
		r.o = o
		r.o.Protocol, r.o.Hosts, r.o.Politeness.Delay, r.o.Now = p.Protocol, p.Hosts, p.Politeness.Delay, p.Now
		if r.o.Scoring == nil {
			r.o.Scoring = found{}
		}
		if !apart {
			r.o.Parser = parserFunc(linksOf)
		}
		rep = r.run(seg)
		if apart {
			r.o.Parser = parserFunc(linksOf)
			if rep, err = fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
				t.Fatal(err)
			}
		}
		links = r.parses(seg)[from].Links
	})
	return links, rep
}

// found gives each link the number of links that were found.
type found struct{ scoring.Base }

func (found) Distribute(p scoring.Page, links []scoring.Link) float64 {
	for i := range links {
		links[i].Score = float64(p.Found)
	}
	return 0
}

// anchored gives each link the length of the anchor that its page has for it.
type anchored struct{ scoring.Base }

func (anchored) Distribute(p scoring.Page, links []scoring.Link) float64 {
	for i := range links {
		for _, l := range p.Parsed.Outlinks {
			if l.URL == links[i].URL {
				links[i].Score = float64(len(l.Anchor))
			}
		}
	}
	return 0
}

// A filter finds the anchor of a link by its URL, although the rules have given that another
// spelling than the page has.
func TestAFilterFindsTheAnchorOfALink(t *testing.T) {
	o := fetch.Options{Scoring: anchored{}, Rules: &urlfilter.Rules{
		Normalizers: []urlfilter.Normalizer{lowercase{}},
		Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })},
	}}
	resp := body("text/html", "refresh:http://www.a.com/r http://www.a.com/no HTTP://WWW.A.COM/1 http://www.a.com/LONGER")
	want := "http://www.a.com/r=0 http://www.a.com/1=21 http://www.a.com/longer=26 rejected 1 cut 0"
	for _, apart := range []bool{false, true} {
		if got := accepted(t, o, apart, resp); got != want {
			t.Errorf("parsed apart: %v: got %s, want %s", apart, got, want)
		}
	}
}

func TestWhichLinksAreKept(t *testing.T) {
	lower := &urlfilter.Rules{
		Normalizers: []urlfilter.Normalizer{lowercase{}},
		Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })},
	}
	all := "http://www.a.com/1 http://www.a.com/1 http://WWW.A.COM/ http://www.a.com/ http://b.a.com/ http://c.com/ http://www.a.com/no"
	exempt := func(from, to string) bool {
		return strings.Contains(to, "c.com") && strings.HasPrefix(from, "http://www.a.com")
	}
	for _, c := range []struct {
		name  string
		o     fetch.Options
		body  string
		ours  string
		nutch string // in the parse stage
	}{
		{"all", fetch.Options{Rules: lower}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 http://c.com/=7 rejected 2 cut 0"},
		{"no filter", fetch.Options{Rules: lower, Links: fetch.Links{NoFilter: true}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 http://www.a.com/no=4 rejected 0 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 http://c.com/=7 http://www.a.com/no=7 rejected 1 cut 0"},
		{"no normalizer", fetch.Options{Rules: lower, Links: fetch.Links{NoNormalize: true}}, all,
			"http://www.a.com/1=5 http://WWW.A.COM/=5 http://b.a.com/=5 http://c.com/=5 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://WWW.A.COM/=7 http://b.a.com/=7 http://c.com/=7 rejected 2 cut 0"},
		{"on the host", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true}}, all,
			"http://www.a.com/1=4 rejected 3 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 rejected 4 cut 0"},
		{"in the domain", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, By: hostdb.ByDomain}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 rejected 2 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 rejected 3 cut 0"},
		{"off the host", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreInternal: true}}, all,
			"http://b.a.com/=7 http://c.com/=7 rejected 5 cut 0",
			"http://b.a.com/=7 http://c.com/=7 rejected 5 cut 0"},
		{"nowhere", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreInternal: true, IgnoreExternal: true}}, all,
			"rejected 7 cut 0", "rejected 7 cut 0"},
		{"but for exemptions", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt}}, all,
			"http://www.a.com/1=4 http://c.com/=4 rejected 2 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://c.com/=7 rejected 3 cut 0"},
		{"exemptions count for hosts only in Nutch", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt, By: hostdb.ByDomain}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 rejected 3 cut 0"},
		{"and with filters only", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt, NoFilter: true}}, "http://c.com/",
			"http://c.com/=1 rejected 0 cut 0", "rejected 1 cut 0"},
		{"two are enough, of those that are accepted", fetch.Options{Rules: lower, Links: fetch.Links{MaxPerPage: 2}}, "http://www.a.com/no http://x/1 http://x/1 http://x/2 http://x/3 http://x/1",
			"http://x/1=4 http://x/2=4 rejected 1 cut 1",
			"http://x/1=6 http://x/1=6 rejected 1 cut 3"},
		{"length", fetch.Options{Links: fetch.Links{MaxLength: 12}}, "http://x/123 http://x/1234 http://x/é2",
			"http://x/123=3 http://x/é2=3 rejected 1 cut 0", "http://x/123=3 http://x/é2=3 rejected 1 cut 0"},
		{"length in the units of Java", fetch.Options{Links: fetch.Links{MaxLength: 12}}, "http://x/é23",
			"rejected 1 cut 0", "http://x/é23=1 rejected 0 cut 0"},
		{"a refresh is a link, for Nutch a redirect without share", fetch.Options{Rules: lower}, "refresh:http://R/ http://x/1",
			"http://r/=2 http://x/1=2 rejected 0 cut 0", "http://x/1=1 http://r/=0 rejected 0 cut 0"},
		{"that is followed from a page that must not be", fetch.Options{Rules: lower}, "nofollow refresh:http://R/ http://x/1",
			"rejected 1 cut 0", "http://r/=0 rejected 1 cut 0"},
		{"a refresh out of the site", fetch.Options{Links: fetch.Links{IgnoreExternal: true}, Following: fetch.Following{ExemptRedirects: true}}, "refresh:http://r/",
			"http://r/=1 rejected 0 cut 0", "rejected 0 cut 0"},
		{"a refresh to the page itself", fetch.Options{}, "refresh:" + from, "rejected 0 cut 0", "rejected 0 cut 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, compat := range []bool{false, true} {
				want := map[bool]string{false: c.ours, true: c.nutch}[compat]
				c.o.NutchCompat = compat
				if got := accepted(t, c.o, true, body("text/html", c.body)); got != want {
					t.Errorf("compat %v:\ngot  %s\nwant %s", compat, got, want)
				}
			}
		})
	}
}

// lowercase is a normalizer.
type lowercase struct{}

func (lowercase) Normalize(_ urlfilter.Scope, u string) (string, error) {
	return strings.ToLower(u), nil
}

func TestNutchCountsLinksAfterFilteringWhenTheFetcherParses(t *testing.T) {
	rules := &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })}}
	for apart, want := range map[bool]string{false: "http://x/1=1 rejected 1 cut 0", true: "http://x/1=2 rejected 1 cut 0"} {
		if got := accepted(t, fetch.Options{Rules: rules, NutchCompat: true}, apart, body("text/html", "http://x/1 http://x/no")); got != want {
			t.Errorf("apart %v: %s, want %s", apart, got, want)
		}
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

// With Nutch the target of a redirect begins with all that is known of the page
// that led to it.
func TestNutchTargetsKnowTheVisit(t *testing.T) {
	moved := code(protocol.MovedPerm)
	moved.Outcome.Status, moved.Outcome.Location, moved.Content.Type = 301, "http://www.a.com/x", "text/html"
	for _, c := range []struct {
		name  string
		resp  protocol.Response
		apart bool
		links int
		want  string
	}{
		{"a redirect", moved, false, 1,
			"Content-Type=text/html _pst_=moved(12), lastModified=0: http://www.a.com/x _repr_=http://www.a.com/ _rs_=0 nutch.protocol.code=301 seed=x"},
		{"a refresh, if the fetcher parses", body("text/html", "refresh:http://b.com/"), false, 2, // that of the parser knows nothing
			"Content-Type=text/html _pst_=success(1), lastModified=0 _repr_=http://b.com/ seed=x"},
		{"a refresh to a page that stands for itself", body("text/html", "refresh:http://b.com/"), true, 1, ""},
		{"a refresh to one that does not", body("text/html", "refresh:http://www.a.com/x"), true, 1, "_repr_=http://www.a.com/"},
	} {
		links, _ := kept(t, fetch.Options{NutchCompat: true}, c.apart, c.resp)
		var meta []string
		for _, l := range links {
			for name, value := range l.Meta.All() {
				meta = append(meta, name+"="+value)
			}
		}
		if got := strings.Join(meta, " "); len(links) != c.links || got != c.want {
			t.Errorf("%s: %d links\ngot  %s\nwant %d %s", c.name, len(links), got, c.links, c.want)
		}
	}
}

func TestSkipTruncated(t *testing.T) {
	resp := body("text/html", "http://x/1")
	resp.Content.Truncated = true
	for skip, want := range map[bool]string{false: "http://x/1=1 rejected 0 cut 0", true: "rejected 0 cut 0"} {
		if got := accepted(t, fetch.Options{Parsing: fetch.Parsing{SkipTruncated: skip}}, false, resp); got != want {
			t.Errorf("skip %v: %s, want %s", skip, got, want)
		}
	}
}

// A page without links gives its cash anyway; one that may have links again keeps it.
func TestWhatGivesToNoOne(t *testing.T) {
	for name, c := range map[string]struct {
		resp protocol.Response
		want float64
	}{
		"no links":      {body("text/html", ""), 1},
		"no parser":     {body("image/png", "x"), 1},
		"parse failure": {body("text/html", "error"), 1},
		"gone":          {code(protocol.Gone), 1},
		"not found":     {code(protocol.NotFound), 1},
		"redirect to itself": {func() protocol.Response {
			r := code(protocol.MovedTemp)
			r.Outcome.Location = from
			return r
		}(), 1},
		"not modified": {code(protocol.NotModified), 0},
		"busy":         {code(protocol.Busy), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{answer: func(string) protocol.Response { return c.resp }}, from)
			r.o.Parser = picky(r.o.Parser)
			r.o.Scoring = sinks{}
			r.run(seg)
			if got := r.parses(seg)[from].Gave; got != c.want {
				t.Errorf("%s: gave %g, want %g", name, got, c.want)
			}
			aligned(t, r.db.Segments(), seg)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{robots: "User-agent: *\nDisallow: /"}, from)
		r.o.Scoring = sinks{}
		r.run(seg)
		if got := r.parses(seg)[from].Gave; got != 1 {
			t.Errorf("a page that robots.txt forbids gave %g, want 1", got)
		}
		aligned(t, r.db.Segments(), seg)
	})
}

type sinks struct{ scoring.Base }

func (sinks) Distribute(_ scoring.Page, links []scoring.Link) float64 {
	if len(links) == 0 {
		return 1
	}
	return 0
}

// What no parser takes has a signature, but not of Nutch's parse stage.
func TestSignatureOfContentWithoutParser(t *testing.T) {
	none := parserFunc(func(context.Context, *page.Content) (page.Parsed, error) { return page.Parsed{}, parse.ErrUnsupported })
	for _, c := range []struct{ nutch, apart, signed bool }{
		{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{answer: func(string) protocol.Response {
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: page.Content{Type: "application/pdf", Body: []byte("%PDF-")}}
			}})
			const seg = "s"
			w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), seg, 0)
			if err := errors.Join(err, w.Append(t.Context(), []crawldb.Datum{{URL: from}}), w.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
			r.o.NutchCompat, r.o.Parser = c.nutch, nil
			if !c.apart {
				r.o.Parser = none
			}
			r.run(seg)
			if r.o.Parser = none; c.apart {
				if _, err := fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
					t.Fatal(err)
				}
			}
			if p := r.parses(seg)[from]; p.Signature != nil != c.signed || p.Error != "" {
				t.Errorf("%+v: signature %x, error %q", c, p.Signature, p.Error)
			}
		})
	}
}
