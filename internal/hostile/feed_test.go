package hostile_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/metrics/prom"
	"github.com/recrawl/recrawl/segment"
)

// feedRows are about receivers, consumers and clients of the change feed.
func feedRows() []row { return []row{f1receivers(), f2consumers(), f3clients()} }

// feedPages is how many pages each of the two honest hosts has.
const feedPages = 50

// inRounds has a crawl publish its events in several rounds.
func inRounds(c *crawl) { c.opts.Generate.TopN, c.opts.Run.Rounds = 20, 1000 }

// f1receivers has webhooks whose receivers never answer, or not in the way that they should.
func f1receivers() row {
	var followed, healthy atomic.Int64
	return row{
		id: "F1", pages: testlevel.Pick(20, feedPages),
		input:   "receivers of webhooks that never answer, answer a byte at a time, without end, with 503, with a redirect to another server, or close the connection",
		outcome: "each has a consumer of its own: a request ends after its time and is made again, and neither rounds nor other receivers wait",
		figure:  fmt.Sprintf("6 receivers beside a healthy one: it gets all %d pages, 0 requests to the target of the redirect", 2*feedPages),
		edit:    inRounds,
		during: func(t testing.TB, c *crawl, crawler *recrawl.Crawler) func() {
			followed.Store(0)
			healthy.Store(0)
			target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
			text := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
			secrets, err := feed.ParseSecrets([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			stops := []func(){target.Close}
			begin := func(name string, handle http.HandlerFunc) {
				server := httptest.NewServer(handle)
				stops = append(stops, server.Close)
				if _, err := crawler.AddConsumer(ctx, name, recrawl.ConsumerOptions{}); err != nil {
					t.Fatal(err)
				}
				running.Go(func() {
					w := &feed.Webhook{URL: server.URL, Secrets: secrets, Timeout: timeLimit / 4, MaxPause: pause}
					if err := w.Consume(ctx, crawler, name, true); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			ended := func(r *http.Request) { <-r.Context().Done() }
			begin("silent", func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				ended(r)
			})
			begin("drips", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Length", "1000000")
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, "X"); err != nil {
						return
					}
					_ = http.NewResponseController(w).Flush()
					time.Sleep(pause)
				}
			})
			begin("endless", func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				for block := make([]byte, 16<<10); r.Context().Err() == nil; time.Sleep(time.Millisecond) {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			})
			begin("busy", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "99999999")
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			begin("moved", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
			})
			begin("closes", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			begin("healthy", func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					healthy.Add(1)
				}
			})
			return func() {
				soon(func() bool { return healthy.Load() >= int64(2*c.web.PagesPerHost) })
				cancel()
				running.Wait()
				for _, stop := range stops {
					stop()
				}
			}
		},
		check: func(t testing.TB, c *crawl) {
			if n := healthy.Load(); n < int64(2*c.web.PagesPerHost) || followed.Load() > 0 {
				t.Errorf("F1: the healthy receiver got %d of %d pages, the target of the redirect %d requests", n, 2*c.web.PagesPerHost, followed.Load())
			}
		},
	}
}

