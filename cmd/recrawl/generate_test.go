package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestGenerateSelectsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seeds := write(t, "seeds.txt", strings.Join([]string{
		"http://a.org/1\tnutch.score=1\tlang=de", "http://a.org/2\tnutch.score=2\tnutch.fetchInterval=60",
		"http://b.org/1\tnutch.score=3\tlang=en", "http://b.org/2\tnutch.score=4", "https://c.b.org/\tnutch.score=5",
	}, "\n"))
	ok(t, "inject", "-d", dir, "-now", frozen, "-seeds", seeds)
	for _, c := range []struct {
		args     string
		selected float64
		rejected string // on standard error
	}{
		{"-topN|2", 2, ""},
		{"-max-per-host|1", 3, "2 urls_skipped_per_host_overflow"},
		{"-max-per-host|1|-by|domain", 2, " urls_skipped_per_host_overflow"}, // the index does not show all of them
		{"-max-per-host|1|-segments|2", 5, ""},
		{"-min-score|2.5", 3, ""}, // the index does not show the others
		{"-max-interval|1h", 1, "4 interval_rejected"},
		{"-max-interval|30d", 5, ""},
		{"-status|gone", 0, "5 status_rejected"},
		{"-status|db_unfetched", 5, ""},
		{"-expr|score > 2 && url.startsWith('http:')", 2, "3 expr_rejected"},
		{"-expr|lang == 'de' or lang == 'en'", 2, "3 expr_rejected"},
		{"-expr|lang > 5", 0, "an expression failed 2 times, first with: expression: no value"},
		{"-host-limit-expr|0", 5, ""}, // no host is known yet
		{"-lists|3|-partition|domain|-seed|7", 5, ""},
		{"-no-filter|-no-norm", 5, ""},
	} {
		args := append([]string{"generate", "-d", dir, "-now", frozen}, strings.Split(c.args, "|")...)
		text := recrawl(t, append(args, "-adddays", "0")...)
		if text.code != 0 || c.rejected != "" && !strings.Contains(text.err, c.rejected) || c.selected > 0 && c.rejected == "" && text.err != "" {
			t.Errorf("%s: exit %d, %q, want %q", c.args, text.code, text.err, c.rejected)
		}
		if n := len(strings.Fields(text.out)); (n > 0) != (c.selected > 0) {
			t.Errorf("%s made %d segments", c.args, n)
		}
		// The same again, later than the leases of the first.
		args[slices.Index(args, "-now")+1] = "2030-01-01T00:00:00Z"
		r := object(t, ok(t, append(args, "-json")...))
		if r["selected"] != c.selected {
			t.Errorf("%s: %v, want %v", c.args, r, c.selected)
		}
		// Leases run out.
		ok(t, "inject", "-d", dir, "-now", frozen, "-overwrite", "-seeds", seeds)
	}
	for _, c := range []struct{ args, says string }{
		{"-by|ip", "-by"}, {"-status|lost", "-status: crawldb: unknown status"}, {"-max-interval|-1s", "-max-interval"}, {"-lists|0", "-lists: 0"},
		{"-partition|moon", "-partition"}, {"-segments|0", "-segments"}, {"-expr|score >", "-expr: expression: \"score >\", column 8"}, {"-expr|", "-expr"},
		{"-host-limit-expr|fetched >", "-host-limit-expr: expression"}, {"-host-delay-expr|'x'", "-host-delay-expr: expression"},
	} {
		r := recrawl(t, append([]string{"generate", "-d", dir}, strings.Split(c.args, "|")...)...)
		if r.code != 2 || !strings.Contains(r.err, c.says) || r.out != "" {
			t.Errorf("generate %s: exit %d, %q", c.args, r.code, r.err)
		}
	}
}

// Lists fetched one after the other, and what is left at once, give what one
// fetch gives.
func TestFetchLists(t *testing.T) {
	t.Parallel()
	whole := serve(t, &webtest.Web{Hosts: 4, PagesPerHost: 10, Calm: true})
	apart := serve(t, &webtest.Web{Hosts: 4, PagesPerHost: 10, Calm: true})
	for _, s := range []*site{whole, apart} {
		ok(t, append([]string{"inject", "-d", s.dir, "-now", frozen}, s.web.Seeds()...)...)
		for range 2 {
			name := strings.TrimSpace(ok(t, "generate", "-d", s.dir, "-now", frozen, "-lists", "3"))
			if s == whole {
				ok(t, s.args("fetch", name)...)
			} else {
				if out := ok(t, s.args("fetch", "-lists", "0,2", name)...); !strings.Contains(out, "1 lists of "+name+" are still to be fetched") {
					t.Errorf("fetch -lists 0,2 says %q", out)
				}
				if r := recrawl(t, "update", "-d", s.dir, "-now", frozen, name); r.code != 1 {
					t.Errorf("update before the last list: exit %d", r.code)
				}
				if r := recrawl(t, s.args("fetch", "-lists", "3", name)...); r.code != 1 || !strings.Contains(r.err, "no list 3") {
					t.Errorf("fetch -lists 3: %d %q", r.code, r.err)
				}
				ok(t, s.args("fetch", "-lists", "1", name)...)
			}
			ok(t, "update", "-d", s.dir, "-now", frozen, name)
			ok(t, "invert", "-d", s.dir, "-now", frozen, name)
		}
	}
	same(t, "apart", dump(t, apart.dir), dump(t, whole.dir))
}

func TestFreegen(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
	seed := s.web.Seeds()[0]
	urls := write(t, "urls.txt", "# some\n\n"+seed+"\nnonsense\n"+seed+"\tlang=de\n  "+seed+"x  \r\n")
	r := recrawl(t, "freegen", "-d", s.dir, "-now", frozen, urls)
	name := strings.TrimSpace(r.out)
	if r.code != 0 || name == "" || !strings.Contains(r.err, "1 malformed_urls") {
		t.Fatalf("freegen: exit %d, %q, %q", r.code, r.out, r.err)
	}
	ok(t, s.args("fetch", name)...)
	ok(t, "update", "-d", s.dir, "-now", frozen, name)
	ok(t, "invert", "-d", s.dir, "-now", frozen, name)
	got := records(t, s.dir)
	if got[seed].Status != "db_fetched" || got[seed+"x"].Status != "db_gone" || len(got) < 3 {
		t.Errorf("after freegen and update: %v", got)
	}
	if r := recrawl(t, "freegen", "-d", s.dir, "-now", frozen, write(t, "none.txt", "# nothing\n")); r.code != 1 || !strings.Contains(r.err, "no URL to fetch") {
		t.Errorf("an empty file: exit %d, %q", r.code, r.err)
	}
	if r := recrawl(t, "freegen", "-d", s.dir); r.code != 2 {
		t.Errorf("no file: exit %d, %q", r.code, r.err)
	}
	if r := recrawl(t, "freegen", "-d", s.dir, "missing"); r.code != 1 || !strings.Contains(r.err, "missing") {
		t.Errorf("no such file: exit %d, %q", r.code, r.err)
	}
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"freegen", "-d", none, "missing"}, {"freegen", "-d", none, t.TempDir()}, {"sitemap", "-d", none, "-agent", "testbot", "-file", "missing"}} {
		if r := recrawl(t, args...); r.code != 1 || r.out != "" {
			t.Errorf("%q: exit %d, %q, %q", args, r.code, r.out, r.err)
		}
		if _, err := os.Stat(none); err == nil {
			t.Fatalf("%q made a crawl", args)
		}
	}
}
