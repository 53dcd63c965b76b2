package sitemap_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/parse/sitemap"
)

// repeated is a text over and over, between two others.
func repeated(before, text, after string, bytes int) io.Reader {
	block := strings.Repeat(text, max(1, 64<<10/len(text)))
	parts := []io.Reader{strings.NewReader(before)}
	for n := 0; n < bytes; n += len(block) {
		parts = append(parts, strings.NewReader(block))
	}
	return io.MultiReader(append(parts, strings.NewReader(after))...)
}

// No document needs memory that grows with it, in whatever it is large.
func TestHostile(t *testing.T) {
	const (
		root  = "<urlset>"
		entry = "<url><loc>https://example.com/a</loc></url>"
		large = 2 << 20
	)
	laughs := "<?xml version='1.0'?><!DOCTYPE urlset [<!ENTITY lol0 'http://example.com/'>"
	for i := range 20 {
		laughs += fmt.Sprintf("<!ENTITY lol%d '%s'>", i+1, strings.Repeat(fmt.Sprintf("&lol%d;", i), 10))
	}
	laughs += "<!ENTITY xxe SYSTEM 'file:///etc/passwd'><!ENTITY % p SYSTEM 'http://127.0.0.1/x.dtd'>%p;]><urlset>"

	for _, c := range []struct {
		name      string
		in        io.Reader
		want      int
		truncated bool
	}{
		{"billion laughs", strings.NewReader(laughs + "<url><loc>&lol20;</loc></url><url><loc>&xxe;</loc></url>" + entry + "</urlset>"), 1, false},
		{"a long comment", repeated(root+"<!--", "x-", "-->"+entry+"</urlset>", large), 1, false},
		{"a comment without end", repeated(root+entry+"<!--", "-- >", "", large), 1, true},
		{"a long section", repeated(root+"<url><loc><![CDATA[", "]] >", "]]></loc></url>"+entry+"</urlset>", large), 1, false},
		{"a long text", repeated(root+"<url><loc>", "https://", "</loc></url>"+entry+"</urlset>", large), 1, false},
		{"a long reference", repeated(root+"<url><loc>&", "#0", ";</loc></url>"+entry+"</urlset>", large), 1, false},
		{"a long name", repeated(root+"<", "a", ">"+entry+"</urlset>", large), 1, false},
		{"many attributes", repeated(root+"<a ", "b='c' ", ">"+entry+"</urlset>", large), 1, false},
		{"a long attribute", repeated(root+"<a b='", "c", "'>"+entry+"</urlset>", large), 1, false},
		{"a quote without end", repeated(root+entry+"<a b='", "c", "", large), 1, true},
		{"a long instruction", repeated(root+"<?a ", "? >", "?>"+entry+"</urlset>", large), 1, false},
		{"a long document type", repeated("<!DOCTYPE a [", "<!ENTITY a 'b'>", "]>"+root+entry+"</urlset>", large), 1, false},
		{"a document type without end", repeated(root+entry+"<!DOCTYPE a [", "<!ENTITY a 'b", "", large), 1, true},
		{"quotes within quotes", repeated(root+entry+"<a ", "b=\"<c d='>'\" ", "", large), 1, true},
		{"quotes that are not closed", repeated(root+entry, "<a b='>' c=\">", "", large), 1, true},
		{"deep nesting", repeated(root+"<url><loc>https://example.com/a</loc>", "<a>", "</url></urlset>", large), 1, false},
		{"deep nesting before the root", repeated("", "<a>", root+entry, 100<<10), 1, true},
		{"only ends", repeated(root+"<url>", "</a>", "<loc>https://example.com/a</loc></url></urlset>", large), 1, false},
		{"only beginnings", repeated(root, "<", entry+"</urlset>", large), 1, false},
		{"only ampersands", repeated(root+"<url><loc>", "&", "</loc></url>"+entry+"</urlset>", large), 1, false},
		{"blanks", repeated("", " \n", root+entry+"</urlset>", large), 1, false},
		{"NULs", repeated(root+"\x00", "\x00\x00", entry+"</urlset>", large), 1, false},
		{"empty entries", repeated(root, "<url/>", entry+"</urlset>", large), 1, false},
		{"many fields", repeated(root+"<url>", "<loc>x</loc><lastmod>y</lastmod>", "</url>"+entry+"</urlset>", large), 1, false},
		{"many alternates", repeated(root+"<url><loc>https://example.com/a</loc>", "<link rel='alternate' href='https://example.com/b'/>", "</url></urlset>", large), 1, false},
		{"a long line", repeated("https://example.com/a\n", "https://example.com/", "\n", large), 1, false},
		{"many lines", repeated("", "https://example.com/a\n", "", large), 50_000, true},
		{"no line", repeated("https://example.com/a\n", "x\n", "", large), 1, false},
		{"too many URLs", repeated(root, entry, "</urlset>", large), 50_000, true},
		{"too long", repeated(root+entry+"<!--", strings.Repeat("x", 64<<10), "", 60<<20), 1, true},
		{"a bomb", repeated(string(pack([]byte(root+entry))), string(pack(bytes.Repeat([]byte(" "), 1<<20))), string(pack([]byte("</urlset>"))), 1<<20), 1, true},
		{"empty members", repeated(string(pack([]byte(root+entry))), string(pack(nil)), "", 6<<20), 1, true},
		{"a reference to itself", strings.NewReader("<sitemapindex><sitemap><loc>" + home + "</loc></sitemap></sitemapindex>"), 1, false},
		{"a long base", repeated("<feed xml:base='https://example.com/"+strings.Repeat("x/", 2030)+"'>", "<entry><link href='"+strings.Repeat("z", 50)+"'/></entry>",
			"<entry><link href='https://example.com/a'/></entry></feed>", large), 1, false},
		{"a base that grows", repeated("", "<feed xml:base='x/'>", "<entry><link href='https://example.com/a'/></entry></feed>", large), 1, false},
		{"many bases of one link", repeated("<feed><entry>", "<link "+strings.Repeat("xml:base='x/' ", 4000)+"/>", "<link href='https://example.com/a'/></entry></feed>", large), 1, false},
		{"many bases", repeated("<feed>", "<entry xml:base='x/'>", "<link href='https://example.com/a'/></entry></feed>", large), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			opts := sitemap.Options{URL: home}
			if c.name == "empty members" {
				opts.MaxBytes = large
			}
			r := sitemap.NewReader(c.in, opts)
			runtime.GC()
			runtime.ReadMemStats(&before)
			n := 0
			var last error
			for e, err := range r.All(context.Background()) {
				if last = err; err != nil {
					break
				}
				if n++; len(e.URL) > 4096 || !strings.HasPrefix(e.URL, "https://example.com/") {
					t.Fatalf("%+v", e)
				}
			}
			runtime.ReadMemStats(&after)
			rep := r.Report()
			if n != c.want || rep.Truncated != c.truncated || last != nil && c.want > 0 {
				t.Errorf("%d entries, %+v, %v", n, rep, last)
			}
			// All that was ever allocated, but what readers of ours are made of.
			limit := 1<<20 + 200*n + 8*rep.BadURLs + 64*rep.BadFields
			if strings.Contains(c.name, "base") {
				limit *= 100 // they are garbage at once
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(limit) {
				t.Errorf("%d kB for %d entries of %d kB", used>>10, n, rep.Bytes>>10)
			}
			if rep.Bytes > sitemap.DefaultMaxBytes || rep.Encoded > sitemap.DefaultMaxBytes {
				t.Errorf("%+v", rep)
			}
		})
	}
}

// The ratio stops a bomb long before the limit does; it can be switched off.
func TestRatio(t *testing.T) {
	doc := []byte("<urlset>" + strings.Repeat(" ", 4<<20) + "<url><loc>https://example.com/a</loc></url></urlset>")
	for ratio, want := range map[int]int{0: 0, 100: 0, 2000: 1, -1: 1} {
		entries, rep, err := read(bytes.NewReader(pack(doc)), sitemap.Options{MaxRatio: ratio})
		if err != nil || len(entries) != want || rep.Truncated != (want == 0) || want == 0 && rep.Bytes > 2<<20 {
			t.Errorf("ratio %d: %d entries, %+v, %v", ratio, len(entries), rep, err)
		}
	}
	// Without compression there is no ratio.
	if entries, _, err := read(bytes.NewReader(doc), sitemap.Options{MaxRatio: 1}); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
