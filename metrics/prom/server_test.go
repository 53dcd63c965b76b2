//go:build servers

package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// promtool accepts the rules, and each alert fires in the trouble that it is for and in no other.
func TestAlertRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "recrawl.rules.yml"}, {"test", "rules", "testdata/rules_test.yml"}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// A real Prometheus server scrapes a crawl. Each panel of the dashboard then has data, each rule is
// evaluated, and each metric that they name is in the scrape.
func TestPrometheusServer(t *testing.T) {
	s := simulate(t)
	for range 8 {
		s.day(t)
	}
	scraped := httptest.NewServer(s.metrics.Handler())
	defer scraped.Close()
	server := startPrometheus(t, scraped.Listener.Addr().String())

	// The crawl goes on while it is scraped.
	deadline := time.Now().Add(30 * time.Second)
	for server.value(t, `count_over_time(recrawl_rounds_total[1m])`) < 6 {
		if time.Now().After(deadline) {
			t.Fatal("the server does not scrape")
		}
		s.day(t)
		time.Sleep(200 * time.Millisecond)
	}

	text := get(t, scraped.URL)
	rules, err := os.ReadFile("recrawl.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile("recrawl.dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\brecrawl_[a-z_]+`).FindAllString(string(rules)+string(dashboard), -1) {
		if name != "recrawl_stage" && !regexp.MustCompile(`(?m)^`+name+`[ {]`).MatchString(text) { // no stage is under way
			t.Errorf("%s is not in the scrape", name)
		}
	}

	exprs := dashboardExprs(t, dashboard)
	if len(exprs) < 30 {
		t.Errorf("%d expressions in the dashboard", len(exprs))
	}
	for _, expr := range exprs {
		asked := strings.NewReplacer("$__rate_interval", "5s", "$instance", ".*").Replace(expr)
		if n := len(server.query(t, asked)); n == 0 && !strings.HasPrefix(expr, "recrawl_stage{") {
			t.Errorf("no data for %s", expr)
		}
	}

	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
	}
	server.get(t, "/api/v1/rules", nil, &loaded)
	if len(loaded.Data.Groups) != 1 || len(loaded.Data.Groups[0].Rules) != 10 {
		t.Fatalf("rules: %+v", loaded)
	}
	for _, r := range loaded.Data.Groups[0].Rules {
		if r.Health != "ok" || r.State == "firing" && r.Name != "RecrawlDiskFills" { // the disk of this crawl has 1000 bytes
			t.Errorf("rule %+v", r)
		}
	}
}

func dashboardExprs(t *testing.T, dashboard []byte) (exprs []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

// prometheusServer is the address of a server on loopback.
type prometheusServer string

// startPrometheus starts a server that scrapes an address each half second.
func startPrometheus(t *testing.T, target string) prometheusServer {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("recrawl.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: [%q]\nscrape_configs:\n  - job_name: recrawl\n    static_configs: [{targets: [%q]}]\n", rules, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var log strings.Builder
	cmd := exec.Command("prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-exited
		if t.Failed() {
			t.Logf("prometheus:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return prometheusServer(address)
			}
		}
		select {
		case <-exited:
			t.Fatal("prometheus ended")
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("prometheus does not answer")
		}
	}
}

func (s prometheusServer) get(t *testing.T, path string, query url.Values, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(t, "http://"+string(s)+path+"?"+query.Encode())), v); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, text)
	}
	return string(text)
}

// query returns the values of an expression.
func (s prometheusServer) query(t *testing.T, expr string) (values []string) {
	t.Helper()
	var r struct {
		Data struct{ Result []struct{ Value []any } }
	}
	s.get(t, "/api/v1/query", url.Values{"query": {expr}}, &r)
	for _, v := range r.Data.Result {
		values = append(values, fmt.Sprint(v.Value[1]))
	}
	slices.Sort(values)
	return values
}

func (s prometheusServer) value(t *testing.T, expr string) (v float64) {
	t.Helper()
	if values := s.query(t, expr); len(values) > 0 {
		fmt.Sscan(values[0], &v)
	}
	return v
}
