package httpapi

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/recrawl/recrawl/segment"
)

// Hit is a page that a search has found.
type Hit struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	// Snippet is a part of the text, without markup; empty if the page asks that no copy of it be shown.
	Snippet string  `json:"snippet,omitempty"`
	Score   float64 `json:"score,omitempty"`
}

// ErrQuery is the error that a [Searcher] wraps if it cannot read the query. It is answered with status 400.
var ErrQuery = errors.New("the query cannot be read")

type searchResult struct {
	Query string `json:"query"`
	Hits  []Hit  `json:"hits"`
	// Complete says that all pages were searched, and not only as many as a second allowed.
	Complete bool `json:"complete"`
}

func (h *Handler) search(q *request) (any, error) {
	r := searchResult{Query: strings.TrimSpace(q.URL.Query().Get("q")), Hits: []Hit{}, Complete: true}
	limit, err := strconv.Atoi(q.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 20
	}
	if r.Query == "" {
		return r, nil
	}
	if h.o.Search != nil {
		hits, err := h.o.Search.Search(q.Context(), r.Query, limit)
		r.Hits = append(r.Hits, hits...)
		return r, err
	}
	wanted := strings.FieldsFunc(strings.ToLower(r.Query), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
	r.Hits, r.Complete, err = h.scanTexts(q.Context(), wanted, limit)
	return r, err
}

// scanTexts looks for pages whose titles, URLs and texts have all the words, in the segments, newest first,
// for a second.
func (h *Handler) scanTexts(ctx context.Context, wanted []string, limit int) (hits []Hit, complete bool, err error) {
	names, err := h.newestSegments(ctx)
	if err != nil {
		return nil, false, err
	}
	s := textScan{wanted: wanted, limit: limit, began: time.Now(), seen: map[string]bool{}, hits: []Hit{}}
	for _, name := range names {
		more, err := s.segment(ctx, h.o.Stores.Segments, name)
		if err != nil {
			return nil, false, err
		}
		if !more {
			return s.hits, false, nil
		}
	}
	return s.hits, true, nil
}

// textScan is one search in the segments.
type textScan struct {
	wanted []string
	limit  int
	began  time.Time
	seen   map[string]bool // URLs
	hits   []Hit
}

// segment looks for pages in a segment. It returns false when there are enough hits or the second is over.
func (s *textScan) segment(ctx context.Context, store segment.Store, name string) (more bool, err error) {
	nextData, stop := iter.Pull2(segment.Partial[segment.Data](ctx, store, name, 0)) // block by block, as the texts
	defer stop()
	for texts, err := range segment.Blocks[segment.Text](ctx, store, name, 0) {
		if skip, err := unreadable(ctx, err); skip || err != nil {
			return skip, err
		}
		data, err, _ := nextData()
		if skip, err := unreadable(ctx, err); skip || err != nil {
			return skip, err
		}
		if s.block(texts, data); len(s.hits) == s.limit || time.Since(s.began) > time.Second {
			return false, nil
		}
	}
	return true, nil
}

func (s *textScan) block(texts []segment.Text, data []segment.Data) {
	parsed := map[string]*segment.Data{}
	for i := range data {
		parsed[data[i].URL] = &data[i]
	}
	for i := range texts {
		t := &texts[i]
		if s.seen[t.URL] || parsed[t.URL] == nil {
			continue
		}
		s.seen[t.URL] = true
		d := &parsed[t.URL].Parsed
		where, ok := findWords(strings.ToLower(d.Title+" "+t.URL), strings.ToLower(t.Text), s.wanted)
		if !ok || d.NoIndex {
			continue
		}
		hit := Hit{URL: t.URL, Title: d.Title}
		if !d.NoArchive {
			hit.Snippet = snippet(t.Text, where)
		}
		if s.hits = append(s.hits, hit); len(s.hits) == s.limit {
			return
		}
	}
}

// findWords reports whether a page has all the words, and where its text has the first of them.
func findWords(title, text string, wanted []string) (where int, ok bool) {
	where = -1
	for _, w := range wanted {
		i := strings.Index(text, w)
		if i < 0 && !strings.Contains(title, w) {
			return 0, false
		}
		if where < 0 {
			where = i
		}
	}
	return max(where, 0), len(wanted) > 0
}

// snippet is a part of a text near a place, which may be a little wrong: letters in lower case may have
// other lengths.
func snippet(text string, where int) string {
	from := max(0, min(where, len(text))-80)
	for from > 0 && from < len(text) && text[from-1] != ' ' {
		from++
	}
	s := strings.ToValidUTF8(strings.Join(strings.Fields(text[from:min(len(text), from+300)]), " "), "")
	if from > 0 {
		s = "… " + s
	}
	return s
}
