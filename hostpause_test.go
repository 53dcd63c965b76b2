package recrawl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/urlfilter"
)

// A host that is paused is not visited until the pause ends, or is taken back.
func TestPausedHostIsNotVisited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
		c := s.crawler(t)
		defer c.Close()
		seed := s.web.Seeds()[0]
		if _, err := c.Inject(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		host := hostdb.ByHost.Key(seed)
		if err := c.PauseHost(t.Context(), host, time.Now().Add(48*time.Hour)); err != nil {
			t.Fatal(err)
		}
		r, err := c.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := s.records(t)[seed]; !d.LastFetch.IsZero() && r.Bytes > 0 {
			t.Errorf("visited in the pause: %v", r)
		}
		if err := c.PauseHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GenerateFree(t.Context(), func(yield func(string, error) bool) { yield(seed, nil) }); err != nil {
			t.Fatal(err)
		}
		if r, err = c.Round(t.Context()); err != nil || r.Bytes == 0 {
			t.Errorf("after the pause: %v, %v", r, err)
		}
		if err := c.PauseHost(t.Context(), "", time.Time{}); !errors.Is(err, recrawl.ErrHost) {
			t.Errorf("no host: %v", err)
		}
	})
}

// Rules that are read again hold at once, and those that cannot be read stay.
func TestRulesAreReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("+.\n")
	filter, err := urlfilter.OpenFilter(path, urlfilter.ParseRegex, urlfilter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
	s.opts.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{filter}}
	c := s.crawler(t)
	defer c.Close()
	allowed := func() bool {
		t.Helper()
		e, err := c.Explain(context.Background(), "http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		return e.Rejected == nil
	}
	write("-a.test\n+.\n")
	if changed, err := c.ReloadRules(); !changed || err != nil || allowed() {
		t.Errorf("changed %v, %v, allowed %v", changed, err, allowed())
	}
	write("-(\n")
	if _, err := c.ReloadRules(); err == nil || allowed() {
		t.Errorf("an invalid file: %v, allowed %v", err, allowed())
	}
}
