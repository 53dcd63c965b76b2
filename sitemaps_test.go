package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A crawl finds the sitemaps of its hosts, and in them pages to which no link
// leads; the same whatever the number of workers. Sitemaps have no part in the
// importance of pages, and OnPage hears nothing of them.
func TestSitemapsInARound(t *testing.T) {
	first := ""
	for _, threads := range []int{1, 3, 16} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 40, Calm: true, Sitemaps: true})
			s.opts.Fetch.Threads = threads
			s.opts.Fetch.Links.MaxPerPage = 1 // links alone do not lead far
			s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
				if strings.HasSuffix(e.URL, "sitemap.xml") {
					t.Errorf("OnPage got %s", e.URL)
				}
				return nil
			}
			r := s.run(t, s.web.Seeds()...)
			cash, sitemaps, pages := 0.0, 0, 0
			for u, d := range s.records(t) {
				cash += scoring.Cash(&d)
				if _, marked := crawldb.SitemapOf(d.Meta); marked {
					if sitemaps++; d.Status != crawldb.Fetched || !strings.HasSuffix(u, "/sitemap.xml") || d.FetchTime.Sub(d.LastFetch) != 24*time.Hour {
						t.Errorf("%s is %v and due after %v", u, d.Status, d.FetchTime.Sub(d.LastFetch))
					}
					continue
				}
				if pages++; d.Status != crawldb.Fetched {
					t.Errorf("%s is %v", u, d.Status)
				}
			}
			if sitemaps != 3 && sitemaps != 4 || pages < 3*40 {
				t.Errorf("%d sitemaps, %d pages", sitemaps, pages)
			}
			if seeds := float64(len(s.web.Seeds())); math.Abs(cash-seeds) > 1e-9*seeds {
				t.Errorf("cash %v of %v", cash, seeds)
			}
			if r.Events != pages {
				t.Errorf("%d events of %d pages", r.Events, pages)
			}
			if dump := s.dump(t); first == "" {
				first = dump
			} else if dump != first {
				t.Errorf("with %d workers the crawl db is another", threads)
			}
		})
	}
}

// A crawl with sitemaps, redirects of them among them, that dies at any request and
// is taken up again comes to the same crawl db.
func TestSitemapsSurvive(t *testing.T) {
	web := pages{
		"http://a.test/robots.txt": "Sitemap: /moved.xml\nSitemap: http://b.test/a.xml\nSitemap: http://b.test/\n",
		"http://a.test/":           "<a href=/x>x</a><a href=/moved.xml>m</a>",
		"http://a.test/moved.xml":  "-> http://a.test/i.xml",
		"http://a.test/i.xml":      indexOf("http://a.test/1.xml", "http://a.test/2.xml"),
		"http://a.test/1.xml":      urlset("http://a.test/x", "http://a.test/y"),
		"http://a.test/2.xml":      urlset("http://a.test/z"),
		"http://b.test/robots.txt": "Sitemap: /a.xml\n",
		"http://b.test/":           "<a href=http://a.test/>a</a><a href=/old>o</a>",
		"http://b.test/a.xml":      urlset("http://a.test/w", "http://b.test/w", "http://c.test/w"),
		"http://b.test/old":        "-> http://c.test/gone",
		"http://a.test/x":          "x", "http://a.test/y": "y", "http://a.test/z": "z", "http://a.test/w": "w", "http://b.test/w": "w",
	}
	for _, hops := range []int{0, 3} {
		first := ""
		for die := range 22 {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(&webtest.Web{})
				s.opts.Fetch.Following.MaxRedirects, s.opts.Fetch.Threads = hops, 4
				requests := 0
				var mu sync.Mutex
				for {
					ctx, cancel := context.WithCancel(t.Context())
					s.opts.Protocol = protocolFunc(func(ctx context.Context, req protocol.Request) (protocol.Response, error) {
						mu.Lock()
						requests++
						n := requests
						mu.Unlock()
						if n == die {
							cancel()
							return protocol.Response{}, context.Canceled
						}
						if to, ok := strings.CutPrefix(web[req.URL], "-> "); ok {
							return protocol.Response{Outcome: protocol.Outcome{Code: protocol.MovedPerm, Location: to}}, nil
						}
						return web.Fetch(ctx, req)
					})
					c := s.crawler(t)
					_, err := c.Inject(t.Context(), "http://a.test/", "http://b.test/")
					if err == nil {
						_, err = c.Run(ctx)
					}
					c.Close()
					cancel()
					if err == nil {
						break
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				if dump := s.dump(t); first == "" {
					first = dump
					if n := len(s.records(t)); n != 14 {
						t.Errorf("%d records\n%s", n, dump)
					}
				} else if dump != first {
					t.Errorf("%d hops, died at request %d: another crawl db\n%s\nwant\n%s", hops, die, dump, first)
				}
			})
		}
	}
}

// liar changes what a sitemap says: each page has changed just now.
type liar struct {
	protocol.Protocol
	now func() time.Time
}

