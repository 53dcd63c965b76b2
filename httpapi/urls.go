package httpapi

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// urlList is a part of the records.
type urlList struct {
	Query   string     `json:"query,omitempty"`
	Status  string     `json:"status,omitempty"`
	Only    string     `json:"only,omitempty"`
	URLs    []urlState `json:"urls"`
	Scanned int        `json:"scanned"` // records that were read for it
	Next    string     `json:"next,omitempty"`
	last    string     // the last URL that was read, if there are more
}

// Statuses are the names of all statuses.
func (urlList) Statuses() (names []string) {
	for _, s := range crawldb.Statuses() {
		names = append(names, s.String())
	}
	return names
}

// urlState is a record.
type urlState struct {
	URL       string    `json:"url"`
	Status    string    `json:"status"`
	NextFetch time.Time `json:"next_fetch,omitzero"`
	LastFetch time.Time `json:"last_fetch,omitzero"`
	Modified  time.Time `json:"modified,omitzero"`
	Interval  float64   `json:"interval_seconds"`
	Score     float32   `json:"score"`
	Priority  float32   `json:"priority"`
	Retries   int       `json:"retries"`
	Due       bool      `json:"due"`
	Leased    string    `json:"leased_by,omitempty"`
	Seed      bool      `json:"seed"`
}

func newURLState(d *crawldb.Datum, now time.Time) urlState {
	s := urlState{
		URL: d.URL, Status: d.Status.String(), NextFetch: d.FetchTime, LastFetch: d.LastFetch, Modified: d.Modified, Interval: d.Interval.Seconds(),
		Score: d.Score, Priority: d.Priority, Retries: d.Retries, Due: !d.FetchTime.After(now), Seed: d.IsSeed(),
	}
	if d.Leased(now) {
		s.Leased = d.LeasedBy
	}
	return s
}

// urlQuery says which records are listed.
type urlQuery struct {
	within crawldb.Range
	limit  int
	want   func(*crawldb.Datum) bool // nil for all
}

func (h *Handler) urls(q *request) (any, error) {
	given := q.URL.Query()
	query := urlQuery{limit: listed, within: rangeOf(given.Get("q"))}
	status, only := given.Get("status"), given.Get("only")
	var wanted crawldb.Status
	if status != "" {
		var err error
		if wanted, err = crawldb.ParseStatus(status); err != nil {
			return nil, badRequest{err}
		}
	}
	if only != "" && only != "due" && only != "seeds" {
		return nil, badRequestf("only is %q, not due or seeds", only)
	}
	query.want = func(d *crawldb.Datum) bool {
		return (status == "" || d.Status == wanted) && (only != "due" || !d.FetchTime.After(q.now) && !d.Leased(q.now)) && (only != "seeds" || d.IsSeed())
	}
	if after := given.Get("after"); after != "" {
		query.within.From = max(query.within.From, crawldb.Key(after)+"\x00")
	}
	list, err := h.listURLs(q.Context(), query, q.now)
	if err != nil {
		return nil, err
	}
	list.Query, list.Status, list.Only = given.Get("q"), status, only
	if list.last != "" {
		list.Next = "?" + url.Values{"q": {list.Query}, "status": {status}, "only": {only}, "after": {list.last}}.Encode()
	}
	return list, nil
}

// listURLs lists records. It reads at most scanned of them, and no longer than a second.
func (h *Handler) listURLs(ctx context.Context, query urlQuery, now time.Time) (urlList, error) {
	list, began := urlList{URLs: []urlState{}}, time.Now()
	for d, err := range h.o.Stores.Crawl.Scan(ctx, query.within) {
		if err != nil {
			return list, err
		}
		if len(list.URLs) == query.limit || list.Scanned == scanned || list.Scanned%1000 == 999 && time.Since(began) > time.Second {
			return list, nil
		}
		list.Scanned, list.last = list.Scanned+1, d.URL
		if query.want == nil || query.want(&d) {
			list.URLs = append(list.URLs, newURLState(&d, now))
		}
	}
	list.last = "" // there are no more
	return list, nil
}

// rangeOf returns the range of the URLs that begin with a text, or belong to a domain.
func rangeOf(text string) crawldb.Range {
	text = strings.TrimSpace(text)
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case text == "":
		return crawldb.Range{}
	case ok && !strings.Contains(rest, "/"):
		host, _, _ := strings.Cut(rest, ":")
		r := crawldb.HostRange(host)
		key := r.From + scheme + ":"
		return crawldb.Range{From: key, To: key + "\xff"}
	case ok:
		key := crawldb.Key(text)
		return crawldb.Range{From: key, To: key + "\xff"}
	}
	if host, path, ok := strings.Cut(text, "/"); ok {
		return rangeOf("https://" + host + "/" + path)
	}
	return crawldb.DomainRange(text)
}

// notFound is an error for what the crawl does not have.
type notFound string

func (n notFound) Error() string        { return string(n) }
func (n notFound) Is(target error) bool { return target == errNoPage }
