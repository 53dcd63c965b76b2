package recrawl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/protocol/webtest"
)

type stageKey struct{}

// The stages of a round are reported in order, each within the context of its round, and each ends
// once. The log has a record for each, with the same keys.
func TestStagesAreReportedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
		var log bytes.Buffer
		s.opts.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var mu sync.Mutex
		var began, ended []string
		s.opts.Hooks.Stage = func(ctx context.Context, stage, segment string) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			within, _ := ctx.Value(stageKey{}).(string)
			began = append(began, within+"/"+stage)
			if hasSegment := slices.Contains([]string{"fetch", "update", "invert", "pages"}, stage); hasSegment != (segment != "") {
				t.Errorf("stage %s of segment %q", stage, segment)
			}
			return context.WithValue(ctx, stageKey{}, stage), func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if ended = append(ended, stage); err != nil {
					t.Errorf("%s ended with %v", stage, err)
				}
			}
		}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(began, " "), "/inject /round round/generate round/fetch round/update round/invert round/pages"; got != want {
			t.Errorf("began %s, want %s", got, want)
		}
		if got, want := strings.Join(ended, " "), "inject generate fetch update invert pages round"; got != want {
			t.Errorf("ended %s, want %s", got, want)
		}
		var logged []string
		for line := range strings.Lines(log.String()) {
			var r map[string]any
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if r["msg"] != "recrawl: stage ended" {
				continue
			}
			logged = append(logged, r["stage"].(string))
			_, hasElapsed := r["elapsed"]
			if round := r["stage"] == "round"; !hasElapsed || round != (r["level"] == "INFO") {
				t.Errorf("logged %s", line)
			}
		}
		if !slices.Equal(logged, ended) {
			t.Errorf("logged %v, ended %v", logged, ended)
		}
	})
}

// A stage that fails ends with its error.
func TestStageEndsWithItsError(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true})
	ended := map[string]error{}
	s.opts.Hooks.Stage = func(ctx context.Context, stage, _ string) (context.Context, func(error)) {
		return ctx, func(err error) { ended[stage] = err }
	}
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Fetch(t.Context(), "20260101000000"); err == nil || ended["fetch"] != err {
		t.Errorf("Fetch returned %v, and the stage ended with %v", err, ended["fetch"])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Inject(ctx, "http://a.example/"); err == nil || ended["inject"] != err {
		t.Errorf("Inject returned %v, and the stage ended with %v", err, ended["inject"])
	}
}
