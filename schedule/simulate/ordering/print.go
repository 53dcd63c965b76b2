package ordering

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteTable writes a line for each order: what is held at some shares of the pages, and the
// area under the curve with the extremes of the runs.
func (r *Result) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	shares := []float64{0.01, 0.05, 0.10, 0.20, 0.30, 0.50, 0.70}
	fmt.Fprintf(b, "%d pages, %d links; share of the PageRank held when this share of the pages is downloaded:\n\n%-14s", r.Pages, r.Links, "order")
	for _, s := range shares {
		fmt.Fprintf(b, " %4.0f%%", 100*s)
	}
	fmt.Fprintf(b, "   area  lowest highest\n")
	for i := range r.Curves {
		c := &r.Curves[i]
		fmt.Fprintf(b, "%-14s", c.Name)
		for _, s := range shares {
			fmt.Fprintf(b, " %5s", strings.TrimPrefix(fmt.Sprintf("%.3f", c.At(s)), "0"))
		}
		fmt.Fprintf(b, "  %.3f   %.3f   %.3f\n", c.Area, c.Low, c.High)
	}
	return b.Flush()
}

// WriteTimes writes how long the orders took, and the part of it that was ranking.
func (r *Result) WriteTimes(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range r.Curves {
		c := &r.Curves[i]
		if c.Elapsed == 0 {
			continue
		}
		fmt.Fprintf(b, "%-14s %v", c.Name, c.Elapsed.Round(time.Millisecond))
		if c.Ranked > 0 {
			fmt.Fprintf(b, ", of which %v to compute ranks %d times and write %d scores", c.Ranking.Round(time.Millisecond), c.Ranked, c.Written)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// WriteSVG draws the curves.
func (r *Result) WriteSVG(w io.Writer) error {
	const width, height, left, top, size = 760, 560, 60, 30, 480
	colors := []string{"#999", "#bb8", "#c80", "#c33", "#a3c", "#06c", "#080", "#000"}
	x := func(s float64) float64 { return left + size*s }
	y := func(s float64) float64 { return top + size*(1-s) }
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="%d" height="%d" fill="white"/>
<text x="%d" y="18">share of the PageRank held, by the share of %d pages downloaded</text>
`, width, height, width, height, width, height, left, r.Pages)
	for i := range 11 {
		s := float64(i) / 10
		fmt.Fprintf(b, `<path d="M%.0f %.1fH%.0f M%.1f %.0fV%.0f" stroke="#eee"/><text x="%d" y="%.1f" text-anchor="end">%.1f</text><text x="%.1f" y="%.0f" text-anchor="middle">%.1f</text>`+"\n",
			x(0), y(s), x(1), x(s), y(0), y(1), left-6, y(s)+4, s, x(s), y(0)+16, s)
	}
	for i := range r.Curves {
		c := &r.Curves[i]
		var path strings.Builder
		for k, held := range c.Held {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(float64(k)/float64(len(c.Held)-1)), y(held))
		}
		color := colors[i%len(colors)]
		dash := ""
		if i+1 == len(r.Curves) {
			dash = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"%s/>`+"\n", path.String(), color, dash)
		at := top + 20 + 20*i
		fmt.Fprintf(b, `<path d="M%d %dh24" stroke="%s" stroke-width="1.6"%s/><text x="%d" y="%d">%s %.3f</text>`+"\n", left+size+24, at-4, color, dash, left+size+54, at, escape(c.Name), c.Area)
	}
	fmt.Fprintf(b, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n</svg>\n", left, top, top+size, left+size)
	return b.Flush()
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
