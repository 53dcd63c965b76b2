package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// A page that is gone is purged by the update after the one that found out, and
// URLs that the rules do not like go when they are asked to.
func TestUpdateSweeps(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	home := s.web.Seeds()[0]
	ok(t, "inject", "-d", s.dir, "-now", frozen, home, home+"missing")
	now := frozen
	round := func(want string, flags ...string) {
		t.Helper()
		ok(t, "generate", "-d", s.dir, "-now", now, "-topN", "2")
		ok(t, "fetch", "-d", s.dir, "-now", now, "-agent", "testbot", "-delay", "0", "-connect-to", s.server.ConnectTo())
		if out := ok(t, append([]string{"update", "-d", s.dir, "-now", now}, flags...)...); !strings.Contains(out, want) {
			t.Errorf("update %v says %q, want %q", flags, out, want)
		}
	}
	records := func() int { return strings.Count(ok(t, "readdb", "-d", s.dir, "-dump", "-format", "json"), "\n") }
	round("of 6 records 0 gone and 0 orphans purged", "-purge-gone")
	if n := records(); n != 6 {
		t.Errorf("%d records", n)
	}
	now = parsed(frozen).Add(time.Hour).Format(time.RFC3339)
	round("of 6 records 1 gone and 0 orphans purged, 0 filtered, 0 invalid, 0 moved (0 merged), 0 left alone", "-purge-gone", "-purge-orphans", "-normalize")

	round("2 filtered", "-filter", "-no-additions", "-conf", confOf(t, "", "-/pages/[12]\n+.\n"))
	if n := records(); n != 3 {
		t.Errorf("%d records", n)
	}
}

// A round in Nutch's words; its records know what the visits said.
func TestVisitMeta(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	d := func(verb string, more ...string) []string {
		return append([]string{verb, "-d", s.dir, "-now", frozen}, more...)
	}
	home := s.web.Seeds()[0]
	ok(t, d("inject", "-noNormalize", "-noFilter", home, home+"missing")...)
	name := strings.TrimSpace(ok(t, d("generate", "-numFetchers", "2", "-maxNumSegments", "2", "-noFilter", "-noNorm")...))
	ok(t, s.args("fetch", name)...)
	ok(t, d("updatedb", "-visit-meta", "-noAdditions", name)...)
	ok(t, d("invertlinks", name)...)
	if out := ok(t, d("protocolstats")...); out != "1\t200\n1\t404\n" {
		t.Errorf("protocolstats: %q", out)
	}
	ok(t, d("updatehostdb")...)
	if out := ok(t, d("readhostdb", "-json")...); !strings.Contains(out, `"Content-Type.text/html"`) || !strings.Contains(out, `"avg._rs_"`) {
		t.Errorf("hosts: %s", out)
	}
	if out := ok(t, d("readlinkdb", "-format", "nutch")...); !strings.Contains(out, "\tInlinks:\n fromUrl: "+home) {
		t.Errorf("readlinks: %s", out)
	}
}
