package hostile_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// A maze is a site of sixty pages and some traps, as a protocol.
type maze struct {
	name  string
	real  []string // paths
	links map[string][]string
	traps map[string]bool

	mu    sync.Mutex
	asked map[string]int
}

// The hosts of a maze are of one registered domain, which those below .test are not.
const mazeHost = "www.example.org"

// A layout says where the sixty pages are and how they hang together.
var layouts = map[string]func(i int) (path string, parent int){
	// A start page, five sections, and pages in these.
	"sections": func(i int) (string, int) {
		names := []string{"guide", "news", "products", "about", "support"}
		switch {
		case i == 0:
			return "/", 0
		case i <= 5:
			return "/" + names[i-1] + "/", 0
		}
		return fmt.Sprintf("/%s/%s.html", names[i%5], word(i)), 1 + i%5
	},
	// All at the top.
	"flat": func(i int) (string, int) {
		if i == 0 {
			return "/", 0
		}
		return "/" + word(i) + ".html", (i - 1) / 10
	},
	// Numbers, in one directory.
	"numbers": func(i int) (string, int) {
		if i == 0 {
			return "/", 0
		}
		return fmt.Sprintf("/articles/%d", i), (i - 1) / 4
	},
	// A query tells them apart.
	"queries": func(i int) (string, int) {
		if i == 0 {
			return "/", 0
		}
		return fmt.Sprintf("/index.php?id=%d", i), (i - 1) / 8
	},
}

// word makes a word of a number.
func word(n int) string {
	h := md5.Sum(fmt.Appendf(nil, "word %d", n))
	b := make([]byte, 7)
	for i := range b {
		b[i] = 'a' + h[i]%26
	}
	return string(b)
}

func newMaze(layout string, traps ...string) *maze {
	m := &maze{name: layout, links: map[string][]string{}, traps: map[string]bool{}, asked: map[string]int{}}
	for _, t := range traps {
		m.traps[t] = true
	}
	for i := range mazePages {
		path, _ := layouts[layout](i)
		m.real = append(m.real, path)
	}
	for i := 1; i < mazePages; i++ {
		path, parent := layouts[layout](i)
		m.links[m.real[parent]] = append(m.links[m.real[parent]], path)
		m.links[path] = append(m.links[path], m.real[parent])
	}
	return m
}

var mazeEntries = map[string][]string{
	"calendar":      {"/calendar/2026/01"},
	"session path":  {"/s/a1b2c3d4e5f6/0"},
	"session query": {"/view?PHPSESSID=0123456789abcdef0123456789abcdef&p=0"},
	"a/b/a/b":       {"/loop/a/b/"},
	"slashes":       {"/slash/"},
	"shallow":       {"/shop?colour=0", "/shop?size=0", "/shop?sort=0"},
	"wide":          {"/search?f0=1"},
	"relative":      {"/rel/www.example.org/x/"},
	"soft 404":      {"/missing"},
	"mirrors":       {"http://m1.example.org/", "http://m2.example.org/"},
	"wildcard":      {"http://" + word(1) + ".example.org/"},
}

// content returns text and links of a page; the links of traps come first.
func (m *maze) content(u *url.URL) (text string, links []string, ok bool) {
	path := u.RequestURI()
	rnd := rand.New(rand.NewPCG(1, uint64(len(path))))
	h := md5.Sum([]byte(u.String()))
	for i, b := range h {
		rnd = rand.New(rand.NewPCG(rnd.Uint64(), uint64(b)+uint64(i)))
	}
	add := func(format string, a ...any) { links = append(links, fmt.Sprintf(format, a...)) }
	is := func(trap, prefix string) bool { return m.traps[trap] && strings.HasPrefix(path, prefix) }
	host := u.Hostname()
	switch {
	case m.traps["mirrors"] && strings.HasPrefix(host, "m"), host == mazeHost && slices.Contains(m.real, path):
		if !slices.Contains(m.real, path) {
			return "", nil, false
		}
		if host == mazeHost {
			for _, t := range slices.Sorted(maps.Keys(m.traps)) {
				links = append(links, mazeEntries[t]...)
			}
		} else {
			for i := range 20 {
				add("http://m%d.example.org%s", i, path)
			}
		}
		return fmt.Sprintf("Page %d. %s", slices.Index(m.real, path), path), append(links, m.links[path]...), true
	case m.traps["wildcard"] && host != mazeHost:
		for range 10 {
			add("http://%s.example.org/", word(rnd.IntN(1<<30)))
		}
		return "Welcome to " + host, links, true
	case is("calendar", "/calendar/"):
		var y, mo, d int
		n, _ := fmt.Sscanf(path, "/calendar/%d/%d/%d", &y, &mo, &d)
		if n == 3 {
			add("/calendar/%d/%02d/%02d", y, mo, d%28+1)
			add("/calendar/%d/%02d", y, mo)
			return fmt.Sprintf("No events on %d/%d/%d", d, mo, y), links, true
		}
		for d := range 28 {
			add("/calendar/%d/%02d/%02d", y, mo, d+1)
		}
		add("/calendar/%d/%02d", y+mo/12, mo%12+1)
		add("/calendar/%d/%02d", y-(13-mo)/12, (mo+10)%12+1)
		return fmt.Sprintf("Events in %d/%d", mo, y), links, true
	case is("session path", "/s/"):
		id := fmt.Sprintf("%08x%04d", rnd.Uint32(), rnd.IntN(10000))
		for i := range 20 {
			add("/s/%s/%d", id, i)
		}
		return "Shop page " + path[strings.LastIndexByte(path, '/')+1:], links, true
	case is("session query", "/view"):
		for i := range 20 {
			add("/view?PHPSESSID=%016x%016x&p=%d", rnd.Uint64(), rnd.Uint64(), i)
		}
		return "View " + u.Query().Get("p"), links, true
	case is("a/b/a/b", "/loop/"):
		return "Loop " + path, []string{"a/", "b/", "a/b/"}, true
	case is("slashes", "/slash/"):
		return "Slashes", []string{path + "/", path + "x/"}, true
	case is("shallow", "/shop"):
		q := u.Query()
		for _, facet := range []string{"colour", "size", "sort"} {
			for v := range 20 {
				q2 := maps.Clone(q)
				q2[facet] = []string{fmt.Sprint(v)}
				add("/shop?%s", q2.Encode())
			}
		}
		return "Products " + path, links, true
	case is("wide", "/search"):
		for f := range 15 {
			if name := fmt.Sprintf("f%d=", f); !strings.Contains(path, name) {
				add("%s&%s1", path, name)
			}
		}
		return "Results " + path, links, true
	case is("relative", "/rel/"):
		return "Relative " + path, []string{"www.example.org/x/", "x/www.example.org/", "y/"}, true
	case m.traps["soft 404"]:
		for range 5 {
			add("/%s", word(rnd.IntN(1<<30)))
		}
		return "Nothing here, but have a look at this", append(links, "/"), true
	}
	return "", nil, false
}

