package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl"
)

// ErrGone says that the receiver has answered 410: it wants no more webhooks.
var ErrGone = errors.New("the receiver is gone")

// Webhook posts the events of a consumer to a URL, one a request, at least once and in order for each page.
// The body is {"type": "page." and the kind, "timestamp", "data": a [Change]}. The id in the header is the
// same whenever an event is posted.
//
// An event that is not accepted with 2xx is posted again, after a second, then two and so on with jitter, or
// when the receiver asks for it. After Attempts refusals it is dead, and handed to Dead. A refusal counts only
// if the receiver works otherwise: it answers with a status other than busy (408, 425, 429, 502, 503, 504), or
// has accepted another event meanwhile. So a receiver that is down loses nothing: the events stay in the feed.
// Redirects are not followed, and no proxy is used.
type Webhook struct {
	// URL is where to post. Required.
	URL string
	// Secrets sign the requests: see [ParseSecrets]. Required.
	Secrets []Secret
	// Detail says which parts of a page are posted.
	Detail Detail
	// Timeout is how long a request may take; zero means 15 seconds.
	Timeout time.Duration
	// Attempts is how often an event is posted before it is dead; zero means 12, which takes about an hour.
	Attempts int
	// MaxPause is the longest pause before it is posted again; zero means an hour.
	MaxPause time.Duration
	// Concurrency is how many requests may be under way, of different pages; zero means 8.
	Concurrency int
	// Dead keeps an event that is dead: see [Letters.Add]. It must be durable when it returns; an error ends
	// the delivery. Nil means that no event is ever dead.
	Dead func(ctx context.Context, letter Letter) error
	// Transport makes the requests; nil means HTTP without a proxy.
	Transport http.RoundTripper
	// Logger receives failures; nil means no logging.
	Logger *slog.Logger
}

// Message is an event to post.
type Message struct {
	// Position is that of the event, URL that of the page; events of the same URL are posted in order.
	Position, URL string
	// Kind and Time are those of the event, Data is its JSON.
	Kind string
	Time time.Time
	Data json.RawMessage
}

