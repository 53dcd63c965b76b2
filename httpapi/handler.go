package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say what a [Handler] shows. Crawler and Stores are required.
type Options struct {
	// Crawler and Stores are the crawl.
	Crawler *recrawl.Crawler
	Stores  recrawl.Stores
	// Guard decides which requests are answered. By default only those to this machine are, and
	// nothing can be changed.
	Guard Guard
	// Prefix is the path under which the handler is mounted, such as "/crawl"; empty means that it has
	// all paths. The handler expects it in the path of each request.
	Prefix string
	// Title is the name of the crawl; empty means "recrawl".
	Title string
	// Search finds pages by their words. Nil means a search in the segments, newest first, which ends
	// after a second.
	Search Searcher
	// Markdown turns the content of a page into Markdown, for programs that ask for it; nil means that it
	// stays text. Package parse/extract has one. It is not called for a page that asks for no copy.
	Markdown func(ctx context.Context, c *page.Content) (string, error)
	// Workers returns the workers of a divided crawl and their groups, as groups.Coordinator.State does; nil
	// for a crawl that is not divided. Crawler and Stores are then those of one group.
	Workers func(ctx context.Context) (groups.State, error)
	// Timeout is the most that one request takes; zero means 5 s. Long lists come in parts.
	Timeout time.Duration
	// Concurrent is how many requests are worked on at once; zero means 4. Others wait, and are answered
	// with status 503 after Timeout.
	Concurrent int
	// Now is the clock of the crawl; nil means time.Now.
	Now func() time.Time
	// Logger receives failures of the crawl; nil means no logging.
	Logger *slog.Logger
}

// Searcher finds pages by their words, such as a search index that follows the crawl.
type Searcher interface {
	// Search returns at most limit pages, the best first.
	Search(ctx context.Context, query string, limit int) ([]Hit, error)
}

// Handler serves a crawl as pages for people and as JSON for programs, under the same paths:
// GET /openapi.json lists them. A request gets JSON if its path ends in .json or its Accept header
// prefers it. Close the crawler after the server.
type Handler struct {
	o      Options
	mux    *http.ServeMux
	slots  chan struct{}
	recent recentOverview
	pages  *templates
	spec   []byte
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	if o.Crawler == nil || o.Stores.Crawl == nil || o.Stores.Hosts == nil || o.Stores.Segments == nil {
		return nil, errors.New("httpapi: Options.Crawler and Options.Stores are required")
	}
	if o.Prefix != "" && (!strings.HasPrefix(o.Prefix, "/") || strings.HasSuffix(o.Prefix, "/")) {
		return nil, fmt.Errorf("httpapi: Options.Prefix is %q: it begins with a slash and does not end with one", o.Prefix)
	}
	if o.Title == "" {
		o.Title = "recrawl"
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Concurrent <= 0 {
		o.Concurrent = 4
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{o: o, mux: http.NewServeMux(), slots: make(chan struct{}, o.Concurrent)}
	var err error
	if h.pages, err = newTemplates(); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	routes := h.routes()
	if h.spec, err = openAPI(routes, o.Prefix); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	for _, rt := range routes {
		h.mux.Handle(rt.method+" "+rt.path, h.endpoint(rt))
	}
	return h, nil
}

// ActionOf returns what a request does to a handler with a prefix.
func ActionOf(r *http.Request, prefix string) Action {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ActionRead
	}
	path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, prefix), ".json")
	for _, rt := range (&Handler{}).routes() {
		if rt.method == http.MethodPost && samePattern(rt.path, path) {
			return rt.action
		}
	}
	return "unknown"
}

func samePattern(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !strings.HasPrefix(a[i], "{") {
			return false
		}
	}
	return true
}

// request is one request that is being answered.
type request struct {
	*http.Request
	h    *Handler
	json bool
	form url.Values // of a POST
	now  time.Time
}

// route is one path.
type route struct {
	method, path string
	action       Action
	summary      string
	params       []param
	answer       func(r *request) (any, error)
	result       any    // a value of the type that answer returns
	template     string // empty for a POST
	title        string
}

// param is a parameter of a request, in the query or the body.
type param struct{ name, description string }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w.Header())
	path, ok := strings.CutPrefix(r.URL.Path, h.o.Prefix)
	if ok && path == "" && h.o.Prefix != "" {
		http.Redirect(w, r, h.o.Prefix+"/", http.StatusPermanentRedirect)
		return
	}
	if !ok || !strings.HasPrefix(path, "/") {
		http.NotFound(w, r)
		return
	}
	asJSON := prefersJSON(r)
	if err := h.o.Guard.Check(r, ActionOf(r, h.o.Prefix)); err != nil {
		h.fail(w, r, asJSON, refusal{err})
		return
	}
	switch path {
	case "/style.css":
		h.pages.serveFile(w, r, "style.css", "text/css; charset=utf-8")
		return
	case "/icon.svg":
		h.pages.serveFile(w, r, "icon.svg", "image/svg+xml")
		return
	case "/openapi.json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(h.spec)
		return
	case "/index.json":
		path = "/.json"
	}
	inner := new(http.Request)
	*inner = *r
	inner.URL = new(url.URL)
	*inner.URL = *r.URL
	inner.URL.RawPath = ""
	if inner.URL.Path, ok = strings.CutSuffix(path, ".json"); ok {
		asJSON = true
		inner.Header = r.Header.Clone()
		inner.Header.Set("Accept", "application/json")
	}
	if _, pattern := h.mux.Handler(inner); pattern == "" {
		h.fail(w, r, asJSON, errNoPage)
		return
	}
	h.mux.ServeHTTP(w, inner)
}

