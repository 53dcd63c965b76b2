package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScoringSimulate(t *testing.T) {
	t.Parallel()
	simulate := func(args ...string) string {
		t.Helper()
		r := recrawl(t, append([]string{"scoring", "simulate"}, args...)...)
		if r.code != 0 || r.err != "" {
			t.Fatalf("%v: exit %d, %s", args, r.code, r.err)
		}
		return r.out
	}
	dir := t.TempDir()
	graph, svg := filepath.Join(dir, "links.tsv"), filepath.Join(dir, "curves.svg")
	// A chain that leads astray, and one page that all others lead to.
	links := "# from\tto\n"
	for _, from := range strings.Fields("a b c d e f") {
		links += from + "\thub\n" + from + " " + string(from[0]+1) + "\n"
	}
	if err := os.WriteFile(graph, []byte(links), 0o600); err != nil {
		t.Fatal(err)
	}
	out := simulate("-graph", graph, "-seeds", "1", "-svg", svg, "-times")
	for _, want := range []string{"8 pages, 12 links", "breadth first", "OPIC of Nutch", "PageRank", "upper bound", "area", "to compute ranks"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if drawn, err := os.ReadFile(svg); err != nil || !strings.Contains(string(drawn), "omniscient") {
		t.Errorf("drawn is %s: %v", drawn, err)
	}
	for args, want := range map[string]string{
		"-batch 0": "-batch: 0 is not a share", "-runs 0": "must be at least 1", "-pages 1": "-pages: 1 is not", "-growth -1": "-growth: -1 is not",
		"-graph " + graph + "x": "no such file", "-graph " + graph + " -pages 9": "-graph excludes", "-graph " + graph + " -sites": "-graph excludes",
	} {
		if r := recrawl(t, append([]string{"scoring", "simulate"}, strings.Fields(args)...)...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %q; want %q", args, r.code, r.err, want)
		}
	}
	if plain, sites := simulate("-pages", "300"), simulate("-pages", "300", "-sites"); plain == sites {
		t.Errorf("-sites makes no difference: %s", sites)
	}
	area := map[string]float64{}
	d := json.NewDecoder(strings.NewReader(simulate("-pages", "3000", "-runs", "2", "-json")))
	for d.More() {
		var c struct {
			Order string
			Area  float64
		}
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		area[c.Order] = c.Area
	}
	if area["PageRank"] <= area["OPIC of Nutch"] || area["PageRank"] <= area["breadth first"] || area["PageRank"] >= area["upper bound"] {
		t.Errorf("the areas are %v", area)
	}
}
