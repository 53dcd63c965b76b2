//go:build unix

package main_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestInterruptedCrawlResumes(t *testing.T) {
	t.Parallel()
	web := func() *webtest.Web {
		return &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true, Latency: 5 * time.Millisecond}
	}
	undisturbed := serve(t, web())
	ok(t, undisturbed.crawl(undisturbed.web.Seeds()...)...)
	want := dump(t, undisturbed.dir)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := serve(t, web())
		c, out, errs := start(t, s.crawl(append([]string{"-json"}, s.web.Seeds()...)...)...)
		until(t, "the crawl to be in the middle", func() bool { return s.web.Requests() > 40 })
		c.Process.Signal(sig)
		r := wait(t, c, out, errs)
		if r.code != 1 || !strings.Contains(r.err, "stopping; interrupt again to stop at once") || !strings.Contains(r.err, "interrupted; the same command resumes from here") {
			t.Errorf("%v: exit %d\n%s", sig, r.code, r.err)
		}
		if j := object(t, r.out); j["finished"] != false || j["visits"].(float64) < 1 {
			t.Errorf("%v: %v", sig, j)
		}
		before := s.web.Requests()
		ok(t, s.crawl()...)
		same(t, "after "+sig.String(), dump(t, s.dir), want)
		// What was visited before the interrupt is not visited again.
		if n := s.web.Requests(); n > undisturbed.web.Requests()+6 {
			t.Errorf("%v: %d requests, %d of them before the interrupt; undisturbed %d", sig, n, before, undisturbed.web.Requests())
		}
	}
}

// A crawl whose directory was removed cannot be resumed, and does not promise it.
func TestInterruptOfACrawlThatIsGone(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true, Latency: 50 * time.Millisecond})
	c, out, errs := start(t, s.crawl(s.web.Seeds()...)...)
	until(t, "the crawl to be in the middle", func() bool { return s.web.Requests() > 20 })
	if err := os.Rename(s.dir, s.dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, c, out, errs); r.code != 1 || strings.Contains(r.err, "resumes") || !strings.Contains(r.err, s.dir) {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}

func TestSecondInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true, Latency: 5 * time.Millisecond})
	c, out, errs := start(t, s.crawl(s.web.Seeds()...)...)
	until(t, "the crawl to be in the middle", func() bool { return s.web.Requests() > 20 })
	c.Process.Signal(syscall.SIGINT)
	c.Process.Signal(syscall.SIGTERM) // signals that are equal may become one
	began := time.Now()
	if r := wait(t, c, out, errs); r.code != 1 {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	ok(t, s.crawl()...)
}

// What changes no crawl does not go on: it says so.
func TestInterruptedCheckStartsOver(t *testing.T) {
	t.Parallel()
	c := exec.Command(program, "check", "filter")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs := new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line := func() error { _, err := io.WriteString(in, "http://a.example/\n"); return err }
	if err := line(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first answer", func() bool { return out.String() != "" })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	until(t, "the end", func() bool { return line() != nil })
	r := wait(t, c, out, errs)
	if r.code != 1 || !strings.Contains(r.err, "interrupted; the same command starts over") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}
