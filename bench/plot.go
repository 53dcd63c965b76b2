package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// line is a line of a plot.
type line struct {
	name string
	xy   plotter.XYs
	dash bool // a baseline
}

// The colours of Okabe and Ito, which the colour-blind can tell apart.
var colours = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}}

// drawPlot writes a plot with two logarithmic axes as SVG.
func drawPlot(file, title, x, y string, lines []line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.BackgroundColor = color.White // or it is not to be read on a dark page
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: 1}
	p.Legend.Top, p.Legend.Left, p.Legend.TextStyle.Font.Size = true, true, vg.Points(9)
	var sizes plot.ConstantTicks
	p.Add(plotter.NewGrid())
	for i, l := range lines {
		if len(l.xy) == 0 {
			continue
		}
		drawn, points, err := plotter.NewLinePoints(l.xy)
		if err != nil {
			return err
		}
		drawn.Color, points.Color, points.Shape = colours[i%len(colours)], colours[i%len(colours)], draw.CircleGlyph{}
		drawn.Width = vg.Points(1.5)
		if l.dash {
			drawn.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(drawn, points)
		p.Legend.Add(l.name, drawn, points)
		for _, at := range l.xy {
			if !slices.ContainsFunc(sizes, func(t plot.Tick) bool { return t.Value == at.X }) {
				sizes = append(sizes, plot.Tick{Value: at.X, Label: inMillions(at.X)})
			}
		}
	}
	p.X.Tick.Marker = sizes
	p.X.Min, p.X.Max = p.X.Min/1.2, p.X.Max*1.2
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, 0.6) // room for the legend
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, file)
}

func inMillions(n float64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g M", n/1e6)
}

// plotDB draws what grows with the crawl db and what does not.
func plotDB(dir string, all []dbResult) error {
	points := func(due float64, y func(*dbResult) float64) (xy plotter.XYs) {
		for i := range all {
			if r := &all[i]; r.Due == due && y(r) > 0 {
				xy = append(xy, plotter.XY{X: float64(r.URLs), Y: y(r)})
			}
		}
		return xy
	}
	limit := func(most int) func(*dbResult) float64 {
		return func(r *dbResult) float64 { return r.SelectWorn[most].per() }
	}
	byScan := func(r *dbResult) float64 { return r.SelectByScan.per() }
	leased := func(r *dbResult) float64 { g := r.generate(); return g.perSettled() }
	err := drawPlot(filepath.Join(dir, "select.svg"), "What a selected URL costs", "URLs in the crawl db", "µs of CPU", []line{
		{name: "100 a host, all due", xy: points(1, limit(100))},
		{name: "100 a host, 1 % due", xy: points(0.01, limit(100))},
		{name: "1 a host, all due", xy: points(1, limit(1))},
		{name: "leased and durable, 1 % due", xy: points(0.01, leased)},
		{name: "full scan, all due", xy: points(1, byScan), dash: true},
		{name: "full scan, 1 % due", xy: points(0.01, byScan), dash: true},
	})
	if err != nil {
		return err
	}
	changed := func(r *dbResult) float64 { c := r.changed(); return c.rateSettled() }
	links := func(r *dbResult) float64 { u := r.update(); return u.rateSettled() }
	return drawPlot(filepath.Join(dir, "update.svg"), "What an update does in a second of CPU", "URLs in the crawl db", "a second", []line{
		{name: "links, 1 % due", xy: points(0.01, links)},
		{name: "records, 1 % due", xy: points(0.01, changed)},
		{name: "records, all due", xy: points(1, changed)},
		{name: "records by Get and Set, 1 % due", xy: points(0.01, func(r *dbResult) float64 { return r.GetSet.rateSettled() }), dash: true},
		{name: "records by a full scan, 1 % due", xy: points(0.01, func(r *dbResult) float64 {
			// A pass over all records that writes none, for each that the update writes.
			return r.Scan.rate() * float64(r.changed().N) / float64(max(len(r.Rounds)-1, 1)) / float64(r.URLs)
		}), dash: true},
	})
}