var errNoPage = errors.New("there is no such page")

// prefersJSON reports whether a request asks for JSON.
func prefersJSON(r *http.Request) bool {
	if strings.HasSuffix(r.URL.Path, ".json") || r.URL.Query().Get("format") == "json" {
		return true
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// endpoint answers the requests of a route.
func (h *Handler) endpoint(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		ctx, cancel := context.WithTimeout(r.Context(), h.o.Timeout)
		defer cancel()
		q := &request{Request: r.WithContext(ctx), h: h, json: prefersJSON(r), now: h.o.Now().UTC()}
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		case <-ctx.Done():
			h.fail(w, r, q.json, errBusy)
			return
		}
		if rt.method == http.MethodPost {
			if err := q.readForm(w); err != nil {
				h.fail(w, r, q.json, err)
				return
			}
		}
		v, err := rt.answer(q)
		if err != nil {
			h.fail(w, r, q.json, err)
			return
		}
		switch {
		case q.json:
			writeJSON(w, http.StatusOK, v)
		case rt.method == http.MethodPost:
			done := v.(result)
			http.Redirect(w, r, h.o.Prefix+"/controls?"+url.Values{"done": {done.Done}, "n": {fmt.Sprint(done.Count)}}.Encode(), http.StatusSeeOther)
		default:
			h.pages.serve(w, q, rt, v)
		}
	})
}

var errBusy = errors.New("too many requests are being answered")

// badRequest is an error that the request caused.
type badRequest struct{ error }

func badRequestf(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// readForm reads the body of a POST: a form, or an object of JSON with the same names, whose values are
// strings, numbers, booleans and lists of them.
func (q *request) readForm(w http.ResponseWriter) error {
	q.Body = http.MaxBytesReader(w, q.Body, 1<<20)
	if kind, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type")); kind != "application/json" {
		if err := q.ParseForm(); err != nil {
			return badRequest{err}
		}
		q.form = q.PostForm
		return nil
	}
	var object map[string]any
	if err := json.NewDecoder(q.Body).Decode(&object); err != nil {
		return badRequestf("the body is no object of JSON: %w", err)
	}
	q.form = url.Values{}
	for name, v := range object {
		if list, ok := v.([]any); ok {
			for _, v := range list {
				q.form.Add(name, fmt.Sprint(v))
			}
		} else {
			q.form.Set(name, fmt.Sprint(v))
		}
	}
	return nil
}

// refusal is an error of the guard, of any kind.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// failure is how an error is shown.
type failure struct {
	Status int    `json:"status"`
	Error  string `json:"error"`
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, asJSON bool, err error) {
	f := failure{http.StatusInternalServerError, err.Error()}
	var bad badRequest
	var refused refusal
	switch {
	case errors.Is(err, ErrUnauthenticated):
		f.Status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", challenge)
	case errors.As(err, &refused):
		f.Status = http.StatusForbidden
	case errors.As(err, &bad) || errors.Is(err, urlfilter.ErrInvalid) || errors.Is(err, urlfilter.ErrRejected) || errors.Is(err, recrawl.ErrHost) || errors.Is(err, ErrQuery):
		f.Status = http.StatusBadRequest
	case errors.Is(err, errNoPage) || errors.Is(err, crawldb.ErrNotFound) || errors.Is(err, hostdb.ErrNotFound) || errors.Is(err, recrawl.ErrNoConsumer):
		f.Status = http.StatusNotFound
	case errors.Is(err, errBusy) || errors.Is(err, context.DeadlineExceeded):
		f.Status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case r.Context().Err() != nil:
		return
	default:
		h.o.Logger.Error("httpapi: a request failed", "path", r.URL.Path, "error", err)
	}
	if asJSON {
		writeJSON(w, f.Status, f)
		return
	}
	q := &request{Request: r, h: h, now: h.o.Now().UTC()}
	h.pages.serveStatus(w, q, f.Status, route{template: "failure", title: http.StatusText(f.Status)}, f)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// may reports whether the user of a request may do something.
func (q *request) may(a Action) bool { return q.h.o.Guard.authorize(q.Request, a) == nil }
