//go:build unix

package main_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// agent is a client of recrawl mcp.
type agent struct {
	t *testing.T
	s *sdk.ClientSession
}

func startAgent(t *testing.T, args ...string) agent {
	t.Helper()
	c := exec.Command(program, append([]string{"mcp"}, args...)...)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return agent{t, s}
}

// call calls a tool and decodes what it returns into v.
func (a agent) call(tool string, args map[string]any, v any) (failed bool) {
	a.t.Helper()
	r, err := a.s.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if v != nil && !r.IsError {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			a.t.Fatalf("%s: %v: %s", tool, err, text)
		}
	}
	return r.IsError
}

// An agent uses all tools, on a crawl that nothing else has open, and beside a running one.
func TestAgentUsesACrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true, Latency: 20 * time.Millisecond})
	seed := s.web.Seeds()[0]
	ok(t, s.crawl("-rounds", "1", seed)...)
	a := startAgent(t, "-d", s.dir, "-allow", "fetch", "-now", frozen)
	defer a.s.Close()
	var page struct{ Title, Text string }
	if a.call("read_page", map[string]any{"url": seed}, &page) || page.Title == "" || !strings.Contains(page.Text, "](http") {
		t.Errorf("%+v", page)
	}
	var found struct{ Hits []struct{ URL string } }
	if a.call("search_pages", map[string]any{"words": page.Title}, &found); len(found.Hits) == 0 || found.Hits[0].URL != seed {
		t.Errorf("search for %q: %+v", page.Title, found)
	}
	var explained struct {
		Verdict string
		Visits  []struct{ Outcome string }
	}
	if a.call("explain_url", map[string]any{"url": seed}, &explained); explained.Verdict == "" || len(explained.Visits) != 1 {
		t.Errorf("%+v", explained)
	}
	var changed struct{ Changes []struct{ URL, Kind string } }
	if a.call("what_changed", map[string]any{"since": "2000-01-01"}, &changed); len(changed.Changes) != 1 || changed.Changes[0].Kind != "new" {
		t.Errorf("%+v", changed)
	}
	if a.call("what_changed", map[string]any{"since": "2100-01-01T00:00:00Z"}, &changed); len(changed.Changes) != 0 {
		t.Errorf("%+v", changed)
	}
	if !a.call("read_page", map[string]any{"url": "http://nowhere.example/"}, nil) {
		t.Error("a page that is not there was read")
	}
	if a.call("fetch_now", map[string]any{"urls": []string{seed}}, nil) {
		t.Error("fetch_now failed")
	}
	c, out, errs := start(t, s.crawl()...)
	var status struct {
		Stage  string
		Visits int
	}
	until(t, "the running crawl to show itself", func() bool {
		return !a.call("crawl_status", nil, &status) && status.Stage != "" && status.Visits > 0
	})
	if r := wait(t, c, out, errs); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if a.call("explain_url", map[string]any{"url": seed}, &explained); len(explained.Visits) < 2 {
		t.Errorf("not fetched now: %+v", explained)
	}
	index := "bleve:" + filepath.Join(t.TempDir(), "index")
	ok(t, "index", "-d", s.dir, "-to", index)
	b := startAgent(t, "-d", s.dir, "-index", index)
	defer b.s.Close()
	if b.call("search_pages", map[string]any{"words": `title:"` + page.Title + `"`}, &found); len(found.Hits) == 0 || found.Hits[0].URL != seed {
		t.Errorf("search for %q in the index: %+v", page.Title, found)
	}
	if r := recrawl(t, "mcp", "-d", s.dir, "-index", "bleve:"+t.TempDir()); r.code != 1 {
		t.Errorf("%+v", r)
	}
	if r := recrawl(t, "mcp", "-d", s.dir, "-allow", "anything"); r.code != 2 || !strings.Contains(r.err, "-allow") {
		t.Errorf("%+v", r)
	}
}
