package signals

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// WebSubOptions say how feeds are subscribed to. Signal, Store and Callback are required.
type WebSubOptions struct {
	Signal Signal
	// Store keeps the subscriptions, in a mark.
	Store crawldb.Store
	// Callback is the URL under which hubs reach the handler, without a query: with a path that ends
	// with a slash. A subscription has a secret name below it.
	Callback string
	// Lease is for how long a subscription is requested; zero means ten days. The hub decides.
	Lease time.Duration
	// Client makes requests to hubs and topics; nil means one that connects to public addresses only.
	Client *http.Client
	// Now is the clock; nil means time.Now.
	Now    func() time.Time
	Logger *slog.Logger // nil means no logging
}

// WebSub is a subscriber of WebSub (W3C, 2018). Its methods may be called from many goroutines at once.
type WebSub struct {
	o  WebSubOptions
	mu sync.Mutex // held while the mark is changed
}

// Subscription is a feed that was subscribed to.
type Subscription struct {
	Topic, Hub string
	// Requested is when the hub was last asked, Verified when it last confirmed, and Ends until when it
	// sends what is new; the last two are zero if it never confirmed.
	Requested, Verified, Ends time.Time
	// Denied is what the hub said when it refused or ended the subscription; empty if it did not.
	Denied string `json:",omitempty"`
	// Received is when the last message with a valid signature came.
	Received time.Time
	ID       string // below the callback
	Secret   string // of the signatures
	Ending   bool   `json:",omitempty"` // the end was requested
}

const webSubMark = "signals/websub"

// NewWebSub returns a subscriber.
func NewWebSub(o WebSubOptions) (*WebSub, error) {
	u, err := url.Parse(o.Callback)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || !strings.HasSuffix(u.Path, "/") {
		return nil, fmt.Errorf("signals: Callback is %q: it must be the URL of a path that ends with a slash", o.Callback)
	}
	if o.Signal == nil || o.Store == nil {
		return nil, errors.New("signals: Signal and Store are required")
	}
	if o.Lease <= 0 {
		o.Lease = 10 * 24 * time.Hour
	}
	if o.Client == nil {
		o.Client = publicClient()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = loggerOr(o.Logger)
	return &WebSub{o: o}, nil
}

// Subscriptions returns all subscriptions, by topic.
func (w *WebSub) Subscriptions(ctx context.Context) (all []Subscription, err error) {
	mark, err := w.o.Store.Mark(ctx, webSubMark)
	if err != nil || mark == "" {
		return nil, err
	}
	if err := json.Unmarshal([]byte(mark), &all); err != nil {
		return nil, fmt.Errorf("signals: mark %s: %w", webSubMark, err)
	}
	return all, nil
}

// change changes the subscriptions, durably.
func (w *WebSub) change(ctx context.Context, change func([]Subscription) []Subscription) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := w.Subscriptions(ctx)
	if err != nil {
		return err
	}
	all = change(all)
	slices.SortFunc(all, func(a, b Subscription) int { return strings.Compare(a.Topic, b.Topic) })
	text := ""
	if len(all) > 0 {
		encoded, err := json.Marshal(all)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	if err := w.o.Store.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(webSubMark, text)}); err != nil {
		return err
	}
	return w.o.Store.Sync(ctx)
}

// changeOne changes the subscription with an ID, if it is there.
func (w *WebSub) changeOne(ctx context.Context, id string, change func(*Subscription)) error {
	return w.change(ctx, func(all []Subscription) []Subscription {
		for i := range all {
			if all[i].ID == id {
				change(&all[i])
			}
		}
		return all
	})
}

// Subscribe requests a subscription to a topic, which is the URL of a feed or page, from a hub. If hub is
// empty, it reads the topic to find one. The subscription is in force when the hub has confirmed it. A topic
// that is subscribed to is requested again.
func (w *WebSub) Subscribe(ctx context.Context, topic, hub string) error {
	if hub == "" {
		var err error
		if topic, hub, err = w.discover(ctx, topic); err != nil {
			return fmt.Errorf("signals: subscribe to %s: %w", topic, err)
		}
	}
	var s Subscription
	err := w.change(ctx, func(all []Subscription) []Subscription {
		i := slices.IndexFunc(all, func(s Subscription) bool { return s.Topic == topic })
		if i < 0 {
			all = append(all, Subscription{Topic: topic, ID: rand.Text(), Secret: rand.Text()})
			i = len(all) - 1
		}
		all[i].Hub, all[i].Requested, all[i].Denied, all[i].Ending = hub, w.o.Now().UTC(), "", false
		s = all[i]
		return all
	})
	if err == nil {
		err = w.request(ctx, &s, "subscribe")
	}
	if err != nil {
		return fmt.Errorf("signals: subscribe to %s: %w", topic, err)
	}
	return nil
}

