package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// chart is a picture, in the coordinates of its viewBox. Its data are also in a table or in text beside it.
type chart struct {
	Title, Description string
	Lines              []chartLine
	Bars               []chartBar
	XTicks, YTicks     []tick
}

type chartLine struct{ Class, Points string }

type chartBar struct {
	Class               string
	X, Y, Width, Height float64
}

type tick struct {
	At    float64
	Label string
}

// Empty reports whether there is nothing to see.
func (c chart) Empty() bool { return len(c.Lines)+len(c.Bars) == 0 }

// The plot of a chart of 600 by 190.
const (
	plotLeft, plotRight = 52.0, 590.0
	plotTop, plotBottom = 10.0, 160.0
)

func xAt(share float64) float64 { return round1(plotLeft + share*(plotRight-plotLeft)) }
func yAt(share float64) float64 { return round1(plotBottom - share*(plotBottom-plotTop)) }
func round1(v float64) float64  { return math.Round(10*v) / 10 }

// timeTicks labels the beginning, the middle and the end of a time.
func timeTicks(from, to time.Time) []tick {
	layout := "2006-01-02"
	switch d := to.Sub(from); {
	case d < 48*time.Hour:
		layout = "15:04"
	case d < 300*24*time.Hour:
		layout = "Jan 2"
	}
	var ticks []tick
	for _, share := range []float64{0, 0.5, 1} {
		ticks = append(ticks, tick{xAt(share), from.Add(time.Duration(share * float64(to.Sub(from)))).Format(layout)})
	}
	return ticks
}

func shareTicks() []tick {
	return []tick{{yAt(0), "0 %"}, {yAt(0.5), "50 %"}, {yAt(1), "100 %"}}
}

// freshnessChart shows the share of importance that was fresh.
func freshnessChart(points []historyPoint) chart {
	for len(points) > 0 && points[0].Fresh == 0 {
		points = points[1:]
	}
	if len(points) < 2 {
		return chart{}
	}
	from, to := points[0].Time, points[len(points)-1].Time
	var line strings.Builder
	lowest := 1.0
	for _, p := range points {
		fmt.Fprintf(&line, "%v,%v ", xAt(float64(p.Time.Sub(from))/float64(to.Sub(from))), yAt(p.Fresh))
		lowest = min(lowest, p.Fresh)
	}
	last := points[len(points)-1].Fresh
	return chart{
		Title:       "Freshness",
		Description: fmt.Sprintf("Share of importance that is fresh, from %s to %s: %s now, %s at the lowest.", stamp(from), stamp(to), percent(last), percent(lowest)),
		Lines:       []chartLine{{"line-a", strings.TrimSpace(line.String())}}, XTicks: timeTicks(from, to), YTicks: shareTicks(),
	}
}

const visitBars = 48

// visitsChart shows how many visits were made over time, and how many failed.
func visitsChart(points []historyPoint) chart {
	if len(points) < 2 {
		return chart{}
	}
	from, to := points[0].Time, points[len(points)-1].Time
	var made, failed [visitBars]int
	most, total, bad := 1, 0, 0
	for _, p := range points {
		i := min(int(visitBars*float64(p.Time.Sub(from))/float64(to.Sub(from))), visitBars-1)
		made[i], failed[i] = made[i]+p.total, failed[i]+p.Failures
		most, total, bad = max(most, made[i]), total+p.total, bad+p.Failures
	}
	c := chart{
		Title:       "Visits",
		Description: fmt.Sprintf("Visits from %s to %s: %s, of which %s failed.", stamp(from), stamp(to), number(total), number(bad)),
		XTicks:      timeTicks(from, to),
		YTicks:      []tick{{yAt(0), "0"}, {yAt(1), short(float64(most))}},
	}
	width := (plotRight - plotLeft) / visitBars
	for i := range made {
		good := float64(made[i]-failed[i]) / float64(most)
		wrong := float64(failed[i]) / float64(most)
		x := round1(plotLeft + float64(i)*width)
		if good > 0 {
			c.Bars = append(c.Bars, chartBar{"bar-good", x, yAt(good), round1(width - 2), round1(plotBottom - yAt(good))})
		}
		if wrong > 0 {
			c.Bars = append(c.Bars, chartBar{"bar-bad", x, yAt(good + wrong), round1(width - 2), round1(yAt(good) - yAt(good+wrong))})
		}
	}
	return c
}

// curveChart shows what budgets keep fresh, and marks the present one.
func curveChart(curve []curvePoint, budget float64) chart {
	if len(curve) < 2 || curve[len(curve)-1].PerDay <= 0 {
		return chart{}
	}
	most := curve[len(curve)-1].PerDay
	if budget > 0 { // what lies far beyond is flat
		most = min(most, max(8*budget, curve[0].PerDay*2))
	}
	var line strings.Builder
	for _, p := range curve {
		if p.PerDay <= most {
			fmt.Fprintf(&line, "%v,%v ", xAt(p.PerDay/most), yAt(p.Fresh))
		}
	}
	c := chart{
		Title:       "Freshness by budget",
		Description: "Share of importance kept fresh in the long run, by visits a day. The table has the figures.",
		Lines:       []chartLine{{"line-a", strings.TrimSpace(line.String())}},
		XTicks:      []tick{{xAt(0), "0"}, {xAt(0.5), short(most / 2)}, {xAt(1), short(most)}},
		YTicks:      shareTicks(),
	}
	if budget > 0 && budget <= most {
		x := xAt(budget / most)
		c.Lines = append(c.Lines, chartLine{"line-mark", fmt.Sprintf("%v,%v %v,%v", x, yAt(0), x, yAt(1))})
	}
	return c
}

// short writes a number in few characters.
func short(v float64) string {
	switch {
	case v >= 1e9:
		return strconv.FormatFloat(v/1e9, 'f', 1, 64) + "G"
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64) + "k"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
