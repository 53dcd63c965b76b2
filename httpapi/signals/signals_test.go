package signals

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// web answers requests in this process, by host.
type web map[string]http.Handler

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	h := w[r.URL.Host]
	if h == nil {
		return nil, fmt.Errorf("no host %s", r.URL.Host)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	answer := rec.Result()
	answer.Request = r
	return answer, nil
}

// hub is a hub of WebSub that verifies at once.
type hub struct {
	web   web
	lease time.Duration
	deny  bool
	mu    sync.Mutex
	subs  map[string]url.Values // by callback
	modes []string
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modes = append(h.modes, form.Get("hub.mode"))
	q := url.Values{"hub.mode": {form.Get("hub.mode")}, "hub.topic": {form.Get("hub.topic")}, "hub.challenge": {"c-" + strconv.Itoa(len(h.modes))}, "hub.lease_seconds": {strconv.Itoa(int(h.lease.Seconds()))}}
	if h.deny {
		q = url.Values{"hub.mode": {"denied"}, "hub.topic": {form.Get("hub.topic")}, "hub.reason": {"full"}}
	}
	answer, err := (&http.Client{Transport: h.web}).Get(form.Get("hub.callback") + "?" + q.Encode())
	if err != nil || answer.StatusCode != 200 {
		http.Error(w, fmt.Sprint("not verified: ", err), 400)
		return
	}
	echo, _ := io.ReadAll(answer.Body)
	if string(echo) != q.Get("hub.challenge") {
		http.Error(w, "wrong challenge", 400)
		return
	}
	h.subs[form.Get("hub.callback")] = form
	w.WriteHeader(http.StatusAccepted)
}

// publish sends a body to all subscribers.
func (h *hub) publish(t *testing.T, body string, sign func(secret string, body []byte) string) (status int) {
	t.Helper()
	for callback, form := range h.subs {
		r, _ := http.NewRequest("POST", callback, strings.NewReader(body))
		r.Header.Set("X-Hub-Signature", sign(form.Get("hub.secret"), []byte(body)))
		answer, err := h.web.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		status = answer.StatusCode
	}
	return status
}

func signed(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// received is a Signal that notes what came.
type received struct{ urls []string }

func (r *received) signal(_ context.Context, u string, _ time.Time) error {
	if strings.Contains(u, "unknown") {
		return crawldb.ErrNotFound
	}
	r.urls = append(r.urls, u)
	return nil
}

const atom = `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><link rel="alternate" href="/"/>
<entry><link rel="edit" href="/edit"/><link href="/a?x=1&amp;y=2"/><updated>2026-11-01T10:00:00Z</updated></entry>
<entry><link rel="alternate" href="https://www.news.example/b"/></entry>
<entry><link href="https://victim.example/"/></entry>
<entry><link href="javascript:alert(1)"/></entry>
<entry><link href="/unknown"/></entry></feed>`

// A feed is discovered, subscribed to, verified, heard of, renewed, and left.
func TestWebSub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := web{}
		h := &hub{web: w, lease: 5 * 24 * time.Hour, subs: map[string]url.Values{}}
		w["hub.example"] = h
		w["news.example"] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Add("Link", `<https://hub.example/>; rel="hub", <https://news.example/feed>; rel=self`)
			fmt.Fprint(rw, atom)
		})
		db := &memstore.DB{}
		defer db.Close()
		got := &received{}
		newSubscriber := func() *WebSub {
			s, err := NewWebSub(WebSubOptions{Signal: got.signal, Store: db.Crawl(), Callback: "https://me.example/websub/", Client: &http.Client{Transport: w}})
			if err != nil {
				t.Fatal(err)
			}
			w["me.example"] = s
			return s
		}
		s := newSubscriber()
		if err := s.Subscribe(t.Context(), "https://news.example/feed?from=here", ""); err != nil {
			t.Fatal(err)
		}
		s = newSubscriber() // a restart
		all, err := s.Subscriptions(t.Context())
		if err != nil || len(all) != 1 || all[0].Topic != "https://news.example/feed" || all[0].Hub != "https://hub.example/" || !all[0].Ends.Equal(time.Now().Add(h.lease)) {
			t.Fatalf("%+v, %v", all, err)
		}
		if status := h.publish(t, atom, func(secret string, body []byte) string { return signed("wrong", body) }); status != 202 || len(got.urls) > 0 {
			t.Errorf("a wrong signature: %d, %q", status, got.urls)
		}
		if status := h.publish(t, atom, signed); status != 202 {
			t.Errorf("%d", status)
		}
		if want := []string{"https://news.example/feed", "https://news.example/a?x=1&y=2", "https://www.news.example/b"}; !slices.Equal(got.urls, want) {
			t.Errorf("%q, want %q", got.urls, want)
		}
		// Nothing is confirmed that was not requested.
		for _, query := range []string{"hub.mode=unsubscribe&hub.topic=https://news.example/feed", "hub.mode=subscribe&hub.topic=https://other.example/", ""} {
			r, _ := http.NewRequest("GET", "https://me.example/websub/"+all[0].ID+"?hub.challenge=x&"+query, nil)
			if answer, _ := w.RoundTrip(r); answer.StatusCode != 404 {
				t.Errorf("%s: %d", query, answer.StatusCode)
			}
		}
		r, _ := http.NewRequest("POST", "https://me.example/websub/guess", strings.NewReader(atom))
		if answer, _ := w.RoundTrip(r); answer.StatusCode != 404 {
			t.Errorf("a guessed callback: %d", answer.StatusCode)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() { _ = s.Run(ctx) })
		time.Sleep(30 * 24 * time.Hour)
		cancel()
		runs.Wait()
		if all, _ = s.Subscriptions(t.Context()); !all[0].Ends.After(time.Now()) || len(h.modes) < 6 || len(h.modes) > 30 {
			t.Errorf("after a month: %d requests, %+v", len(h.modes), all)
		}
		if err := s.Unsubscribe(t.Context(), "https://news.example/feed"); err != nil {
			t.Fatal(err)
		}
		if all, err = s.Subscriptions(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		h.deny = true
		_ = s.Subscribe(t.Context(), "https://news.example/feed", "https://hub.example/")
		if all, _ = s.Subscriptions(t.Context()); len(all) != 1 || all[0].Denied != "denied: full" {
			t.Errorf("%+v", all)
		}
	})
}

