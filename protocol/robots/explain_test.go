package robots_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/robots"
)

func TestExplainNamesTheLine(t *testing.T) {
	const file = "User-agent: *\nDisallow: /a\nDisallow: /a\n\nAllow: /a/b$\nAllow: /d/index.html\nDisallow: /d\n"
	for name, text := range map[string]string{
		"unix": file, "dos": strings.ReplaceAll(file, "\n", "\r\n"), "mac": strings.ReplaceAll(file, "\n", "\r"),
	} {
		rules := robots.Parse([]byte(text), "testbot")
		for _, tt := range []struct {
			url     string
			allowed bool
			line    string
		}{
			{"http://h.example/", true, ""},
			{"http://h.example/a?x", false, "line 2: Disallow: /a"},
			{"http://h.example/a/b", true, "line 5: Allow: /a/b$"},
			{"http://h.example/d/", true, "line 6: Allow: /d/$"},
			{"http://h.example/d/x", false, "line 7: Disallow: /d"},
			{"/robots.txt", true, ""},
		} {
			if allowed, line := rules.Explain(tt.url); allowed != tt.allowed || line != tt.line || allowed != rules.Allowed(tt.url) {
				t.Errorf("%s: %s: %v, %q, want %v, %q", name, tt.url, allowed, line, tt.allowed, tt.line)
			}
		}
	}
	if allowed, line := robots.DenyAll().Explain("/"); allowed || line != "" {
		t.Errorf("DenyAll: %v, %q", allowed, line)
	}
}
