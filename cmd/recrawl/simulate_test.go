package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScheduleSimulates(t *testing.T) {
	t.Parallel()
	history := write(t, "changes.tsv", "http://a.example/\t2026-01-01:A 2026-02-01 2026-03-05 w=3\nhttp://b.example/\t2026-01-01:A 2026-06-01:D\n")
	found := write(t, "found.tsv", "url\ttime\tmd5\ttextmd5\nhttp://a.example/\t2026-01-01\tx\t1\nhttp://a.example/\t2026-06-01\ty\t1\n")
	var lines strings.Builder
	for n := range 16 {
		fmt.Fprintf(&lines, "http://a.example/,2026-01-%02d,%d,%d\n", n+1, n, n/10)
	}
	restless := write(t, "restless.csv", "url,time,md5,textmd5\n"+lines.String())
	name := filepath.Join(t.TempDir(), "plot")
	small := "-pages 60 -for 200d "
	for _, c := range []struct {
		args string
		want []string
	}{
		{small, []string{"60 pages, 2 fetches a day\nfrom 2026-01-01 to 2026-07-20, measured from 2026-03-08 on; importance: zipf\n", "learned ", "Nutch adaptive, by score ", "optimum, rates known "}},
		{small + "-population lognorm -importance correlated -every 7d -cold -seed 2 -only learn,optimum -svg " + name, []string{"60 pages, 8.571 fetches a day", "learned ", "100.0%"}},
		{small + "-kind adaptive -inc 0.1 -dec 0.5 -budget 5 -only yours -last-modified -conditional -shift 2", []string{"60 pages, 5 fetches a day", "yours, by priority ", "yours, oldest first "}},
		{small + "-kind learned -keep 0.9 -limit 60d -only learned", []string{"yours, learned ", "\nlearned "}},
		{small + "-nutch -limit 60d -only yours", []string{"yours, by priority "}},
		{small + "-signals recall=.9,precision=.8,share=.5 -signals flood=1 -only learned,signals", []string{"learned ", "optimum, rates and signals known "}},
		{"-history " + found + " -signature md5 -truth textmd5 -only learned", []string{"1 pages", "importance: zipf, drawn at random", "learned ", " 1.0000 ", "learned, if textmd5 is compared "}},
		{"-history " + restless + " -only learned", []string{"md5                   15.00", "textmd5                1.00", "learned, if md5 is compared ", "md5 differs at every visit of 1 of 1 pages"}},
		{small + "-curve 30d,7d -only constant,optimum -svg " + name, []string{"a page is fetched every    30.0d     7.0d", "constant interval "}},
		{"-history " + history + " -cycle 1d -for 1y -measure 30d -only default", []string{"2 pages, 0.06667 fetches a day", "from 2026-01-01 to 2027-01-01, measured from 2026-01-31 on; importance: as the history says", "default, 30 days "}},
	} {
		r := recrawl(t, append([]string{"schedule", "simulate"}, strings.Fields(c.args)...)...)
		if r.code != 0 || r.err != "" {
			t.Errorf("recrawl schedule simulate %s: exit %d, %q", c.args, r.code, r.err)
		}
		for _, want := range c.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("recrawl schedule simulate %s does not say %q:\n%s", c.args, want, r.out)
			}
		}
	}
	for _, suffix := range []string{"-time.svg", "-rates.svg", "-budget.svg"} {
		if b, err := os.ReadFile(name + suffix); err != nil || !strings.HasPrefix(string(b), "<svg ") || !strings.HasSuffix(string(b), "</svg>\n") {
			t.Errorf("the picture %s: %v, %.20s", suffix, err, b)
		}
	}
	for _, more := range []string{"", " -curve 30d,7d"} {
		lines := strings.Split(strings.TrimSpace(ok(t, append([]string{"schedule", "simulate", "-json"}, strings.Fields(small+"-only optimum"+more)...)...)), "\n")
		var o struct {
			Policy   string
			Weighted float64
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &o); err != nil || o.Policy != "optimum, rates known" || !(o.Weighted > 0.5 && o.Weighted < 1) || len(lines) != 1+len(more)/14 {
			t.Errorf("%v: %+v", err, o)
		}
	}
	for args, want := range map[string]string{
		"-population x":                     `-population: "x" is not one of cho5, lognorm, equal, hourly, daily, weekly, yearly, static, two, weekdays and seasonal`,
		"-importance x":                     `-importance: "x" is not one of zipf, uniform, correlated and anticorrelated`,
		"-pages 0":                          "-pages: 0 is not a number from 1",
		"-history " + history + " -pages 5": "-history excludes",
		"-history " + history + " -shift 2": "-history says when pages change",
		"-population weekdays -shift 2":     "-population weekdays says when pages change",
		"-curve 3d -every 5d":               "-curve excludes",
		"-curve 3d -budget 5":               "-curve excludes",
		"-only ,":                           "-only: no schedule has a name",
		"-reference -kind learned":          "excludes -kind",
		"-reference -shift 2":               "excludes -shift",
		"-signals recall=2":                 "2 is not a share",
		"-reference -pages 0":               "-pages: 0 is not a number",
		"-budget 0":                         "-budget: 0 is not a number of fetches a day",
		"-budget 3 -every 3d":               "-budget and -every exclude each other",
		"-every x":                          `-every: "x" is not a time`,
		"-curve 3d,x":                       `-curve: "x" is not a time`,
		"-shift -1":                         "-shift: -1 is not a factor",
		"-cycle 1s -for 1y":                 "-cycle: 1s is too short",
		"-measure 2y -for 1y":               "nothing is left to measure",
		"-only nothing":                     `-only: no schedule has a name with one of "nothing"`,
		"-reference -seed 2":                "excludes -seed",
		"-kind x":                           `-kind: "x"`,
		"extra":                             `takes no argument "extra"`,
		"-history missing.tsv":              "no such file",
		"-pages 1000000 -svg no/such/dir/x": "-svg: open no/such/dir/x-time.svg: no such file", // before the simulation
		"-pages 1000000 -curve 3d,5d -svg no/such/dir/x": "-svg: open no/such/dir/x-budget.svg: no such file",
		"-history " + found + " -signature x":            `has no signature "x"; it has md5, textmd5`,
		"-history " + history + " -signature md5":        "and no signatures",
		"-signature md5": "-signature and -truth are for a -history",
	} {
		r := recrawl(t, append([]string{"schedule", "simulate"}, strings.Fields(args)...)...)
		if r.code == 0 || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("recrawl schedule simulate %s: exit %d, %q, want %q", args, r.code, r.err, want)
		}
	}
	// With few pages some figures are off, and the command says so.
	if r := recrawl(t, "schedule", "simulate", "-reference", "-pages", "10"); r.code != 1 || !strings.Contains(r.out, "ok      0.5729  0.573 +- 0.001") || !strings.Contains(r.err, "figures are off") {
		t.Errorf("-reference: exit %d, %q\n%s", r.code, r.err, r.out)
	}
	help := ok(t, "schedule", "simulate", "--help-all")
	for _, want := range []string{"Usage: recrawl schedule simulate [flags]", "recrawl schedule simulate -reference", "-curve TIMES"} {
		if !strings.Contains(help, want) {
			t.Errorf("--help does not say %q:\n%s", want, help)
		}
	}
	for line := range strings.Lines(help) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.HasSuffix(line, " ") || strings.ContainsAny(line, "\t`{}") {
			t.Errorf("--help: %q is too long for a terminal, or not clean", line)
		}
	}
}
