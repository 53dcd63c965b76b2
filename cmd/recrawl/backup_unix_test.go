//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// A backup of a running crawl does not change its result, and a crawl that continues from
// the backup has the same.
func TestBackupOfRunningCrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 150, Calm: true, Latency: 20 * time.Millisecond})
	args := s.crawl(append([]string{"-topN", "150"}, s.web.Seeds()...)...)
	c, out, errs := start(t, args...)
	// Only the web, which is in this process, knows in time: a busy machine delays it as well,
	// but not a crawl that waits for answers.
	until(t, "the crawl to have visited pages", func() bool { return s.web.Requests() > 50 })
	c.Process.Signal(syscall.SIGSTOP)
	to := filepath.Join(filepath.Dir(s.dir), "saved")
	b, said, told := start(t, "backup", "-d", s.dir, to)
	until(t, "it to be asked", func() bool { return told.String() != "" })
	if _, err := os.Stat(to); err == nil {
		t.Error("there is a backup, and the crawl is stopped")
	}
	c.Process.Signal(syscall.SIGCONT)
	if r := wait(t, b, said, told); r.code != 0 || !strings.Contains(r.out, " files, ") || !strings.Contains(r.err, "asking that process for a backup") {
		t.Fatalf("%+v", r)
	}
	if r := recrawl(t, "backup", "-d", s.dir, to); r.code != 1 || !strings.Contains(r.err, "is not empty") {
		t.Errorf("over the other: %+v", r)
	}
	if r := wait(t, c, out, errs); r.code != 0 {
		t.Fatalf("the crawl: %+v", r)
	}
	want := dump(t, s.dir)
	ok(t, "verify", "-d", to)
	if before := dump(t, to); before == want {
		t.Error("the backup has all of the crawl already")
	}
	s.dir = to
	ok(t, s.crawl("-topN", "150")...)
	same(t, "what goes on from the backup", dump(t, to), want)

	// A crawl that is not open, as JSON, and as a copy.
	if j := object(t, ok(t, "backup", "-d", to, "-copy", "-json", to+"2")); j["files"].(float64) < 10 || j["bytes"].(float64) < 1000 {
		t.Errorf("%v", j)
	}
	same(t, "a copy", dump(t, to+"2"), want)
	for _, bad := range [][]string{{"backup", "-d", to}, {"backup", to}, {"backup", "-d", to, "a", "b"}} {
		if r := recrawl(t, bad...); r.code != 2 {
			t.Errorf("%q: %+v", bad, r)
		}
	}
	if r := recrawl(t, "backup", "-d", to, filepath.Join(to, "in")); r.code != 1 || !strings.Contains(r.err, "is inside the store") {
		t.Errorf("%+v", r)
	}
}
