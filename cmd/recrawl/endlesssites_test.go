package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// What keeps a crawl out of sites without end can be seen, set and switched off.
func TestTrapsAreNamed(t *testing.T) {
	t.Parallel()
	trap := "http://site.example/a/b/a/b/a/b/"
	out := recrawl(t, "check", "filter", trap).out
	if !strings.Contains(out, "trap: ") || !strings.Contains(out, "follow each other") {
		t.Errorf("check filter does not name the trap:\n%s", out)
	}
	for _, args := range [][]string{{"crawl"}, {"generate"}, {"update"}, {"parse"}} {
		help := ok(t, append(args, "--help-all")...)
		if want := map[string]string{"crawl": "-no-traps", "generate": "-exact", "update": "-max-growth N", "parse": "-parse-timeout"}[args[0]]; !strings.Contains(help, "  "+want) {
			t.Errorf("%s --help does not say %s", args[0], want)
		}
	}
	for _, args := range [][]string{{"-max-growth", "-1"}, {"-max-per-part", "-1"}, {"-parse-timeout", "-1s"}} {
		if r := recrawl(t, append([]string{"crawl", "-d", filepath.Join(t.TempDir(), "c"), "-agent", "test", "http://site.example/"}, args...)...); r.code != 2 {
			t.Errorf("%q: exit %d", args, r.code)
		}
	}
}

func TestNoTraps(t *testing.T) {
	t.Parallel()
	trap := "http://site.example/a/b/a/b/a/b/"
	for _, no := range []bool{false, true} {
		args := []string{"inject", "-d", filepath.Join(t.TempDir(), "c"), fmt.Sprintf("-no-traps=%v", no), trap}
		if r := recrawl(t, args...); (r.code == 0) != no {
			t.Errorf("%q: exit %d %s", args, r.code, r.err)
		}
	}
}
