package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secrets(t *testing.T, text string) []feed.Secret {
	t.Helper()
	s, err := feed.ParseSecrets([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The signature is that of the standard's example.
func TestSignatureOfTheStandard(t *testing.T) {
	body := []byte(`{"test": 2432232314}`)
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	at := time.Unix(1614265330, 0)
	if err := feed.Verify(secrets(t, secret), h, body, at.Add(4*time.Minute)); err != nil {
		t.Error(err)
	}
	other := "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for name, err := range map[string]error{
		"too old":       feed.Verify(secrets(t, secret), h, body, at.Add(6*time.Minute)),
		"from tomorrow": feed.Verify(secrets(t, secret), h, body, at.Add(-6*time.Minute)),
		"another body":  feed.Verify(secrets(t, secret), h, []byte(`{"test": 2}`), at),
		"another key":   feed.Verify(secrets(t, other), h, body, at),
		"no signature":  feed.Verify(secrets(t, secret), http.Header{}, body, at),
	} {
		if !errors.Is(err, feed.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := feed.Verify(secrets(t, "# the new one\n"+other+"\n\n"+secret+"\n"), h, body, at); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "# nothing"} {
		if _, err := feed.ParseSecrets([]byte(bad)); err == nil {
			t.Errorf("%q is a secret", bad)
		}
	}
}

// post is a request that a receiver got.
type post struct {
	id, kind, url, position string
	time                    time.Time // of the visit
	status                  int       // that it answered
}

// receiver is the other end of a webhook: an http.RoundTripper that checks signatures. answer says what it
// answers; 200 if it is nil.
type receiver struct {
	t      *testing.T
	answer func(p *post, n int) (*http.Response, error)

	mu    sync.Mutex
	posts []post
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := feed.Verify(secrets(r.t, secret), req.Header, body, time.Now()); err != nil {
		r.t.Error(err)
	}
	var b struct {
		Type      string
		Timestamp time.Time
		Data      struct {
			Position, Kind, URL string
			Time                time.Time
		}
	}
	if err := json.Unmarshal(body, &b); err != nil || b.Type != "page."+b.Data.Kind || b.Timestamp.IsZero() {
		r.t.Errorf("%v: %s", err, body)
	}
	p := post{id: req.Header.Get("webhook-id"), kind: b.Data.Kind, url: b.Data.URL, position: b.Data.Position, time: b.Data.Time, status: 200}
	r.mu.Lock()
	n := len(r.posts)
	r.mu.Unlock()
	var resp *http.Response
	if r.answer != nil {
		resp, err = r.answer(&p, n)
	}
	if err != nil {
		return nil, err
	}
	if resp == nil {
		resp = status(200)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	p.status = resp.StatusCode
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts = append(r.posts, p)
	return resp, nil
}

func status(code int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Header: h, Body: io.NopCloser(bytes.NewReader(nil))}
}

// accepted returns the posts that were accepted, by page.
func (r *receiver) accepted() map[string][]post {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]post{}
	for _, p := range r.posts {
		if p.status == 200 {
			all[p.url] = append(all[p.url], p)
		}
	}
	return all
}

// newCrawl returns a crawl of 20 pages, which a consumer has yet to hear of. day visits all of them again;
// half of them change each day.
func newCrawl(t *testing.T) (c *recrawl.Crawler, web *webtest.Web, day func()) {
	t.Helper()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := webtest.NewClock(now)
	web = &webtest.Web{Hosts: 2, PagesPerHost: 10, Calm: true, Start: now, Now: clock.Now, Periods: []time.Duration{24 * time.Hour, 0}}
	var db memstore.DB
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Agent: "test", Protocol: web.Protocol(), Now: clock.Now, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Schedule: schedule.Default{DefaultInterval: 24 * time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); db.Close() })
	if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddConsumer(t.Context(), "hook", recrawl.ConsumerOptions{}); err != nil {
		t.Fatal(err)
	}
	run := func() {
		if _, err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	run()
	return c, web, func() { clock.Advance(25 * time.Hour); run() }
}

func lag(t *testing.T, c *recrawl.Crawler) int {
	t.Helper()
	all, err := c.Consumers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Events
}

// checkOrder checks that each page was posted, and its visits in order.
func checkOrder(t *testing.T, r *receiver, web *webtest.Web) {
	t.Helper()
	all := r.accepted()
	for url := range web.URLs() {
		posts := all[url]
		if len(posts) == 0 || posts[0].kind != "new" {
			t.Errorf("%s: %+v", url, posts)
		}
		if !slices.IsSortedFunc(posts, func(a, b post) int { return a.time.Compare(b.time) }) {
			t.Errorf("%s out of order: %+v", url, posts)
		}
	}
}

// A receiver that fails at times gets each event, with the same id each time, in order for each page.
func TestReceiverThatFailsAtTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, web, day := newCrawl(t)
		for range 3 {
			day()
		}
		r := &receiver{t: t, answer: func(_ *post, n int) (*http.Response, error) {
			switch n % 5 {
			case 1:
				return status(503), nil
			case 3:
				return status(307, "Location", "http://elsewhere.example/"), nil // which is not followed
			}
			return nil, nil
		}}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r}
		if err := w.Consume(t.Context(), c, "hook", false); err != nil {
			t.Fatal(err)
		}
		checkOrder(t, r, web)
		ids := map[string]string{}
		for _, p := range r.posts {
			if id := ids[p.position]; id != "" && id != p.id {
				t.Errorf("%s has ids %s and %s", p.position, id, p.id)
			}
			ids[p.position] = p.id
		}
		n := 0
		for _, posts := range r.accepted() {
			n += len(posts)
		}
		if n != len(ids) || n < 20+3*5 || lag(t, c) != 0 {
			t.Errorf("%d events, accepted %d times; %d are not acknowledged", len(ids), n, lag(t, c))
		}
	})
}

