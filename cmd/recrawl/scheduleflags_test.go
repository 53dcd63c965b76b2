package main_test

import (
	"strings"
	"testing"
)

func TestScheduleFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/crawl"
	if r := recrawl(t, "inject", "-d", dir, "https://example.com/"); r.code != 0 {
		t.Fatalf("inject: %+v", r)
	}
	for _, budget := range []string{"700/week", "100", "4.2/hour", "polite", "36500/year"} {
		r := recrawl(t, "explain", "-d", dir, "-schedule", "learned", "-budget", budget, "https://example.com/")
		for _, want := range []string{"changes      0.0333 ± 0.047 a day, once in 30d: expected of pages like it", "worth        weight 1;", "from 60m to 90d"} {
			if r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("-budget %s: exit %d %s, want %q in\n%s", budget, r.code, r.err, want, r.out)
			}
		}
	}
	if r := recrawl(t, "explain", "-d", dir, "https://example.com/"); r.code != 0 || strings.Contains(r.out, "changes") {
		t.Errorf("without: %+v", r)
	}
	for _, bad := range [][]string{{"-schedule", "best"}, {"-budget", "100/day"}, {"-schedule", "learned", "-budget", "0/day"}, {"-schedule", "learned", "-budget", "1/fortnight"}, {"-schedule", "learned", "-budget", "much"}} {
		r := recrawl(t, append([]string{"explain", "-d", dir}, append(bad, "https://example.com/")...)...)
		if r.code != 2 || !strings.Contains(r.err, bad[len(bad)-2]) {
			t.Errorf("%v: exit %d, %q", bad, r.code, r.err)
		}
	}
}
