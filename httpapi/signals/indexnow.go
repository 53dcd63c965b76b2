package signals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
)

// IndexNowOptions say how notices are taken. All but Now and Logger are required.
type IndexNowOptions struct {
	Signal Signal
	// Crawl is the crawl db: only notices that name one of its pages make a request for a key.
	Crawl crawldb.Store
	// Protocol requests the files that prove who owns a key. The Protocol of a crawler refuses
	// private addresses.
	Protocol protocol.Protocol
	// Now is the clock; nil means time.Now.
	Now    func() time.Time
	Logger *slog.Logger // nil means no logging
}

// IndexNow receives notices of the IndexNow protocol: GET with url and key, or POST of an object of JSON with
// host, key and urlList. A site proves with a file on its host that it has sent a notice. Anyone may send one, so
// it limits what notices cause: one request for a key every ten minutes for each host, and four at a time.
type IndexNow struct {
	o     IndexNowOptions
	slots chan struct{}
	mu    sync.Mutex
	keys  map[string]keyCheck // by host
}

type keyCheck struct {
	key         string // the file, and what it must have
	done, valid bool
	at          time.Time
}

const (
	keyValidFor   = 24 * time.Hour
	keyInvalidFor = 10 * time.Minute
	maxKeys       = 10_000
	maxNotices    = 10_000 // URLs of one request, as the protocol says
)

// NewIndexNow returns a receiver.
func NewIndexNow(o IndexNowOptions) (*IndexNow, error) {
	if o.Signal == nil || o.Crawl == nil || o.Protocol == nil {
		return nil, errors.New("signals: Signal, Crawl and Protocol are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = loggerOr(o.Logger)
	return &IndexNow{o: o, slots: make(chan struct{}, 4), keys: map[string]keyCheck{}}, nil
}

// notice is what a site sends.
type notice struct {
	Host        string   `json:"host"`
	Key         string   `json:"key"`
	KeyLocation string   `json:"keyLocation"`
	URLs        []string `json:"urlList"`
}

// refusal is an answer other than success.
type refusal struct {
	status int
	error
}

// ServeHTTP answers with the statuses of the protocol: 200, 202 if the key could not be checked now, 400 for
// what is no notice, 403 for a wrong key, 422 for URLs that the key is not for.
func (n *IndexNow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := n.take(w, r)
	var refused refusal
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.As(err, &refused):
		http.Error(w, refused.Error(), refused.status)
	default:
		n.o.Logger.Error("signals: a notice cannot be taken", "error", err)
		w.Header().Set("Retry-After", "60")
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}

func (n *IndexNow) take(w http.ResponseWriter, r *http.Request) error {
	q, err := readNotice(w, r)
	if err != nil {
		return refusal{http.StatusBadRequest, err}
	}
	file, err := q.keyFile()
	if err != nil {
		return refusal{http.StatusUnprocessableEntity, err}
	}
	changes := make([]change, 0, len(q.URLs))
	for _, text := range q.URLs {
		changes = append(changes, change{url: text})
	}
	if known, err := n.knowsOne(r.Context(), q.URLs); err != nil || !known {
		return err // nothing to check a key for
	}
	if err := n.checkKey(r.Context(), file, q.Key); err != nil {
		return err
	}
	taken, err := n.o.Signal.send(r.Context(), changes)
	if err != nil {
		return err
	}
	n.o.Logger.Info("signals: a notice was taken", "host", file.Host, "pages", taken)
	return n.o.Crawl.Sync(r.Context())
}

var indexNowKey = regexp.MustCompile(`^[A-Za-z0-9-]{8,128}$`)

func readNotice(w http.ResponseWriter, r *http.Request) (q notice, err error) {
	switch r.Method {
	case http.MethodGet:
		v := r.URL.Query()
		q = notice{Key: v.Get("key"), KeyLocation: v.Get("keyLocation"), URLs: v["url"]}
		if len(q.URLs) == 1 {
			if u, err := url.Parse(q.URLs[0]); err == nil {
				q.Host = u.Host
			}
		}
	case http.MethodPost:
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
			return q, errors.New("the body must be application/json")
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
			return q, fmt.Errorf("the body cannot be read: %w", err)
		}
	default:
		return q, errors.New("GET and POST only")
	}
	switch {
	case !indexNowKey.MatchString(q.Key):
		return q, errors.New("the key must be 8 to 128 letters, digits and dashes")
	case len(q.URLs) == 0 || len(q.URLs) > maxNotices:
		return q, fmt.Errorf("there must be 1 to %d URLs", maxNotices)
	}
	return q, nil
}

// keyFile returns where the key must be, if it can speak for all URLs: it is on their host, and in the root, or
// in a directory above all of them.
func (q *notice) keyFile() (*url.URL, error) {
	first, err := url.Parse(q.URLs[0])
	if err != nil || first.Scheme != "http" && first.Scheme != "https" || first.Host == "" {
		return nil, fmt.Errorf("%q is no URL of the web", q.URLs[0])
	}
	file := &url.URL{Scheme: first.Scheme, Host: first.Host, Path: "/" + q.Key + ".txt"}
	if q.KeyLocation != "" {
		if file, err = url.Parse(q.KeyLocation); err != nil {
			return nil, errors.New("keyLocation is no URL")
		}
	}
	if file.Scheme != "http" && file.Scheme != "https" || file.User != nil || file.RawQuery != "" || path.Clean("/"+file.Path) != file.Path {
		return nil, errors.New("keyLocation is no URL of a file of the web")
	}
	if q.Host != "" && !strings.EqualFold(q.Host, file.Host) {
		return nil, errors.New("the key is on another host")
	}
	below := file.Path[:strings.LastIndexByte(file.Path, '/')+1]
	for _, text := range q.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, file.Host) || !strings.HasPrefix(path.Clean("/"+u.Path)+"/", below) {
			return nil, fmt.Errorf("the key cannot speak for %q", text)
		}
	}
	return file, nil
}

