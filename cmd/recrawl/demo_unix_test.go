//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// demo returns the demo, not started, and the directory where its temporary
// files go.
func demo(t *testing.T, args ...string) (c *exec.Cmd, tmp string) {
	tmp = t.TempDir()
	c = exec.Command(program, append([]string{"demo"}, args...)...)
	c.Env = append(os.Environ(), "TMPDIR="+tmp)
	return c, tmp
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDemo(t *testing.T) {
	t.Parallel()
	keep := filepath.Join(t.TempDir(), "kept")
	c, tmp := demo(t, "-keep", keep)
	r := finish(t, c)
	if r.code != 0 || r.err != "" {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	lines := strings.Split(r.out, "\n")
	if len(lines) > 100 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len([]rune(line)) > 100 || strings.TrimRight(line, " ") != line || strings.ContainsAny(line, "\x1b\t\r") {
			t.Errorf("%q does not fit, or is not for every terminal", line)
		}
	}
	for _, want := range []string{
		`(?m)^week +rounds +visits`, `(?m)^   8 +7 `,
		`(?m)^  news\S+ +every day +7\.0 .* 1\.0  \S{8}$`, `(?m)^  every day +\d+ +\d\d\.\d `, `(?m)^  never +\d+ .* 0 of 0 `,
		`(?m)^  db_notmodified +\d+ `, `(?m)^ +score +inlinks +page$`, `Not yet: the next visit is due at`, `robots.txt of the host forbids it; it was requested 0 times`,
		`(?m)^  killed +process \d+`, `(?m)^  kept +\d+ of \d+ visits`, `byte for byte`,
	} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("the demo does not show %s:\n%s", want, r.out)
		}
	}
	if left := entries(t, tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	ok(t, "readdb", "-d", filepath.Join(keep, "crawl"), "-stats")
	if r := recrawl(t, "demo", "-keep", keep); r.code != 1 || !strings.Contains(r.err, "is not empty") {
		t.Errorf("-keep of a directory in use: exit %d, %s", r.code, r.err)
	}
}

func TestDemoEndsCleanlyWhenInterrupted(t *testing.T) {
	t.Parallel()
	c, tmp := demo(t)
	begin := func(c *exec.Cmd) (out, errs *output) {
		t.Helper()
		out, errs = new(output), new(output)
		c.Stdout, c.Stderr = out, errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "a demo to begin", func() bool { return out.String() != "" })
		return out, errs
	}
	killed := func() (names []os.DirEntry) {
		t.Helper()
		k, _ := demo(t)
		k.Env = c.Env
		out, errs := begin(k)
		names = entries(t, tmp)
		k.Process.Kill()
		wait(t, k, out, errs)
		return names
	}
	killed()
	if left := entries(t, tmp); len(left) != 1 {
		t.Fatalf("left behind by kill -9: %v", left)
	}
	out, errs := begin(c)
	if left := entries(t, tmp); len(left) != 1 {
		t.Errorf("what was killed stays: %v", left)
	}
	if both := killed(); len(both) != 2 {
		t.Errorf("two demos at once: %v", both)
	}
	until(t, "the second week", func() bool { return strings.Contains(out.String(), "\n   2 ") })
	c.Process.Signal(os.Interrupt)
	if r := wait(t, c, out, errs); r.code != 1 || !strings.HasSuffix(r.err, "\nrecrawl: interrupted\n") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if left := entries(t, tmp); len(left) != 1 {
		t.Errorf("left behind, but for what was killed: %v", left)
	}
}

func TestDemoWithoutReaderLeavesNothing(t *testing.T) {
	t.Parallel()
	c, tmp := demo(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(output)
	c.Stdout, c.Stderr = w, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Close() // as head does
	if r := wait(t, c, new(output), errs); r.code != 1 || !strings.Contains(r.err, "broken pipe") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if left := entries(t, tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDemoChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 50, Calm: true, Latency: 300 * time.Millisecond})
	ok(t, "inject", "-d", s.dir, "-now", frozen, s.web.Seeds()[0])
	c := exec.Command(program, "demo-crawl", "-d", s.dir, "-connect-to", s.server.ConnectTo(), "-now", frozen)
	parent, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs := new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "its first request", func() bool { return s.web.Requests() > 0 })
	if err := c.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatalf("it does not live while its parent does: %v", err)
	}
	parent.Close() // as the end of the parent does
	if r := wait(t, c, out, errs); r.code != 1 {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if n := s.web.Requests(); n > 20 {
		t.Errorf("it went on for %d requests", n)
	}
}
