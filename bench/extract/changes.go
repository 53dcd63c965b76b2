package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/signature"
)

// noise are edits of real pages that leave their main content as it is.
var noise = []struct {
	name string
	edit func(r *rand.Rand, html string) string
}{
	{"menu", func(r *rand.Rand, s string) string {
		return afterOne(r, s, "<nav", "</li>", fmt.Sprintf("<li><a href=/new%d>Section %d</a></li>", r.IntN(99), r.IntN(99)))
	}},
	{"advert", func(r *rand.Rand, s string) string {
		class := pick(r, "ad-slot", "adsbygoogle", "dfp-ad unit", "banner300x250 advert", "sponsored-content", "promo-box", "newsletter-signup", "c-unit-x1")
		return afterOne(r, s, "<body", pick(r, "</p>", "</div>"), fmt.Sprintf("<div class=%q><p>%s</p><a href=/buy>Buy now</a></div>", class, sentence(r)))
	}},
	{"dates", func(r *rand.Rand, s string) string {
		return timeElement.ReplaceAllString(s, fmt.Sprintf("${1}%d hours ago</time>", 1+r.IntN(22)))
	}},
	{"updated", func(r *rand.Rand, s string) string {
		return afterOne(r, s, "<body", "</p>", fmt.Sprintf("<p>Last updated: %d March 2026 at %d:15</p>", 1+r.IntN(30), r.IntN(24)))
	}},
	{"related", func(r *rand.Rand, s string) string {
		block := fmt.Sprintf("<section class=%q><h3>More stories</h3><ul>", pick(r, "related-posts", "recommended", "most-read", "recirculation", "you-may-like"))
		for range 5 {
			block += "<li><a href=/s" + fmt.Sprint(r.IntN(999)) + ">" + sentence(r) + "</a></li>"
		}
		return beforeLast(s, pick(r, "</main>", "</article>", "</body>", "<footer"), block+"</ul></section>")
	}},
	{"token", func(r *rand.Rand, s string) string {
		return beforeLast(s, "</body>", fmt.Sprintf("<script nonce=%d>var t=%d</script><form><input type=hidden value=%d></form><p>Page made in 0.%d s</p>", r.Int(), r.Int(), r.Int(), r.IntN(99)))
	}},
	{"copyright", func(r *rand.Rand, s string) string {
		return copyright.ReplaceAllString(s, fmt.Sprintf("${1}%d", 2027+r.IntN(40)))
	}},
	{"counts", func(r *rand.Rand, s string) string {
		return counts.ReplaceAllString(s, fmt.Sprintf(">%d $1<", 10+r.IntN(9000)))
	}},
}

var (
	timeElement = regexp.MustCompile(`(?s)(<time[^>]*>)[^<]*</time>`)
	copyright   = regexp.MustCompile(`((?:©|&copy;|Copyright)[^0-9<]{0,20})20\d\d`)
	counts      = regexp.MustCompile(`>\s*[0-9,.]+[kK]? (views|comments|shares|likes|Comments|Views|Shares|Likes)\s*<`)
)

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func sentence(r *rand.Rand) string {
	words := strings.Fields("the a new old best way to buy save more money with this simple trick that doctors love for your car home garden and phone now before it is gone this week only")
	out := make([]string, 8+r.IntN(15))
	for i := range out {
		out[i] = words[r.IntN(len(words))]
	}
	return strings.Join(out, " ") + "."
}

// afterOne inserts text after one of the occurrences of a string behind the first occurrence of another.
func afterOne(r *rand.Rand, s, behind, after, text string) string {
	start := strings.Index(s, behind)
	if start < 0 {
		return s
	}
	n := strings.Count(s[start:], after)
	if n == 0 {
		return s
	}
	if behind == "<nav" {
		n = min(n, 3) // of the menu
	}
	at := start
	for range 1 + r.IntN(n) {
		at += strings.Index(s[at:], after) + len(after)
	}
	return s[:at] + text + s[at:]
}

func beforeLast(s, before, text string) string {
	at := strings.LastIndex(s, before)
	if at < 0 {
		return s
	}
	return s[:at] + text + s[at:]
}

// changes prints how often signatures see a change where there is only noise, and none where a word of the main
// content has changed.
func changes(pages []labelled, show int) {
	type count struct{ edits, text, words, main int }
	total, missed := count{}, count{}
	by := make([]count, len(noise))
	var parser htmlparse.Parser
	sums := func(body string) [3]string {
		c := &page.Content{URL: "https://example.com/", Type: "text/html", Body: []byte(body)}
		p, err := parser.Parse(context.Background(), c)
		if err != nil {
			return [3]string{}
		}
		return [3]string{string(signature.TextMD5{}.Sum(c, &p)), string(signature.TextProfile{}.Sum(c, &p)), string(extract.MainContent{}.Sum(c, &p))}
	}
	add := func(c *count, a, b [3]string, changed bool) {
		c.edits++
		for i, n := range []*int{&c.text, &c.words, &c.main} {
			if (a[i] != b[i]) == changed {
				*n++
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range pages {
		body := string(p.body)
		before := sums(body)
		for i, n := range noise {
			if after := n.edit(r, body); after != body {
				sum := sums(after)
				add(&total, before, sum, true)
				add(&by[i], before, sum, true)
			}
		}
		// Another word in a line of the main content that is in the page as it stands.
		for line := range strings.Lines(p.want) {
			line = strings.TrimSpace(line)
			at := strings.Index(body, line)
			if len(line) < 80 || at < 0 || strings.Count(body, line) != 1 || strings.LastIndexByte(body[:at], '>') < strings.LastIndexByte(body[:at], '<') || strings.HasSuffix(strings.TrimSpace(body[:at]), "\"") {
				continue
			}
			cut := at + strings.LastIndexByte(line, ' ')
			after := sums(body[:cut] + " quite" + body[cut:])
			add(&missed, before, after, false)
			if show > 0 && before[2] == after[2] {
				show--
				fmt.Printf("missed: %s %s %s\n", p.id, p.kind, line[:70])
			}
			break
		}
	}
	fmt.Printf("changes seen in noise, of %d edits: TextMD5 %d, TextProfile %d, MainContent %d\n", total.edits, total.text, total.words, total.main)
	for i, n := range noise {
		fmt.Printf("  %-10s %5d: %5d %5d %5d\n", n.name, by[i].edits, by[i].text, by[i].words, by[i].main)
	}
	fmt.Printf("changes of a word that were missed, of %d: TextMD5 %d, TextProfile %d, MainContent %d\n", missed.edits, missed.text, missed.words, missed.main)
}