func (l liar) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	r, err := l.Protocol.Fetch(ctx, req)
	if err == nil && strings.HasSuffix(req.URL, "/sitemap.xml") {
		var b strings.Builder
		for i, part := range strings.Split(string(r.Content.Body), "<lastmod>") {
			if i > 0 {
				_, part, _ = strings.Cut(part, "<")
				part = "<lastmod>" + l.now().UTC().Format(time.RFC3339) + "<" + part
			}
			b.WriteString(part)
		}
		r.Content.Body = []byte(b.String())
	}
	return r, err
}

// weeks crawls a web every six hours for some weeks, and returns how much of the
// time the copies of pages were those of the web, how many visits pages had, and
// what is thought of the host.
func weeks(t *testing.T, sitemaps, lies bool) (fresh float64, visits int, trusted bool) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 60, Calm: true, Sitemaps: sitemaps})
		if lies {
			s.opts.Protocol = liar{s.opts.Protocol, func() time.Time { return s.now }}
		}
		s.opts.Retention.Segments = 1
		seen := map[string]time.Time{}
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			visits++
			seen[e.URL] = e.Visit.Time
			return nil
		}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		all, good := 0, 0
		for range 6 * 7 * 4 {
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for u := range s.web.URLs() {
				truth, ok := s.web.Page(u)
				if !ok {
					t.Fatal(u)
				}
				if all++; !truth.Changed.After(seen[u]) {
					good++
				}
			}
			s.now = s.now.Add(6 * time.Hour)
		}
		fresh = float64(good) / float64(all)
		h, err := s.db.Hosts().Get(t.Context(), s.web.Host(0))
		if err != nil {
			t.Fatal(err)
		}
		trusted = h.Signals.Trusted()
		t.Logf("sitemaps %v, lies %v: fresh %.3f, %d visits, %+v", sitemaps, lies, fresh, visits, h.Signals)
	})
	return fresh, visits, trusted
}

func TestTrustInLastmod(t *testing.T) {
	testlevel.SkipInRace(t)
	plain, plainVisits, _ := weeks(t, false, false)
	truth, truthVisits, trusted := weeks(t, true, false)
	if !trusted || truth < plain+0.05 {
		t.Errorf("a site that tells the truth: trusted %v, fresh %.3f instead of %.3f, %d visits instead of %d", trusted, truth, plain, truthVisits, plainVisits)
	}
	lie, lieVisits, trusted := weeks(t, true, true)
	if trusted || lieVisits > plainVisits+plainVisits/4 || lie < plain-0.02 {
		t.Errorf("a site that lies: trusted %v, fresh %.3f instead of %.3f, %d visits instead of %d", trusted, lie, plain, lieVisits, plainVisits)
	}
}

// pages is a web of a few documents.
type pages map[string]string

func (p pages) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	body, ok := p[req.URL]
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound}}, nil
	}
	typ := "text/html"
	if strings.HasSuffix(req.URL, ".xml") {
		typ = "application/xml"
	} else if strings.HasSuffix(req.URL, ".txt") {
		typ = "text/plain"
	}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success}, Content: page.Content{Type: typ, Body: []byte(body)}}, nil
}

// What another site lists as its sitemap is not lost as a page, nor is a start
// page that its own site lists as one.
func TestPageListedAsSitemap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{})
		web := pages{
			"http://good.test/robots.txt": "Sitemap: http://good.test/\n",
			"http://good.test/":           "<a href=/a>a</a>",
			"http://good.test/a":          "<a href=/b>b</a>",
			"http://good.test/b":          "b",
			"http://evil.test/robots.txt": "Sitemap: http://good.test/a\nSitemap: http://good.test/b\nSitemap: http://good.test/404.xml\n",
			"http://evil.test/":           "x",
		}
		s.opts.Protocol = web
		s.run(t, "http://good.test/", "http://evil.test/")
		for range 5 {
			s.now = s.now.Add(24 * time.Hour)
			s.run(t)
		}
		all := s.records(t)
		for _, u := range []string{"http://good.test/", "http://good.test/a", "http://good.test/b", "http://evil.test/"} {
			if d := all[u]; d.Status != crawldb.Fetched && d.Status != crawldb.NotModified || d.Interval < 20*24*time.Hour {
				t.Errorf("%s is %v, interval %v", u, d.Status, d.Interval)
			}
		}
	})
}

// asked remembers the requests, and can be stopped.
type asked struct {
	pages
	urls   *[]string
	stopAt string
	stop   func()
}

func (a asked) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	*a.urls = append(*a.urls, strings.TrimPrefix(req.URL, "http://"))
	if req.URL == a.stopAt {
		a.stop()
		return protocol.Response{}, context.Canceled
	}
	return a.pages.Fetch(ctx, req)
}

func urlset(urls ...string) string {
	return "<urlset><url><loc>" + strings.Join(urls, "</loc></url><url><loc>") + "</loc></url></urlset>"
}

func indexOf(urls ...string) string {
	return "<sitemapindex><sitemap><loc>" + strings.Join(urls, "</loc></sitemap><sitemap><loc>") + "</loc></sitemap></sitemapindex>"
}

