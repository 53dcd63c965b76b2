package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

func TestPopulation(t *testing.T) {
	const n = 30_000
	p := newPopulation(n, time.Time{})
	for i := range n {
		u := p.url(i)
		if len(u) < 50 || len(u) > 120 {
			t.Fatalf("%q has %d bytes", u, len(u))
		}
		if i > 0 && crawldb.Compare(p.url(i-1), u) >= 0 {
			t.Fatalf("%q is not before %q", p.url(i-1), u)
		}
	}
	most := 0
	for i, first := range p.first[1:] {
		most = max(most, first-p.first[i])
		if first == p.first[i] {
			t.Fatal("a host without pages")
		}
	}
	if most < n/12 {
		t.Errorf("the largest host has %d of %d URLs", most, n)
	}
}

func TestLinks(t *testing.T) {
	p := newPopulation(300_000, time.Time{})
	r := rand.New(rand.NewPCG(1, 2))
	l := &linker{p: p, r: r}
	const pages, each = 2000, 60
	seen := map[string]bool{}
	var own, known, outside int
	for range pages {
		from := p.url(r.IntN(p.n))
		host, err := hostOf(from)
		if err != nil || crawldb.Host(pageURL(host, 0)) != crawldb.Host(from) {
			t.Fatalf("%q is on host %d, %v", from, host, err)
		}
		for range each {
			to := l.link(host)
			at, err := hostOf(to)
			if err != nil {
				t.Fatal(err)
			}
			if at == host {
				own++
			}
			if seen[to] {
				known++
			}
			seen[to] = true
			if i := strings.LastIndexByte(to, '/'); to != pageURL(at, atoi(t, to[i+1:i+9])) || atoi(t, to[i+1:i+9]) >= p.first[at+1]-p.first[at] {
				outside++
			}
		}
	}
	// 55 % of two thirds, and some of the others by chance: the largest host has 8 %.
	for _, c := range []struct {
		what        string
		n           int
		least, most float64
	}{{"on the host of the page", own, .36, .48}, {"linked to before", known, .45, .60}, {"outside of the population", outside, .12, .18}} {
		if share := float64(c.n) / (pages * each); share < c.least || share > c.most {
			t.Errorf("%.3f of all links are %s", share, c.what)
		}
	}
	if _, err := hostOf("https://www.example/"); err == nil {
		t.Error("a host of another URL")
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDBTablesAreWrittenIntoAFile(t *testing.T) {
	t.Parallel() // it waits for the engine more than it works
	dir := t.TempDir()
	file := filepath.Join(dir, "B.md")
	if err := os.WriteFile(file, []byte("above\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"db", "-urls", testlevel.Pick("1000", "1000,2000"), "-top", "100", "-rounds", testlevel.Pick("1", "2"), "-dir", dir, "-write", file}
	if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "bench db") {
		t.Fatalf("a file without a place for it: %v", err)
	}
	if err := os.WriteFile(file, []byte("above\n<!-- bench db -->\nold\n<!-- end -->\nbelow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(b, []byte("above\n<!-- bench db -->\n")) || !bytes.HasSuffix(b, []byte("\n<!-- end -->\nbelow\n")) || bytes.Contains(b, []byte("old")) {
		t.Errorf("%s", b)
	}
	if rows := bytes.Count(b, []byte("\n| 1000")) + bytes.Count(b, []byte("\n| 2000")); rows != testlevel.Pick(3*2, 3*4) {
		t.Errorf("%d rows in\n%s", rows, b)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "recrawl-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}

func TestAllTablesAreWrittenIntoAFile(t *testing.T) {
	t.Parallel() // it waits for the engine more than it works
	dir := t.TempDir()
	file := filepath.Join(dir, "B.md")
	args := []string{"all", "-kb", "2,3", "-hosts", "2", "-pages", "4", "-n", "1", "-urls", "1000", "-top", "100", "-links", "5", "-rounds", "1", "-dir", dir, "-write", file}
	if err := os.WriteFile(file, []byte("<!-- bench pages -->\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "bench db") {
		t.Fatalf("a file without a place for the crawl db: %v", err)
	}
	if err := os.WriteFile(file, []byte("above\n<!-- bench pages -->\nold\n<!-- end -->\nbetween\n<!-- bench db -->\nold\n<!-- end -->\nbelow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	between, _, _ := strings.Cut(text, "<!-- bench db -->")
	for _, want := range []string{"Pages of 2 KB:\n", "Pages of 3 KB:\n", "\n| bare ", "\n| colly ", "\nbetween\n"} {
		if !strings.Contains(between, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "old") || strings.Count(text, "\n| 1000") != 3*2 || !strings.HasSuffix(text, "\n<!-- end -->\nbelow\n") {
		t.Error(text)
	}
	if err := run(t.Context(), []string{"all", "-urls", "many"}); err == nil || !strings.Contains(err.Error(), "many") {
		t.Errorf("sizes that are none: %v", err)
	}
}
