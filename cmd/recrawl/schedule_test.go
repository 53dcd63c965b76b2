package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScheduleTriesHistories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	history := file("changes.tsv", "# two pages\nhttp://a.example/ 2026-01-01T00:00:00Z:A 2026-02-01T00:00:00Z\nhttp://b.example/ 2026-01-01T00:00:00Z:A 2026-03-01T00:00:00Z:D\n")
	svg := filepath.Join(dir, "plot.svg")
	for _, c := range []struct {
		args string
		want string
	}{
		// The hot loop of Nutch's sync_delta, and the corrected schedule on the same page.
		{"-nutch -never -interval 1d -max 7d -limit 7d -for 42d", "22 visits, 1 of them with news"},
		{"-never -interval 1d -max 7d -limit 7d -for 42d", "10 visits, 1 of them with news"},
		{"-kind default -every 10d -for 60d", "2 visits, 2 of them with news; 5 changes, 2 missed and 2 not yet seen"},
		{"-poisson 1d -for 30d -seed 7 -json", `"freshness":`},
		{"-history " + history, "2 pages, 2026-01-01T00:00:00Z to 2027-01-01T00:00:00Z:"},
		{"-history " + history + " -url http://b.example/ -width 0", "db_gone"},
		{"-kind mime -types " + file("types.txt", "text/html 0 0\n") + " -every 10d -for 60d", "  30d  2026-01-31T"},
		{"-kind mime -types " + file("pdf.txt", "application/pdf 0 0\n") + " -history " + file("found.tsv", "url time type md5\nhttp://a.example/ 2026-01-01 application/PDF 1\nhttp://a.example/ 2026-06-01 - 1\n"), "  30d  2026-03-02T"},
		{"-hosts " + file("hosts.txt", "www.example.com 86400 172800\n") + " -never -for 4d", "  2d  2026-01-03T"},
		{"-kind learned -poisson 3d -for 1y -limit 20d", "of them with news"},
		{"-nutch -min 2d -max 1d -every 3d -for 20d", "  2d  2026-01-"},
		{"-never -svg " + svg, "1 of them with news"},
	} {
		r := recrawl(t, append([]string{"schedule"}, strings.Fields(c.args)...)...)
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, c.want) {
			t.Errorf("recrawl schedule %s: exit %d, %q; want %q in\n%s", c.args, r.code, r.err, c.want, r.out)
		}
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(b), "<svg ") {
		t.Errorf("the picture: %v, %.20s", err, b)
	}
	for args, want := range map[string]string{
		"-kind x":                      `-kind: "x" is not one of default, adaptive, mime and learned`,
		"-keep 0.9":                    "-keep is for -kind learned",
		"-kind learned -keep 2":        "-keep: 2 is not a share",
		"-kind learned -inc 0.1":       "-kind learned has no -inc",
		"-min 3x":                      `-min: "3x" is not a time`,
		"-min 2d -max 1d":              "-min: 2d is longer than -max 1d",
		"-min 2d -limit 1d -max 9d":    "-min: 2d is longer than -limit 1d",
		"-for 101y":                    `-for: "101y" is not a time`,
		"-every 1d -never":             "-history, -every, -poisson and -never exclude each other",
		"-dec 1.5":                     "-dec: 1.5 is not a share from 0 to 1",
		"-types x":                     "-types is for -kind mime",
		"-step 1s -for 100y":           "-step: 1s is too short",
		"-every 1s -for 100y":          "-every: 1s is too short",
		"-poisson 1s -for 1y":          "-poisson: 1s is too short",
		"http://x/":                    "http://x/",
		"-history " + dir + "/missing": "no such file",
		"-history " + history + " -url http://c.example/":                 "has no page http://c.example/",
		"-history " + file("bad.tsv", "http://a/ soon"):                   `bad.tsv:1: "soon" is not an event`,
		"-hosts " + file("badhosts.txt", "# x\na 2 1"):                    "badhosts.txt:2: the least interval exceeds the greatest",
		"-kind mime -types " + file("badtypes.txt", "text/html fast 0\n"): `badtypes.txt:1: "fast" is not a number`,
	} {
		r := recrawl(t, append([]string{"schedule"}, strings.Fields(args)...)...)
		if r.code == 0 || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("recrawl schedule %s: exit %d, %q, want %q", args, r.code, r.err, want)
		}
	}
}
