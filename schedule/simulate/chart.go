package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// chart is a picture with two axes.
type chart struct {
	title, across, up string
	x, y              axis
	series            []series
	dots              bool // instead of lines
}

// axis goes from one value to another, with marks; it is logarithmic if log is set.
type axis struct {
	from, to float64
	log      bool
	marks    []mark
}

type mark struct {
	at   float64
	text string
}

type series struct {
	name string
	x, y []float64
}

func (a axis) share(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	return max(0, min((v-from)/(to-from), 1))
}

func color(i int) string {
	colors := [...]string{"#c33", "#36c", "#393", "#c80", "#939", "#099", "#963", "#e6b", "#777", "#2a8", "#55a", "#a60"}
	return colors[i%len(colors)]
}

// again reports whether a series has the color of an earlier one: then its line is dashed,
// and its dots are rings.
func again(i int) bool { return i >= 12 }

func dashes(i int) string {
	if again(i) {
		return ` stroke-dasharray="4 2"`
	}
	return ""
}

func (c *chart) write(w io.Writer) error {
	const width, height, left, right, top, bottom = 960, 480, 70, 250, 34, 44
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<rect width="%d" height="%d" fill="white"/>
<text x="%d" y="18" font-size="13">%s</text>
`, width, height, width, height, width, height, left, escape(c.title))
	x := func(v float64) float64 { return left + c.x.share(v)*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - c.y.share(v)*(height-top-bottom) }
	for _, m := range c.y.marks {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y(m.at), width-right, left-6, y(m.at)+4, escape(m.text))
	}
	for _, m := range c.x.marks {
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(m.at), top, height-bottom, x(m.at), height-bottom+16, escape(m.text))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="black"/>
<text x="%d" y="%d" text-anchor="middle">%s</text><text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>
`, left, top, height-bottom, width-right, left+(width-left-right)/2, height-8, escape(c.across), top+(height-top-bottom)/2, escape(c.up))
	for i, s := range c.series {
		var path strings.Builder
		for k := range s.x {
			if c.dots {
				style := fmt.Sprintf(`fill="%s" fill-opacity=".45"`, color(i))
				if again(i) {
					style = fmt.Sprintf(`fill="none" stroke="%s" stroke-width=".6"`, color(i))
				}
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="1.6" %s/>`+"\n", x(s.x[k]), y(s.y[k]), style)
				continue
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(s.x[k]), y(s.y[k]))
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"%s/>`+"\n", path.String(), color(i), dashes(i))
		}
		fmt.Fprintf(b, `<path d="M%d %dh12" stroke="%s" stroke-width="3"%s/><text x="%d" y="%d">%s</text>`+"\n", width-right+14, top+11+18*i, color(i), dashes(i), width-right+32, top+15+18*i, escape(s.name))
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// shares returns an axis of shares, which begins at the tenth below the least.
func shares(least, most float64) axis {
	a := axis{from: math.Floor(max(0, least)*10) / 10, to: math.Ceil(min(1, most)*10) / 10}
	if !(a.to > a.from) {
		a.from, a.to = 0, 1
	}
	for i := int(math.Round(a.from * 10)); i <= int(math.Round(a.to*10)); i++ {
		a.marks = append(a.marks, mark{float64(i) / 10, fmt.Sprintf("%.1f", float64(i)/10)})
	}
	return a
}

// spans returns a logarithmic axis of days.
func spans(least, most float64) axis {
	a := axis{from: least / 1.1, to: most * 1.1, log: true}
	if !(a.from > 0 && a.to > a.from) || math.IsInf(a.to, 1) {
		a.from, a.to = 1, 10
	}
	for _, d := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour, 365 * 24 * time.Hour, 3650 * 24 * time.Hour} {
		if v := days(d); v >= a.from && v <= a.to {
			a.marks = append(a.marks, mark{v, shortDuration(d)})
		}
	}
	return a
}

// WriteTimelineSVG draws the share of importance that was fresh, over time.
func WriteTimelineSVG(w io.Writer, outcomes []Outcome) error {
	c := chart{title: "Freshness by importance", across: "days", up: "share of the importance that is fresh"}
	least, most, end := 1.0, 0.0, 1.0
	for i := range outcomes {
		o := &outcomes[i]
		s := series{name: fmt.Sprintf("%s (%.3f)", o.Policy, o.Weighted)}
		for _, p := range o.Timeline {
			least, most = min(least, p.Weighted), max(most, p.Weighted)
			from := o.Timeline[0].From
			end = max(end, days(p.To.Sub(from)))
			s.x = append(s.x, days(p.From.Add(p.To.Sub(p.From)/2).Sub(from)))
			s.y = append(s.y, p.Weighted)
		}
		c.series = append(c.series, s)
	}
	c.y = shares(least, most)
	c.x = axis{to: end}
	const year = 365.25
	unit := 1.0
	if end > 5*year {
		unit, c.across = year, "years"
	}
	step := math.Max(1, math.Pow(10, math.Floor(math.Log10(end/unit))))
	for end/unit/step < 4 && step > 1 {
		step /= 2
	}
	for at := 0.0; at*unit <= end; at += step {
		c.x.marks = append(c.x.marks, mark{at * unit, strconv.FormatFloat(at, 'f', -1, 64)})
	}
	return c.write(w)
}

// WriteRatesSVG draws the mean interval of pages against the mean time between their
// changes, for at most a thousand pages of each outcome. Pages without a visit in the
// measured time are at the upper edge.
func WriteRatesSVG(w io.Writer, outcomes []Outcome) error {
	c := chart{title: "Interval by rate of change", across: "a page changes every", up: "it was fetched every", dots: true}
	least, most, low, high := math.Inf(1), 0.0, math.Inf(1), 0.0
	for i := range outcomes {
		s := series{name: outcomes[i].Policy}
		pages := outcomes[i].Pages
		for k := 0; k < len(pages); k += len(pages)/1000 + 1 {
			f := &pages[k]
			if !(f.PerDay > 0) {
				continue
			}
			every := math.Inf(1)
			if f.Visits > 0 {
				every = days(f.Every)
				low, high = min(low, every), max(high, every)
			}
			least, most = min(least, 1/f.PerDay), max(most, 1/f.PerDay)
			s.x, s.y = append(s.x, 1/f.PerDay), append(s.y, every)
		}
		c.series = append(c.series, s)
	}
	c.x, c.y = spans(least, most), spans(low, high*1.5)
	return c.write(w)
}

// WriteCurveSVG draws the freshness by importance against the budget.
func WriteCurveSVG(w io.Writer, pages int, curve []Budget) error {
	c := chart{title: "Freshness by importance within a budget", across: "a page is fetched every, on average", up: "share of the importance that is fresh"}
	least, most, low, high := math.Inf(1), 0.0, 1.0, 0.0
	for k, budget := range curve {
		every := float64(pages) / budget.PerDay
		least, most = min(least, every), max(most, every)
		for i, o := range budget.Outcomes {
			if k == 0 {
				c.series = append(c.series, series{name: o.Policy})
			}
			low, high = min(low, o.Weighted), max(high, o.Weighted)
			s := &c.series[i]
			s.x, s.y = append(s.x, every), append(s.y, o.Weighted)
		}
	}
	c.x, c.y = spans(least, most), shares(low, high)
	return c.write(w)
}