// Unsubscribe ends a subscription. Messages that the hub still sends are refused from now on.
func (w *WebSub) Unsubscribe(ctx context.Context, topic string) error {
	var s *Subscription
	err := w.change(ctx, func(all []Subscription) []Subscription {
		for i := range all {
			if all[i].Topic == topic {
				all[i].Ending = true
				found := all[i]
				s = &found
			}
		}
		return all
	})
	if err == nil && s != nil {
		err = w.request(ctx, s, "unsubscribe")
	}
	if err != nil {
		return fmt.Errorf("signals: unsubscribe from %s: %w", topic, err)
	}
	return nil
}

// Renew requests again the subscriptions that end within a third of the lease, or were not confirmed within
// an hour. Call it about once an hour; Run does.
func (w *WebSub) Renew(ctx context.Context) error {
	all, err := w.Subscriptions(ctx)
	if err != nil {
		return fmt.Errorf("signals: renew: %w", err)
	}
	var failed []error
	now := w.o.Now()
	for _, s := range all {
		if s.Ending || now.Sub(s.Requested) < time.Hour || s.Ends.Sub(now) > w.o.Lease/3 {
			continue
		}
		if err := w.Subscribe(ctx, s.Topic, s.Hub); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Run renews subscriptions every hour, until its context ends.
func (w *WebSub) Run(ctx context.Context) error {
	for {
		if err := w.Renew(ctx); err != nil && ctx.Err() == nil {
			w.o.Logger.Warn("signals: a subscription could not be renewed", "error", err)
		}
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// request sends a request to a hub, which verifies it before or after it answers.
func (w *WebSub) request(ctx context.Context, s *Subscription, mode string) error {
	form := url.Values{
		"hub.callback": {w.o.Callback + s.ID}, "hub.mode": {mode}, "hub.topic": {s.Topic},
		"hub.lease_seconds": {strconv.FormatInt(int64(w.o.Lease.Seconds()), 10)}, "hub.secret": {s.Secret},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Hub, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := w.o.Client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("the hub answers %s: %q", answer.Status, reason)
	}
	return nil
}

// discover finds the hub of a topic, and the name that the topic gives itself.
func (w *WebSub) discover(ctx context.Context, topic string) (self, hub string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, topic, nil)
	if err != nil {
		return topic, "", err
	}
	answer, err := w.o.Client.Do(r)
	if err != nil {
		return topic, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return topic, "", err
	}
	self = topic
	found := func(rel, href string) {
		to, err := answer.Request.URL.Parse(href)
		if err != nil || to.Scheme != "http" && to.Scheme != "https" {
			return
		}
		for rel := range strings.FieldsSeq(strings.ToLower(rel)) {
			switch {
			case rel == "hub" && hub == "":
				hub = to.String()
			case rel == "self" && hostdb.ByDomain.HostKey(to.Hostname()) == hostdb.ByDomain.HostKey(answer.Request.URL.Hostname()):
				self = to.String()
			}
		}
	}
	for _, line := range answer.Header.Values("Link") {
		for _, m := range headerLink.FindAllStringSubmatch(line, -1) {
			if rel := headerRel.FindStringSubmatch(m[2]); rel != nil {
				found(rel[1]+rel[2], m[1])
			}
		}
	}
	if hub == "" {
		for _, m := range linkElement.FindAllSubmatch(body, -1) {
			rel, href := attribute("rel", m[0]), attribute("href", m[0])
			found(rel, href)
		}
	}
	if hub == "" {
		return self, "", errors.New("the topic names no hub")
	}
	return self, hub, nil
}

var (
	headerLink  = regexp.MustCompile(`<([^>]*)>([^<]*)`)
	headerRel   = regexp.MustCompile(`(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]+))`)
	linkElement = regexp.MustCompile(`(?i)<(?:\w+:)?link\s[^>]*>`)
)

func attribute(name string, element []byte) string {
	m := regexp.MustCompile(`(?i)\s` + name + `\s*=\s*(?:"([^"]*)"|'([^']*)')`).FindSubmatch(element)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(string(m[1])+string(m[2]), "&amp;", "&")
}

// ServeHTTP answers hubs: GET verifies a request of Subscribe or Unsubscribe, POST delivers a message.
func (w *WebSub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("X-Content-Type-Options", "nosniff")
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	all, err := w.Subscriptions(r.Context())
	if err != nil {
		w.o.Logger.Error("signals: subscriptions cannot be read", "error", err)
		http.Error(rw, "try again later", http.StatusServiceUnavailable)
		return
	}
	i := slices.IndexFunc(all, func(s Subscription) bool { return id != "" && s.ID == id })
	switch {
	case i < 0:
		http.Error(rw, "there is no such subscription", http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.verify(rw, r, &all[i])
	case r.Method == http.MethodPost && all[i].Ending:
		http.Error(rw, "the subscription has ended", http.StatusGone)
	case r.Method == http.MethodPost:
		w.receive(rw, r, &all[i])
	default:
		rw.Header().Set("Allow", "GET, POST")
		http.Error(rw, "GET and POST only", http.StatusMethodNotAllowed)
	}
}

// verify confirms a request that this subscriber has made, and no other.
func (w *WebSub) verify(rw http.ResponseWriter, r *http.Request, s *Subscription) {
	q := r.URL.Query()
	mode, challenge := q.Get("hub.mode"), q.Get("hub.challenge")
	now := w.o.Now().UTC()
	var err error
	switch {
	case q.Get("hub.topic") != s.Topic:
		http.Error(rw, "another topic was requested", http.StatusNotFound)
		return
	case mode == "denied":
		challenge = ""
		err = w.changeOne(r.Context(), s.ID, func(s *Subscription) {
			s.Denied, s.Ends = "denied: "+q.Get("hub.reason"), time.Time{}
		})
	case mode == "subscribe" && !s.Ending:
		lease := w.o.Lease
		if n, err := strconv.ParseInt(q.Get("hub.lease_seconds"), 10, 32); err == nil && n > 0 {
			lease = time.Duration(n) * time.Second
		}
		err = w.changeOne(r.Context(), s.ID, func(s *Subscription) { s.Verified, s.Ends = now, now.Add(lease) })
	case mode == "unsubscribe" && s.Ending:
		err = w.change(r.Context(), func(all []Subscription) []Subscription {
			return slices.DeleteFunc(all, func(o Subscription) bool { return o.ID == s.ID })
		})
	default:
		http.Error(rw, "that was not requested", http.StatusNotFound)
		return
	}
	if err != nil {
		w.o.Logger.Error("signals: a subscription cannot be written", "error", err)
		http.Error(rw, "try again later", http.StatusServiceUnavailable)
		return
	}
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(rw, challenge)
}

// receive takes a message. One with a wrong signature is answered like any other, and ignored, as the
// specification asks.
func (w *WebSub) receive(rw http.ResponseWriter, r *http.Request, s *Subscription) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	if err != nil {
		http.Error(rw, "the message cannot be read", http.StatusBadRequest)
		return
	}
	if !validSignature(r.Header.Get("X-Hub-Signature"), s.Secret, body) {
		w.o.Logger.Warn("signals: a message with a wrong signature is ignored", "topic", s.Topic)
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	taken, err := w.o.Signal.send(r.Context(), topicChanges(r.Context(), s.Topic, body))
	if err == nil {
		err = w.changeOne(r.Context(), s.ID, func(s *Subscription) { s.Received = w.o.Now().UTC() }) // and syncs the signals
	}
	if err != nil {
		w.o.Logger.Error("signals: a message cannot be taken", "topic", s.Topic, "error", err)
		http.Error(rw, "try again later", http.StatusServiceUnavailable)
		return
	}
	w.o.Logger.Info("signals: a message was taken", "topic", s.Topic, "pages", taken)
	rw.WriteHeader(http.StatusAccepted)
}

// topicChanges are the topic, and the entries that its publisher can speak for: those of its domain.
func topicChanges(ctx context.Context, topic string, body []byte) []change {
	changes := []change{{url: topic}}
	base, err := url.Parse(topic)
	if err != nil {
		return changes
	}
	for _, e := range readFeed(ctx, topic, body) {
		to, err := base.Parse(e.url)
		if err == nil && (to.Scheme == "http" || to.Scheme == "https") && hostdb.ByDomain.HostKey(to.Hostname()) == hostdb.ByDomain.HostKey(base.Hostname()) {
			changes = append(changes, change{to.String(), e.at})
		}
	}
	return changes
}

func validSignature(given, secret string, body []byte) bool {
	method, digest, ok := strings.Cut(given, "=")
	var newHash func() hash.Hash
	switch method {
	case "sha1":
		newHash = sha1.New
	case "sha256":
		newHash = sha256.New
	case "sha384":
		newHash = sha512.New384
	case "sha512":
		newHash = sha512.New
	default:
		return false
	}
	sum, err := hex.DecodeString(digest)
	if !ok || err != nil {
		return false
	}
	mac := hmac.New(newHash, []byte(secret))
	mac.Write(body)
	return hmac.Equal(sum, mac.Sum(nil))
}
