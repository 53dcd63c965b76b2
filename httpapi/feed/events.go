package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl"
)

// Events is an [http.Handler] that sends the change feed as server-sent events, for readers that come and
// go: no segment is kept for them. An event has the kind as its type, the position as its id and a
// [Change] as its data. A client that connects again with Last-Event-ID, as browsers do, gets what came
// behind it; if that is not kept any more, it gets an event of type reset and then all that is kept. A
// comment every Heartbeat keeps the connection open.
//
// Parameters of the request: after is a position, in the place of Last-Event-ID; from=beginning begins with
// the oldest that is kept, and not with the next; kind lists the kinds of event to send, with commas;
// visits=every sends visits without a change, too. It does not authenticate: mount it behind a
// handler that does.
type Events struct {
	// Crawler is the crawl whose events are sent. Required.
	Crawler *recrawl.Crawler
	// Detail says which parts of a page are sent.
	Detail Detail
	// MaxClients is how many may be connected at a time; others get 503. Zero means 100.
	MaxClients int
	// Heartbeat is how often a comment is sent when there is nothing else; zero means 15 seconds.
	Heartbeat time.Duration

	clients atomic.Int64
}

// writePatience is how long a client may take to receive an event.
const writePatience = 30 * time.Second

// ServeHTTP implements [http.Handler].
func (h *Events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	most := h.MaxClients
	if most <= 0 {
		most = 100
	}
	defer h.clients.Add(-1)
	if h.clients.Add(1) > int64(most) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many clients", http.StatusServiceUnavailable)
		return
	}
	query := r.URL.Query()
	o := recrawl.ConsumerOptions{EveryVisit: query.Get("visits") == "every"}
	if query.Get("from") == "beginning" {
		o.Start = recrawl.StartAtBeginning
	}
	position := r.Header.Get("Last-Event-ID")
	if position == "" {
		position = query.Get("after")
	}
	var kinds []string
	if k := query.Get("kind"); k != "" {
		kinds = strings.Split(k, ",")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies then pass on each event at once
	w.WriteHeader(http.StatusOK)
	s := eventStream{w: w, control: http.NewResponseController(w)}
	if !s.write([]byte("retry: 3000\n\n")) || !s.flush() {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lines := make(chan []byte, 64)
	go func() {
		defer close(lines)
		h.read(ctx, position, o, kinds, lines)
	}()
	s.send(lines, h.Heartbeat)
}

// read encodes events until the context ends or they cannot be read.
func (h *Events) read(ctx context.Context, position string, o recrawl.ConsumerOptions, kinds []string, lines chan<- []byte) {
	send := func(line []byte) bool {
		select {
		case lines <- line:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		var failed error
		for e, err := range h.Crawler.FollowEvents(ctx, position, o) {
			if failed = err; err != nil {
				break
			}
			if kinds != nil && !slices.Contains(kinds, e.Kind.String()) {
				continue
			}
			c, err := NewChange(ctx, &e, h.Detail)
			if failed = err; err != nil {
				break
			}
			data, err := json.Marshal(&c)
			if failed = err; err != nil || !send(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", c.Position, c.Kind, data)) {
				break
			}
			position = c.Position
		}
		if ctx.Err() != nil || !errors.Is(failed, recrawl.ErrNotInFeed) || !send([]byte("event: reset\ndata: {}\n\n")) {
			return // the client connects again
		}
		position, o.Start = "", recrawl.StartAtBeginning
	}
}

// eventStream writes to a client.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *eventStream) write(text []byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writePatience)) // not every server has deadlines
	_, err := s.w.Write(text)
	return err == nil
}

func (s *eventStream) flush() bool { return s.control.Flush() == nil }

// send writes lines until they end or the client does not take them.
func (s *eventStream) send(lines <-chan []byte, heartbeat time.Duration) {
	if heartbeat <= 0 {
		heartbeat = 15 * time.Second
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok || !s.write(line) {
				return
			}
			if len(lines) == 0 && !s.flush() {
				return
			}
			beat.Reset(heartbeat)
		case <-beat.C:
			if !s.write([]byte(": alive\n\n")) || !s.flush() {
				return
			}
		}
	}
}
