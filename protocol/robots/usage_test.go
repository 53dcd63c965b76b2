package robots_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/robots"
)

func TestUsageOfRobotsTxt(t *testing.T) {
	const file = `
Content-Usage: bots=n
User-agent: *
Content-Signal: search=yes, ai-train=no, use=reference
Allow: /
Content-Usage: /open/ train-ai=y
Content-Usage: /open/*/closed$ train-ai=n, search=n
Content-Usage: /twice search=y
Content-Usage: /twice search=n
Content-Usage: /broken
Content-Usage: train-ai; search

User-agent: friend
Content-Usage: train-ai=y
User-agent: other
Disallow: /x
`
	for _, c := range []struct{ agent, path, want string }{
		{"any", "/", "search=y, train-ai=n"},
		{"any", "/open/a", "train-ai=y"},
		{"any", "/open/a/closed", "search=n, train-ai=n"},
		{"any", "/open/a/closed?b", "train-ai=y"},
		{"any", "/twice", "search=n"},
		{"any", "/broken", "search=y, train-ai=n"},
		{"friend", "/open/a", "train-ai=y"},
		{"other", "/", ""},
	} {
		if got := robots.Parse([]byte(file), c.agent).Usage("http://h.example" + c.path).String(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.agent, c.path, got, c.want)
		}
	}
	// The lines do not change what Allow and Disallow say, nor which groups these belong to.
	for agent, allowed := range map[string]bool{"friend": false, "other": false, "any": true} {
		if got := robots.Parse([]byte(file), agent).Allowed("/x"); got != allowed {
			t.Errorf("%s: /x is allowed: %v", agent, got)
		}
	}
	long := "User-agent: *\nContent-Usage: " + strings.Repeat("a=n,", 100_000)
	if u := robots.Parse([]byte(long), "any").Usage("/"); len(u) > 20 {
		t.Errorf("%d categories", len(u))
	}
}

func TestUsageAllows(t *testing.T) {
	for _, c := range []struct {
		usage, category string
		want            bool
	}{
		{"", "train-ai", true},
		{"train-ai=n", "train-ai", false},
		{"train-ai=n", "train-genai", false},
		{"train-ai=n", "search", true},
		{"bots=n", "search", false},
		{"bots=n, search=y", "search", true},
		{"bots=n, search=y", "train-ai", false},
		{"tdm=n", "train-ai", false},
		{"ai-train=no, search=yes", "train-ai", false},
		{"TRAIN-AI=N;x=1", "train-ai", false},
		{"train-ai=maybe, =n, ä=n", "train-ai", true},
	} {
		if got := robots.ParseUsage(c.usage).Allows(c.category); got != c.want {
			t.Errorf("%s of %q: %v", c.category, c.usage, got)
		}
	}
}

func TestPageUsage(t *testing.T) {
	if u := robots.PageUsage("noindex,noai,search=y", "NoImageAI tdm=n train-ai=y").String(); u != "search=y, tdm=n, train-ai=n" {
		t.Error(u)
	}
	if u := robots.PageUsage("noindex,nofollow"); len(u) != 0 {
		t.Error(u)
	}
}
