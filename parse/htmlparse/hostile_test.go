package htmlparse_test

import (
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/parse/parsetest"
)

func TestConformance(t *testing.T) {
	const body = `<!DOCTYPE html><title>Hello</title><meta name=keywords content="a, b"><link rel=next href=next.html>
<p>Hello <a href="/world">world</a>, and <a href="//other.example/#x">others</a>. <script>x</script></p>`
	for name, h := range map[string]parsetest.Harness{
		"html": {
			New:     func() parse.Parser { return &htmlparse.Parser{} },
			Limited: func(n int) parse.Parser { return &htmlparse.Parser{MaxOutlinks: n} },
			Documents: []page.Content{
				{URL: "http://www.example.org/a/b", Type: "text/html", Body: []byte(body)},
				{URL: "http://www.example.org/c", Type: "text/html; charset=utf-16le", Body: []byte("<\x00p\x00>\x00x\x00")},
			},
		},
		"everything followed": {
			New: func() parse.Parser {
				return &htmlparse.Parser{Images: true, FollowResources: true, Schemes: []string{"http", "file", "javascript", "data", "x-y+z.1"}}
			},
			Documents: []page.Content{{URL: "http://www.example.org/a/b", Type: "text/html", Body: []byte(body)}},
		},
		"foreign scheme": {
			New:       func() parse.Parser { return &htmlparse.Parser{} },
			Documents: []page.Content{{URL: "gemini://www.example.org/a/b", Type: "text/html", Body: []byte(body)}},
		},
		"text": {
			New:       func() parse.Parser { return &htmlparse.Text{} },
			Documents: []page.Content{{URL: "http://www.example.org/a.txt", Type: "text/plain", Body: []byte("Hello world.\n")}},
		},
		"mux": {
			New:       func() parse.Parser { return htmlparse.Mux(nil) },
			Limited:   func(n int) parse.Parser { return htmlparse.Mux(&htmlparse.Parser{MaxOutlinks: n}) },
			Documents: []page.Content{{URL: "http://www.example.org/a/b", Body: []byte(body)}},
		},
	} {
		h.Size = 8 << 10
		t.Run(name, func(t *testing.T) { parsetest.Run(t, h) })
	}
}

// BenchmarkWorstInputs reads 1 MB of each hostile document. What is promised is
// less than a second for a megabyte.
func BenchmarkWorstInputs(b *testing.B) {
	for _, p := range []struct {
		name string
		htmlparse.Parser
	}{
		{name: "default"},
		{name: "nutch", Parser: htmlparse.Parser{NutchCompat: true, FormAction: true, MaxOutlinks: -1}},
	} {
		for name, body := range parsetest.Hostile(1 << 20) {
			b.Run(p.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Parse(b.Context(), &page.Content{URL: "http://h.example/d/p", Type: "text/html", Body: body}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// What a page takes is in proportion to its length, whatever it is made of. (12 bytes for
// one of it is the most that any of these asks for, most of that not at the same time.)
func TestMemoryIsInProportion(t *testing.T) {
	var p htmlparse.Parser
	for name, body := range parsetest.Hostile(1 << 20) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := p.Parse(t.Context(), &page.Content{URL: "http://h.example/d/p", Type: "text/html", Body: body}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 20*uint64(len(body))+64<<10 {
			t.Errorf("%s: %d bytes for %d", name, took, len(body))
		}
	}
}

// TestNutchCompatIsLinear demands that the cost of a tag does not depend on how many elements
// and links are open around it.
func TestNutchCompatIsLinear(t *testing.T) {
	const size = 512 << 10
	p := htmlparse.Parser{NutchCompat: true, FormAction: true, MaxOutlinks: -1}
	for name, body := range parsetest.Hostile(size) {
		if !strings.Contains(name, "forms") && !strings.Contains(name, "reach") && name != "nested links" {
			continue
		}
		// It takes a tenth of that, and a product of the two longer; a busy machine
		// makes one try slow, not each.
		least := time.Hour
		for try := 0; try < 5 && least > 1500*time.Millisecond; try++ {
			start := time.Now()
			if _, err := p.Parse(t.Context(), &page.Content{URL: "http://h.example/d/p", Type: "text/html", Body: body}); err != nil {
				t.Fatal(err)
			}
			least = min(least, time.Since(start))
		}
		if least > 1500*time.Millisecond {
			t.Errorf("%s: %v for %d bytes", name, least, size)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range parsetest.Hostile(200) {
		f.Add("http://h.example/d/p", "text/html", body)
	}
	f.Add("file:///C:/x", "", []byte("<a href='D|/x'>"))
	f.Add("gemini://h/x", "", []byte("<a href='../y z'>"))
	f.Add("http://h", "text/html; charset=gbk", []byte("<a href='?\x81'>"))
	p := &htmlparse.Parser{Images: true, FollowResources: true}
	f.Fuzz(func(t *testing.T, pageURL, contentType string, body []byte) {
		c := &page.Content{URL: pageURL, Type: contentType, Body: body}
		got, err := p.Parse(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{got.Title, got.Text, got.Refresh, got.Canonical} {
			if !utf8.ValidString(s) {
				t.Fatalf("%q is no UTF-8", s)
			}
		}
		seen := make(map[string]bool)
		for _, l := range got.Outlinks {
			u, err := url.Parse(l.URL)
			if err != nil || !u.IsAbs() || u.Fragment != "" {
				t.Fatalf("link %q: %v", l.URL, err)
			}
			if seen[l.URL] || !utf8.ValidString(l.Anchor) || len(l.Anchor) > 100 || len(l.URL) > 4096 {
				t.Fatalf("link %q %q", l.URL, l.Anchor)
			}
			seen[l.URL] = true
			// On a page of its own, the link is the page itself.
			again, err := p.Parse(t.Context(), &page.Content{URL: l.URL, Body: []byte("<a href=#x><a href=''><a href='" + attribute(l.URL) + "'>")})
			if err != nil || len(again.Outlinks) != 0 {
				t.Fatalf("link %q becomes %v", l.URL, again.Outlinks)
			}
		}
	})
}

func attribute(s string) string {
	var out []byte
	for _, c := range []byte(s) {
		switch c {
		case '\'':
			out = append(out, "&#39;"...)
		case '&':
			out = append(out, "&amp;"...)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
