package main_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// A crawl serves its metrics while it runs, those of the store included.
func TestCrawlServesMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 50, Calm: true, Latency: 50 * time.Millisecond})
	c := exec.Command(program, s.crawl(append([]string{"-metrics-listen", "127.0.0.1:0"}, s.web.Seeds()...)...)...)
	out, errs := new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var url string
	until(t, "the address", func() bool {
		url = regexp.MustCompile(`http://127.0.0.1:\d+/metrics`).FindString(errs.String())
		return url != ""
	})
	wanted := []*regexp.Regexp{
		regexp.MustCompile(`(?m)^recrawl_visits_total{outcome="success"} [1-9]`), regexp.MustCompile(`(?m)^recrawl_store_size_bytes{part="db"} [1-9]`),
		regexp.MustCompile(`(?m)^recrawl_disk_free_bytes [1-9]`), regexp.MustCompile(`(?m)^recrawl_backlog{kind="never"} `), regexp.MustCompile(`(?m)^recrawl_stage{stage="fetch"} 1`),
	}
	var text string
	until(t, "the figures", func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		text = string(body)
		for _, w := range wanted {
			if !w.MatchString(text) {
				return false
			}
		}
		return true
	})
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, c, out, errs); !strings.Contains(r.out, "rounds") {
		t.Errorf("%+v", r)
	}
	if r := recrawl(t, s.crawl("-metrics-listen", "nonsense")...); r.code != 1 || !strings.Contains(r.err, "-metrics-listen: ") {
		t.Errorf("%+v", r)
	}
}
