package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteTable prints the visits to one page, one per line, and their totals. If
// there are more than most (zero means no limit), the middle ones are
// left out.
func (c *PageResult) WriteTable(w io.Writer, most int) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n%5s  %-20s %-15s %12s  %-20s %6s %12s\n", c.Page.URL, "visit", "time", "state", "interval", "next", "missed", "change seen")
	skip, to := len(c.Visits), len(c.Visits)
	if most > 0 && len(c.Visits) > most {
		skip, to = most-most/3, len(c.Visits)-most/3
	}
	for i, v := range c.Visits {
		switch {
		case i == skip:
			fmt.Fprintf(b, "%5s  (%d more)\n", "...", to-skip)
			fallthrough
		case i > skip && i < to:
			continue
		}
		late := ""
		if v.Events > 0 {
			late = shortDuration(v.Late) + " old"
		}
		line := fmt.Sprintf("%5d  %-20s %-15s %12s  %-20s %6d %12s", i+1, stamp(v.Time), v.Status, shortDuration(v.Interval), stamp(v.Next), max(0, v.Events-1), late)
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(b, c.Total)
	return b.Flush()
}

// WriteTable prints a line for each page, at most most of them (zero means no limit), and
// the totals.
func (r *Result) WriteTable(w io.Writer, most int) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%7s %7s %7s %7s %9s %10s %10s  %s\n", "visits", "news", "changes", "missed", "fresh", "mean age", "interval", "page")
	for i := range r.Pages {
		if most > 0 && i == most {
			fmt.Fprintf(b, "%7s (%d more pages)\n", "...", len(r.Pages)-i)
			break
		}
		c := &r.Pages[i]
		last := time.Duration(0)
		if n := len(c.Visits); n > 0 {
			last = c.Visits[n-1].Interval
		}
		t := c.Total
		fmt.Fprintf(b, "%7d %7d %7d %7d %8.1f%% %10s %10s  %s\n", t.Visits, t.News, t.Changes, t.Missed, 100*t.Freshness, shortDuration(t.Age), shortDuration(last), c.Page.URL)
	}
	fmt.Fprintf(b, "%d pages, %s to %s: %v\n", len(r.Pages), stamp(r.Start), stamp(r.End), r.Total)
	return b.Flush()
}

// String is one line.
func (t Totals) String() string {
	return fmt.Sprintf("%d visits, %d of them with news; %d changes, %d missed and %d not yet seen; fresh %.1f%% of the time, %s old on average",
		t.Visits, t.News, t.Changes, t.Missed, t.Pending, 100*t.Freshness, shortDuration(t.Age))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// shortDuration formats a duration in its two greatest units: "12d 6h", "3m 20s", "0s".
func shortDuration(d time.Duration) string {
	if d < 0 {
		return "-" + shortDuration(-max(d, -math.MaxInt64))
	}
	s := int64(d.Round(time.Second) / time.Second)
	units := []struct {
		size int64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}}
	for i, u := range units {
		if s < u.size && u.size > 1 {
			continue
		}
		text := fmt.Sprint(s/u.size) + u.name
		if i+1 < len(units) {
			if rest := s % u.size / units[i+1].size; rest > 0 {
				text += fmt.Sprintf(" %d%s", rest, units[i+1].name)
			}
		}
		return text
	}
	return "0s"
}

// column says what happened in one of a number of equal parts of the time.
type column struct {
	changes, visits, news int
	log                   float64 // sum of the logarithms of the intervals, in seconds
}

func (r *Result) columns(pages []PageResult, n int) []column {
	cols := make([]column, n)
	at := func(t time.Time) *column {
		i := int(float64(n) * t.Sub(r.Start).Seconds() / r.End.Sub(r.Start).Seconds())
		if i < 0 || i >= n {
			return nil
		}
		return &cols[i]
	}
	for i := range pages {
		for _, e := range pages[i].Page.Events {
			if c := at(e.Time); c != nil {
				c.changes++
			}
		}
		for _, v := range pages[i].Visits {
			if c := at(v.Time); c != nil {
				c.visits++
				c.log += math.Log(max(v.Interval.Seconds(), 1))
				if v.Changed {
					c.news++
				}
			}
		}
	}
	return cols
}

// leastSpan is the least span of a scale, as a logarithm.
const leastSpan = 2 * math.Ln2

// bounds returns the least and the greatest logarithm of an interval.
func bounds(cols []column) (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, c := range cols {
		if c.visits > 0 {
			y := c.log / float64(c.visits)
			least, most = min(least, y), max(most, y)
		}
	}
	if least > most {
		least, most = math.Log(86400), math.Log(86400)
	}
	if room := leastSpan - (most - least); room > 0 {
		least, most = least-room/2, most+room/2
	}
	return least, most
}

