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

// While a crawl is running, status says what it does; after it was killed, what the store
// holds.
func TestStatusOfRunningCrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 400, Calm: true, Latency: 5 * time.Millisecond})
	args := s.crawl(append([]string{"-schedule", "learned", "-budget", "100000"}, s.web.Seeds()...)...)
	c, out, errs := start(t, args...)
	var r result
	visits := func() (n float64) {
		if r = recrawl(t, "status", "-d", s.dir, "-json"); r.code != 0 {
			return 0
		}
		var j struct {
			AtWork struct{ Visits float64 } `json:"at_work"`
		}
		if err := json.Unmarshal([]byte(r.out), &j); err != nil {
			t.Fatalf("%v: %s", err, r.out)
		}
		return j.AtWork.Visits
	}
	until(t, "status to tell of visits", func() bool { return visits() > 0 })
	all := object(t, r.out)
	if all["pages"] == nil || all["hosts"] != nil {
		t.Errorf("want the figures of the plan, without hosts: %s", r.out)
	}
	j := all["at_work"].(map[string]any)
	if j["verb"] != "crawl" || j["process"] != float64(c.Process.Pid) || j["stage"] == "" || r.err != "" {
		t.Errorf("%v\n%s", j, r.err)
	}
	if text := ok(t, "status", "-d", s.dir); !strings.HasPrefix(text, "at work:\tcrawl, process ") || !strings.Contains(text, "\n  success ") {
		t.Errorf("%s", text)
	}
	if r := recrawl(t, "readdb", "-d", s.dir, "-stats"); r.code != 1 || !strings.Contains(r.err, "recrawl status says what it is doing") {
		t.Errorf("another verb beside it: %+v", r)
	}
	c.Process.Signal(syscall.SIGKILL)
	wait(t, c, out, errs)
	if text := ok(t, "status", "-d", s.dir); !strings.HasPrefix(text, "copies:") {
		t.Errorf("when it was killed: %s", text)
	}
}
