package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
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

func TestDBIsMeasuredIntoAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "B.md")
	if err := os.WriteFile(file, []byte("above\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"db", "-urls", "1000,2000", "-top", "100", "-rounds", "2", "-dir", dir, "-write", file}
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
	if rows := bytes.Count(b, []byte("\n| 1000")) + bytes.Count(b, []byte("\n| 2000")); rows != 3*4 {
		t.Errorf("%d rows in\n%s", rows, b)
	}
	for _, name := range []string{"select.svg", "update.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, "bench", name))
		if err != nil || !bytes.Contains(svg, []byte("full scan")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "recrawl-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}