// WritePlot draws the intervals over time, on a logarithmic scale, for a terminal of that
// width: '*' where a visit found news, 'o' where none did. Below are the changes and the
// visits, as digits where several coincide. With several pages, intervals are means. Zero
// width means 80.
func (r *Result) WritePlot(w io.Writer, width int) error {
	if width <= 0 {
		width = 80
	}
	const left, height = 9, 12
	width = max(width-left-1, 24)
	cols := r.columns(r.Pages, width)
	least, most := bounds(cols)
	grid := make([][]byte, height)
	for y := range grid {
		grid[y] = []byte(strings.Repeat(" ", width))
	}
	for x, c := range cols {
		if c.visits == 0 {
			continue
		}
		y := int(math.Round((c.log/float64(c.visits) - least) / (most - least) * (height - 1)))
		mark := byte('o')
		if c.news > 0 {
			mark = '*'
		}
		grid[height-1-y][x] = mark
	}
	b := bufio.NewWriter(w)
	for y := range grid {
		label := ""
		if y%3 == 2 || y == 0 {
			s := math.Exp(most - (most-least)*float64(y)/(height-1))
			label = shortDuration(time.Duration(math.Round(s)) * time.Second)
		}
		fmt.Fprintf(b, "%*s |%s\n", left-1, label, strings.TrimRight(string(grid[y]), " "))
	}
	line := func(name string, n func(column) int) {
		row := make([]byte, len(cols))
		for x, c := range cols {
			switch k := n(c); {
			case k == 0:
				row[x] = ' '
			case k > 9:
				row[x] = '#'
			default:
				row[x] = byte('0' + k)
			}
		}
		fmt.Fprintf(b, "%*s |%s\n", left-1, name, strings.TrimRight(string(row), " "))
	}
	fmt.Fprintf(b, "%*s +%s\n", left-1, "interval", strings.Repeat("-", width))
	line("changes", func(c column) int { return c.changes })
	line("visits", func(c column) int { return c.visits })
	line("news", func(c column) int { return c.news })
	from, to := r.Start.UTC().Format(time.DateOnly), r.End.UTC().Format(time.DateOnly)
	fmt.Fprintf(b, "%*s  %s%*s\n", left-1, "", from, width-len(from), to)
	return b.Flush()
}

// WriteSVG draws the same as a picture, with a point for every visit, unless there
// are more than 5,000.
func (r *Result) WriteSVG(w io.Writer) error {
	const width, height, left, top, band = 900, 420, 70, 30, 300
	least, most := math.Inf(1), math.Inf(-1)
	for i := range r.Pages {
		for _, v := range r.Pages[i].Visits {
			y := math.Log(max(v.Interval.Seconds(), 1))
			least, most = min(least, y), max(most, y)
		}
	}
	if least > most {
		least, most = math.Log(86400), math.Log(86400)
	}
	if room := leastSpan - (most - least); room > 0 {
		least, most = least-room/2, most+room/2
	}
	x := func(t time.Time) float64 {
		return left + (width-left-20)*t.Sub(r.Start).Seconds()/r.End.Sub(r.Start).Seconds()
	}
	y := func(d time.Duration) float64 {
		return top + band - band*(math.Log(max(d.Seconds(), 1))-least)/(most-least)
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<rect width="%d" height="%d" fill="white"/>
<text x="%d" y="18">%s</text>
`, width, height, width, height, width, height, left, escape(r.title()))
	for _, s := range []float64{1, 60, 3600, 86400, 7 * 86400, 30 * 86400, 90 * 86400, 365 * 86400} {
		if l := math.Log(s); l >= least-1e-9 && l <= most+1e-9 {
			at := y(time.Duration(s) * time.Second)
			fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, at, width-20, left-6, at+4, shortDuration(time.Duration(s)*time.Second))
		}
	}
	for i := range r.Pages {
		c := &r.Pages[i]
		var path strings.Builder
		for k, v := range c.Visits {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(v.Time), y(v.Interval))
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#bbb"/>`+"\n", path.String())
		}
		for _, v := range c.Visits {
			if r.Total.Visits > 5000 {
				break
			}
			fill := "white"
			if v.Changed {
				fill = "#c33"
			}
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s" stroke="#c33"/>`+"\n", x(v.Time), y(v.Interval), fill)
		}
		for _, e := range c.Page.Events {
			if at := x(e.Time); at >= left && at <= width-20 {
				fmt.Fprintf(b, `<path d="M%.1f %dv20" stroke="#36c"/>`+"\n", at, top+band+20)
			}
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">changes</text>
<path d="M%d %dV%dH%d" fill="none" stroke="black"/>
<text x="%d" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>
<text x="%d" y="%d">interval after each visit; filled: the visit found news</text>
</svg>
`, left-6, top+band+34, left, top, top+band+44, width-20,
		left, top+band+60, r.Start.UTC().Format(time.DateOnly), width-20, top+band+60, r.End.UTC().Format(time.DateOnly), left, top+band+78)
	return b.Flush()
}

func (r *Result) title() string {
	if len(r.Pages) == 1 {
		return r.Pages[0].Page.URL + ": " + r.Total.String()
	}
	return fmt.Sprintf("%d pages: %v", len(r.Pages), r.Total)
}

// escape makes text safe in XML. What XML cannot have at all becomes '?'.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, s))
}

// Only returns the result for one page; false if there is none.
func (r *Result) Only(url string) (*Result, bool) {
	i := slices.IndexFunc(r.Pages, func(c PageResult) bool { return c.Page.URL == url })
	if i < 0 {
		return nil, false
	}
	return &Result{Start: r.Start, End: r.End, Pages: r.Pages[i : i+1], Total: r.Pages[i].Total}, true
}
