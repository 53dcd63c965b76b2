//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// hookReceiver notes what it accepts.
type hookReceiver struct {
	secrets []feed.Secret
	refuse  func(n int64, url string) int // the status to answer; zero accepts
	posts   atomic.Int64

	mu       sync.Mutex
	accepted []hookPost
	bad      []error
}

type hookPost struct {
	id string
	feed.Change
}

func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := h.posts.Add(1)
	body, err := io.ReadAll(r.Body)
	var b struct {
		Type string
		Data feed.Change
	}
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if err == nil {
		err = feed.Verify(h.secrets, r.Header, body, time.Now())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil { // also if the sender was killed
		h.bad = append(h.bad, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if status := h.refuse(n, b.Data.URL); status != 0 {
		w.WriteHeader(status)
		return
	}
	h.accepted = append(h.accepted, hookPost{r.Header.Get("webhook-id"), b.Data})
}

// A webhook that is killed between a delivery and its acknowledgement delivers each visit at least once, with
// the same id, and the visits to a page in order. What the receiver refuses is listed and sent again.
func TestWebhookThatIsKilled(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0], s.web.Seeds()[1])
	ok(t, "changes", "-d", s.dir, "-consumer", "hook", "-every-visit")
	for range 3 {
		ok(t, s.crawl("-adddays", "4000")...)
	}
	const text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets, err := feed.ParseSecrets([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h := &hookReceiver{secrets: secrets, refuse: func(n int64, _ string) int {
		time.Sleep(time.Millisecond)
		if n%50 == 7 {
			return http.StatusServiceUnavailable
		}
		return 0
	}}
	server := httptest.NewServer(h)
	defer server.Close()
	args := []string{"changes", "-d", s.dir, "-consumer", "hook", "-webhook", server.URL, "-secret-file", secretFile}
	for range 3 {
		c := exec.Command(program, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		enough := h.posts.Load() + 50
		ended := make(chan struct{})
		go func() { _ = c.Wait(); close(ended) }()
		until(t, "some deliveries", func() bool {
			select {
			case <-ended:
				return true
			default:
				return h.posts.Load() >= enough
			}
		})
		_ = c.Process.Kill()
		<-ended
	}
	if out := ok(t, args...); out != "" {
		t.Errorf("printed %q", out)
	}
	ids, last, visits := map[string]string{}, map[string]time.Time{}, map[string]int{}
	for _, p := range h.accepted {
		if id := ids[p.Position]; id != "" {
			if id != p.id {
				t.Errorf("%s has the ids %s and %s", p.Position, id, p.id)
			}
			continue // again
		}
		ids[p.Position] = p.id
		if visits[p.URL]++; p.Time.Before(last[p.URL]) {
			t.Errorf("%s: %v after %v", p.URL, p.Time, last[p.URL])
		}
		last[p.URL] = p.Time
	}
	for url := range s.web.URLs() {
		if visits[url] != 3 {
			t.Errorf("%s: %d of 3 visits", url, visits[url])
		}
	}
	if list := ok(t, "changes", "-d", s.dir, "-list"); !strings.Contains(list, `"segments":0,"events":0,`) {
		t.Errorf("%s", list)
	}

	// Of the next visits the receiver refuses one.
	bad := s.web.Seeds()[0]
	h.refuse = func(_ int64, url string) int {
		if url == bad {
			return http.StatusUnprocessableEntity
		}
		return 0
	}
	dead := filepath.Join(t.TempDir(), "dead")
	letters := feed.OpenLetters(dead)
	if err := letters.Add(t.Context(), feed.Letter{ID: "evt_1", URL: bad, Body: json.RawMessage(fmt.Sprintf(`{"type":"page.new","data":{"url":%q}}`, bad))}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0 accepted, 1 refused again", "1 accepted, 0 refused again", "0 accepted, 0 refused again"} {
		r := recrawl(t, append(args, "-dead-letters", dead, "-resend")...)
		if r.code != 0 || !strings.Contains(r.err, want) {
			t.Errorf("%+v, want %s", r, want)
		}
		if list := ok(t, "changes", "-d", s.dir, "-consumer", "hook", "-dead-letters", dead, "-dead"); strings.Contains(list, `"id":"evt_1"`) != strings.HasPrefix(want, "0 accepted, 1") {
			t.Errorf("%s", list)
		}
		h.refuse = func(int64, string) int { return 0 }
	}
	for _, bad := range [][]string{{"-webhook", server.URL}, {"-webhook", server.URL, "-secret-file", "nowhere"}, {"-resend"}, {"-dead", "-list"}, {"-dead-letters", dead}} {
		if r := recrawl(t, append([]string{"changes", "-d", s.dir, "-consumer", "hook"}, bad...)...); r.code != 2 {
			t.Errorf("%v: %+v", bad, r)
		}
	}
}

// A webhook follows a crawl that another process makes.
func TestWebhookFollowsACrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 30, Calm: true})
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0])
	const text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets, err := feed.ParseSecrets([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h := &hookReceiver{secrets: secrets, refuse: func(int64, string) int { return 0 }}
	server := httptest.NewServer(h)
	defer server.Close()
	c := exec.Command(program, "changes", "-d", s.dir, "-consumer", "hook", "-webhook", server.URL, "-secret-file", secretFile, "-follow", "-diff")
	out, errs := new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ok(t, s.crawl()...)
	until(t, "30 pages", func() bool { return h.posts.Load() >= 30 })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wait(t, c, out, errs)
	ok(t, "changes", "-d", s.dir, "-consumer", "hook", "-webhook", server.URL, "-secret-file", secretFile) // what was under way
	if list := ok(t, "changes", "-d", s.dir, "-list"); !strings.Contains(list, `"segments":0,"events":0,`) {
		t.Errorf("%s", list)
	}
	pages := map[string]bool{}
	for _, p := range h.accepted {
		pages[p.URL] = true
	}
	if len(pages) != 30 || len(h.accepted) > 40 {
		t.Errorf("%d pages, %d events, %v", len(pages), len(h.accepted), h.bad)
	}
}
