package httpapi

import (
	"net/http"

	"github.com/recrawl/recrawl"
)

// Options say what a [Handler] shows.
type Options struct {
	// Crawler and Stores are the crawl.
	Crawler *recrawl.Crawler
	Stores  recrawl.Stores
}

// Handler serves the pages and the JSON of a crawl.
type Handler struct {
	o Options
}

// New returns a handler.
func New(o Options) *Handler { return &Handler{o} }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
