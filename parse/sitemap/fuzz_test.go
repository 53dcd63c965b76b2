package sitemap_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/recrawl/recrawl/parse/sitemap"
)

// FuzzRead reads anything as it comes and byte by byte, and holds what is yielded
// against what is promised.
func FuzzRead(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.body), "")
		f.Add(utf16bytes(d.body, true, len(d.body)%2 == 0), "text/plain")
	}
	f.Add(pack([]byte(documents[0].body)), "application/gzip")
	f.Add(pack([]byte("https://example.com/a\n")), "text/plain; charset=utf-8")
	f.Add([]byte("<?xml version='1.0' encoding='gb18030'?><urlset><url><loc>https://example.com/\x81\x30\x81\x30</loc></url></urlset>"), "text/xml; charset=big5")
	f.Add([]byte("<!DOCTYPE a [<!ENTITY b 'c'>]><urlset><url><loc>https://example.com/&b;</loc></url><url <loc>https://example.com/</url>"), "")
	f.Add([]byte("<html><urlset>"), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		o := sitemap.Options{URL: home, ContentType: contentType, MaxURLs: 100, MaxURL: 300, MaxBytes: 1 << 20}
		entries, rep, err := read(bytes.NewReader(body), o)
		again, rep2, err2 := read(iotest.OneByteReader(bytes.NewReader(body)), o)
		// A broken gzip stream may or may not give what comes just before the fault.
		if !rep.Gzip && (!reflect.DeepEqual(entries, again) || rep.Format != rep2.Format || rep.Truncated != rep2.Truncated || rep.Faults != rep2.Faults || (err == nil) != (err2 == nil)) {
			t.Errorf("%q, %+v, %v\nbyte by byte %q, %+v, %v", show(entries), rep, err, show(again), rep2, err2)
		}
		if err != nil && !errors.Is(err, sitemap.ErrFormat) || (err == nil) != (rep.Format != sitemap.NoFormat) {
			t.Errorf("%+v, %v", rep, err)
		}
		if rep.Entries != len(entries) || len(entries) > 100 || rep.Truncated != (rep.Reason != "") || rep.Bytes > 1<<20 {
			t.Errorf("%d entries, %+v", len(entries), rep)
		}
		for _, e := range entries {
			checkURL(t, e.URL)
			if !(e.Priority >= 0 && e.Priority <= 1) || e.Priority != 0 && !e.HasPriority || (e.Interval == 0) != (e.ChangeFreq == "") || (e.Span == 0) != e.Modified.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		// A part of a document has the same entries, as far as it goes.
		if rep.Format == sitemap.NoFormat || rep.Gzip || len(body) < 2 {
			return
		}
		part, _, err := read(io.LimitReader(bytes.NewReader(body), int64(len(body)/2)), sitemap.Options{URL: home, ContentType: contentType, MaxURLs: 100, MaxURL: 300, Truncated: true})
		if err != nil {
			return
		}
		for i, e := range part {
			if i < len(part)-1 && (i >= len(entries) || e.URL != entries[i].URL) {
				t.Errorf("of the half of it: %q, of all %q", show(part), show(entries))
				break
			}
		}
	})
}

// FuzzWellFormed holds what is read in documents without faults against what
// encoding/xml reads in them.
func FuzzWellFormed(f *testing.F) {
	for _, s := range []string{
		"<urlset><url><loc>https://example.com/a</loc><b><loc>https://example.com/no</loc></b></url><c/><url d='>'><loc e=\"'\">https://example.com/<![CDATA[<&]]>&amp;&#x41;<!-- > -->b</loc></url></urlset>",
		"<?xml version='1.0'?><?a b?><!-- c --><urlset>x<url/> <url ><loc\n>https://example.com/d\n</loc ></url ></urlset>",
		"<urlset><b><url><loc>https://example.com/\u00e9</loc></url></b><sitemap><loc>https://example.com/&quot;&lt;</loc></sitemap></urlset>",
	} {
		if urls, ok := locs([]byte(s)); !ok || len(urls) != 2 && len(urls) != 1 {
			f.Fatalf("%s: %q, %v", s, urls, ok)
		}
		f.Add([]byte(s))
	}
	for _, d := range documents {
		f.Add([]byte(d.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want, ok := locs(body)
		if !ok {
			return
		}
		entries, rep, err := read(bytes.NewReader(body), sitemap.Options{})
		var got []string
		for _, e := range entries {
			got = append(got, e.URL)
		}
		if err != nil || rep.Truncated || rep.Faults > 0 || !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q\n%+v, %v", got, want, rep, err)
		}
	})
}

// locs returns the URLs in a document that encoding/xml can read and that leaves
// no choice.
func locs(body []byte) (urls []string, ok bool) {
	if len(body) == 0 || body[0] != '<' {
		return nil, false
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	var open []string
	entry, loc := -1, "" // where the entry is in open
	found := false
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return urls, found && len(open) == 0
		}
		switch tok := tok.(type) {
		case nil:
			return nil, false
		case xml.Directive:
			return nil, false
		case xml.ProcInst:
			// A declaration with a ">" in it is invalid, although encoding/xml accepts it.
			if strings.HasPrefix(tok.Target, "xml") && bytes.Contains(tok.Inst, []byte(">")) {
				return nil, false
			}
		case xml.StartElement:
			name := tok.Name.Local
			switch {
			case tok.Name.Space != "" || name != strings.ToLower(name) || strings.Contains(name, ":") || len(tok.Attr) > 0 && tok.Attr[0].Name.Local == "xmlns":
				return nil, false
			case len(open) == 0 && (found || name != "urlset"), len(open) > 0 && name == "urlset":
				return nil, false
			case entry >= 0 && (name == open[entry] || len(open) > entry+1 && open[entry+1] == "loc"):
				return nil, false
			case entry < 0 && (name == "url" || name == "sitemap"):
				entry, loc = len(open), ""
			case entry == len(open)-1 && name == "loc" && loc != "":
				return nil, false
			}
			found = true
			if open = append(open, name); len(open) > 10 {
				return nil, false
			}
		case xml.EndElement:
			open = open[:len(open)-1]
			if len(open) == entry {
				entry = -1
				if loc == "" {
					continue
				}
				loc = strings.TrimSpace(loc)
				if rest, ok := strings.CutPrefix(loc, "https://example.com/"); !ok || len(loc) > 300 || strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' || c == 0x7f || c > 0x7f && !unicode.IsLetter(c) }) {
					return nil, false
				}
				urls = append(urls, loc)
			}
		case xml.CharData:
			if entry >= 0 && len(open) == entry+1 && len(bytes.TrimSpace(tok)) > 0 {
				return nil, false // a URL without its element
			}
			if entry >= 0 && len(open) == entry+2 && open[entry+1] == "loc" {
				loc += string(tok)
			}
		}
	}
}

func checkURL(t *testing.T, u string) {
	t.Helper()
	scheme, rest, ok := strings.Cut(u, "://")
	if scheme = strings.ToLower(scheme); !ok || rest == "" || scheme != "http" && scheme != "https" || len(u) > 300 || !utf8.ValidString(u) || strings.ContainsFunc(u, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		t.Errorf("yielded %q", u)
	}
}
