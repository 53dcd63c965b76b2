//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/webtest"
)

// output collects what a process writes, while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func start(t *testing.T, args ...string) (c *exec.Cmd, out, errs *output) {
	t.Helper()
	c, out, errs = exec.Command(program, args...), new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out, errs
}

func TestInterruptStopsPolitelyAndIsTakenUp(t *testing.T) {
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
		if r.code != 1 || !strings.Contains(r.err, "stopping; once more to stop at once") || !strings.Contains(r.err, "interrupted; the same command goes on from here") {
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
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	ok(t, s.crawl()...)
}

func TestKilledCrawlConverges(t *testing.T) {
	t.Parallel()
	web := func() *webtest.Web {
		return &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true, Latency: 2 * time.Millisecond}
	}
	undisturbed := serve(t, web())
	command := func(s *site) []string { return s.crawl(append([]string{"-topN", "12"}, s.web.Seeds()...)...) }
	ok(t, command(undisturbed)...)
	want := dump(t, undisturbed.dir)

	// Each crawl is killed until it is done, some twenty times; the next one dies
	// at other moments.
	kills := 0
	for crawls := 1; kills < 30; crawls++ {
		if crawls > 10 {
			t.Fatalf("10 crawls were killed %d times only", kills)
		}
		s := serve(t, web())
		for done := false; !done; {
			if done = killed(t, s, kills, command(s)); !done {
				kills++
			}
			if kills > 400 {
				t.Fatal("a crawl that is killed again and again does not come to its end")
			}
		}
		ok(t, command(s)...)
		same(t, fmt.Sprintf("crawl %d, %d kills", crawls, kills), dump(t, s.dir), want)
		if st := object(t, ok(t, "readdb", "-d", s.dir, "-stats", "-json", "-now", frozen)); st["leased"] != 0.0 || st["due"] != 0.0 {
			t.Errorf("crawl %d: %v leased, %v due", crawls, st["leased"], st["due"])
		}
	}
}

// killed starts the command and kills it, unless it is done before.
func killed(t *testing.T, s *site, i int, command []string) (done bool) {
	t.Helper()
	before := s.web.Requests()
	c, out, errs := start(t, command...)
	ended := make(chan struct{})
	go func() { c.Wait(); close(ended) }()
	// Now after some requests, now after some time: it is to die in every stage.
	requests, pause := before+i%25, time.Duration(i*i%43)*time.Millisecond
	deadline := time.Now().Add(30 * time.Second)
	for s.web.Requests() < requests && !closed(ended) && time.Now().Before(deadline) {
		time.Sleep(100 * time.Microsecond)
	}
	select {
	case <-ended:
	case <-time.After(pause):
	}
	c.Process.Kill()
	<-ended
	code := c.ProcessState.ExitCode()
	if code > 0 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	return code == 0
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