// f2consumers has consumers that never acknowledge, while the room for segments is limited.
func f2consumers() row {
	const room = 64 << 10
	var kept int64
	var got, lapses int
	return row{
		id: "F2", pages: feedPages,
		input:   "consumers of the change feed that never acknowledge, that stop within an event, and that never read, with Retention.Bytes",
		outcome: "segments are kept for them until the room is used up; then they lapse, and begin with a snapshot",
		figure:  fmt.Sprintf("3 consumers, %d KiB: at most that and the newest segment kept, 3 lapse; another one gets all %d pages", room>>10, 2*feedPages),
		edit: func(c *crawl) {
			inRounds(c)
			c.opts.Retention = recrawl.Retention{Bytes: room}
		},
		during: func(t testing.TB, c *crawl, crawler *recrawl.Crawler) func() {
			got, lapses, kept = 0, 0, 0
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			add := func(name string) *recrawl.Consumer {
				k, err := crawler.AddConsumer(ctx, name, recrawl.ConsumerOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return k
			}
			add("absent")
			k := add("forgetful")
			running.Go(func() {
				for range k.Follow(ctx) {
				}
			})
			stuck := add("stuck")
			running.Go(func() {
				for range stuck.Follow(ctx) {
					<-ctx.Done()
					return
				}
			})
			good := add("good")
			var seen atomic.Int64
			running.Go(func() {
				for e, err := range good.Follow(ctx) {
					if err != nil {
						return
					}
					if err := good.Ack(ctx, e.Position); err != nil {
						t.Errorf("good: %v", err)
					}
					if e.Kind == recrawl.PageNew {
						seen.Add(1)
					}
				}
			})
			return func() {
				soon(func() bool { return seen.Load() >= int64(2*c.web.PagesPerHost) })
				all, err := crawler.Consumers(ctx)
				if err != nil {
					t.Error(err)
				}
				for _, k := range all {
					lapses += min(k.Lapses, 1)
				}
				cancel()
				running.Wait()
				got = int(seen.Load())
				for name, err := range c.db.Segments().List(context.Background()) {
					if err != nil {
						t.Error(err)
					}
					for _, part := range append(segment.Parts(), segment.EventPart) {
						info, _ := c.db.Segments().Stat(context.Background(), name, part)
						kept += info.Bytes
					}
				}
			}
		},
		check: func(t testing.TB, c *crawl) {
			if kept > 2*room || lapses != 3 || got < 2*c.web.PagesPerHost {
				t.Errorf("F2: %d bytes kept, %d consumers lapsed, the good one got %d of %d pages", kept, lapses, got, 2*c.web.PagesPerHost)
			}
		},
	}
}

// f3clients has clients that ask for pages about the crawl in a loop.
func f3clients() row {
	const clients = 4
	var answers, refused atomic.Int64
	metrics := prom.New()
	return row{
		id: "F3", pages: testlevel.Pick(20, feedPages),
		input:   "clients that ask for the overview, the metrics and the change feed in a loop, that connect and never read, and that never end their request",
		outcome: "requests are bounded in number and time, figures are read from the stores once a second, and what is too much gets 503",
		figure:  fmt.Sprintf("%d clients of each kind: B1, B3 and B4, and every answer is 200 or 503", clients),
		edit:    func(c *crawl) { inRounds(c); metrics = prom.New(); metrics.Observe(&c.opts) },
		during: func(t testing.TB, c *crawl, crawler *recrawl.Crawler) func() {
			answers.Store(0)
			refused.Store(0)
			metrics.Watch(crawler, nil)
			pages, err := httpapi.New(httpapi.Options{Crawler: crawler, Stores: c.stores()})
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.Handle("/metrics", metrics.Handler())
			mux.Handle("/events", &feed.Events{Crawler: crawler, MaxClients: clients})
			mux.Handle("/", pages)
			server := httptest.NewUnstartedServer(mux)
			server.Config.ReadHeaderTimeout = timeLimit
			server.Start()
			ctx, cancel := context.WithCancel(context.Background())
			client := &http.Client{Transport: &http.Transport{}}
			var running sync.WaitGroup
			get := func(path string) {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := client.Do(r)
				if err != nil {
					return // the end
				}
				defer resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					answers.Add(1)
				case http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("%s: %s", path, resp.Status)
				}
				if path == "/events" {
					_, _ = bufio.NewReader(resp.Body).ReadString('\n')
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
			}
			for range clients {
				for _, path := range []string{"/", "/metrics", "/events"} {
					running.Go(func() {
						for ctx.Err() == nil {
							get(path)
							time.Sleep(pause / 4)
						}
					})
				}
				running.Go(func() {
					hold(ctx, server.Listener.Addr().String(), "GET /events?from=beginning HTTP/1.1\r\nHost: localhost\r\n\r\n")
				})
				running.Go(func() { hold(ctx, server.Listener.Addr().String(), "GET / HTTP/1.1\r\nHost: loc") })
			}
			return func() {
				cancel()
				running.Wait()
				client.CloseIdleConnections()
				server.CloseClientConnections()
				server.Close()
				metrics.Unwatch()
			}
		},
		check: func(t testing.TB, _ *crawl) {
			if answers.Load() == 0 || refused.Load() == 0 {
				t.Errorf("F3: %d answers, %d refused", answers.Load(), refused.Load())
			}
		},
	}
}

// hold sends bytes to a server, reads nothing, and keeps the connection until the context ends.
func hold(ctx context.Context, address, text string) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, text)
	<-ctx.Done()
}
