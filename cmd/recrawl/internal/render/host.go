package render

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// Host prints what is known about a host.
func Host(w *bufio.Writer, h *hostdb.Host) {
	s := h.Stats
	fmt.Fprintf(w, "%s\tnext %s\tcrawl-delay %v\tbackoff %d\tfetched %d\tnotmodified %d\tredirected %d\tgone %d\tfailed %d, %d in a row\t%s\n",
		h.Name, Time(h.NextFetch), h.CrawlDelay, h.Backoff, s.Fetched, s.NotModified, s.Redirected, s.Gone, s.Failed, s.Failures, Size(s.Bytes))
	for _, r := range h.Robots {
		fmt.Fprintf(w, "\trobots.txt %s\tstatus %d\t%d bytes\tfetched %s\texpires %s\n", r.Origin, r.Status, len(r.Body), Time(r.Fetched), Time(r.Expires))
	}
	if h.Counted.IsZero() {
		return
	}
	p := h.Pages
	fmt.Fprintf(w, "\tpages, as of %s: unfetched %d, fetched %d, notmodified %d, gone %d, redir_temp %d, redir_perm %d, duplicate %d, orphan %d, parse_failed %d, overdue %d, retried %d\n",
		Time(h.Counted), p.Unfetched, p.Fetched, p.NotModified, p.Gone, p.RedirTemp, p.RedirPerm, p.Duplicate, p.Orphan, p.ParseFailed, h.Overdue, h.ConnectionFailures)
	if h.Homepage != "" {
		fmt.Fprintf(w, "\thomepage %s\n", h.Homepage)
	}
	if !h.LastCheck.IsZero() {
		fmt.Fprintf(w, "\tname looked up %s\tfailures %d\n", Time(h.LastCheck), h.DNSFailures)
	}
	if h.Score != 0 {
		fmt.Fprintf(w, "\tscore %v\n", h.Score)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Fields)) {
		fmt.Fprintf(w, "\t%s\t%v\n", Printable(name), h.Fields[name])
	}
}

// HostJSON is a host under the names of docs/json.md.
type HostJSON struct {
	Name       string       `json:"name"`
	NextFetch  *time.Time   `json:"next_fetch,omitempty"`
	LastFetch  *time.Time   `json:"last_fetch,omitempty"`
	CrawlDelay float64      `json:"crawl_delay_seconds"`
	Backoff    int          `json:"backoff"`
	Stats      visitsJSON   `json:"stats"`
	Robots     []robotsJSON `json:"robots,omitempty"`
	// Statistics are absent until they have been computed.
	Counted            *time.Time         `json:"counted,omitempty"`
	Pages              map[string]int64   `json:"pages,omitempty"`
	Homepage           string             `json:"homepage,omitempty"`
	Score              float32            `json:"score,omitempty"`
	DNSFailures        int64              `json:"dns_failures,omitempty"`
	ConnectionFailures int64              `json:"connection_failures,omitempty"`
	LastCheck          *time.Time         `json:"last_check,omitempty"`
	Overdue            int64              `json:"overdue,omitempty"`
	Fields             map[string]float64 `json:"fields,omitempty"`
	Lastmod            *LastmodJSON       `json:"lastmod,omitempty"`
}

// visitsJSON is hostdb.Stats under its JSON names.
type visitsJSON struct {
	Fetched      int64 `json:"fetched"`
	NotModified  int64 `json:"not_modified"`
	Redirected   int64 `json:"redirected"`
	Gone         int64 `json:"gone"`
	Failed       int64 `json:"failed"`
	RobotsDenied int64 `json:"robots_denied"`
	Bytes        int64 `json:"bytes"`
	Failures     int64 `json:"failures_in_a_row"`
}

type robotsJSON struct {
	Origin  string     `json:"origin"`
	Status  int        `json:"status"`
	Bytes   int        `json:"bytes"`
	Fetched *time.Time `json:"fetched,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
}

// NewHostJSON returns a host for JSON.
func NewHostJSON(h *hostdb.Host) HostJSON {
	j := HostJSON{Name: h.Name, NextFetch: TimeOrNil(h.NextFetch), LastFetch: TimeOrNil(h.LastFetch), CrawlDelay: h.CrawlDelay.Seconds(), Backoff: h.Backoff, Stats: visitsJSON(h.Stats),
		Counted: TimeOrNil(h.Counted), Homepage: h.Homepage, Score: h.Score, DNSFailures: h.DNSFailures, ConnectionFailures: h.ConnectionFailures,
		LastCheck: TimeOrNil(h.LastCheck), Overdue: h.Overdue, Fields: h.Fields}
	if p := h.Pages; !h.Counted.IsZero() {
		j.Pages = map[string]int64{"unfetched": p.Unfetched, "fetched": p.Fetched, "gone": p.Gone, "redir_temp": p.RedirTemp, "redir_perm": p.RedirPerm,
			"notmodified": p.NotModified, "duplicate": p.Duplicate, "orphan": p.Orphan, "parse_failed": p.ParseFailed}
	}
	if l := h.Signals; l != (hostdb.SignalStats{}) {
		j.Lastmod = &LastmodJSON{l.Hits, l.False, l.Misses, l.Trusted()}
	}
	for _, r := range h.Robots {
		j.Robots = append(j.Robots, robotsJSON{r.Origin, r.Status, len(r.Body), TimeOrNil(r.Fetched), TimeOrNil(r.Expires)})
	}
	return j
}

// LastmodJSON says how often the lastmod of the sitemaps of a host was true.
type LastmodJSON struct {
	Hits    int64 `json:"hits"`
	False   int64 `json:"false"`
	Misses  int64 `json:"misses"`
	Trusted bool  `json:"trusted"`
}