// Fetch makes a maze a protocol.
func (m *maze) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	u, err := url.Parse(req.URL)
	if err != nil || u.Path == "/robots.txt" {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	m.mu.Lock()
	m.asked[req.URL]++
	m.mu.Unlock()
	text, links, ok := m.content(u)
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<title>Maze</title><p>%s</p>", text)
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=\"%s\">x</a>\n", strings.ReplaceAll(l, "&", "&amp;"))
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Bytes: int64(b.Len()),
		Content: page.Content{URL: req.URL, Type: "text/html", Body: []byte(b.String())},
	}, nil
}

// crawl visits as many pages as the budget allows, in rounds of topN, and returns how
// many of the sixty are among them, how many were visited, and how many records there
// are. All but that is as it is by default.
func (m *maze) crawl(t testing.TB, topN int, edit func(*recrawl.Options)) (real, visits, records int) {
	t.Helper()
	db := &memstore.DB{}
	for visits < mazeBudget {
		o := recrawl.Options{
			Agent: "recrawl-hostile", Protocol: m, Run: recrawl.RunOptions{Rounds: 1},
			Generate: generate.Options{TopN: min(topN, mazeBudget-visits)}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		}
		if edit != nil {
			edit(&o)
		}
		crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer crawler.Close()
		if _, err := crawler.Inject(t.Context(), "http://"+mazeHost+"/"); err != nil {
			t.Fatal(err)
		}
		r, err := crawler.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Rounds == 0 {
			break // nothing is due
		}
		visits += r.Visited()
	}
	for _, path := range m.real {
		if m.asked["http://"+mazeHost+path] > 0 {
			real++
		}
	}
	for _, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	return real, visits, records
}

const (
	mazePages  = 60
	mazeWanted = 55
	mazeBudget = 350
	mazeGrowth = 10
)

func c6() row {
	traps := slices.Sorted(maps.Keys(mazeEntries))
	return row{
		id: "C6", input: "sixty pages beside a calendar, session ids in path and query, /a/b/a/b, slashes, facets shallow and wide, links that grow, a soft 404 with links, mirrors, endless names: each alone, and all at once beside four layouts of the pages",
		outcome: "what its URL gives away is rejected, the parts of a site take turns, and a domain gets ten new records per visit",
		figure:  fmt.Sprintf("%d mixes, %d visits each: ≥ %d of the %d pages, ≤ %d records for a visit", len(traps)+len(layouts), mazeBudget, mazeWanted, mazePages, mazeGrowth),
		alone: func(t *testing.T) {
			testlevel.SkipInRace(t)
			try := func(layout string, topN int, traps ...string) {
				t.Helper()
				real, visits, records := newMaze(layout, traps...).crawl(t, topN, nil)
				t.Logf("%s beside %s: %d pages in %d visits, %d records", layout, traps, real, visits, records)
				if real < mazeWanted || records > mazeGrowth*visits {
					t.Errorf("%s beside %s: %d pages in %d visits, %d records", layout, traps, real, visits, records)
				}
			}
			for _, trap := range testlevel.Pick(nil, traps) {
				try("sections", 50, trap)
			}
			for _, layout := range slices.Sorted(maps.Keys(layouts)) {
				try(layout, 35, traps...)
			}
			// It is not so by itself.
			real, visits, records := newMaze("numbers", traps...).crawl(t, 35, func(o *recrawl.Options) {
				o.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}}}
				o.Generate.ExactTopN, o.Update.MaxGrowth = true, -1
			})
			t.Logf("without limits: %d pages in %d visits, %d records", real, visits, records)
			if real >= mazeWanted {
				t.Errorf("these traps catch no crawl: %d pages in %d visits, %d records", real, visits, records)
			}
		},
	}
}
