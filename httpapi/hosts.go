package httpapi

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// listed is how many entries a part of a list has, and scanned how many records are read for it.
const (
	listed  = 100
	scanned = 50_000
)

// hostList is a part of the hosts.
type hostList struct {
	Query string      `json:"query,omitempty"`
	Hosts []hostState `json:"hosts"`
	Next  string      `json:"next,omitempty"` // the query of the next part
}

// hostState is what is known of a host.
type hostState struct {
	Host      string     `json:"host"`
	Known     bool       `json:"known"` // whether it was ever asked
	Paused    bool       `json:"paused"`
	NextFetch time.Time  `json:"next_fetch,omitzero"`
	LastFetch time.Time  `json:"last_fetch,omitzero"`
	Requests  int        `json:"requests_under_way"`
	Backoff   int        `json:"backoff"`
	Elapsed   float64    `json:"mean_seconds"`
	Delay     float64    `json:"crawl_delay_seconds"`
	Stats     hostVisits `json:"visits"`
}

// hostVisits is hostdb.Stats under its JSON names.
type hostVisits struct {
	Fetched      int64 `json:"fetched"`
	NotModified  int64 `json:"not_modified"`
	Redirected   int64 `json:"redirected"`
	Gone         int64 `json:"gone"`
	Failed       int64 `json:"failed"`
	RobotsDenied int64 `json:"robots_denied"`
	Bytes        int64 `json:"bytes"`
	Failures     int64 `json:"failures_in_a_row"`
}

func newHostState(name string, h *hostdb.Host, now time.Time) hostState {
	s := hostState{Host: name}
	if h == nil {
		return s
	}
	s.Known, s.NextFetch, s.LastFetch, s.Backoff = true, h.NextFetch, h.LastFetch, max(h.Backoff-1, 0)
	s.Elapsed, s.Delay = h.Elapsed.Seconds(), h.CrawlDelay.Seconds()
	s.Paused = h.NextFetch.Sub(now) > time.Minute
	for _, end := range h.Grants {
		if end.After(now) {
			s.Requests++
		}
	}
	s.Stats = hostVisits(h.Stats)
	return s
}

func (h *Handler) hosts(q *request) (any, error) {
	list := hostList{Query: q.URL.Query().Get("q"), Hosts: []hostState{}}
	within := crawldb.Range{}
	if list.Query != "" {
		within = crawldb.DomainRange(strings.ToLower(strings.TrimSpace(list.Query)))
	}
	from := within.From
	if after := q.URL.Query().Get("after"); after != "" {
		from = max(from, crawldb.HostRange(after).To)
	}
	for began := time.Now(); ; {
		host, next, err := h.nextHost(q.Context(), crawldb.Range{From: from, To: within.To})
		if err != nil {
			return nil, err
		}
		if host == "" {
			return list, nil
		}
		state, err := h.hostState(q.Context(), host)
		if err != nil {
			return nil, err
		}
		list.Hosts, from = append(list.Hosts, state), next
		if len(list.Hosts) == listed || time.Since(began) > time.Second {
			list.Next = "?" + url.Values{"q": {list.Query}, "after": {host}}.Encode()
			return list, nil
		}
	}
}

// nextHost returns the host of the first record in a range, and the key after its records. Records
// without a host are left out.
func (h *Handler) nextHost(ctx context.Context, within crawldb.Range) (host, next string, err error) {
	for n := 0; n < scanned; n++ {
		key := ""
		for d, err := range h.o.Stores.Crawl.Scan(ctx, within) {
			if err != nil {
				return "", "", err
			}
			key, host = crawldb.Key(d.URL), hostdb.ByHost.Key(d.URL)
			break
		}
		if key == "" {
			return "", "", nil
		}
		if all := crawldb.HostRange(host); host != "" && all.Contains(key) {
			return host, all.To, nil
		}
		within.From = key + "\x00"
	}
	return "", "", nil
}

func (h *Handler) hostState(ctx context.Context, name string) (hostState, error) {
	host, err := h.o.Stores.Hosts.Get(ctx, name)
	if errors.Is(err, hostdb.ErrNotFound) {
		return newHostState(name, nil, time.Now()), nil
	}
	if err != nil {
		return hostState{}, err
	}
	return newHostState(name, &host, time.Now()), nil
}

// hostStory is all that is known of a host.
type hostStory struct {
	hostState
	Signals  signalTrust  `json:"signals"`
	Robots   []robotsFile `json:"robots"`
	Homepage string       `json:"homepage,omitempty"`
	URLs     []urlState   `json:"urls"` // the first ones
	Next     string       `json:"next,omitempty"`
	MayPause bool         `json:"-"`
}

// signalTrust is how far signals of changes on a host are believed.
type signalTrust struct {
	Hits      int64   `json:"true"`
	False     int64   `json:"false"`
	Misses    int64   `json:"missed"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	Known     bool    `json:"known"`
	Trusted   bool    `json:"trusted"`
}

type robotsFile struct {
	Origin  string    `json:"origin"`
	Status  int       `json:"status"`
	Body    string    `json:"body"`
	Fetched time.Time `json:"fetched,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

func (h *Handler) host(q *request) (any, error) {
	name := strings.ToLower(q.PathValue("host"))
	s := hostStory{Robots: []robotsFile{}, MayPause: q.may(ActionPauseHost)}
	host, err := h.o.Stores.Hosts.Get(q.Context(), name)
	known := err == nil
	switch {
	case known:
		s.hostState = newHostState(name, &host, time.Now())
		s.Homepage = host.Homepage
		g := host.Signals
		s.Signals = signalTrust{g.Hits, g.False, g.Misses, g.Precision(), g.Recall(), g.Known(), g.Trusted()}
		for _, r := range host.Robots {
			s.Robots = append(s.Robots, robotsFile{r.Origin, r.Status, strings.ToValidUTF8(cut(string(r.Body), 20_000), "\ufffd"), r.Fetched, r.Expires})
		}
	case errors.Is(err, hostdb.ErrNotFound):
		s.hostState = newHostState(name, nil, time.Now())
	default:
		return nil, err
	}
	list, err := h.listURLs(q.Context(), urlQuery{within: crawldb.HostRange(name), limit: 20}, q.now)
	if err != nil {
		return nil, err
	}
	if s.URLs = list.URLs; len(s.URLs) == 0 && !known {
		return nil, errNoHost
	}
	if list.last != "" {
		s.Next = "?" + url.Values{"q": {name}, "after": {list.last}}.Encode()
	}
	return s, nil
}

var errNoHost = notFound("the crawl has no such host")