func sources(s ...string) func(func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, x := range s {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func TestSitemapsOnDemand(t *testing.T) {
	web := pages{
		"http://a.test/robots.txt":  "Sitemap: /i.xml\nSitemap: /no.xml\n",
		"http://a.test/i.xml":       indexOf("http://a.test/1.xml", "http://a.test/2.xml", "http://a.test/i.xml"),
		"http://a.test/1.xml":       urlset("http://a.test/x", "http://a.test/", "http://b.test/x"),
		"http://a.test/2.xml":       indexOf("http://a.test/3.xml"),
		"http://a.test/3.xml":       urlset("http://a.test/y", "http://a.test/pic.gif"),
		"http://b.test/robots.txt":  "User-agent: *\nDisallow: /hidden/\n",
		"http://b.test/hidden/s":    urlset("http://b.test/hidden/z"),
		"http://d.test/sitemap.xml": urlset("http://d.test/z"),
	}
	for _, stop := range []string{"", "http://a.test/robots.txt", "http://a.test/i.xml", "http://a.test/2.xml"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{})
			var urls []string
			ctx, cancel := context.WithCancel(t.Context())
			s.opts.Protocol = asked{web, &urls, stop, cancel}
			s.opts.Fetch.Threads = 1
			c := s.crawler(t)
			defer c.Close()
			if _, err := c.Inject(t.Context(), "http://a.test/"); err != nil { // a page, which is due
				t.Fatal(err)
			}
			o := recrawl.SitemapOptions{Default: true, Sources: sources("a.test", "c.test", "d.test", "http://b.test/hidden/s", "ftp://x/y", "a b")}
			r, err := c.ReadSitemaps(ctx, o)
			if stop != "" {
				if err == nil {
					t.Fatal("it was not stopped")
				}
				// The same again goes on.
				s.opts.Protocol = asked{pages: web, urls: &urls}
				c2 := s.crawler(t)
				defer c2.Close()
				r, err = c2.ReadSitemaps(t.Context(), o)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Refused) != 2 || r.Hosts != 3 || len(r.Without) != 0 || r.Listed != 5 {
				t.Errorf("%+v", r)
			}
			var got []string
			for u, d := range s.records(t) {
				m, marked := crawldb.SitemapOf(d.Meta)
				got = append(got, fmt.Sprintf("%s %v %v %d", strings.TrimPrefix(u, "http://"), d.Status, marked, m.Depth))
			}
			slices.Sort(got)
			want := []string{
				"a.test/ db_unfetched false 0", "a.test/1.xml db_fetched true 1", "a.test/2.xml db_fetched true 1", "a.test/3.xml db_fetched true 2",
				"a.test/i.xml db_fetched true 0", "a.test/no.xml db_gone true 0", "a.test/x db_unfetched false 0", "a.test/y db_unfetched false 0",
				"b.test/hidden/s db_gone true 0", "c.test/sitemap.xml db_gone true 0", "d.test/sitemap.xml db_fetched true 0", "d.test/z db_unfetched false 0",
			}
			if !slices.Equal(got, want) {
				t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if stop != "" {
				return
			}
			if r.Rounds != 3 || r.Sitemaps.Files != 5 || r.Sitemaps.Indexes != 2 || r.Sitemaps.URLs != 4 || r.Sitemaps.OutOfScope != 1 || r.Sitemaps.Rejected != 1 || r.SitemapEffects.New != 3 || r.SitemapEffects.Known != 1 || r.SitemapEffects.Sitemaps != 3 {
				t.Errorf("%+v", r)
			}
			slices.Sort(urls)
			if want := []string{
				"a.test/1.xml", "a.test/2.xml", "a.test/3.xml", "a.test/i.xml", "a.test/no.xml", "a.test/robots.txt", "b.test/robots.txt",
				"c.test/robots.txt", "c.test/sitemap.xml", "d.test/robots.txt", "d.test/sitemap.xml",
			}; !slices.Equal(urls, want) {
				t.Errorf("asked for %q", urls)
			}
			// What is known of the hosts is enough the next time, and it is read again
			// although it is not due.
			urls = nil
			r, err = c.ReadSitemaps(t.Context(), recrawl.SitemapOptions{KnownHosts: true})
			slices.Sort(urls)
			if want := []string{"a.test/i.xml", "a.test/no.xml"}; err != nil || !slices.Equal(urls, want) || r.Hosts != 1 || r.SitemapEffects.Known != 0 {
				t.Errorf("asked for %q, %+v, %v", urls, r, err)
			}
		})
	}
}

func ExampleCrawler_sitemaps() {
	web := pages{
		"http://example.test/robots.txt":  "Sitemap: http://example.test/sitemap.xml\n",
		"http://example.test/sitemap.xml": "<urlset><url><loc>http://example.test/lonely</loc></url></urlset>",
		"http://example.test/":            "no links",
		"http://example.test/lonely":      "no page links to me",
	}
	c, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{Protocol: web, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		OnPage: func(_ context.Context, e recrawl.PageEvent) error {
			fmt.Println(e.Kind, e.URL)
			return nil
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Inject(context.Background(), "http://example.test/")
	if err == nil {
		_, err = c.Run(context.Background())
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// new http://example.test/
	// new http://example.test/lonely
}
