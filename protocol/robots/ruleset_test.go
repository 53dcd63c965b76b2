package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// manyRules is a file in which one rule in every wild has a wildcard.
func manyRules(n, wild int) []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		star := ""
		if wild > 0 && i%wild == 0 {
			star = "*/"
		}
		fmt.Fprintf(&b, "Disallow: /%sshop/article-%d/print\n", star, i*7919%n)
	}
	return []byte(b.String())
}

const usualURL = "http://example.com/shop/article-77/pictures/large.html?page=2"

// A file at its limit costs little for a URL, even if all of its rules have a
// wildcard and the URL is long and like them.
func TestManyRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		body []byte
		url  string
		max  time.Duration
	}{
		{"plain", manyRules(20_000, 0), usualURL, time.Millisecond},
		{"a fifth with wildcards", manyRules(20_000, 5), usualURL, time.Millisecond},
		{"all with wildcards", manyRules(20_000, 1), usualURL, 20 * time.Millisecond},
		{"nested", []byte("User-agent: *\n" + nested(900)), "http://h/" + strings.Repeat("a", 8<<10), time.Millisecond},
		{"alike", []byte("User-agent: *\n" + alike(18_000)), "http://h/" + strings.Repeat("ab", 4<<10), 200 * time.Millisecond},
	} {
		r := Parse(tt.body, "bot")
		best := time.Hour
		for range 10 { // the best of ten is the code, the others are the machine
			start := time.Now()
			r.Allowed(tt.url)
			best = min(best, time.Since(start))
		}
		if best > tt.max {
			t.Errorf("%s: a URL takes %v", tt.name, best)
		}
	}
}

// nested returns rules each of which is a prefix of the next.
func nested(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Disallow: /%s\n", strings.Repeat("a", i))
	}
	return b.String()
}

// alike returns rules that begin to match everywhere in a path of as and bs.
func alike(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Disallow: /*ab*%s\n", strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%b", i)))
	}
	return b.String()
}

func BenchmarkAllowed(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		for _, wild := range []int{0, 5, 1} {
			name := map[int]string{0: "none", 5: "fifth", 1: "all"}[wild]
			b.Run(fmt.Sprintf("rules=%d/wild=%s", n, name), func(b *testing.B) {
				r := Parse(manyRules(n, wild), "bot")
				for b.Loop() {
					r.Allowed(usualURL)
				}
			})
		}
	}
}
