package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// median returns the middle of what f makes of the results; of two in the middle
// the lower.
func median[T cmp.Ordered](rs []result, f func(*result) T) T {
	all := make([]T, len(rs))
	for i := range rs {
		all[i] = f(&rs[i])
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// perPage is microseconds a page.
func perPage(d time.Duration, pages int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(max(pages, 1))
}

// table is a table of Markdown.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)} }

func (t table) head(names ...any) {
	t.row(names...)
	rule := make([]any, len(names))
	for i := range rule {
		rule[i] = "--:"
	}
	if len(rule) > 0 && names[0] == "" {
		rule[0] = "---"
	}
	t.row(rule...)
}

func (t table) row(cells ...any) {
	for _, c := range cells {
		if f, ok := c.(float64); ok {
			c = fmt.Sprintf("%.2f", f)
			if f >= 100 {
				c = fmt.Sprintf("%.0f", f)
			}
		}
		fmt.Fprintf(t.w, "| %v\t", c)
	}
	fmt.Fprintln(t.w, "|")
}

// end writes the rows out.
func (t table) end() error { return t.w.Flush() }

// printTables writes the medians as Markdown.
func printTables(out io.Writer, names []string, all map[string][]result) error {
	t := newTable(out)
	page := func(f func(*result) float64) func(*result) float64 {
		return func(r *result) float64 { return f(r) / float64(max(r.Pages, 1)) }
	}
	cpuPage := func(r *result) float64 { return perPage(r.cpu(), r.Pages) }
	// speed says how many pages are dealt with in the time of one of another's.
	speed := func(rs, other []result) string {
		if len(other) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", median(other, cpuPage)/median(rs, cpuPage))
	}

	t.head("", "pages", "KB/page", "CPU µs/page", "of it system", "lowest", "highest", "pages/CPU s", "× bare", "× colly", "CPU ms/MB", "wall s", "allocs/page", "KB alloc/page", "peak RSS MB")
	for _, name := range names {
		rs := all[name]
		costs := make([]float64, len(rs))
		for i := range rs {
			costs[i] = cpuPage(&rs[i])
		}
		t.row(name,
			median(rs, func(r *result) int { return r.Pages }),
			median(rs, page(func(r *result) float64 { return float64(r.Bytes) / 1e3 })),
			median(rs, cpuPage),
			median(rs, func(r *result) float64 { return perPage(r.Sys, r.Pages) }),
			slices.Min(costs), slices.Max(costs),
			math.Round(1e6/median(rs, cpuPage)), speed(rs, all["bare"]), speed(rs, all["colly"]),
			median(rs, func(r *result) float64 { return r.cpu().Seconds() * 1e3 / (float64(r.Bytes) / 1e6) }),
			median(rs, func(r *result) float64 { return r.Wall.Seconds() }),
			median(rs, page(func(r *result) float64 { return float64(r.Mallocs) })),
			median(rs, page(func(r *result) float64 { return float64(r.AllocBytes) / 1e3 })),
			median(rs, func(r *result) float64 { return float64(r.PeakRSS) / 1e6 }),
		)
	}
	if err := t.end(); err != nil {
		return err
	}
	for _, name := range names {
		rs := all[name]
		if rs[0].Disk.URLs == 0 {
			continue
		}
		fmt.Fprintf(out, "\nWhat %s leaves on disk:\n\n", name)
		t.head("URLs known", "crawl, host and link db, B/URL", "compacted", "crawl db alone, compacted", "logs kept for reuse, MB", "segments, B/page", "of the bodies")
		url := func(f func(*disk) int64) float64 {
			return median(rs, func(r *result) float64 { return float64(f(&r.Disk)) / float64(r.Disk.URLs) })
		}
		t.row(
			median(rs, func(r *result) int { return r.Disk.URLs }),
			url(func(d *disk) int64 { return d.DB }),
			url(func(d *disk) int64 { return d.Compacted }),
			url(func(d *disk) int64 { return d.CrawlDB }),
			median(rs, func(r *result) float64 { return float64(r.Disk.Logs) / 1e6 }),
			median(rs, page(func(r *result) float64 { return float64(r.Disk.Segments) })),
			fmt.Sprintf("%.0f %%", median(rs, func(r *result) float64 { return 100 * float64(r.Disk.Segments) / float64(r.Bytes) })),
		)
	}
	return t.end()
}
