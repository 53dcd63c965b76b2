package generate_test

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/frontier"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// count says how many of the URLs contain each text.
func count(urls []string, texts ...string) []int {
	n := make([]int, len(texts))
	for i, text := range texts {
		for _, u := range urls {
			if strings.Contains(u, text) {
				n[i]++
			}
		}
	}
	return n
}

// one selects and returns the list of the only segment, in the order of the list.
func one(t *testing.T, db *memstore.DB, o generate.Options) ([]string, generate.Report) {
	t.Helper()
	r := run(t, db.Crawl(), db.Segments(), o)
	if len(r.Segments) != 1 {
		t.Fatalf("%d segments", len(r.Segments))
	}
	var urls []string
	for d, err := range segment.Records[crawldb.Datum](t.Context(), db.Segments(), r.Segments[0]) {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, d.URL)
	}
	return urls, r
}

// known keeps an account of a domain that was visited.
func known(t *testing.T, db *memstore.DB, domain string, a frontier.Account) {
	t.Helper()
	a.Visits = 32
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(frontier.MarkName(domain), a.Encode())}); err != nil {
		t.Fatal(err)
	}
}

// Of a site that was hardly visited the best go first, whatever part they are of.
func TestDomainWithFewVisitsIsNotDivided(t *testing.T) {
	var data []crawldb.Datum
	for i := range 1000 {
		data = append(data, due(fmt.Sprintf("http://www.example.org/%s/%d", []string{"a", "b", "c"}[i%3], i), float32(i*i%997)))
	}
	db, exact := &memstore.DB{}, &memstore.DB{}
	for _, db := range []*memstore.DB{db, exact} {
		put(t, db.Crawl(), data...)
		if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(frontier.MarkName("example.org"), (&frontier.Account{Visits: 31}).Encode())}); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := one(t, db, generate.Options{TopN: 50})
	want, _ := one(t, exact, generate.Options{TopN: 50, ExactTopN: true})
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A part of a site that has no end, and better priorities than all others, gets no
// more than its share; Exact gives it all.
func TestPartsTakeTurns(t *testing.T) {
	var data []crawldb.Datum
	for i := range 1000 {
		data = append(data, due(fmt.Sprintf("http://www.example.org/calendar/%d", i), 10))
	}
	for i := range 20 {
		data = append(data, due(fmt.Sprintf("http://www.example.org/docs/%c", 'a'+i), 1), due(fmt.Sprintf("http://www.example.org/news/%c", 'a'+i), 2))
	}
	for _, c := range []struct {
		exact bool
		topN  int
		want  []int
	}{
		{false, 60, []int{20, 20, 20}},
		{true, 60, []int{60, 0, 0}},
		{false, 200, []int{160, 20, 20}}, // the rest goes to the parts that have something
		{false, 9, []int{1, 0, 8}},       // beside it the best go first
	} {
		db := &memstore.DB{}
		known(t, db, "example.org", frontier.Account{})
		put(t, db.Crawl(), data...)
		urls, r := one(t, db, generate.Options{TopN: c.topN, ExactTopN: c.exact})
		got := count(urls, "/calendar/", "/docs/", "/news/")
		if !slices.Equal(got, c.want) || len(urls) != c.topN || r.Selected != c.topN {
			t.Errorf("exact %v, %d: %v, want %v", c.exact, c.topN, got, c.want)
		}
		// The list, too, goes round.
		if got := count(urls[:6], "/calendar/"); !c.exact && got[0] > 3 {
			t.Errorf("the list begins with %q", urls[:6])
		}
	}
}

// From a site where nothing looks endless, the selection is that of Exact, however many parts
// it has, with any priorities, and on several hosts if these were read.
func TestHonestSitesAreExact(t *testing.T) {
	dirs := []string{"www.example.org", "www.example.org/api", "www.example.org/docs/guide", "www.example.org/docs/howto", "www.example.org/news", "docs.example.org/lib", "docs.example.org/lib/os"}
	var a frontier.Account
	for i := range 100 {
		a.Read(dirs[i%len(dirs)][:15]+"/", fmt.Appendf(nil, "%04x", i*641))
		a.Read("docs.example.org/lib/", fmt.Appendf(nil, "%04x", i*643+1))
	}
	for _, extra := range []int{0, 200} { // of one page in numbers, at the top
		var data []crawldb.Datum
		for i := range 2000 {
			data = append(data, due(fmt.Sprintf("http://%s/%s%c.html", dirs[i%len(dirs)], word(i), 'a'+i/676), float32(i*i%1999)))
		}
		for i := range extra {
			data = append(data, due(fmt.Sprintf("http://www.example.org/page/%d", i), 1000))
		}
		db, exact := &memstore.DB{}, &memstore.DB{}
		for _, db := range []*memstore.DB{db, exact} {
			known(t, db, "example.org", a)
			put(t, db.Crawl(), data...)
		}
		got, _ := one(t, db, generate.Options{TopN: 300})
		want, _ := one(t, exact, generate.Options{TopN: 300, ExactTopN: true})
		if len(want) != 300 || slices.Equal(got, want) != (extra == 0) {
			t.Errorf("with %d pages that may go on: %d URLs, %d wanted; equal: %v", extra, len(got), len(want), slices.Equal(got, want))
		}
		// What is in doubt costs its share and nothing else: the rest are the best.
		plain := func(urls []string) (p []string) {
			for _, u := range urls {
				if !strings.Contains(u, "/page/") {
					p = append(p, u)
				}
			}
			slices.Sort(p)
			return p
		}
		few, many := plain(got), plain(want)
		if len(few) > len(many) {
			few, many = many, few
		}
		for _, u := range few {
			if !slices.Contains(many, u) {
				t.Errorf("%s was not among the best", u)
			}
		}
	}
}

