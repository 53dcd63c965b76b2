package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// receiver is the other end of the webhook: it refuses some requests, and ends the watch on one.
type receiver struct {
	mu       sync.Mutex
	requests int
	got      map[string]feed.Change // by id
	refuse   func(request int) bool
	secrets  []feed.Secret
	bad      []error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests++; r.refuse(r.requests) {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = feed.Verify(r.secrets, req.Header, body, time.Now())
	}
	var b struct{ Data feed.Change }
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if err != nil {
		r.bad = append(r.bad, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.got[req.Header.Get("webhook-id")] = b.Data
}

// Every page of the site is posted, although the receiver fails at times and the program is
// stopped while it retries; a day later what has changed is posted, and nothing else.
func TestNothingIsLost(t *testing.T) {
	clock := webtest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	web := &webtest.Web{Hosts: 1, PagesPerHost: 8, Calm: true, Start: clock.Now(), Now: clock.Now, Periods: []time.Duration{24 * time.Hour, 0}}
	secrets, err := feed.ParseSecrets([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &receiver{got: map[string]feed.Change{}, secrets: secrets, refuse: func(n int) bool {
		if n == 5 {
			stop()
		}
		return n%3 == 0
	}}
	server := httptest.NewServer(r)
	defer server.Close()
	dir := t.TempDir()
	run := func(ctx context.Context) error {
		return watch(ctx, dir, web.Seeds(), recrawl.Options{
			Agent: "webhook", Protocol: web.Protocol(), Now: clock.Now, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
			Schedule: schedule.Default{DefaultInterval: 24 * time.Hour},
		}, feed.Webhook{URL: server.URL, Secrets: secrets, Detail: feed.Detail{Diff: true}, MaxPause: time.Millisecond})
	}
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("the watch was stopped, and says %v", err)
	}
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if urls, want := posted(r, "new"), slices.Sorted(web.URLs()); !slices.Equal(urls, want) || len(r.bad) > 0 {
		t.Errorf("new: %q, want %q; %v", urls, want, r.bad)
	}
	clear(r.got)
	clock.Advance(25 * time.Hour)
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for url := range web.URLs() {
		if page, _ := web.Page(url); page.Period > 0 {
			want = append(want, url)
		}
	}
	slices.Sort(want)
	if changed := posted(r, "changed"); len(want) == 0 || !slices.Equal(changed, want) || len(r.got) != len(want) {
		t.Errorf("changed: %q of %d posts, want %q", changed, len(r.got), want)
	}
	for _, c := range r.got {
		if c.Diff == nil || len(c.Diff.Text) == 0 {
			t.Errorf("%s: no diff", c.URL)
		}
	}
}

// posted returns the URLs of the changes of a kind.
func posted(r *receiver, kind string) (urls []string) {
	for _, c := range r.got {
		if c.Kind == kind {
			urls = append(urls, c.URL)
		}
	}
	slices.Sort(urls)
	return urls
}
