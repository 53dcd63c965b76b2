package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/s3store/s3test"
)

// A crawl whose segments are in an object store gives what a crawl in a directory gives, and every
// verb that reads segments finds them there.
func TestCrawlWithSegmentsInS3GivesWhatDirectoryGives(t *testing.T) {
	web := func() *webtest.Web { return &webtest.Web{Hosts: 2, PagesPerHost: 10, Calm: true} }
	inDir := serve(t, web())
	ok(t, inDir.crawl(append([]string{"-topN", "10"}, inDir.web.Seeds()...)...)...)

	inS3 := serve(t, web())
	place := "s3://key:secret@crawls/web?region=us-east-1&endpoint=" + s3test.Start(t)
	ok(t, inS3.crawl(append([]string{"-segments", place, "-topN", "10"}, inS3.web.Seeds()...)...)...)
	same(t, "with segments in S3", dump(t, inS3.dir), dump(t, inDir.dir))
	if _, err := os.Stat(filepath.Join(inS3.dir, "segments")); err == nil {
		if entries, _ := os.ReadDir(filepath.Join(inS3.dir, "segments")); len(entries) > 0 {
			t.Errorf("there are segments in the directory: %v", entries)
		}
	}
	for _, args := range [][]string{{"readseg", "-list"}, {"index"}, {"status"}, {"config"}} {
		args = append(args[:len(args):len(args)], "-d", inS3.dir, "-segments", place)
		out := ok(t, args...)
		if strings.Contains(out, "secret") {
			t.Errorf("%q shows the secret: %s", args, out)
		}
		if args[0] == "readseg" && !strings.Contains(out, "2") {
			t.Errorf("%q: %s", args, out)
		}
	}
	// The server of the test checks no signature, so the remembered place is enough.
	if with, without := ok(t, "readseg", "-list", "-d", inS3.dir, "-segments", place), ok(t, "readseg", "-list", "-d", inS3.dir); with != without || with == "" {
		t.Errorf("segments by flag %q, from memory %q", with, without)
	}
	ok(t, "verify", "-d", inS3.dir)
	for _, test := range []struct {
		dir, place string
		code       int
		text       string
	}{
		{inS3.dir, strings.Replace(place, "/web", "/other", 1), 2, "keeps its segments in s3://crawls/web"},
		{inDir.dir, place, 2, "keeps its segments in its directory"},
		{t.TempDir(), "/a/directory", 2, "want s3://BUCKET/PREFIX"},
		{t.TempDir(), strings.Replace(place, "@crawls", "@missing", 1), 1, "no such bucket"},
		{t.TempDir(), "s3://key:secret@crawls/web?endpoint=http://127.0.0.1:1", 1, "127.0.0.1"},
	} {
		r := recrawl(t, "inject", "-d", test.dir, "-segments", test.place, "http://site.example/")
		if r.code != test.code || !strings.Contains(r.err, test.text) || strings.Contains(r.out+r.err, "secret") {
			t.Errorf("inject -segments %s: code %d, want %d with %q: %s", test.place, r.code, test.code, test.text, r.err)
		}
	}
}