// How many places a domain has is decided by priority, as before; the order of the
// records in the store does not matter.
func TestTurnsStayWithinADomain(t *testing.T) {
	var data []crawldb.Datum
	for i := range 100 {
		data = append(data, due(fmt.Sprintf("http://www.example.org/trap/%d", i), 5), due(fmt.Sprintf("http://www.example.org/page/%d", i), 3),
			due(fmt.Sprintf("http://www.example.com/%d", i), 4))
	}
	var first []string
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		rnd.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
		db := &memstore.DB{}
		known(t, db, "example.org", frontier.Account{})
		put(t, db.Crawl(), data...)
		urls, _ := one(t, db, generate.Options{TopN: 150})
		if got := count(urls, "example.org", "example.com", "/trap/", "/page/"); !slices.Equal(got, []int{100, 50, 50, 50}) {
			t.Errorf("%v", got)
		}
		if first == nil {
			first = urls
		} else if !slices.Equal(first, urls) {
			t.Error("the same records make another list")
		}
	}
}

// A part that says nothing new has its turn less often, and so has a host that was
// found later.
func TestTurnsByWhatIsNew(t *testing.T) {
	sum := func(s string) []byte { h := md5.Sum([]byte(s)); return h[:] }
	var a frontier.Account
	for i := range 50 {
		a.Read("www.example.org/docs/", sum(fmt.Sprint(i)))
		a.Read("www.example.org/empty/", sum("nothing"))
		a.Read("mirror.example.org/docs/", sum(fmt.Sprint(i)))
	}
	db := &memstore.DB{}
	known(t, db, "example.org", a)
	var data []crawldb.Datum
	for i := range 200 {
		for _, dir := range []string{"www.example.org/docs", "www.example.org/empty", "mirror.example.org/docs", word(i) + ".example.org"} {
			data = append(data, due(fmt.Sprintf("http://%s/%s", dir, word(i)), 1))
		}
	}
	put(t, db.Crawl(), data...)
	urls, _ := one(t, db, generate.Options{TopN: 100})
	got := count(urls, "www.example.org/docs", "www.example.org/empty", "mirror.")
	if got[0] < 70 || got[1] < 1 || got[1] > 6 || got[2] < 7 || got[2] > 15 {
		t.Errorf("%v of docs, empty and mirror", got)
	}
}

func word(n int) string {
	return fmt.Sprintf("%c%c%c", 'a'+n/26%26, 'a'+n%26, 'a'+n%7)
}

// A site with a damaged account counts as unknown.
func TestDamagedAccount(t *testing.T) {
	db := &memstore.DB{}
	for i := range 8 {
		put(t, db.Crawl(), due(fmt.Sprintf("http://h.example.org/%d", i), 1))
	}
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(frontier.MarkName("example.org"), "\xff")}); err != nil {
		t.Fatal(err)
	}
	if urls, _ := one(t, db, generate.Options{TopN: 2}); len(urls) != 2 {
		t.Errorf("%q", urls)
	}
}

func TestMaxPerPart(t *testing.T) {
	db := &memstore.DB{}
	var data []crawldb.Datum
	for i := range 30 {
		data = append(data, due(fmt.Sprintf("http://www.example.org/a/%d", i), 2), due(fmt.Sprintf("http://www.example.org/s%d/x", i), 2),
			due(fmt.Sprintf("http://www.example.org/q?%d", i), 1), due(fmt.Sprintf("http://www.example.org/%d", i), 1))
	}
	put(t, db.Crawl(), data...)
	urls, r := one(t, db, generate.Options{MaxPerPart: 5})
	if got := count(urls, "/a/", "org/s", "/q?"); !slices.Equal(got, []int{5, 5, 5}) || len(urls) != 20 || r.Rejected[generate.PartFull] != 100 {
		t.Errorf("%v of %d, %v", got, len(urls), r.Rejected)
	}
}
