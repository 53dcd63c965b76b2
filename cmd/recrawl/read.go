package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// reading opens the crawl for a verb that makes no crawler, and closes it.
func (a *app) reading(c *cli.Command, verb func(*pebblestore.DB, func() time.Time) error) error {
	if err := noArgsBut(c); err != nil {
		return err
	}
	now, err := clock(c)
	if err != nil {
		return err
	}
	db, err := a.open(c, true)
	if err != nil {
		return err
	}
	err = verb(db, now)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// noArgsBut refuses arguments but for the verbs that take one.
func noArgsBut(c *cli.Command) error {
	if c.ArgsUsage != "" {
		if c.Args().Len() > 1 {
			return usagef("%s takes one argument, not %q too", c.Name, c.Args().Get(1))
		}
		return nil
	}
	return noArgs(c)
}

func (a *app) readdb() *cli.Command {
	return &cli.Command{
		Name: "readdb", Category: looking, Usage: "show what the crawl db holds: -stats, -url U, -dump or -top N",
		Description: `Wants one of -stats, -url, -dump and -top. With -json each prints one object,
but for -dump, which prints one object a line.

  recrawl readdb -d crawl -stats
  recrawl readdb -d crawl -url https://example.com/
  recrawl readdb -d crawl -top 20
  recrawl readdb -d crawl -dump -format csv > crawl.csv`,
		Flags: flags(dirFlag(),
			&cli.BoolFlag{Name: "stats", Usage: "count the records by status, retries and host, with quantiles of score and interval"},
			&cli.StringFlag{Name: "url", Usage: "show the record of one `URL`"},
			&cli.BoolFlag{Name: "dump", Usage: "show every record, in the order of the crawl db: by host, read from its end"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT` of -dump: text, json (an object a line) or csv (default text)", Value: "text"},
			&cli.IntFlag{Name: "top", Usage: "show the `N` records with the best score"},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			n := 0
			for _, f := range []string{"stats", "url", "dump", "top"} {
				if c.IsSet(f) {
					n++
				}
			}
			if n != 1 {
				return usagef("readdb wants one of -stats, -url U, -dump and -top N")
			}
			if c.IsSet("top") && c.Int("top") < 1 {
				return usagef("-top: %d is less than one", c.Int("top"))
			}
			if f := c.String("format"); !slices.Contains([]string{"text", "json", "csv"}, f) {
				return usagef("-format: %q is not one of text, json and csv", f)
			}
			return a.reading(c, func(db *pebblestore.DB, now func() time.Time) error {
				switch {
				case c.Bool("stats"):
					return a.stats(ctx, c, db, now())
				case c.IsSet("url"):
					u := normal(c.String("url"))
					d, err := db.Crawl().Get(ctx, u)
					if errors.Is(err, crawldb.ErrNotFound) {
						return fmt.Errorf("there is no record of %q", u)
					}
					if err != nil {
						return err
					}
					if c.Bool("json") {
						return a.printJSON(record(&d))
					}
					return printRecord(a.out, &d)
				case c.IsSet("top"):
					return a.top(ctx, c, db)
				default:
					return a.dump(ctx, c, db)
				}
			})
		},
	}
}

// recordJSON is a record as JSON. The names are Nutch's where it has one.
type recordJSON struct {
	URL          string            `json:"url"`
	StatusCode   uint8             `json:"statusCode"`
	StatusName   string            `json:"statusName"`
	FetchTime    time.Time         `json:"fetchTime"`
	LastFetch    *time.Time        `json:"lastFetch,omitempty"`
	ModifiedTime *time.Time        `json:"modifiedTime,omitempty"`
	Retries      int               `json:"retriesSinceFetch"`
	Interval     int64             `json:"retryIntervalSeconds"`
	Score        float32           `json:"score"`
	Priority     float32           `json:"priority"`
	Signature    string            `json:"signature,omitempty"`
	ETag         string            `json:"etag,omitempty"`
	LastModified string            `json:"lastModified,omitempty"`
	LeasedUntil  *time.Time        `json:"leasedUntil,omitempty"`
	LeasedBy     string            `json:"leasedBy,omitempty"`
	Meta         map[string]string `json:"metadata,omitempty"`
}

func record(d *crawldb.Datum) recordJSON {
	r := recordJSON{URL: d.URL, StatusCode: uint8(d.Status), StatusName: d.Status.String(), FetchTime: d.FetchTime,
		LastFetch: timePtr(d.LastFetch), ModifiedTime: timePtr(d.Modified), Retries: d.Retries, Interval: int64(d.Interval / time.Second),
		Score: d.Score, Priority: d.Priority, Signature: hex.EncodeToString(d.Signature), ETag: d.ETag, LastModified: d.LastModified,
		LeasedUntil: timePtr(d.LeasedUntil), LeasedBy: d.LeasedBy}
	for name, value := range d.Meta.All() {
		if r.Meta == nil {
			r.Meta = map[string]string{}
		}
		r.Meta[name] = printable(value)
	}
	return r
}

// printable returns a metadata value as text; what is not text, in hexadecimal.
func printable(v string) string {
	if strconv.Quote(v) == `"`+v+`"` {
		return v
	}
	return "0x" + hex.EncodeToString([]byte(v))
}

func printRecord(w io.Writer, d *crawldb.Datum) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "URL: %s\nStatus: %d (%s)\nFetch time: %s\n", d.URL, d.Status, d.Status, stamp(d.FetchTime))
	fmt.Fprintf(b, "Last fetch: %s\nModified time: %s\nRetries since fetch: %d\n", stamp(d.LastFetch), stamp(d.Modified), d.Retries)
	secs := int64(d.Interval / time.Second)
	fmt.Fprintf(b, "Retry interval: %d seconds (%d days)\nScore: %v\nPriority: %v\nSignature: %s\n", secs, secs/86400, d.Score, d.Priority, orNull(hex.EncodeToString(d.Signature)))
	if d.ETag != "" || d.LastModified != "" {
		fmt.Fprintf(b, "ETag: %s\nLast-Modified: %s\n", d.ETag, d.LastModified)
	}
	if d.LeasedBy != "" {
		fmt.Fprintf(b, "Leased: by %s until %s\n", d.LeasedBy, stamp(d.LeasedUntil))
	}
	if d.Meta.Len() > 0 {
		fmt.Fprintln(b, "Metadata:")
		for name, value := range d.Meta.All() {
			fmt.Fprintf(b, "\t%s=%s\n", name, printable(value))
		}
	}
	fmt.Fprintln(b)
	return b.Flush()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

func (a *app) dump(ctx context.Context, c *cli.Command, db *pebblestore.DB) error {
	w := bufio.NewWriter(a.out)
	var write func(*crawldb.Datum) error
	switch format := c.String("format"); {
	case c.Bool("json") || format == "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		write = func(d *crawldb.Datum) error { return e.Encode(record(d)) }
	case format == "csv":
		cw := csv.NewWriter(w)
		defer cw.Flush()
		if err := cw.Write([]string{"Url", "Status code", "Status name", "Fetch Time", "Last Fetch", "Modified Time", "Retries since fetch", "Retry interval seconds", "Retry interval days", "Score", "Signature", "Metadata"}); err != nil {
			return err
		}
		write = func(d *crawldb.Datum) error {
			var meta []string
			for name, value := range d.Meta.All() {
				meta = append(meta, name+"="+printable(value))
			}
			secs := int64(d.Interval / time.Second)
			if err := cw.Write([]string{d.URL, strconv.Itoa(int(d.Status)), d.Status.String(), stamp(d.FetchTime), stamp(d.LastFetch), stamp(d.Modified), strconv.Itoa(d.Retries),
				strconv.FormatInt(secs, 10), strconv.FormatInt(secs/86400, 10), fmt.Sprint(d.Score), hex.EncodeToString(d.Signature), strings.Join(meta, "|")}); err != nil {
				return err
			}
			cw.Flush()
			return cw.Error()
		}
	default:
		write = func(d *crawldb.Datum) error { return printRecord(w, d) }
	}
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if err := write(&d); err != nil {
			return err
		}
	}
	return w.Flush()
}

// bestScored returns the n records with the best score.
func bestScored(ctx context.Context, db crawldb.Store, n int) ([]crawldb.Datum, error) {
	var best []crawldb.Datum
	better := func(x, y crawldb.Datum) int {
		switch {
		case x.Score > y.Score:
			return -1
		case x.Score < y.Score:
			return 1
		}
		return crawldb.Compare(x.URL, y.URL)
	}
	for d, err := range db.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		if best = append(best, d); len(best) >= 2*n+1000 {
			slices.SortFunc(best, better)
			best = best[:n]
		}
	}
	slices.SortFunc(best, better)
	return best[:min(n, len(best))], nil
}

func (a *app) top(ctx context.Context, c *cli.Command, db *pebblestore.DB) error {
	best, err := bestScored(ctx, db.Crawl(), c.Int("top"))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		out := make([]recordJSON, len(best))
		for i := range best {
			out[i] = record(&best[i])
		}
		return a.printJSON(map[string]any{"records": out})
	}
	for _, d := range best {
		fmt.Fprintf(a.out, "%v\t%s\n", d.Score, d.URL)
	}
	return nil
}

// statsJSON is what readdb -stats -json prints.
type statsJSON struct {
	Total         int                       `json:"total"`
	Due           int                       `json:"due"`
	Leased        int                       `json:"leased"`
	Status        map[string]int            `json:"status"`
	Retry         map[string]int            `json:"retry"`
	Host          map[string]int            `json:"host"`
	HostStatus    map[string]map[string]int `json:"host_status"`
	Score         distributionJSON          `json:"score"`
	Interval      distributionJSON          `json:"interval_seconds"`
	NaN           int                       `json:"score_nan"`
	EarliestFetch *time.Time                `json:"earliest_fetch_time,omitempty"`
	LatestFetch   *time.Time                `json:"latest_fetch_time,omitempty"`
}

type distributionJSON struct {
	Min       float64            `json:"min"`
	Avg       float64            `json:"avg"`
	Max       float64            `json:"max"`
	Quantiles map[string]float64 `json:"quantiles,omitempty"`
}

func distribution(d crawldb.Distribution) distributionJSON {
	j := distributionJSON{Min: d.Min, Avg: d.Mean, Max: d.Max}
	for i, q := range d.Quantiles {
		if j.Quantiles == nil {
			j.Quantiles = map[string]float64{}
		}
		j.Quantiles[strconv.FormatFloat(crawldb.StatsQuantiles()[i], 'g', -1, 64)] = q
	}
	return j
}

func (a *app) stats(ctx context.Context, c *cli.Command, db *pebblestore.DB, now time.Time) error {
	st, err := crawldb.ReadStats(ctx, db.Crawl(), now)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		j := statsJSON{Total: st.Total, Due: st.Due, Leased: st.Leased, Status: map[string]int{}, Retry: map[string]int{}, Host: st.Hosts, HostStatus: map[string]map[string]int{},
			Score: distribution(st.Score), Interval: distribution(st.Interval), NaN: st.NaN, EarliestFetch: timePtr(st.EarliestFetch), LatestFetch: timePtr(st.LatestFetch)}
		for s, n := range st.Statuses {
			j.Status[s.String()] = n
		}
		for r, n := range st.Retries {
			j.Retry[strconv.Itoa(r)] = n
		}
		for h, m := range st.HostStatuses {
			j.HostStatus[h] = map[string]int{}
			for s, n := range m {
				j.HostStatus[h][s.String()] = n
			}
		}
		return a.printJSON(j)
	}
	w := bufio.NewWriter(a.out)
	fmt.Fprintf(w, "TOTAL urls:\t%d\ndue now:\t%d\nleased:\t%d\n", st.Total, st.Due, st.Leased)
	if st.Total == 0 {
		return w.Flush()
	}
	fmt.Fprintf(w, "shortest fetch interval:\t%s\navg fetch interval:\t%s\nlongest fetch interval:\t%s\n", secs(st.Interval.Min), secs(st.Interval.Mean), secs(st.Interval.Max))
	quantiles(w, "fetch interval", st.Interval, secs)
	fmt.Fprintf(w, "earliest fetch time:\t%s\nlatest fetch time:\t%s\n", stamp(st.EarliestFetch), stamp(st.LatestFetch))
	for _, r := range slices.Sorted(maps.Keys(st.Retries)) {
		fmt.Fprintf(w, "retry %d:\t%d\n", r, st.Retries[r])
	}
	if st.NaN > 0 {
		fmt.Fprintf(w, "score == NaN:\t%d\n", st.NaN)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	quantiles(w, "score", st.Score, number)
	fmt.Fprintf(w, "min score:\t%s\navg score:\t%s\nmax score:\t%s\n", number(st.Score.Min), number(st.Score.Mean), number(st.Score.Max))
	for _, s := range crawldb.Statuses() {
		if st.Statuses[s] > 0 {
			fmt.Fprintf(w, "status %d (%s):\t%d\n", s, s, st.Statuses[s])
		}
	}
	hosts := slices.SortedFunc(maps.Keys(st.Hosts), func(x, y string) int {
		if d := st.Hosts[y] - st.Hosts[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	const shown = 50
	for i, h := range hosts {
		if i == shown {
			fmt.Fprintf(w, "and %d more hosts (-json shows all)\n", len(hosts)-shown)
			break
		}
		var parts []string
		for _, s := range crawldb.Statuses() {
			if n := st.HostStatuses[h][s]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", strings.TrimPrefix(s.String(), "db_"), n))
			}
		}
		fmt.Fprintf(w, "host %s:\t%d\t(%s)\n", h, st.Hosts[h], strings.Join(parts, ", "))
	}
	return w.Flush()
}

func quantiles(w io.Writer, what string, d crawldb.Distribution, show func(float64) string) {
	for i, q := range crawldb.StatsQuantiles() {
		fmt.Fprintf(w, "%s quantile %v:\t%s\n", what, q, show(d.Quantiles[i]))
	}
}

// secs shows seconds as Nutch does: "30 days, 00:00:00".
func secs(f float64) string {
	n := int64(f + .5)
	s := fmt.Sprintf("%02d:%02d:%02d", n/3600%24, n/60%60, n%60)
	if days := n / 86400; days > 0 {
		s = fmt.Sprintf("%d days, %s", days, s)
	}
	return s
}

func (a *app) index() *cli.Command {
	return &cli.Command{
		Name: "index", Category: looking, Usage: "write the pages as documents, one JSON object a line",
		Description: `A page comes from the newest segment that holds it. Pages that are gone, redirect
or ask not to be indexed are lines with "deleted": true. With -o and -json, a
summary in JSON goes to standard output.

  recrawl index -d crawl -o pages.jsonl
  recrawl index -d crawl | jq -r .title`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "o", Usage: "write to `FILE`, which is replaced once all is written (default: standard output)"},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				var r index.Report
				write := func(w io.Writer) (err error) {
					b := bufio.NewWriterSize(w, 1<<16)
					r, err = index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), index.NewJSONL(b), index.Options{})
					if err != nil {
						return err
					}
					return b.Flush()
				}
				out := c.String("o")
				if out == "" {
					return write(a.out)
				}
				if err := replaceFile(out, func(f *os.File) error { return write(f) }); err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]int{"documents": r.Documents, "deleted": r.Deleted, "noindex": r.NoIndex, "unparsed": r.Unparsed, "segments": r.Segments, "skipped": r.Skipped})
				}
				fmt.Fprintf(a.out, "%d documents, %d deletions from %d segments\n", r.Documents, r.Deleted, r.Segments)
				return nil
			})
		},
	}
}

func (a *app) readlinks() *cli.Command {
	return &cli.Command{
		Name: "readlinks", Category: looking, Usage: "show which pages link to a page, and with what words",
		Description: `A line is the page, a page that links to it, and the text of the link, with tabs
between them. With -json a line is one page with all its inlinks.

  recrawl readlinks -d crawl -url https://example.com/
  recrawl readlinks -d crawl > links.tsv`,
		Flags: flags(dirFlag(), &cli.StringFlag{Name: "url", Usage: "the page with this `URL`; without it, all pages"}, reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.IsSet("url") && c.String("url") == "" {
				return usagef("-url wants a URL")
			}
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				type inlink struct {
					From   string `json:"from"`
					Anchor string `json:"anchor"`
				}
				type entry struct {
					URL     string   `json:"url"`
					Inlinks []inlink `json:"inlinks"`
				}
				w := bufio.NewWriter(a.out)
				enc := json.NewEncoder(w)
				enc.SetEscapeHTML(false)
				links := db.Links()
				show := func(url string) error {
					in, err := links.Get(ctx, url)
					if err != nil {
						return err
					}
					if c.Bool("json") {
						e := entry{URL: url, Inlinks: []inlink{}}
						for _, l := range in {
							e.Inlinks = append(e.Inlinks, inlink{l.From, l.Anchor})
						}
						return enc.Encode(e)
					}
					if len(in) == 0 {
						fmt.Fprintf(w, "%s\tno inlinks\n", url)
					}
					for _, l := range in {
						fmt.Fprintf(w, "%s\t%s\t%s\n", url, l.From, l.Anchor)
					}
					return nil
				}
				if c.IsSet("url") {
					if err := show(normal(c.String("url"))); err != nil {
						return err
					}
					return w.Flush()
				}
				for e, err := range links.Scan(ctx, crawldb.Range{}) {
					if err != nil {
						return err
					}
					if err := show(e.URL); err != nil {
						return err
					}
				}
				return w.Flush()
			})
		},
	}
}

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

func (a *app) readseg() *cli.Command {
	return &cli.Command{
		Name: "readseg", Category: looking, Usage: "list the segments, or show what one holds", ArgsUsage: "[SEGMENT]",
		Description: `Without anything: a line for each segment, with the number of records in each
part. With a segment: its records, part by part. With -url or -part: only those,
of all segments if none is named. The list is one object with -json, records are
one object a line.

  recrawl readseg -d crawl
  recrawl readseg -d crawl -url https://example.com/ -part crawl_fetch
  recrawl readseg -d crawl -json 20260131080000000`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "url", Usage: "only what belongs to this `URL`"},
			&cli.StringFlag{Name: "part", Usage: "only this `PART`: one of " + strings.Join(segment.Parts(), ", ")},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if p := c.String("part"); p != "" && !slices.Contains(segment.Parts(), p) {
				return usagef("-part: %q is not one of %s", p, strings.Join(segment.Parts(), ", "))
			}
			name := c.Args().First()
			if name != "" {
				if err := segment.ValidName(name); err != nil {
					return usageError{err}
				}
			}
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				if name == "" && (c.IsSet("url") || c.IsSet("part")) {
					for n, err := range db.Segments().List(ctx) {
						if err != nil {
							return err
						}
						if err := a.showSegment(ctx, c, db.Segments(), n); err != nil {
							return err
						}
					}
					return nil
				}
				if name == "" {
					return a.listSegments(ctx, c, db.Segments())
				}
				return a.showSegment(ctx, c, db.Segments(), name)
			})
		},
	}
}

type segmentJSON struct {
	Name  string              `json:"name"`
	Parts map[string]partJSON `json:"parts"`
}

type partJSON struct {
	Records   int   `json:"records"`
	Blocks    int   `json:"blocks"`
	Bytes     int64 `json:"bytes"`
	Committed bool  `json:"committed"`
}

func (a *app) listSegments(ctx context.Context, c *cli.Command, s segment.Store) error {
	all := []segmentJSON{}
	for name, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		seg := segmentJSON{Name: name, Parts: map[string]partJSON{}}
		for _, part := range segment.Parts() {
			info, err := s.Stat(ctx, name, part)
			if errors.Is(err, segment.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			n, err := countPart(ctx, s, name, part)
			if err != nil {
				return err
			}
			seg.Parts[part] = partJSON{n, info.Blocks, info.Bytes, info.Committed}
		}
		all = append(all, seg)
	}
	if c.Bool("json") {
		return a.printJSON(map[string]any{"segments": all})
	}
	for _, seg := range all {
		fmt.Fprint(a.out, seg.Name)
		for _, part := range segment.Parts() {
			if p, ok := seg.Parts[part]; ok {
				open := ""
				if !p.Committed {
					open = " (open)"
				}
				fmt.Fprintf(a.out, "\t%s %d%s", part, p.Records, open)
			}
		}
		fmt.Fprintln(a.out)
	}
	return nil
}

func countPart(ctx context.Context, s segment.Store, name, part string) (int, error) {
	switch part {
	case segment.GeneratePart:
		return count(segment.Partial[crawldb.Datum](ctx, s, name, 0))
	case segment.FetchPart:
		return count(segment.Partial[segment.Visit](ctx, s, name, 0))
	case segment.ContentPart:
		return count(segment.Partial[page.Content](ctx, s, name, 0))
	case segment.ParseTextPart:
		return count(segment.Partial[segment.Text](ctx, s, name, 0))
	case segment.ParseDataPart:
		return count(segment.Partial[segment.Data](ctx, s, name, 0))
	default:
		return count(segment.Partial[segment.Parse](ctx, s, name, 0))
	}
}

func count[T any](blocks iter.Seq2[[]T, error]) (n int, err error) {
	for b, err := range blocks {
		if err != nil {
			return n, err
		}
		n += len(b)
	}
	return n, nil
}

func (a *app) showSegment(ctx context.Context, c *cli.Command, s segment.Store, name string) error {
	w := bufio.NewWriter(a.out)
	found := false
	show := ""
	if c.IsSet("url") {
		show = normal(c.String("url"))
	}
	for _, part := range segment.Parts() {
		if p := c.String("part"); p != "" && p != part {
			continue
		}
		if _, err := s.Stat(ctx, name, part); errors.Is(err, segment.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		found = true
		to := shower{w: w, json: c.Bool("json"), url: show, part: part, segment: name}
		var err error
		switch part {
		case segment.GeneratePart:
			err = showPart(ctx, s, to, func(d crawldb.Datum) (string, any) { return d.URL, record(&d) })
		case segment.FetchPart:
			err = showPart(ctx, s, to, func(v segment.Visit) (string, any) { return v.URL, visit(&v) })
		case segment.ContentPart:
			err = showPart(ctx, s, to, func(p page.Content) (string, any) {
				return p.URL, map[string]any{"url": p.URL, "type": p.Type, "truncated": p.Truncated, "fetched": p.Time, "robots": p.Robots, "bytes": len(p.Body), "body": string(p.Body)}
			})
		case segment.ParseTextPart:
			err = showPart(ctx, s, to, func(t segment.Text) (string, any) {
				return t.URL, map[string]any{"url": t.URL, "text": t.Text}
			})
		case segment.ParseDataPart:
			err = showPart(ctx, s, to, func(d segment.Data) (string, any) { return d.URL, data(&d) })
		case segment.ParsePart:
			err = showPart(ctx, s, to, func(p segment.Parse) (string, any) { return p.URL, parse(&p) })
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("segment %s: %w", name, segment.ErrNotFound)
	}
	return w.Flush()
}

type shower struct {
	w                  io.Writer
	json               bool
	url, part, segment string
}

// showPart prints the records of a part, as JSON lines or as text.
func showPart[T segment.Record](ctx context.Context, s segment.Store, show shower, view func(T) (string, any)) error {
	for block, err := range segment.Partial[T](ctx, s, show.segment, 0) {
		if err != nil {
			return err
		}
		for _, rec := range block {
			url, v := view(rec)
			if show.url != "" && url != show.url {
				continue
			}
			if show.json {
				e := json.NewEncoder(show.w)
				e.SetEscapeHTML(false)
				if err := e.Encode(map[string]any{"segment": show.segment, "part": show.part, "record": v}); err != nil {
					return err
				}
				continue
			}
			if _, err := fmt.Fprintf(show.w, "%s %s %s\n  ", show.segment, show.part, url); err != nil {
				return err
			}
			e := json.NewEncoder(show.w)
			e.SetEscapeHTML(false)
			e.SetIndent("  ", "  ")
			if err := e.Encode(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func visit(v *segment.Visit) any {
	return map[string]any{"url": v.URL, "time": v.Time, "outcome": v.Outcome.Code.String(), "status": v.Outcome.Status, "location": v.Outcome.Location, "reason": v.Outcome.Reason,
		"retry_after_seconds": v.Outcome.RetryAfter.Seconds(), "content_type": v.ContentType, "etag": v.ETag, "last_modified": v.LastModified, "truncated": v.Truncated,
		"bytes": v.Bytes, "elapsed_ms": v.Elapsed.Milliseconds()}
}

func data(d *segment.Data) any {
	p := &d.Parsed
	type link struct {
		URL    string `json:"url"`
		Anchor string `json:"anchor"`
	}
	links := []link{}
	for _, l := range p.Outlinks {
		links = append(links, link{l.URL, l.Anchor})
	}
	return map[string]any{"url": d.URL, "title": p.Title, "outlinks": links, "outlinks_cut": p.OutlinksCut, "charset": p.Charset, "noindex": p.NoIndex, "nofollow": p.NoFollow,
		"refresh": p.Refresh, "canonical": p.Canonical, "truncated": p.Truncated, "meta": p.Meta}
}

func parse(p *segment.Parse) any {
	type link struct {
		URL   string  `json:"url"`
		Score float64 `json:"score"`
	}
	links := []link{}
	for _, l := range p.Links {
		links = append(links, link{l.URL, l.Score})
	}
	return map[string]any{"url": p.URL, "signature": hex.EncodeToString(p.Signature), "error": p.Error, "gave": p.Gave, "links": links}
}
