package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// The process that has a store open serves its pages on a Unix socket, which only its user can
// open. A process that serves them to others authorizes each request, and names the allowed
// actions in a header of it.

const (
	socketName   = "pages.sock"
	socketFile   = "pages.json" // names the socket
	allowHeader  = "Recrawl-Allow"
	maxSocketLen = 100 // a path of a Unix socket has 104 bytes or more, by system
)

type socketAt struct{ Path string }

// servePages serves the pages of a crawl to other processes of the user, until the context ends.
// What keeps it from that does not stop a crawl.
func servePages(ctx context.Context, db *pebblestore.DB, crawler *recrawl.Crawler, run string) {
	path := filepath.Join(run, socketName)
	if len(path) > maxSocketLen {
		dir, err := os.MkdirTemp("", "recrawl-")
		if err != nil {
			return
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, socketName)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return
	}
	defer l.Close()
	if os.Chmod(path, 0o600) != nil || writeJSON(run, socketFile, socketAt{path}) != nil {
		return
	}
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	pages := sync.OnceValues(func() (http.Handler, error) { return NewPages(crawler, stores, db.Dir(), nil, nil) })
	server := http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := pages()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	<-ctx.Done()
	_ = server.Close()
	<-done
}

// NewPages returns the pages of a crawl for requests that [AllowIn] has been called for. The clock and the search may
// be nil.
func NewPages(crawler *recrawl.Crawler, stores recrawl.Stores, name string, now func() time.Time, search httpapi.Searcher) (http.Handler, error) {
	return httpapi.New(httpapi.Options{
		Crawler: crawler, Stores: stores, Title: "recrawl: " + filepath.Base(name), Now: now, Markdown: markdown, Search: search,
		Guard: httpapi.Guard{Hosts: []string{"*"}, Authorize: func(r *http.Request, a httpapi.Action) error {
			for allowed := range strings.SplitSeq(r.Header.Get(allowHeader), ",") {
				if allowed == string(a) {
					return nil
				}
			}
			return fmt.Errorf("%w: this page is read-only for you", httpapi.ErrForbidden)
		}},
	})
}

// markdown is the main content of a page.
func markdown(ctx context.Context, c *page.Content) (string, error) {
	a, err := extract.Extract(ctx, c)
	if err != nil {
		return "", err
	}
	return a.Markdown()
}

// AllowIn sets the actions that the handlers of this package allow in a request.
func AllowIn(r *http.Request, actions []httpapi.Action) {
	var names []string
	for _, a := range actions {
		names = append(names, string(a))
	}
	r.Header.Set(allowHeader, strings.Join(names, ","))
}

// Pages returns the pages of the process that has the store in dir open for writing; fs.ErrNotExist if there is
// none that serves them.
func Pages(dir string) (http.Handler, error) {
	if used, err := pebblestore.InUse(dir); err != nil {
		return nil, err
	} else if !used {
		return nil, fs.ErrNotExist
	}
	var at socketAt
	if _, err := readJSON(pebblestore.RunDir(dir), socketFile, &at); err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at.Path)
	}}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "recrawl"
			p.Out.Host = p.In.Host
			p.Out.Header.Del("Authorization") // of no concern to the other process
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, context.Canceled) {
				return
			}
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the process of the crawl does not answer: "+err.Error(), http.StatusServiceUnavailable)
		},
	}, nil
}
