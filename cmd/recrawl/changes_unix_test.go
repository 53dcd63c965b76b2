//go:build unix

package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// change is a line of changes.
type change struct {
	Position, Kind, URL string
	Text                *string
}

func changesOf(t *testing.T, out string) (all []change) {
	t.Helper()
	for line := range strings.Lines(out) {
		var c change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			if !strings.HasSuffix(line, "\n") { // the process was killed
				continue
			}
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, c)
	}
	return all
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 30, Calm: true})
	ok(t, s.crawl(append([]string{"-topN", "10", "-keep-segments", "2"}, s.web.Seeds()...)...)...)
	if all := changesOf(t, ok(t, "changes", "-d", s.dir, "-consumer", "kept", "-text")); len(all) == 0 || len(all) >= 30 || all[0].Kind != "new" || all[0].Text == nil || *all[0].Text == "" {
		t.Errorf("%+v of the two segments that are kept", all)
	}
	snapshot := changesOf(t, ok(t, "changes", "-d", s.dir, "-consumer", "all", "-from", "snapshot"))
	if len(snapshot) != 32 || snapshot[0].Kind != "snapshot_begin" || snapshot[1].Kind != "known" || snapshot[31].Kind != "snapshot_end" {
		t.Errorf("%d events: %+v", len(snapshot), snapshot)
	}
	for _, name := range []string{"kept", "all"} {
		if out := ok(t, "changes", "-d", s.dir, "-consumer", name); out != "" {
			t.Errorf("%s again: %s", name, out)
		}
	}
	list := ok(t, "changes", "-d", s.dir, "-list")
	if strings.Count(list, "\n") != 2 || !strings.HasPrefix(list, `{"consumer":"all","registered":"`) || !strings.Contains(list, `"segments":0,"events":0,`) {
		t.Errorf("%s", list)
	}
	if out := ok(t, "status", "-d", s.dir); !strings.HasPrefix(out, "consumer:\tall, has read everything\nconsumer:\tkept, has read everything\n") {
		t.Errorf("%s", out)
	}
	if j := object(t, ok(t, "status", "-d", s.dir, "-json")); len(j["consumers"].([]any)) != 2 || j["pages"] == nil {
		t.Errorf("%v", j)
	}
	ok(t, "verify", "-d", s.dir)
	ok(t, "changes", "-d", s.dir, "-consumer", "all", "-drop")
	if r := recrawl(t, "changes", "-d", s.dir, "-consumer", "all", "-drop"); r.code != 1 || !strings.Contains(r.err, "no such consumer") {
		t.Errorf("%+v", r)
	}
	if out := ok(t, "changes", "-d", s.dir, "-consumer", "diffs", "-diff"); !strings.Contains(out, `"kind":"new"`) || strings.Contains(out, `"diff"`) {
		t.Errorf("pages that are new differ from something: %s", out)
	}
	for _, args := range [][]string{{}, {"-list", "-drop"}, {"-consumer", "a", "-from", "yesterday"}, {"-consumer", "a", "-drop", "-follow"}} {
		if r := recrawl(t, append([]string{"changes", "-d", s.dir}, args...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := recrawl(t, "changes", "-d", s.dir, "-consumer", "a b"); r.code != 1 || !strings.Contains(r.err, "cannot be named") {
		t.Errorf("%+v", r)
	}
}

// A consumer that follows a crawl has an event of every page, however often either of them is killed.
func TestChangesFollowACrawlThatIsKilled(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 100, Calm: true, Latency: 2 * time.Millisecond})
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0])
	ok(t, "changes", "-d", s.dir, "-consumer", "index") // which registers it before a segment can be removed
	args := s.crawl(append([]string{"-topN", "40", "-keep-segments", "1"}, s.web.Seeds()...)...)
	seen := map[string]bool{}
	read := func(out string) {
		for _, c := range changesOf(t, out) {
			seen[c.URL] = true
		}
	}
	for i := range 3 {
		c, out, errs := start(t, args...)
		f, changes, ferrs := start(t, "changes", "-d", s.dir, "-consumer", "index", "-follow")
		until(t, "changes beside the crawl", func() bool {
			return strings.Count(changes.String(), "\n") > 20
		})
		for _, p := range []int{i, i + 1} {
			if p%2 == 0 {
				c.Process.Signal(syscall.SIGKILL)
			} else {
				f.Process.Signal(syscall.SIGKILL)
			}
		}
		wait(t, c, out, errs)
		wait(t, f, changes, ferrs)
		read(changes.String())
	}
	f, changes, ferrs := start(t, "changes", "-d", s.dir, "-consumer", "index", "-follow")
	ok(t, args...)
	until(t, "an event of every page", func() bool {
		read(changes.String())
		return len(seen) == 300
	})
	// What a killed reader had printed unacknowledged comes again.
	until(t, "all to be read again", func() bool {
		return strings.Contains(ok(t, "changes", "-d", s.dir, "-list"), `"segments":0,"events":0,`)
	})
	f.Process.Signal(syscall.SIGTERM)
	wait(t, f, changes, ferrs)
	if out := ok(t, "changes", "-d", s.dir, "-consumer", "index"); strings.Count(out, "\n") > 0 {
		t.Errorf("what was printed is not acknowledged: %s", out)
	}
	ok(t, "verify", "-d", s.dir)
}
