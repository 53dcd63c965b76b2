package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a crawl holds stays as it is, and takes less than half of the room that three
// versions of its records took.
func TestCompact(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	file := filepath.Join(t.TempDir(), "seeds")
	for score := range 3 {
		var seeds strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&seeds, "http://a.example/%d\tnutch.score=%d\n", i, score+1)
		}
		if err := os.WriteFile(file, []byte(seeds.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		ok(t, "inject", "-d", dir, "-now", frozen, "-overwrite", "-seeds", file)
	}
	before := ok(t, "readdb", "-d", dir, "-stats", "-now", frozen)
	var was, is int64
	out := ok(t, "compact", "-d", dir, "-json")
	if _, err := fmt.Sscanf(strings.Join(strings.Fields(out), ""), `{"bytes":%d,"bytes_before":%d}`, &is, &was); err != nil || is <= 0 || 2*is >= was {
		t.Errorf("%q, %v", out, err)
	}
	if after := ok(t, "readdb", "-d", dir, "-stats", "-now", frozen); after != before {
		t.Errorf("the crawl db was\n%s\nand is\n%s", before, after)
	}
	if out := ok(t, "compact", "-d", dir); !strings.HasSuffix(out, " before\n") {
		t.Errorf("%q", out)
	}
	if r := recrawl(t, "compact", "-d", filepath.Join(dir, "none")); r.code != 1 || !strings.Contains(r.err, "there is no crawl") {
		t.Errorf("no crawl: %+v", r)
	}
}
