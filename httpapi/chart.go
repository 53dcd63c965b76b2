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
	XLabels, YLabels   [3]string // of the beginning, the middle and the end; of the top, the middle and the bottom
}

type chartLine struct{ Class, Points string }

type chartBar struct {
	Class               string
	X, Y, Width, Height float64
}

// Empty reports whether there is nothing to see.
func (c chart) Empty() bool { return len(c.Lines)+len(c.Bars) == 0 }

// A chart is 600 by 150, and stretched to the width of its place. Its labels stand beside it.
const chartWidth, chartHeight = 600.0, 150.0

func xAt(share float64) float64 { return round1(share * chartWidth) }
func yAt(share float64) float64 { return round1((1 - share) * chartHeight) }
func round1(v float64) float64  { return math.Round(10*v) / 10 }

// timeLabels labels the beginning, the middle and the end of a time.
func timeLabels(from, to time.Time) (labels [3]string) {
	layout := "2006-01-02"
	switch d := to.Sub(from); {
	case d < 48*time.Hour:
		layout = "15:04"
	case d < 300*24*time.Hour:
		layout = "Jan 2"
	}
	for i := range labels {
		labels[i] = from.Add(to.Sub(from) * time.Duration(i) / 2).Format(layout)
	}
	return labels
}

func shareLabels() [3]string { return [3]string{"100 %", "50 %", "0 %"} }

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
		Lines:       []chartLine{{"line-a", strings.TrimSpace(line.String())}}, XLabels: timeLabels(from, to), YLabels: shareLabels(),
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
		XLabels:     timeLabels(from, to),
		YLabels:     [3]string{short(float64(most)), "", "0"},
	}
	const width = chartWidth / visitBars
	for i := range made {
		good := float64(made[i]-failed[i]) / float64(most)
		wrong := float64(failed[i]) / float64(most)
		x := round1(float64(i) * width)
		if good > 0 {
			c.Bars = append(c.Bars, chartBar{"bar-good", x, yAt(good), round1(width - 2), round1(chartHeight - yAt(good))})
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
	if budget > 0 { // beyond eight times the budget the curve is nearly flat
		limit := max(8*budget, curve[1].PerDay)
		for _, p := range curve {
			if p.PerDay <= limit {
				most = p.PerDay
			}
		}
	}
	var line strings.Builder
	for _, p := range curve {
		if p.PerDay <= most {
			fmt.Fprintf(&line, "%v,%v ", xAt(p.PerDay/most), yAt(p.Freshness))
		}
	}
	c := chart{
		Title:       "Freshness by budget",
		Description: "Share of importance kept fresh in the long run, by visits a day. The table has the figures.",
		Lines:       []chartLine{{"line-a", strings.TrimSpace(line.String())}},
		XLabels:     [3]string{"0", short(most / 2), short(most)},
		YLabels:     shareLabels(),
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
	return number(int64(math.Round(v)))
}
