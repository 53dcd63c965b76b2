package urlfilter

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// benchURLs are like those of a crawl: of the hosts that a list of 10,000
// domains names, and as many of others.
func benchURLs() (listed, others []string) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 512 {
		path := fmt.Sprintf("/guide/chapter-%d/section-%d.html", r.IntN(100), r.IntN(100))
		listed = append(listed, fmt.Sprintf("https://www.example-%d.com%s", r.IntN(10_000), path))
		others = append(others, fmt.Sprintf("https://www.elsewhere-%d.com%s", r.IntN(10_000), path))
	}
	return listed, others
}

func benchList(format string) []string {
	list := make([]string, 10_000)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

func benchFilter(b *testing.B, f Filter, urls []string, want bool) {
	for _, u := range urls {
		if f.Accept(u) != want {
			b.Fatalf("%s: %v", u, !want)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.Accept(urls[i%len(urls)])
	}
}

// How long does a URL take in a filter of 10,000 domains? The baseline looks up
// a host that is taken out of the URL already.
func BenchmarkFilter10kDomains(b *testing.B) {
	listed, others := benchURLs()
	entries := benchList("example-%d.com")
	f := must[Filter](b)(ParseDomain(strings.NewReader(strings.Join(entries, "\n")), Options{}))
	within := must[Filter](b)(Within(entries...))
	var deep []string
	for _, u := range listed {
		deep = append(deep, strings.Replace(u, "www.", "a.b.", 1))
	}
	fast := "Domain " + strings.Join(entries, "\nDenyPath ^/private\nDomain ") + "\nDenyPath ^/private\n"
	b.Run("listed", func(b *testing.B) { benchFilter(b, f, listed, true) })
	b.Run("others", func(b *testing.B) { benchFilter(b, f, others, false) })
	b.Run("listed, deep", func(b *testing.B) { benchFilter(b, f, deep, true) })
	b.Run("within/listed", func(b *testing.B) { benchFilter(b, within, listed, true) })
	b.Run("fast/listed", func(b *testing.B) {
		benchFilter(b, must[Filter](b)(ParseFast(strings.NewReader(fast), FastOptions{})), listed, true)
	})
	sections := "> " + strings.Join(entries, "\n-/private\n<\n> ") + "\n-/private\n<\n+."
	b.Run("sections/listed", func(b *testing.B) { benchFilter(b, must[Filter](b)(NewRegex(sections)), listed, true) })
	b.Run("baseline map", func(b *testing.B) {
		hosts := map[string]bool{}
		var keys []string
		for i, u := range listed {
			hosts[entries[i]] = true
			keys = append(keys, hostOf(u))
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = hosts[keys[i%len(keys)]]
		}
	})
}

// How long does a URL take in a filter of 10,000 prefixes or suffixes? The
// baseline tries one after the other.
func BenchmarkFilter10kAffixes(b *testing.B) {
	listed, others := benchURLs()
	prefixes := benchList("https://www.example-%d.com/")
	f := NewPrefix(prefixes...)
	b.Run("prefix/listed", func(b *testing.B) { benchFilter(b, f, listed, true) })
	b.Run("prefix/others", func(b *testing.B) { benchFilter(b, f, others, false) })
	s := NewSuffix(SuffixOptions{Reject: true, IgnoreCase: true, Path: true}, benchList("-%d.gif")...)
	b.Run("suffix/others", func(b *testing.B) { benchFilter(b, s, listed, true) })
	b.Run("baseline one by one", func(b *testing.B) {
		benchFilter(b, FilterFunc(func(url string) bool {
			for _, p := range prefixes {
				if strings.HasPrefix(url, p) {
					return true
				}
			}
			return false
		}), others, false)
	})
}

// How long does a URL take in the rules that Nutch comes with? The baseline is
// package regexp for all of them but the one that it cannot do.
func BenchmarkFilterShippedRegex(b *testing.B) {
	listed, _ := benchURLs()
	f := must[Filter](b)(NewRegex(shipped...))
	b.Run("ours", func(b *testing.B) { benchFilter(b, f, listed, true) })
	var plain []*regexp.Regexp
	for _, r := range shipped {
		if !strings.Contains(r, `\1`) {
			plain = append(plain, regexp.MustCompile(r[1:]))
		}
	}
	b.Run("baseline regexp", func(b *testing.B) {
		benchFilter(b, FilterFunc(func(url string) bool {
			for i, re := range plain {
				if re.MatchString(url) {
					return i == len(plain)-1
				}
			}
			return false
		}), listed, true)
	})
	for _, r := range shipped {
		b.Run(r[:min(len(r), 30)], func(b *testing.B) {
			f := must[Filter](b)(NewRegex(r))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Accept(listed[i%len(listed)])
			}
		})
	}
}

var shipped = []string{`-^(?:file|ftp|mailto):`, newSuffixes, `-[?*!@=]`, `-.*(/[^/]+)/[^/]+\1/[^/]+\1/`, `+.`}

// How long does it take to see that a URL is no trap, and to normalize and filter
// it by the rules of a new crawl?
func BenchmarkDefaultRules(b *testing.B) {
	urls := []string{
		"https://www.example.com/",
		"https://docs.example.com/current/sql/create/index.html",
		"https://www.example.com/forum/viewtopic.php?f=12&t=4711&start=50",
		"https://www.example.com/catalogue/tools/saws/circular/blades/steel/product.html?colour=red&size=5&sort=price&page=3",
	}
	trapped := "https://www.example.com" + strings.Repeat("/a/b", 1000) + "?" + strings.Repeat("a=b&", 200)
	rules := Default()
	b.Run("traps", func(b *testing.B) { benchFilter(b, Traps{}, urls, true) })
	b.Run("traps, 4 KB", func(b *testing.B) {
		benchFilter(b, Traps{MaxDepth: -1, MaxRepeats: -1, MaxParams: -1}, []string{trapped}, false)
	})
	b.Run("session ids", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			SessionIDs{}.Normalize(Outlink, urls[i%len(urls)])
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			rules.Apply(Outlink, urls[i%len(urls)])
		}
	})
}