// What was not acknowledged is posted again by the next process, with the same ids; what was is not.
func TestDeliveryIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, web, _ := newCrawl(t)
		ctx, stop := context.WithCancel(t.Context())
		r := &receiver{t: t, answer: func(_ *post, n int) (*http.Response, error) {
			if n == 8 {
				time.Sleep(time.Second) // until what was accepted is acknowledged
				stop()
			}
			return nil, nil
		}}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r, Concurrency: 1}
		if err := w.Consume(ctx, c, "hook", true); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := w.Consume(t.Context(), c, "hook", false); err != nil {
			t.Fatal(err)
		}
		checkOrder(t, r, web)
		if n := len(r.posts); n < 20 || n > 21 {
			t.Errorf("20 events were posted %d times", n)
		}
	})
}

// An event that the receiver does not accept is dead after some attempts, and holds up only its page until
// then. It is kept with its error, and can be sent again.
func TestDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []int{422, 503} { // the receiver refuses it, or fails on it
			c, web, day := newCrawl(t)
			day()
			bad := slices.Sorted(web.URLs())[3]
			r := &receiver{t: t, answer: func(p *post, _ int) (*http.Response, error) {
				if p.url == bad {
					return status(code), nil
				}
				return nil, nil
			}}
			letters := feed.OpenLetters(t.TempDir() + "/dead")
			w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r, Attempts: 4, Dead: letters.Add}
			if err := w.Consume(t.Context(), c, "hook", false); err != nil {
				t.Fatal(err)
			}
			dead, err := letters.All()
			if err != nil || len(dead) == 0 || dead[0].URL != bad || dead[0].Attempts < 4 || !strings.Contains(dead[0].Error, fmt.Sprint(code)) || !bytes.Contains(dead[0].Body, []byte(`"page.new"`)) {
				t.Fatalf("%+v, %v", dead, err)
			}
			if all := r.accepted(); len(all) != 19 || lag(t, c) != 0 {
				t.Errorf("%d: %d pages, %d events are not acknowledged", code, len(all), lag(t, c))
			}
			code = 422
			if sent, refused, err := letters.Resend(t.Context(), w); sent != 0 || refused != len(dead) || err != nil {
				t.Errorf("%d sent, %d refused, %v", sent, refused, err)
			}
			r.answer = nil
			if sent, refused, err := letters.Resend(t.Context(), w); sent != len(dead) || refused != 0 || err != nil {
				t.Errorf("%d sent, %d refused, %v", sent, refused, err)
			}
			if left, err := letters.All(); len(left) > 0 || err != nil {
				t.Errorf("left: %+v, %v", left, err)
			}
			if got := r.accepted()[bad]; len(got) != len(dead) || got[0].id != dead[0].ID {
				t.Errorf("%+v", got)
			}
		}
	})
}

