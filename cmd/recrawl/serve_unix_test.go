//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// served is a running recrawl serve.
type served struct {
	t   *testing.T
	url string
}

// serveCrawl starts recrawl serve, which stop ends.
func serveCrawl(t *testing.T, args ...string) (s served, stop func()) {
	t.Helper()
	c, out, errs := start(t, append([]string{"serve", "-listen", "127.0.0.1:0", "-json"}, args...)...)
	until(t, "serve to begin", func() bool { return strings.Contains(out.String(), "\n") })
	var line struct{ URL string }
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatal(err)
	}
	return served{t, line.URL}, func() {
		c.Process.Signal(syscall.SIGTERM)
		if r := wait(t, c, out, errs); r.code != 0 {
			t.Errorf("serve: %+v", r)
		}
	}
}

// do makes a request and decodes the answer into v.
func (s served) do(method, path, form string, v any) (status int) {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(form))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	if v != nil && answer.StatusCode == 200 {
		if err := json.Unmarshal(text, v); err != nil {
			s.t.Errorf("%s: %v: %s", path, err, text)
		}
	}
	return answer.StatusCode
}

// serve answers while nothing else runs, lets a crawl begin while it is asked in a loop, and has that
// process answer.
func TestServeBesideACrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 60, Calm: true, Latency: 20 * time.Millisecond})
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0])
	pages, stop := serveCrawl(t, "-d", s.dir, "-allow", "fetch", "-allow", "pause_host", "-allow", "add_seeds")
	defer stop()
	var list struct {
		URLs []struct{ URL string }
	}
	if status := pages.do("GET", "urls", "", &list); status != 200 || len(list.URLs) != 1 {
		t.Errorf("idle: %d, %+v", status, list)
	}
	if status := pages.do("POST", "seeds", "urls="+url.QueryEscape(s.web.Seeds()[1]), nil); status != 200 {
		t.Errorf("add seeds: %d", status)
	}
	if status := pages.do("POST", "reload", "", nil); status != 403 {
		t.Errorf("what is not allowed: %d", status)
	}
	if pages.do("GET", "urls", "", &list); len(list.URLs) != 2 {
		t.Errorf("after a seed was added: %+v", list)
	}
	done := make(chan struct{})
	var loop sync.WaitGroup
	for range 4 {
		loop.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status := pages.do("GET", "", "", nil); status != 200 && status != 503 {
					t.Errorf("in a loop: %d", status)
				}
			}
		})
	}
	c, out, errs := start(t, s.crawl()...)
	var o struct {
		Stage  string
		Visits int
	}
	until(t, "the running crawl to show itself", func() bool {
		return pages.do("GET", "", "", &o) == 200 && o.Stage != "" && o.Visits > 0
	})
	if status := pages.do("POST", "fetch", "urls="+url.QueryEscape(s.web.Seeds()[0]), nil); status != 200 {
		t.Errorf("fetch now, beside a crawl: %d", status)
	}
	if status := pages.do("POST", "reload", "", nil); status != 403 {
		t.Errorf("what is not allowed, beside a crawl: %d", status)
	}
	if r := wait(t, c, out, errs); r.code != 0 {
		t.Errorf("crawl: %+v", r)
	}
	close(done)
	loop.Wait()
	var story struct {
		Visits []struct{ Outcome string }
	}
	if status := pages.do("GET", "url?u="+url.QueryEscape(s.web.Seeds()[0]), "", &story); status != 200 || len(story.Visits) < 2 {
		t.Errorf("after the crawl: %d, %+v", status, story)
	}
}

func TestServeAsksForAToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ok(t, "inject", "-d", dir, "http://a.example/")
	for _, args := range [][]string{
		{"-listen", ":0"}, {"-listen", "192.0.2.1:80"}, {"-allow", "everything"}, {"-token-file", write(t, "short", "abc")}, {"-listen", "nowhere"},
	} {
		if r := recrawl(t, append([]string{"serve", "-d", dir}, args...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := recrawl(t, "serve", "-d", t.TempDir()); r.code != 1 || !strings.Contains(r.err, "there is no crawl") {
		t.Errorf("no crawl: %+v", r)
	}
	pages, stop := serveCrawl(t, "-d", dir, "-token-file", write(t, "token", "correct horse\n"))
	defer stop()
	if status := pages.do("GET", "", "", nil); status != 401 {
		t.Errorf("without: %d", status)
	}
	pages.url = strings.Replace(pages.url, "http://", "http://me:correct%20horse@", 1)
	if status := pages.do("GET", "", "", nil); status != 200 {
		t.Errorf("with: %d", status)
	}
}
