// Package signals receives signs from outside that pages have changed: WebSub, in which hubs send what is new
// in a feed, and IndexNow, in which sites name URLs. Each becomes a recrawl.Crawler.Signal, which decides by
// what signals of the host have proved to be worth. The package starts no server: its types are
// http.Handlers that a service mounts where the senders can reach them. Signs of known senders go to the
// endpoint /signal of package httpapi. Start with NewWebSub or NewIndexNow.
package signals

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/urlfilter"
)

// Signal takes a sign that a page changed at a time, or now if that is zero. It is
// recrawl.Crawler.Signal.
type Signal func(ctx context.Context, url string, at time.Time) error

// send passes signs on, and returns how many were of pages that the crawl has.
func (s Signal) send(ctx context.Context, changes []change) (taken int, err error) {
	for _, c := range changes {
		switch err := s(ctx, c.url, c.at); {
		case err == nil:
			taken++
		case errors.Is(err, crawldb.ErrNotFound) || errors.Is(err, urlfilter.ErrRejected) || errors.Is(err, urlfilter.ErrInvalid):
		default:
			return taken, err
		}
	}
	return taken, nil
}

// change is a page that is said to have changed.
type change struct {
	url string
	at  time.Time // zero if it is not said
}

// maxBody limits what a request may send.
const maxBody = 2 << 20

// publicClient returns a client that connects to public addresses only, as a crawler does.
func publicClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: httpproto.Guard{}.Control}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second}}
}

func loggerOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
