package verbs

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

// toFilter is the group of the flags that filter.
const toFilter = "Which records to dump"

// dump writes the records for which keep is true.
func (a *app) dump(ctx context.Context, db crawldb.Store, format string, keep func(*crawldb.Datum) (bool, error)) error {
	w := bufio.NewWriter(a.out)
	scan := db.Scan(ctx, crawldb.Range{})
	write := func(d *crawldb.Datum) error { return render.Record(w, d) }
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		write = func(d *crawldb.Datum) error { return e.Encode(render.NewRecordJSON(d)) }
	case "csv":
		cw := csv.NewWriter(w)
		row := func(fields ...string) error {
			if err := cw.Write(fields); err != nil {
				return err
			}
			cw.Flush()
			return cw.Error()
		}
		if err := row("Url", "Status code", "Status name", "Fetch Time", "Last Fetch", "Modified Time", "Retries since fetch", "Retry interval seconds", "Retry interval days", "Score", "Signature", "Metadata"); err != nil {
			return err
		}
		write = func(d *crawldb.Datum) error {
			var meta []string
			for name, value := range d.Meta.All() {
				meta = append(meta, name+"="+render.Printable(value))
			}
			secs := int64(d.Interval / time.Second)
			return row(render.Cell(d.URL), strconv.Itoa(int(d.Status)), d.Status.String(), render.Time(d.FetchTime), render.Time(d.LastFetch), render.Time(d.Modified), strconv.Itoa(d.Retries),
				strconv.FormatInt(secs, 10), strconv.FormatInt(secs/86400, 10), fmt.Sprint(d.Score), hex.EncodeToString(d.Signature), render.Cell(strings.Join(meta, "|")))
		}
	case "nutch":
		render.Exact(a.out)
		scan = crawldb.ScanByURL(ctx, db)
		var b []byte
		write = func(d *crawldb.Datum) error {
			b = nutchtext.AppendRecord(b[:0], d)
			_, err := w.Write(b)
			return err
		}
	}
	for d, err := range scan {
		if err != nil {
			return err
		}
		if ok, err := keep(&d); err != nil {
			return err
		} else if !ok {
			continue
		}
		if err := write(&d); err != nil {
			return err
		}
	}
	return w.Flush()
}

// recordFilter returns the filters of the flags, all of which must pass, in Nutch's
// order, and a count of the records for which the expression has no value.
func recordFilter(c *cli.Command, nutch bool) (keep func(*crawldb.Datum) (bool, error), unfit *int, err error) {
	var all []func(*crawldb.Datum) (bool, error)
	add := func(f func(*crawldb.Datum) bool) {
		all = append(all, func(d *crawldb.Datum) (bool, error) { return f(d), nil })
	}
	unfit = new(int)
	if c.IsSet("sample") {
		share := c.Float("sample")
		if !(share >= 0 && share <= 1) {
			return nil, nil, flags.Usagef("-sample: %v is not between 0 and 1", share)
		}
		add(func(d *crawldb.Datum) bool { return lot(d.URL) < share })
	}
	if c.IsSet("retry") {
		least := c.Int("retry")
		if least < 0 {
			return nil, nil, flags.Usagef("-retry: %d is negative", least)
		}
		add(func(d *crawldb.Datum) bool { return d.Retries >= least })
	}
	if c.IsSet("status") {
		status, err := crawldb.ParseStatus(c.String("status"))
		if err != nil {
			return nil, nil, flags.Usagef("-status: unknown status %q", c.String("status"))
		}
		add(func(d *crawldb.Datum) bool { return d.Status == status })
	}
	if c.IsSet("regex") {
		match, err := wholeMatch(c)
		if err != nil {
			return nil, nil, err
		}
		add(func(d *crawldb.Datum) bool { return match(d.URL) })
	}
	if c.IsSet("expr") {
		f, err := expression.Options{NutchCompat: nutch}.RecordFilter(c.String("expr"))
		if err != nil {
			return nil, nil, flags.Usagef("-expr: %w", err)
		}
		all = append(all, func(d *crawldb.Datum) (bool, error) {
			ok, err := f(d)
			if errors.Is(err, expression.ErrValue) {
				*unfit++
				return false, nil
			}
			return ok, err
		})
	}
	return func(d *crawldb.Datum) (bool, error) {
		for _, f := range all {
			if ok, err := f(d); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}, unfit, nil
}

// wholeMatch returns a function that reports whether the pattern of -regex matches the whole
// of a text.
func wholeMatch(c *cli.Command) (func(text string) bool, error) {
	pattern := c.String("regex")
	// It is compiled alone first, so that none of its parentheses closes the group around it.
	_, err := regexp.Compile(pattern)
	if err != nil {
		return nil, flags.Usagef("-regex: %q is not a regular expression: %w", pattern, err)
	}
	re, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, flags.Usagef("-regex: %w", err)
	}
	return re.MatchString, nil
}

// lot returns the number in [0, 1) that a URL draws, always the same.
func lot(url string) float64 {
	f := fnv.New64a()
	f.Write([]byte(url))
	h := f.Sum64()
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // FNV leaves the high bits of short texts alike
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return math.Ldexp(float64((h^h>>31)>>11), -53)
}
