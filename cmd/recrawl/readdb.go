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
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

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
