//go:build unix

package main_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/index/bleve"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// indexed returns the titles of the pages in an index of bleve, by URL.
func indexed(t *testing.T, dir string) map[string]string {
	t.Helper()
	x, err := bleve.Open(dir, bleve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	pages := map[string]string{}
	for u, err := range x.URLs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := x.Document(u)
		if err != nil {
			t.Fatal(err)
		}
		pages[u] = d.Title
	}
	return pages
}

func TestIndexToBleve(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 12, Calm: true})
	x := filepath.Join(t.TempDir(), "x")
	if r := recrawl(t, "search", "-d", x, "page"); r.code != 1 || !strings.Contains(r.err, "there is no index") {
		t.Errorf("%+v", r)
	}
	ok(t, s.crawl(append([]string{"-topN", "5"}, s.web.Seeds()...)...)...)
	to := []string{"index", "-d", s.dir, "-to", "bleve:" + x}
	if out := ok(t, to...); out != "12 documents, 0 deletions in bleve:"+x+"\n" {
		t.Error(out)
	}
	if out := ok(t, append(to, "-json")...); object(t, out)["documents"] != 0.0 {
		t.Errorf("again: %s", out)
	}
	title := indexed(t, x)[s.web.Seeds()[0]]
	out := ok(t, "search", "-d", x, title)
	if title == "" || !strings.HasPrefix(out, title+"\n  "+s.web.Seeds()[0]+"\n  ") || !strings.Contains(out, " pages\n") {
		t.Errorf("%q: %s", title, out)
	}
	if out := ok(t, "search", "-d", x, "-json", "-n", "1", "-skip", "1", "host:"+s.web.Host(0)); strings.Count(out, "\n") != 1 || object(t, out)["url"] == "" {
		t.Error(out)
	}
	// An index that was lost is filled again, and one is rebuilt on request.
	lost := filepath.Join(t.TempDir(), "y")
	ok(t, "index", "-d", s.dir, "-to", "bleve:"+lost, "-consumer", "same")
	if out := ok(t, "index", "-d", s.dir, "-to", "bleve:"+lost+"2", "-consumer", "same"); !strings.HasPrefix(out, "12 documents") {
		t.Error(out)
	}
	if out := ok(t, append(to, "-rebuild", "-clean")...); !strings.HasPrefix(out, "12 documents") {
		t.Error(out)
	}
	for _, args := range [][]string{
		{"index", "-d", s.dir, "-follow"}, {"index", "-d", s.dir, "-to", "nothing:x"}, {"index", "-d", s.dir, "-to", "bleve:"},
		{"index", "-d", s.dir, "-to", "bleve:" + x, "-o", "f"}, {"search", "-d", x}, {"search", "word"},
	} {
		if r := recrawl(t, args...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// An index that follows a crawl is equal to it in the end, however often either of them is killed.
func TestIndexFollowsACrawlThatIsKilled(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 60, Calm: true, Latency: 2 * time.Millisecond})
	x := filepath.Join(t.TempDir(), "x")
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0])
	to := []string{"index", "-d", s.dir, "-to", "bleve:" + x}
	ok(t, to...)
	args := s.crawl(append([]string{"-topN", "25", "-keep-segments", "1"}, s.web.Seeds()...)...)
	for i := range 3 {
		had := len(indexed(t, x))
		c, out, errs := start(t, args...)
		f, indexing, ferrs := start(t, append(to, "-follow")...)
		until(t, "pages in the index beside the crawl", func() bool { return len(indexed(t, x)) > had })
		for _, p := range []int{i, i + 1} {
			if p%2 == 0 {
				c.Process.Signal(syscall.SIGKILL)
			} else {
				f.Process.Signal(syscall.SIGKILL)
			}
		}
		wait(t, c, out, errs)
		wait(t, f, indexing, ferrs)
	}
	f, indexing, ferrs := start(t, append(to, "-follow")...)
	ok(t, args...)
	until(t, "all pages in the index", func() bool { return len(indexed(t, x)) == 180 })
	f.Process.Signal(syscall.SIGTERM)
	wait(t, f, indexing, ferrs)
	for u, title := range indexed(t, x) {
		if title == "" {
			t.Errorf("%s has no title", u)
		}
	}
	ok(t, "verify", "-d", s.dir)
}
