package main

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) hosts() *cli.Command {
	return &cli.Command{
		Name: "hosts", Category: looking, Usage: "show what is known of each host",
		Description: `When it may be asked again, what its robots.txt was answered with, and how its
visits ended.

  recrawl hosts -d crawl
  recrawl hosts -d crawl -json | jq '.hosts[] | select(.backoff > 0)'`,
		Flags: flags(dirFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				w := bufio.NewWriter(a.out)
				all := []hostJSON{}
				for h, err := range db.Hosts().Scan(ctx) {
					if err != nil {
						return err
					}
					if c.Bool("json") {
						all = append(all, host(&h))
						continue
					}
					s := h.Stats
					fmt.Fprintf(w, "%s\tnext %s\tcrawl-delay %v\tbackoff %d\tfetched %d\tnotmodified %d\tredirected %d\tgone %d\tfailed %d\t%s\n",
						h.Name, stamp(h.NextFetch), h.CrawlDelay, h.Backoff, s.Fetched, s.NotModified, s.Redirected, s.Gone, s.Failed, size(s.Bytes))
					for _, r := range h.Robots {
						fmt.Fprintf(w, "\trobots.txt %s\tstatus %d\t%d bytes\tfetched %s\texpires %s\n", r.Origin, r.Status, len(r.Body), stamp(r.Fetched), stamp(r.Expires))
					}
				}
				if c.Bool("json") {
					return a.printJSON(map[string]any{"hosts": all})
				}
				return w.Flush()
			})
		},
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
}

// statistics is hostdb.Stats under the names that JSON has.
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
	j := hostJSON{Name: h.Name, NextFetch: timePtr(h.NextFetch), LastFetch: timePtr(h.LastFetch), CrawlDelay: h.CrawlDelay.Seconds(), Backoff: h.Backoff, Stats: statistics(h.Stats)}
	for _, r := range h.Robots {
		j.Robots = append(j.Robots, robotsJSON{r.Origin, r.Status, len(r.Body), timePtr(r.Fetched), timePtr(r.Expires)})
	}
	return j
}