// knowsOne reports whether the crawl db has one of the first hundred URLs.
func (n *IndexNow) knowsOne(ctx context.Context, urls []string) (bool, error) {
	for _, u := range urls[:min(len(urls), 100)] {
		if _, err := n.o.Crawl.Get(ctx, u); err == nil {
			return true, nil
		} else if !errors.Is(err, crawldb.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// checkKey requests the file of a key, unless that was done lately.
func (n *IndexNow) checkKey(ctx context.Context, file *url.URL, key string) error {
	invalid := refusal{http.StatusForbidden, fmt.Errorf("%s does not have the key", file)}
	pending := refusal{http.StatusAccepted, errors.New("the key is yet to be checked: send the notice again")}
	now, host := n.o.Now(), file.Host
	n.mu.Lock()
	last, ok := n.keys[host]
	age := now.Sub(last.at)
	switch {
	case ok && last.valid && last.key == file.String()+" "+key && age < keyValidFor:
		n.mu.Unlock()
		return nil
	case ok && age < keyInvalidFor && last.done && last.key == file.String()+" "+key:
		n.mu.Unlock()
		return invalid
	case ok && age < keyInvalidFor:
		n.mu.Unlock()
		return pending
	case len(n.keys) >= maxKeys:
		clear(n.keys)
	}
	check := keyCheck{key: file.String() + " " + key, at: now}
	n.keys[host] = check // also while it is being checked
	n.mu.Unlock()
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	default:
		n.forget(host)
		return pending
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	answer, err := n.o.Protocol.Fetch(ctx, protocol.Request{URL: file.String(), MaxBytes: 4096, Accept: "text/plain"})
	if err != nil {
		n.forget(host)
		return err
	}
	if answer.Outcome.Code.Transient() {
		return pending
	}
	check.done = true
	check.valid = answer.Outcome.Code == protocol.Success && strings.TrimSpace(strings.TrimPrefix(string(answer.Content.Body), "\ufeff")) == key
	n.mu.Lock()
	n.keys[host] = check
	n.mu.Unlock()
	if !check.valid {
		return invalid
	}
	return nil
}

func (n *IndexNow) forget(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.keys, host)
}