// A receiver that is down, or busy, loses nothing, however long that is.
func TestReceiverThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, web, _ := newCrawl(t)
		began := time.Now()
		r := &receiver{t: t, answer: func(_ *post, n int) (*http.Response, error) {
			switch down := time.Since(began); {
			case down < 3*24*time.Hour:
				return nil, errors.New("connection refused")
			case down < 6*24*time.Hour:
				return status(429, "Retry-After", "600"), nil
			}
			return nil, nil
		}}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r, Attempts: 3, Dead: func(context.Context, feed.Letter) error {
			return errors.New("an event is dead")
		}}
		if err := w.Consume(t.Context(), c, "hook", false); err != nil {
			t.Fatal(err)
		}
		checkOrder(t, r, web)
		// In the second half, each of 8 pages is posted about once an hour.
		if n := len(r.posts); n > 20+8*3*24*2 {
			t.Errorf("%d requests", n)
		}
	})
}

// Retry-After holds back all requests.
func TestRetryAfterHoldsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, web, _ := newCrawl(t)
		began := time.Now()
		var early int
		r := &receiver{t: t, answer: func(_ *post, n int) (*http.Response, error) {
			if n == 0 {
				return status(503, "Retry-After", "100"), nil
			}
			if time.Since(began) < 100*time.Second {
				early++
			}
			return nil, nil
		}}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r, Concurrency: 1}
		if err := w.Consume(t.Context(), c, "hook", false); err != nil {
			t.Fatal(err)
		}
		checkOrder(t, r, web)
		if early > 0 {
			t.Errorf("%d requests within the time that it asked for", early)
		}
	})
}

// A receiver that hangs holds up neither rounds nor other consumers, and a request to it ends after its
// time.
func TestReceiverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, day := newCrawl(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Timeout: 10 * time.Second, Transport: hanging{}}
		go func() { ended <- w.Consume(ctx, c, "hook", true) }()
		synctest.Wait()
		other, err := c.AddConsumer(t.Context(), "other", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning})
		if err != nil {
			t.Fatal(err)
		}
		day()
		n := 0
		for _, err := range other.Events(t.Context()) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n < 25 || lag(t, c) != n {
			t.Errorf("%d events, %d of them not acknowledged", n, lag(t, c))
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A receiver that is gone ends the delivery at once, also while it waits for events.
func TestReceiverThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newCrawl(t)
		r := &receiver{t: t, answer: func(*post, int) (*http.Response, error) { return status(410), nil }}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r}
		if err := w.Consume(t.Context(), c, "hook", true); !errors.Is(err, feed.ErrGone) {
			t.Error(err)
		}
		for _, bad := range []feed.Webhook{{URL: "ftp://a.example/", Secrets: w.Secrets}, {URL: "/hook", Secrets: w.Secrets}, {URL: w.URL}} {
			if err := bad.Consume(t.Context(), c, "hook", false); err == nil {
				t.Errorf("%+v can be used", bad.URL)
			}
		}
		if err := w.Consume(t.Context(), c, "nobody", false); !errors.Is(err, recrawl.ErrNoConsumer) {
			t.Error(err)
		}
	})
}

// A dead letter that cannot be kept ends the delivery, and is not acknowledged.
func TestDeadLetterThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newCrawl(t)
		full := errors.New("the disk is full")
		r := &receiver{t: t, answer: func(*post, int) (*http.Response, error) { return status(400), nil }}
		w := &feed.Webhook{URL: "https://receiver.example/", Secrets: secrets(t, secret), Transport: r, Attempts: 1, Dead: func(context.Context, feed.Letter) error { return full }}
		if err := w.Consume(t.Context(), c, "hook", true); !errors.Is(err, full) || lag(t, c) != 20 {
			t.Errorf("%v, %d events are not acknowledged", err, lag(t, c))
		}
	})
}
