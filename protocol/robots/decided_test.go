package robots_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/robots"
)

// A decision is one record of testdata/decided.txt.
type decision struct {
	line        int // where it begins
	source      string
	file        []byte
	agent       string
	deny, allow []string
	delay       string // empty: nothing is asked of it
	sitemaps    []string
}

func decisions(tb testing.TB) (all []decision) {
	tb.Helper()
	f, err := os.Open("testdata/decided.txt")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var d *decision
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		key, value, _ := strings.Cut(s.Text(), ": ")
		if key == "source" {
			all = append(all, decision{line: n, source: value, agent: "bot"})
			d = &all[len(all)-1]
			continue
		}
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if key == "delay" {
			d.delay = value
			continue
		}
		words, err := quoted(value)
		if err != nil {
			tb.Fatalf("line %d: %v", n, err)
		}
		switch key {
		case "file":
			d.file = []byte(strings.Join(words, ""))
		case "agent":
			d.agent = words[0]
		case "deny":
			d.deny = words
		case "allow":
			d.allow = words
		case "sitemaps":
			d.sitemaps = words
		default:
			tb.Fatalf("line %d: no field is called %q", n, key)
		}
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// quoted reads quoted strings, each as often as *N after it says.
func quoted(s string) (all []string, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, s)
		}
		s = s[len(q):]
		if q, err = strconv.Unquote(q); err != nil {
			return nil, err
		}
		if rest, ok := strings.CutPrefix(s, "*"); ok {
			times, after, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(times)
			if err != nil {
				return nil, err
			}
			q, s = strings.Repeat(q, n), after
		}
		all = append(all, q)
	}
	return all, nil
}

func TestDocumentedDecisions(t *testing.T) {
	asked := 0
	for _, d := range decisions(t) {
		r := robots.Parse(d.file, d.agent)
		for _, c := range []struct {
			urls []string
			want bool
		}{{d.deny, false}, {d.allow, true}} {
			for _, u := range c.urls {
				asked++
				if got, by := r.Explain(u); got != c.want {
					t.Errorf("line %d: %s: %q is allowed %v by %q", d.line, d.source, u, got, by)
				}
			}
		}
		if d.delay != "" {
			asked++
			got := "none"
			if r.HasCrawlDelay {
				got = r.CrawlDelay.String()
			}
			if want, err := time.ParseDuration(d.delay); err == nil {
				d.delay = want.String()
			}
			if got != d.delay {
				t.Errorf("line %d: %s: the Crawl-delay is %s, want %s", d.line, d.source, got, d.delay)
			}
		}
		if d.sitemaps != nil {
			asked++
			if !slices.Equal(r.Sitemaps, d.sitemaps) {
				t.Errorf("line %d: %s: sitemaps %q, want %q", d.line, d.source, r.Sitemaps, d.sitemaps)
			}
		}
	}
	if asked < 300 {
		t.Errorf("only %d questions", asked)
	}
	t.Logf("%d questions", asked)
}
