package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/httpapi/feed"
)

// client is a browser's EventSource: it receives what a handler writes.
type client struct {
	mu     sync.Mutex
	text   bytes.Buffer
	header http.Header
	status int
	stop   context.CancelFunc
	ended  chan struct{}
}

func (c *client) Header() http.Header { return c.header }
func (c *client) WriteHeader(s int)   { c.status = s }
func (c *client) Flush()              {}

func (c *client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func connect(t *testing.T, h http.Handler, target, lastEventID string) *client {
	ctx, stop := context.WithCancel(t.Context())
	c := &client{header: http.Header{}, stop: stop, ended: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	go func() {
		defer close(c.ended)
		h.ServeHTTP(c, r)
	}()
	synctest.Wait()
	return c
}

type sent struct{ id, kind, data string }

// events returns what was received so far, and how many comments.
func (c *client) events() (all []sent, comments int) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for block := range strings.SplitSeq(c.text.String(), "\n\n") {
		var e sent
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if value != "" {
					comments++
				}
			}
		}
		if e.kind != "" {
			all = append(all, e)
		}
	}
	return all, comments
}

func (c *client) close() {
	c.stop()
	<-c.ended
}

// A client gets what happens from now on, and after a break what happened meanwhile; comments keep the
// connection open.
func TestEventsAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, day := newCrawl(t)
		h := &feed.Events{Crawler: c, Detail: feed.Detail{Text: true, Diff: true}}
		first := connect(t, h, "/events", "")
		if all, _ := first.events(); len(all) > 0 || first.status != 200 || first.header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(first.text.String(), "retry: ") {
			t.Errorf("%d, %v, %+v", first.status, first.header, all)
		}
		day()
		changed, _ := first.events()
		if len(changed) < 3 {
			t.Fatalf("%d events", len(changed))
		}
		var data feed.Change
		if err := json.Unmarshal([]byte(changed[0].data), &data); err != nil || data.Position != changed[0].id || data.Kind != "changed" || data.Text == nil || data.PreviousText == nil || data.Diff == nil || len(data.Diff.Text) == 0 {
			t.Errorf("%+v, %v", data, err)
		}
		time.Sleep(31 * time.Second)
		if _, comments := first.events(); comments != 2 {
			t.Errorf("%d comments in half a minute", comments)
		}
		first.close()
		day()
		again := connect(t, h, "/events", changed[1].id)
		all, _ := again.events()
		if len(all) < len(changed) || all[0] != changed[2] {
			t.Errorf("behind %s: %+v", changed[1].id, all)
		}
		again.close()
		beginning := connect(t, h, "/events?from=beginning&kind=new,gone", "")
		if all, _ := beginning.events(); len(all) != 20 || all[19].kind != "new" {
			t.Errorf("%d events from the beginning", len(all))
		}
		beginning.close()
		every := connect(t, h, "/events?after="+changed[0].id+"&visits=every", "")
		if all, _ := every.events(); len(all) < 35 {
			t.Errorf("%d events of every visit", len(all))
		}
		every.close()
	})
}

// If the events behind Last-Event-ID are not kept any more, a client gets a reset and the feed from its beginning.
func TestEventsThatAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, day := newCrawl(t)
		day()
		if err := c.DropConsumer(t.Context(), "hook"); err != nil {
			t.Fatal(err)
		}
		h := &feed.Events{Crawler: c}
		for _, id := range []string{"77.0.0", "of another crawl"} {
			k := connect(t, h, "/events", id)
			all, _ := k.events()
			if len(all) < 21 || all[0].kind != "reset" || all[1].kind != "new" {
				t.Errorf("%s: %+v", id, all)
			}
			k.close()
		}
	})
}

// So many clients are served, and no more.
func TestClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := newCrawl(t)
		h := &feed.Events{Crawler: c, MaxClients: 2}
		first, second := connect(t, h, "/events", ""), connect(t, h, "/events", "")
		third := connect(t, h, "/events", "")
		<-third.ended
		if third.status != http.StatusServiceUnavailable {
			t.Errorf("the third client got %d", third.status)
		}
		first.close()
		if fourth := connect(t, h, "/events", ""); fourth.status != 200 {
			t.Errorf("after one has left the next got %d", fourth.status)
		} else {
			fourth.close()
		}
		second.close()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/events", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST got %d", w.Code)
		}
	})
}
