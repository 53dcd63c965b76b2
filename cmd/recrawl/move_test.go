package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/move"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/stores/s3store/s3test"
)

// A crawl that was moved and goes on has what one that stayed has.
func TestMovedCrawlGoesOn(t *testing.T) {
	web := func() *webtest.Web { return &webtest.Web{Hosts: 2, PagesPerHost: 10, Calm: true} }
	stays := serve(t, web())
	ok(t, stays.crawl(append([]string{"-topN", "10"}, stays.web.Seeds()...)...)...)
	want := dump(t, stays.dir)

	s := serve(t, web())
	ok(t, s.crawl(append([]string{"-topN", "10", "-rounds", "1"}, s.web.Seeds()...)...)...)
	place := "s3://key:secret@crawls/moved?region=us-east-1&endpoint=" + s3test.Start(t)
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	if out := ok(t, "move", "-d", s.dir, "-to", first, "-to-segments", place); !strings.HasPrefix(out, "copied: ") || strings.Contains(out, "secret") {
		t.Errorf("move says %q", out)
	}
	same(t, "the copy", dump(t, first), dump(t, s.dir))
	ok(t, "move", "-d", first, "-to", second) // segments stay where they are
	s.dir = second
	ok(t, s.crawl("-topN", "10")...)
	same(t, "after the moves", dump(t, second), want)

	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"move", "-d", stays.dir}, 2, "-to TARGET is required"},
		{[]string{"move", "-d", stays.dir, "-to", first}, 1, "the target is not empty"},
		{[]string{"move", "-d", t.TempDir(), "-to", first}, 1, "there is no crawl"},
	} {
		if r := recrawl(t, test.args...); r.code != test.code || !strings.Contains(r.err, test.text) {
			t.Errorf("%q: exit %d, %s", test.args, r.code, r.err)
		}
	}
}

func TestTargetOfAnUnfinishedMoveIsNotUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err == nil {
		err = db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(move.Mark, `{"source":"elsewhere","step":"records"}`)})
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"readdb", "-stats"}, {"inject", "http://site.example/"}, {"move", "-to", filepath.Join(t.TempDir(), "new")}} {
		if r := recrawl(t, append(args, "-d", dir)...); r.code != 1 || !strings.Contains(r.err, "run recrawl move again") {
			t.Errorf("%q: exit %d, %s", args, r.code, r.err)
		}
	}
}