func TestFeeds(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"rss":  {`<rss><channel><link>https://a.example/</link><item><title>x</title><link> https://a.example/1 </link><pubDate>Mon, 2 Nov 2026 10:00:00 GMT</pubDate></item><item><guid>no link</guid></item></channel></rss>`, []string{"https://a.example/1 2026-11-02"}},
		"json": {`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"https://a.example/1","date_published":"2026-11-01T00:00:00Z","date_modified":"2026-11-03T00:00:00Z"},{"id":"2"}]}`, []string{"https://a.example/1 2026-11-03"}},
		"cut":  {`<feed><entry><link href="https://a.example/1"/></entry><entry><link href=`, []string{"https://a.example/1 0001-01-01"}},
		"base": {`<feed xml:base="https://b.example/x/"><entry><link href="1"/><published>2026-11-02T10:00:00Z</published></entry></feed>`, []string{"https://b.example/x/1 2026-11-02"}},
		"guid": {`<rss><channel><item><guid>https://a.example/1</guid></item></channel></rss>`, []string{"https://a.example/1 0001-01-01"}},
		"none": {"\x00\xff<<<", nil},
	} {
		var got []string
		for _, e := range readFeed(t.Context(), "https://a.example/feed", []byte(c.body)) {
			got = append(got, e.url+" "+e.at.Format(time.DateOnly))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := "<rss><channel>" + strings.Repeat(`<item><link>https://a.example/</link></item>`, 10_000)
	if n := len(readFeed(t.Context(), "https://a.example/feed", []byte(long))); n != maxEntries {
		t.Errorf("%d entries", n)
	}
}

// keyFiles is a protocol that has the keys of sites.
type keyFiles struct {
	files    map[string]string
	requests []string
	busy     bool
}

func (k *keyFiles) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	k.requests = append(k.requests, r.URL)
	if k.busy {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Busy, Status: 503}}, nil
	}
	if text, ok := k.files[r.URL]; ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: page.Content{Body: []byte(text)}}, nil
	}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
}

func TestIndexNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &memstore.DB{}
		defer db.Close()
		known := []string{"https://a.example/1", "https://a.example/shop/2", "https://b.example/", "https://c.example/"}
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: known, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{URL: known[i], Status: crawldb.Fetched}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		files := &keyFiles{files: map[string]string{"https://a.example/key-00000.txt": "key-00000\n", "https://a.example/shop/k.txt": "key-00001"}}
		got := &received{}
		n, err := NewIndexNow(IndexNowOptions{Signal: got.signal, Crawl: db.Crawl(), Protocol: files})
		if err != nil {
			t.Fatal(err)
		}
		send := func(method, target, body string) int {
			r := httptest.NewRequest(method, target, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			w := httptest.NewRecorder()
			n.ServeHTTP(w, r)
			return w.Code
		}
		post := func(body string) int { return send("POST", "/indexnow", body) }
		if status := post(`{"host":"a.example","key":"key-00000","urlList":["https://a.example/1","https://a.example/shop/2"]}`); status != 200 || len(got.urls) != 2 {
			t.Errorf("%d, %q", status, got.urls)
		}
		if status := send("GET", "/indexnow?url=https://a.example/1&key=key-00000", ""); status != 200 || len(got.urls) != 3 || len(files.requests) != 1 {
			t.Errorf("again: %d, %q, %q", status, got.urls, files.requests)
		}
		for body, want := range map[string]int{
			`{"host":"a.example","key":"key-00000","urlList":["https://b.example/"]}`:                                                  422,
			`{"host":"a.example","key":"key-00000","urlList":["https://a.example/1","https://b.example/"]}`:                            422,
			`{"host":"a.example","key":"key-00000","keyLocation":"https://evil.example/k.txt","urlList":["https://a.example/1"]}`:      422,
			`{"host":"a.example","key":"key-00001","keyLocation":"https://a.example/shop/k.txt","urlList":["https://a.example/1"]}`:    422,
			`{"host":"a.example","key":"key-00001","keyLocation":"https://a.example/shop/../k.txt","urlList":["https://a.example/1"]}`: 422,
			`{"host":"a.example","key":"short","urlList":["https://a.example/1"]}`:                                                     400,
			`{"host":"a.example","key":"key-00000","urlList":[]}`:                                                                      400,
			`{`: 400,
		} {
			if status := post(body); status != want {
				t.Errorf("%s: %d", body, status)
			}
		}
		// A host that the crawl does not have is not asked for a key.
		if status := post(`{"host":"d.example","key":"key-00000","urlList":["https://d.example/"]}`); status != 200 || len(files.requests) != 1 {
			t.Errorf("an unknown host: %d, %q", status, files.requests)
		}
		wrong := `{"host":"b.example","key":"key-00000","urlList":["https://b.example/"]}`
		for i := range 5 {
			if status := post(wrong); status != 403 || len(files.requests) != 2 {
				t.Errorf("a wrong key, %d: %d, %q", i, status, files.requests)
			}
			if status := post(strings.Replace(wrong, "key-00000", fmt.Sprintf("key-9000%d", i), 1)); status != 202 || len(files.requests) != 2 {
				t.Errorf("another wrong key, %d: %d, %q", i, status, files.requests)
			}
		}
		time.Sleep(keyInvalidFor)
		files.files["https://b.example/key-00000.txt"] = "key-00000"
		if status := post(wrong); status != 200 || got.urls[len(got.urls)-1] != "https://b.example/" {
			t.Errorf("when it is there: %d, %q", status, got.urls)
		}
		files.busy = true
		if status := post(strings.ReplaceAll(wrong, "b.example", "c.example")); status != 202 {
			t.Errorf("a busy host: %d", status)
		}
	})
}

// What a signal causes is decided by the crawler: the page is visited sooner.
func TestSignalReachesTheCrawler(t *testing.T) {
	db := &memstore.DB{}
	defer db.Close()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()},
		recrawl.Options{Agent: "testbot", Protocol: &keyFiles{}, Schedule: schedule.Adaptive{}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer crawler.Close()
	const u = "https://a.example/1"
	err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{u}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{URL: u, Status: crawldb.Fetched, LastFetch: now.AddDate(0, 0, -2), FetchTime: now.AddDate(0, 0, 20), Interval: 22 * 24 * time.Hour}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := &keyFiles{files: map[string]string{"https://a.example/key-00000.txt": "key-00000"}}
	n, err := NewIndexNow(IndexNowOptions{Signal: crawler.Signal, Crawl: db.Crawl(), Protocol: files})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest("GET", "/indexnow?key=key-00000&url="+u, nil))
	if d, err := db.Crawl().Get(t.Context(), u); err != nil || w.Code != 200 || d.FetchTime.After(now) {
		t.Errorf("%d, %v: due at %v", w.Code, err, d.FetchTime)
	}
}

// Requests of the default client reach public addresses only.
func TestPublicClientRefusesSpecialAddresses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, u := range []string{server.URL, "http://10.0.0.1/", "http://100.64.0.1/", "http://169.254.169.254/", "http://198.18.0.1/", "http://[::1]/", "http://[64:ff9b::10.0.0.1]/", "http://[2002:7f00:1::1]/"} {
		if _, err := publicClient().Get(u); !errors.Is(err, httpproto.ErrBlocked) {
			t.Errorf("%s: %v", u, err)
		}
	}
}