// Consume posts the events of a consumer, which must be registered, and acknowledges those that are
// accepted or dead. It returns when its context ends, or at the end of the feed if follow is false. Only one
// may consume the same consumer at a time.
func (w *Webhook) Consume(ctx context.Context, crawler *recrawl.Crawler, name string, follow bool) error {
	k, err := crawler.Consumer(ctx, name)
	if err != nil {
		return err
	}
	all, err := crawler.Consumers(ctx)
	if err != nil {
		return err
	}
	stream := name
	for _, c := range all {
		if c.Name == name {
			stream = Stream(name, c.Registered)
		}
	}
	messages := func(ctx context.Context) iter.Seq2[Message, error] {
		events := k.Events(ctx)
		if follow {
			events = k.Follow(ctx)
		}
		return func(yield func(Message, error) bool) {
			for e, err := range events {
				var m Message
				if err == nil {
					m, err = w.message(ctx, &e)
				}
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
	return w.Deliver(ctx, stream, messages, k.Ack)
}

// Stream returns the name of the events of a consumer, for [Webhook.Deliver]: ids that were posted for a
// consumer that was dropped are not used again.
func Stream(consumer string, registered time.Time) string {
	return consumer + " " + registered.UTC().Format(time.RFC3339Nano)
}

func (w *Webhook) message(ctx context.Context, e *recrawl.PageEvent) (Message, error) {
	c, err := NewChange(ctx, e, w.Detail)
	if err != nil {
		return Message{}, err
	}
	data, err := json.Marshal(&c)
	return Message{e.Position, e.URL, c.Kind, c.Time, data}, err
}

// Deliver posts messages and calls ack with the position up to which all are accepted or dead, from one
// goroutine, about five times a second. messages must end when its context does. Ids are made of the stream
// and the position. It returns the first error of messages, ack or Dead, [ErrGone], or that of the context;
// after the end of messages it returns when all are delivered.
func (w *Webhook) Deliver(ctx context.Context, stream string, messages func(ctx context.Context) iter.Seq2[Message, error], ack func(ctx context.Context, position string) error) error {
	s, err := w.newSender()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := delivery{sender: s, stream: stream, fail: cancel, progress: make(chan struct{}, 1)}
	d.changed.L = &d.mu
	defer context.AfterFunc(ctx, func() {
		d.mu.Lock() // so that it is not between a look at the context and the wait
		defer d.mu.Unlock()
		d.changed.Broadcast()
	})()

	lanes := make([]chan *outgoing, s.concurrency())
	var posting sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan *outgoing, laneLength)
		posting.Go(func() { d.post(ctx, lanes[i]) })
	}
	acking := make(chan struct{})
	posted := make(chan struct{})
	go func() {
		defer close(acking)
		d.acknowledge(ctx, posted, ack)
	}()

	seed := maphash.MakeSeed()
	for m, err := range messages(ctx) {
		if err != nil {
			cancel(err)
			break
		}
		o, err := d.accept(ctx, m)
		if err != nil {
			cancel(err)
			break
		}
		select {
		case lanes[maphash.String(seed, m.URL)%uint64(len(lanes))] <- o:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	for _, l := range lanes {
		close(l)
	}
	posting.Wait()
	close(posted)
	<-acking
	return context.Cause(ctx)
}

// Bounds of what is read ahead of the acknowledgement.
const (
	laneLength      = 32
	maxOutstanding  = 1024
	maxBytesAhead   = 16 << 20
	ackInterval     = 200 * time.Millisecond
	lastAckPatience = 5 * time.Second
)

// delivery is one call of Deliver.
type delivery struct {
	sender *sender
	stream string
	fail   context.CancelCauseFunc
	// progress says that done has moved.
	progress chan struct{}

	mu          sync.Mutex
	changed     sync.Cond
	outstanding []*outgoing // in the order of the feed
	bytes       int         // of them
	done        string      // the last position up to which all is done
}

// outgoing is a message on its way.
type outgoing struct {
	Message
	id   string
	body []byte
	done bool
}

// accept waits for room, and returns a message in the form in which it is posted.
func (d *delivery) accept(ctx context.Context, m Message) (*outgoing, error) {
	at := m.Time
	if at.IsZero() {
		at = time.Now()
	}
	body, err := json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{"page." + m.Kind, at.UTC(), m.Data})
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	sum := sha256.Sum256([]byte(d.stream + "\x00" + m.Position))
	m.Data = nil
	o := &outgoing{Message: m, id: "evt_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15])), body: body}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.outstanding) > 0 && (len(d.outstanding) >= maxOutstanding || d.bytes+len(body) > maxBytesAhead) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		d.changed.Wait()
	}
	d.outstanding = append(d.outstanding, o)
	d.bytes += len(body)
	return o, nil
}

// finished notes that a message is accepted or dead.
func (d *delivery) finished(o *outgoing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.done = true
	for len(d.outstanding) > 0 && d.outstanding[0].done {
		d.done = d.outstanding[0].Position
		d.bytes -= len(d.outstanding[0].body)
		d.outstanding[0] = nil
		d.outstanding = d.outstanding[1:]
		select {
		case d.progress <- struct{}{}:
		default:
		}
	}
	d.changed.Broadcast()
}

// acknowledge calls ack until all is posted.
func (d *delivery) acknowledge(ctx context.Context, posted <-chan struct{}, ack func(context.Context, string) error) {
	last := ""
	call := func(ctx context.Context) {
		d.mu.Lock()
		position := d.done
		d.mu.Unlock()
		if position == last {
			return
		}
		if err := ack(ctx, position); err != nil {
			d.fail(err)
			return
		}
		last = position
	}
	for {
		select {
		case <-d.progress:
			if sleep(ctx, ackInterval) == nil { // so that one call acknowledges several
				call(ctx)
			}
		case <-posted:
			keep, stop := context.WithTimeout(context.WithoutCancel(ctx), lastAckPatience)
			defer stop()
			call(keep)
			return
		}
	}
}

// post posts the messages of a lane, one after the other.
func (d *delivery) post(ctx context.Context, lane <-chan *outgoing) {
	for o := range lane {
		if ctx.Err() != nil {
			continue
		}
		if err := d.sender.deliver(ctx, o); err != nil {
			d.fail(err)
			continue
		}
		d.finished(o)
	}
}

// sender makes the requests of a webhook.
type sender struct {
	Webhook
	client   http.Client
	accepted atomic.Int64 // requests
	mu       sync.Mutex
	notYet   time.Time // the receiver has asked to wait until then
}

func (w *Webhook) newSender() (*sender, error) {
	s := &sender{Webhook: *w}
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("feed: the URL of a webhook cannot be %q", w.URL)
	}
	if len(w.Secrets) == 0 {
		return nil, errors.New("feed: a webhook needs a secret")
	}
	if s.Timeout <= 0 {
		s.Timeout = 15 * time.Second
	}
	if s.Attempts <= 0 {
		s.Attempts = 12
	}
	if s.MaxPause <= 0 {
		s.MaxPause = time.Hour
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	s.client = http.Client{Transport: w.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if w.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy, t.MaxIdleConnsPerHost = nil, s.concurrency()
		s.client.Transport = t
	}
	return s, nil
}

func (w *Webhook) concurrency() int {
	if w.Concurrency <= 0 {
		return 8
	}
	return w.Concurrency
}

// deliver posts a message until it is accepted or dead.
func (s *sender) deliver(ctx context.Context, o *outgoing) error {
	before := s.accepted.Load()
	attempts := 0 // those that count
	for failures := 0; ; failures++ {
		if err := s.wait(ctx); err != nil {
			return err
		}
		err := s.attempt(ctx, o.id, o.body)
		var failed *attemptError
		switch {
		case err == nil:
			s.accepted.Add(1)
			return nil
		case !errors.As(err, &failed):
			return err
		}
		if failed.refused || s.accepted.Load() > before {
			attempts++
		}
		if attempts >= s.Attempts && s.Dead != nil {
			s.Logger.Error("feed: a webhook is dead", "url", o.URL, "position", o.Position, "attempts", failures+1, "error", err)
			return s.Dead(ctx, Letter{ID: o.id, Position: o.Position, URL: o.URL, Time: time.Now().UTC(), Attempts: failures + 1, Error: err.Error(), Body: o.body})
		}
		pause := s.pause(failures)
		s.Logger.Warn("feed: a webhook was not accepted", "url", o.URL, "position", o.Position, "attempts", failures+1, "until", time.Now().Add(max(pause, failed.after)), "error", err)
		if failed.after > 0 {
			s.hold(min(failed.after, s.MaxPause))
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// pause is how long to wait after so many failures: a random time between half of 2ⁿ seconds and all of them.
func (s *sender) pause(failures int) time.Duration {
	p := min(time.Second<<min(failures, 20), s.MaxPause)
	return p/2 + rand.N(p/2+1)
}

// hold makes all requests wait.
func (s *sender) hold(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := time.Now().Add(d); t.After(s.notYet) {
		s.notYet = t
	}
}

func (s *sender) wait(ctx context.Context) error {
	s.mu.Lock()
	d := time.Until(s.notYet)
	s.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attemptError is why a request was not accepted.
type attemptError struct {
	err     error
	refused bool          // the receiver works, but does not accept it
	after   time.Duration // for how long the receiver asks to wait
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

// attempt makes one request. The error is an attemptError, unless the context has ended or no other request
// makes sense.
func (s *sender) attempt(ctx context.Context, id string, body []byte) error {
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "recrawl")
	sign(r.Header, s.Secrets, id, time.Now(), body)
	resp, err := s.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &attemptError{err: fmt.Errorf("feed: %w", err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<10)) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("feed: POST %s: %s", s.URL, resp.Status)
	switch resp.StatusCode {
	case http.StatusGone:
		return fmt.Errorf("%w: %w", err, ErrGone)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &attemptError{err: err, after: retryAfter(resp.Header)}
	}
	return &attemptError{err: err, refused: true, after: retryAfter(resp.Header)}
}

// retryAfter returns for how long a receiver asks to wait.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
