package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/nutch/nutchtext"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) hosts() *cli.Command {
	return &cli.Command{
		Name: "hosts", Aliases: []string{"readhostdb"}, Category: looking, Usage: "show what is known about each host",
		Description: `Shows when each host may be visited again, the answer to its robots.txt, how its
visits ended, and its statistics, once updatehostdb has computed them.

  recrawl hosts -d crawl
  recrawl hosts -d crawl -get example.com
  recrawl hosts -d crawl -expr 'gone > fetched' -dumpHostnames
  recrawl hosts -d crawl -json | jq '.hosts[] | select(.backoff > 0)'`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "get", Usage: "show only this `HOST`"},
			&cli.StringFlag{Name: "expr", Usage: "show only hosts for which this `EXPRESSION` is true; its names are unfetched, fetched, notModified, redirTemp, redirPerm, redirs, gone, ok, numRecords, dnsFailures, connectionFailures, score, host, homepage and the other figures, such as avg._rs_"},
			&cli.BoolFlag{Name: "dumpHomepages", Usage: "show only the URLs of home pages, where known"},
			&cli.BoolFlag{Name: "dumpHostnames", Usage: "show only the names"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT`: text, or nutch for the output of Nutch's readhostdb, with times in UTC (default text)", Value: "text"},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if f := c.String("format"); f != "text" && f != "nutch" {
				return usagef("-format: %q is not one of text and nutch", f)
			}
			if c.IsSet("get") && c.String("get") == "" {
				return usagef("-get needs the name of a host")
			}
			var keep func(*hostdb.Host) (bool, error)
			if c.IsSet("expr") {
				var err error
				if keep, err = expression.HostFilter(c.String("expr")); err != nil {
					return usagef("-expr: %w", err)
				}
			}
			if c.Bool("dumpHomepages") && c.Bool("dumpHostnames") {
				return usagef("-dumpHomepages and -dumpHostnames exclude each other")
			}
			return a.reading(ctx, c, func(db *pebblestore.DB, _ func() time.Time) error {
				scan := db.Hosts().Scan(ctx)
				if name := c.String("get"); name != "" {
					h, err := db.Hosts().Get(ctx, strings.ToLower(name))
					if errors.Is(err, hostdb.ErrNotFound) {
						return fmt.Errorf("no record of host %q", name)
					}
					scan = func(yield func(hostdb.Host, error) bool) { yield(h, err) }
				}
				return a.showHosts(c, scan, keep)
			})
		},
	}
}

// showHosts shows the hosts for which keep is true, or all if keep is nil.
func (a *app) showHosts(c *cli.Command, hosts iter.Seq2[hostdb.Host, error], keep func(*hostdb.Host) (bool, error)) error {
	w := bufio.NewWriter(a.out)
	all := []hostJSON{}
	show := printHost
	switch {
	case c.Bool("dumpHomepages"):
		show = func(w *bufio.Writer, h *hostdb.Host) {
			if h.Homepage != "" {
				fmt.Fprintln(w, h.Homepage)
			}
		}
	case c.Bool("dumpHostnames"):
		show = func(w *bufio.Writer, h *hostdb.Host) { fmt.Fprintln(w, h.Name) }
	case c.Bool("json"):
		show = func(_ *bufio.Writer, h *hostdb.Host) { all = append(all, host(h)) }
	case c.String("format") == "nutch":
		if !c.IsSet("get") {
			fmt.Fprintln(w, nutchtext.HostHeader())
		}
		show = func(w *bufio.Writer, h *hostdb.Host) { w.Write(nutchtext.AppendHost(nil, h)) }
	}
	unfit := 0
	for h, err := range hosts {
		if err != nil {
			return err
		}
		if keep != nil {
			ok, err := keep(&h)
			switch {
			case errors.Is(err, expression.ErrValue):
				unfit++
				continue
			case err != nil:
				return err
			case !ok:
				continue
			}
		}
		show(w, &h)
	}
	if unfit > 0 {
		fmt.Fprintf(a.err, "recrawl: the expression is neither true nor false for %d hosts, which are left out\n", unfit)
	}
	if c.Bool("json") && !c.Bool("dumpHomepages") && !c.Bool("dumpHostnames") {
		return a.printJSON(map[string]any{"hosts": all})
	}
	return w.Flush()
}

func printHost(w *bufio.Writer, h *hostdb.Host) {
	s := h.Stats
	fmt.Fprintf(w, "%s\tnext %s\tcrawl-delay %v\tbackoff %d\tfetched %d\tnotmodified %d\tredirected %d\tgone %d\tfailed %d, %d in a row\t%s\n",
		h.Name, stamp(h.NextFetch), h.CrawlDelay, h.Backoff, s.Fetched, s.NotModified, s.Redirected, s.Gone, s.Failed, s.Failures, size(s.Bytes))
	for _, r := range h.Robots {
		fmt.Fprintf(w, "\trobots.txt %s\tstatus %d\t%d bytes\tfetched %s\texpires %s\n", r.Origin, r.Status, len(r.Body), stamp(r.Fetched), stamp(r.Expires))
	}
	if h.Counted.IsZero() {
		return
	}
	p := h.Pages
	fmt.Fprintf(w, "\tpages, as of %s: unfetched %d, fetched %d, notmodified %d, gone %d, redir_temp %d, redir_perm %d, duplicate %d, orphan %d, parse_failed %d, overdue %d, retried %d\n",
		stamp(h.Counted), p.Unfetched, p.Fetched, p.NotModified, p.Gone, p.RedirTemp, p.RedirPerm, p.Duplicate, p.Orphan, p.ParseFailed, h.Overdue, h.ConnectionFailures)
	if h.Homepage != "" {
		fmt.Fprintf(w, "\thomepage %s\n", h.Homepage)
	}
	if !h.LastCheck.IsZero() {
		fmt.Fprintf(w, "\tname looked up %s\tfailures %d\n", stamp(h.LastCheck), h.DNSFailures)
	}
	if h.Score != 0 {
		fmt.Fprintf(w, "\tscore %v\n", h.Score)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Fields)) {
		fmt.Fprintf(w, "\t%s\t%v\n", printable(name), h.Fields[name])
	}
}

type hostJSON struct {
	Name       string       `json:"name"`
	NextFetch  *time.Time   `json:"next_fetch,omitempty"`
	LastFetch  *time.Time   `json:"last_fetch,omitempty"`
	CrawlDelay float64      `json:"crawl_delay_seconds"`
	Backoff    int          `json:"backoff"`
	Stats      statistics   `json:"stats"`
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
	Lastmod            *lastmodJSON       `json:"lastmod,omitempty"`
}

// statistics is hostdb.Stats under its JSON names.
type statistics struct {
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

func host(h *hostdb.Host) hostJSON {
	j := hostJSON{Name: h.Name, NextFetch: timePtr(h.NextFetch), LastFetch: timePtr(h.LastFetch), CrawlDelay: h.CrawlDelay.Seconds(), Backoff: h.Backoff, Stats: statistics(h.Stats),
		Counted: timePtr(h.Counted), Homepage: h.Homepage, Score: h.Score, DNSFailures: h.DNSFailures, ConnectionFailures: h.ConnectionFailures,
		LastCheck: timePtr(h.LastCheck), Overdue: h.Overdue, Fields: h.Fields}
	if p := h.Pages; !h.Counted.IsZero() {
		j.Pages = map[string]int64{"unfetched": p.Unfetched, "fetched": p.Fetched, "gone": p.Gone, "redir_temp": p.RedirTemp, "redir_perm": p.RedirPerm,
			"notmodified": p.NotModified, "duplicate": p.Duplicate, "orphan": p.Orphan, "parse_failed": p.ParseFailed}
	}
	if l := h.Lastmod; l != (hostdb.Lastmod{}) {
		j.Lastmod = &lastmodJSON{l.Hits, l.False, l.Misses, l.Trusted()}
	}
	for _, r := range h.Robots {
		j.Robots = append(j.Robots, robotsJSON{r.Origin, r.Status, len(r.Body), timePtr(r.Fetched), timePtr(r.Expires)})
	}
	return j
}
