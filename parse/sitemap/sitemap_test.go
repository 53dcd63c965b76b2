package sitemap_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"github.com/recrawl/recrawl/parse/sitemap"
	"golang.org/x/text/encoding/charmap"
)

const home = "https://example.com/dir/sitemap.xml"

// read reads a whole document.
func read(in io.Reader, o sitemap.Options) ([]sitemap.Entry, sitemap.Report, error) {
	r := sitemap.NewReader(in, o)
	var entries []sitemap.Entry
	for e, err := range r.All(context.Background()) {
		if err != nil {
			return entries, r.Report(), err
		}
		entries = append(entries, e)
	}
	return entries, r.Report(), nil
}

// show writes entries in one line each.
func show(entries []sitemap.Entry) []string {
	var out []string
	for _, e := range entries {
		var b strings.Builder
		if e.Sitemap {
			b.WriteString("> ")
		}
		b.WriteString(e.URL)
		if !e.Modified.IsZero() {
			fmt.Fprintf(&b, " %s+%s", e.Modified.Format(time.RFC3339Nano), e.Span)
		}
		if e.ChangeFreq != "" {
			fmt.Fprintf(&b, " %s", e.ChangeFreq)
		}
		if e.HasPriority {
			fmt.Fprintf(&b, " p%g", e.Priority)
		}
		out = append(out, b.String())
	}
	return out
}

func pack(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func utf16bytes(s string, mark, little bool) []byte {
	u := utf16.Encode([]rune(s))
	if mark {
		u = append([]uint16{0xfeff}, u...)
	}
	var b []byte
	for _, c := range u {
		if little {
			b = append(b, byte(c), byte(c>>8))
		} else {
			b = append(b, byte(c>>8), byte(c))
		}
	}
	return b
}

// document is a document, and what is in it.
type document struct {
	name   string
	body   string
	format sitemap.Format
	want   []string
}

var documents = []document{
	{"the example of sitemaps.org", `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
   <url>
      <loc>http://www.example.com/</loc>
      <lastmod>2005-01-01</lastmod>
      <changefreq>monthly</changefreq>
      <priority>0.8</priority>
   </url>
   <url>
      <loc>http://www.example.com/catalog?item=12&amp;desc=vacation_hawaii</loc>
      <changefreq>weekly</changefreq>
   </url>
   <url>
      <loc>http://www.example.com/catalog?item=74&amp;desc=vacation_newfoundland</loc>
      <lastmod>2004-12-23T18:00:15+00:00</lastmod>
      <priority>0.3</priority>
   </url>
</urlset>`, sitemap.URLSet, []string{
		"http://www.example.com/ 2005-01-01T00:00:00Z+24h0m0s monthly p0.8",
		"http://www.example.com/catalog?item=12&desc=vacation_hawaii weekly",
		"http://www.example.com/catalog?item=74&desc=vacation_newfoundland 2004-12-23T18:00:15Z+1s p0.3",
	}},
	{"an index", `<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <sitemap><loc>http://www.example.com/sitemap1.xml.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod></sitemap>
  <sitemap><loc>http://www.example.com/sitemap2.xml.gz</loc><lastmod>2005-01-01</lastmod></sitemap>
</sitemapindex>`, sitemap.Index, []string{
		"> http://www.example.com/sitemap1.xml.gz 2004-10-01T18:23:17Z+1s",
		"> http://www.example.com/sitemap2.xml.gz 2005-01-01T00:00:00Z+24h0m0s",
	}},
	{"extensions", `<?xml version="1.0"?>
<?xml-stylesheet type="text/xsl" href="//example.com/main-sitemap.xsl"?>
<urlset xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
 xsi:schemaLocation="http://www.sitemaps.org/schemas/sitemap/0.9 http://www.sitemaps.org/schemas/sitemap/0.9/sitemap.xsd" xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url>
  <image:image><image:loc>https://example.com/before.jpg</image:loc></image:image>
  <image:loc>https://example.com/bare.jpg</image:loc>
  <loc>https://example.com/a</loc>
  <image:image><image:loc>https://example.com/a.jpg</image:loc><image:title>A &amp; B</image:title></image:image>
  <video:video><video:thumbnail_loc>https://example.com/t.jpg</video:thumbnail_loc><video:content_loc>https://example.com/v.mp4</video:content_loc>
    <video:player_loc allow_embed="yes">https://example.com/p</video:player_loc><video:priority>1.0</video:priority></video:video>
  <news:news><news:publication><news:name>N</news:name></news:publication><news:publication_date>2020-01-01</news:publication_date></news:news>
  <mobile:mobile/>
  <PageMap xmlns="http://www.google.com/schemas/sitemap-pagemap/1.0"><DataObject><Attribute name="loc">x</Attribute><loc>https://example.com/no</loc></DataObject></PageMap>
  <priority>0.5</priority>
</url></urlset>`, sitemap.URLSet, []string{"https://example.com/a p0.5"}},
	{"other names of namespaces", `<sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9"><sm:url><sm:loc>https://example.com/a</sm:loc>
<x:lastmod>2020-01-01</x:lastmod><sm:lastmod>2021-01-01</sm:lastmod></sm:url></sm:urlset>`, sitemap.URLSet, []string{"https://example.com/a 2021-01-01T00:00:00Z+24h0m0s"}},
	{"wrong namespaces", `<urlset xmlns="http://www.google.com/schemas/sitemap/0.84"><url><loc>https://example.com/a</loc></url></urlset>`,
		sitemap.URLSet, []string{"https://example.com/a"}},
	{"no namespace, other case", `<URLSET><Url><LOC>https://example.com/A</Loc><LastMod>2020-01-01</LastMod></URL></urlset>`,
		sitemap.URLSet, []string{"https://example.com/A 2020-01-01T00:00:00Z+24h0m0s"}},
	{"sections, references and comments", `<!-- c --><urlset><!-- <url><loc>https://example.com/no</loc></url> --- -->
<url><loc><![CDATA[https://example.com/?a=1&b=2]]></loc></url>
<url><loc>https://example.com/<!-- x -->a<![CDATA[&amp;]]>&#98;&#x63;&quot;&apos;&lt;</loc></url>
<url><loc>https://example.com/?a=1&amp;b<?x &amp;?>=2&amp;c</loc></url><!--> <url><loc>https://example.com/comment</loc></url> -->
<url><loc>
   https://example.com/wrapped/
   path
</loc></url></urlset>`, sitemap.URLSet, []string{"https://example.com/?a=1&b=2", `https://example.com/a&amp;bc"'<`, "https://example.com/?a=1&b=2&c", "https://example.com/wrapped/   path"}},
	{"no references", `<urlset><url><loc>https://example.com/?a=1&copy=2&reg;=3&;&#x;&#99999999;&lt</loc></url></urlset>`,
		sitemap.URLSet, []string{"https://example.com/?a=1&copy=2&reg;=3&;&#x;&#99999999;&lt"}},
	{"the first of each counts", `<urlset><url><loc></loc><loc>https://example.com/a</loc><loc>https://example.com/b</loc><priority>x</priority><priority>0,3</priority><priority>0.4</priority>
<changefreq>soon</changefreq><changefreq> Daily </changefreq><lastmod/><lastmod>never</lastmod><lastmod>2020</lastmod></url></urlset>`,
		sitemap.URLSet, []string{"https://example.com/a 2020-01-01T00:00:00Z+8784h0m0s daily p0.3"}},
	{"both kinds of entry", `<urlset><sitemap><loc>https://example.com/s.xml</loc></sitemap><url><loc>https://example.com/a</loc></url></urlset>`,
		sitemap.URLSet, []string{"> https://example.com/s.xml", "https://example.com/a"}},
	{"an empty one", `<urlset/>`, sitemap.URLSet, nil},
	{"references to the root and the scheme", `<urlset><url><loc>/a b?c</loc></url><url><loc>//www.example.net/d</loc></url><url><loc>www.example.com/e</loc></url><url><loc>f.html</loc></url>` +
		`<url><loc>///f</loc></url><url><loc>//%41/</loc></url><url><loc>/x/..//y</loc></url><url><loc>/z#!s</loc></url><url><loc>//[/</loc></url></urlset>`,
		sitemap.URLSet, []string{"https://example.com/a%20b?c", "https://www.example.net/d", "https://f/", "https://a/", "https://example.com//y", "https://example.com/z#!s"}},
	{"alternates", `<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml"><url><loc>https://example.com/en</loc>
<xhtml:link rel="alternate" hreflang="de" href="https://example.com/de?a=1&amp;b=2"/>
<xhtml:link rel='alternate' href='//example.ch/' hreflang='de-CH' ></xhtml:link>
<xhtml:link rel="amphtml" href="https://example.com/amp"/>
<xhtml:link rel="alternate" media="only screen" href="mobile"/><changefreq>never</changefreq></url></urlset>`,
		sitemap.URLSet, []string{"https://example.com/en never"}},
	{"lines", "https://example.com/a\r\nhttp://example.com/b?c&amp;d \n\n# comment\rexample.com/no\n/no\n\thttps://example.com/e", sitemap.Text,
		[]string{"https://example.com/a", "http://example.com/b?c&amp;d", "https://example.com/e"}},
	{"RSS 2.0", `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>T</title><link>https://example.com/home</link><atom:link href="https://example.com/feed" rel="self"/><image><url>https://example.com/i.png</url><link>https://example.com/</link></image>
<item><title>&lt;b&gt; &nbsp; one</title><link>https://example.com/1?a&amp;b</link><guid>https://example.com/?p=1</guid><pubDate>Wed, 02 Oct 2002 13:00:00 GMT</pubDate>
  <description><![CDATA[<a href="https://example.com/no"><link>https://example.com/no</link></item>]]></description><media:content url="https://example.com/m"><link>https://example.com/no</link></media:content></item>
<item><guid isPermaLink="true">https://example.com/2</guid><dc:date>2003-01-02T03:04:05Z</dc:date><pubDate>Thu, 2 Jan 2003 04:00 +0100</pubDate></item>
<item><guid isPermaLink="false">https://example.com/no</guid></item>
<item><guid>tag:example.com,2003:x</guid></item>
<item><link>post/4</link><atom:updated>2004-01-01T00:00:00Z</atom:updated></item>
<item><atom:link rel="replies" href="https://example.com/no"/><link href="https://example.com/5"/></item>
</channel></rss>`, sitemap.RSS, []string{
		"https://example.com/1?a&b 2002-10-02T13:00:00Z+1s",
		"https://example.com/2 2003-01-02T03:00:00Z+1m0s",
		"https://example.com/dir/post/4 2004-01-01T00:00:00Z+1s",
		"https://example.com/5",
	}},
	{"RSS 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="https://example.com/"><link>https://example.com/</link>
<items><rdf:Seq><rdf:li resource="https://example.com/1"/></rdf:Seq></items></channel>
<item rdf:about="https://example.com/about"><link>https://example.com/1</link><dc:date>2003-12-13</dc:date></item>
<item rdf:about="https://example.com/2"><title>x</title></item></rdf:RDF>`, sitemap.RDF,
		[]string{"https://example.com/1 2003-12-13T00:00:00Z+24h0m0s", "https://example.com/2"}},
	{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/base/"><link rel="self" href="/feed"/><link href="/home"/><updated>2003-12-13T18:30:02Z</updated>
<entry><link rel="edit" href="/no"/><link rel="alternate" type="application/json" href="1.json"/><link href="1" type="text/html"/><published>2001-01-01T00:00:00Z</published>
<updated>2003-12-13T18:30:02.25+01:00</updated><source><link href="/no"/><updated>1999-01-01T00:00:00Z</updated></source><content type="xhtml"><div><link href="/no"/></div></content></entry>
<entry xml:base="deep/"><link rel="alternate nofollow" href="2&amp;x"/><published>2002-02-02T00:00:00Z</published></entry>
<entry><link xml:base="https://example.net/" href="3"/></entry>
<entry><id>https://example.com/no</id></entry></feed>`, sitemap.Atom, []string{
		"http://example.org/base/1 2003-12-13T17:30:02.25Z+1s",
		"http://example.org/base/deep/2&x 2002-02-02T00:00:00Z+1s",
		"https://example.net/3",
	}},
	{"Atom 0.3", `<atom:feed version="0.3" xmlns:atom="http://purl.org/atom/ns#"><atom:entry><atom:link rel="alternate" href="https://example.com/1"/>
<atom:issued>2003-01-01</atom:issued><atom:modified>2003-12-13T18:30:02Z</atom:modified></atom:entry></atom:feed>`,
		sitemap.Atom, []string{"https://example.com/1 2003-12-13T18:30:02Z+1s"}},
}

func TestDocuments(t *testing.T) {
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			check := func(how string, in io.Reader) {
				t.Helper()
				entries, rep, err := read(in, sitemap.Options{URL: home})
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if got := show(entries); !slices.Equal(got, d.want) {
					t.Errorf("%s:\n%s\nwant\n%s", how, strings.Join(got, "\n"), strings.Join(d.want, "\n"))
				}
				if rep.Format != d.format || rep.Truncated || rep.Entries != len(entries) {
					t.Errorf("%s: %+v", how, rep)
				}
			}
			check("as it is", strings.NewReader(d.body))
			check("byte by byte", iotest.OneByteReader(strings.NewReader(d.body)))
			check("with the end", iotest.DataErrReader(strings.NewReader(d.body)))
			check("gzip", bytes.NewReader(pack([]byte(d.body))))
			check("gzip in two members and zeros", bytes.NewReader(slices.Concat(pack([]byte(d.body[:9])), pack([]byte(d.body[9:])), make([]byte, 512))))
			check("gzip and a line end", bytes.NewReader(slices.Concat(pack([]byte(d.body)), []byte("\r\n"))))
			check("gzip and one byte of a header", bytes.NewReader(slices.Concat(pack([]byte(d.body)), []byte("\x1f"))))
			check("with a mark", strings.NewReader("\ufeff"+d.body))
			check("behind a mark and blanks", strings.NewReader("\ufeff \n\n"+d.body))
			check("UTF-16 with a mark, little endian", bytes.NewReader(utf16bytes(d.body, true, true)))
			check("UTF-16 with a mark, big endian", bytes.NewReader(pack(utf16bytes(d.body, true, false))))
			check("UTF-16, little endian", bytes.NewReader(utf16bytes(d.body, false, true)))
			check("UTF-16, big endian", iotest.HalfReader(bytes.NewReader(utf16bytes(d.body, false, false))))
		})
	}
}

func TestCharsets(t *testing.T) {
	latin := func(s string) string {
		s, err := charmap.Windows1252.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	doc := func(encoding string) string {
		return "<?xml version='1.0'" + encoding + "?><urlset><url><loc>https://example.com/café</loc></url></urlset>"
	}
	for _, c := range []struct{ name, contentType, body string }{
		{"nothing said", "", doc("")},
		{"nothing said, Latin", "", latin(doc(""))},
		{"UTF-8 said, Latin", "text/xml; charset=utf-8", latin(doc(" encoding='UTF-8'"))},
		{"declared", "", latin(doc(" encoding = 'ISO-8859-1'"))},
		{"declared, not known", "", doc(" encoding='klingon'")},
		{"declared, impossible", "", doc(" encoding='UTF-16'")},
		{"Content-Type", "application/xml;charset=ISO-8859-15", latin(doc(""))},
		{"Content-Type over declaration", `text/xml; Charset="windows-1252"; x`, latin(doc(" encoding='utf-8'"))},
		{"Content-Type, impossible", "text/xml; charset=utf-16", doc("")},
		{"mark over all", "text/xml; charset=ISO-8859-1", "\ufeff" + doc(" encoding='ISO-8859-1'")},
		{"lines", "text/plain; charset=latin1", latin("https://example.com/café")},
		{"lines, nothing said", "text/plain", latin("https://example.com/café\n")},
	} {
		entries, rep, err := read(strings.NewReader(c.body), sitemap.Options{ContentType: c.contentType})
		if err != nil || len(entries) != 1 || entries[0].URL != "https://example.com/café" || rep.Truncated {
			t.Errorf("%s: %q, %+v, %v", c.name, show(entries), rep, err)
		}
	}
}

// Reading a document that is not well-formed continues after the fault.
func TestFaults(t *testing.T) {
	const a, b = "https://example.com/a", "https://example.com/b"
	for _, c := range []struct {
		body string
		want []string
	}{
		{"<url><loc>" + a + "</url><url><loc>" + b + "</loc></urlset>", []string{a, b}},
		{"<url><loc>" + a + "</loc><url><loc>" + b + "</loc></url></urlset>", []string{a, b}},
		{"<url><loc>" + a + "<lastmod>2020-01-01</lastmod></url></urlset>", []string{a + " 2020-01-01T00:00:00Z+24h0m0s"}},
		{"<url><loc>" + a + "</lco><priority>1</priority></url></urlset>", []string{a + " p1"}},
		{"<url><image:image><image:loc>x</image:image><loc>" + a + "</loc></url></urlset>", []string{a}},
		{"<url>\n" + a + "\n</url><url>text<loc>" + b + "</loc></url></urlset>", []string{a, b}},
		{"<sitemap> " + a + "</sitemap><sitemap>words</sitemap></urlset>", []string{"> " + a}},
		{"<url></b></i><loc>" + a + "</loc></url></urlset>", []string{a}},
		{"<url><loc>" + a + " < b</loc></url></urlset>", []string{a + " < b"}},
		{"<url><loc x='1>" + a + "</loc></url>\n<url y='2'><loc>" + b + "</loc></url></urlset>", []string{a, b}},
		{"<url <loc>" + a + "</loc></url></urlset>", []string{a}},
		{"<url><loc>" + a + "</loc</url><url><loc>" + b + "</loc></url></urlset>", []string{a, b}},
		{"<url><lastmod x" + strings.Repeat(" y='1'", 20_000) + ">z</lastmod><loc>" + a + "</loc></url></urlset>", []string{a}},
	} {
		entries, rep, err := read(strings.NewReader("<urlset>"+c.body), sitemap.Options{})
		if got := show(entries); err != nil || !slices.Equal(got, c.want) || rep.Truncated || rep.Faults == 0 {
			t.Errorf("%.100s: %q, %+v, %v", c.body, got, rep, err)
		}
	}
	for _, body := range []string{
		"<br />\n<b>Warning</b>: foo() in <b>/x.php</b><br /><?xml version='1.0'?><urlset><url><loc>" + a + "</loc></url></urlset>",
		"Notice: x\n<?xml version='1.1'><urlset><url><loc>" + a + "</loc></url></urlset>",
		"<url><loc>" + a + "</loc></url>",
		"<channel><item><link>" + a + "</link></item></channel>",
		"<url>" + strings.Repeat("<a>", 20) + strings.Repeat("</a>", 20) + "<loc>" + a + "</loc></url>",
		"<urlset><url><loc>" + a + "</loc>\x00\x01</url></urlset>trailing & <garbage",
		"<urlset></urlset><urlset><url><loc>" + a + "</loc></url></urlset>",
		"<!DOCTYPE urlset [<!-- don't > --><!ELEMENT url (loc)> <!ENTITY a \"<url>'>\">]><urlset><url><loc>" + a + "</loc></url></urlset>",
	} {
		entries, rep, err := read(strings.NewReader(body), sitemap.Options{})
		if got := show(entries); err != nil || !slices.Equal(got, []string{a}) || rep.Truncated {
			t.Errorf("%s: %q, %+v, %v", body, got, rep, err)
		}
	}
}

func TestTruncated(t *testing.T) {
	const doc = "<urlset><url><loc>https://example.com/a</loc></url><url><loc>https://example.com/bb</loc><lastmod>2020-01-01</lastmod></url></urlset>"
	whole := strings.Index(doc, "</loc><lastmod>") + len("</loc>")
	for n := len("<urlset>"); n < len(doc)-len("\n"); n++ {
		entries, rep, err := read(strings.NewReader(doc[:n]), sitemap.Options{})
		want := 0
		if n >= strings.Index(doc, "</loc>")+6 {
			want++
		}
		if n >= whole {
			want++
		}
		if err != nil || len(entries) != want || !rep.Truncated || rep.Reason == "" {
			t.Errorf("%s: %q, %+v, %v", doc[:n], show(entries), rep, err)
		}
		for _, e := range entries {
			if e.URL != "https://example.com/a" && e.URL != "https://example.com/bb" {
				t.Errorf("%s: half a URL: %s", doc[:n], e.URL)
			}
		}
	}
	packed := pack(full(1000))
	entries, rep, err := read(bytes.NewReader(packed[:len(packed)/2]), sitemap.Options{})
	if err != nil || len(entries) < 100 || len(entries) > 900 || !rep.Truncated || !strings.HasPrefix(rep.Reason, "gzip: ") || !rep.Gzip {
		t.Errorf("half of a gzip file: %d entries, %+v, %v", len(entries), rep, err)
	}
	packed[len(packed)-8] ^= 1
	entries, rep, err = read(bytes.NewReader(packed), sitemap.Options{})
	if err != nil || len(entries) != 1000 || !rep.Truncated {
		t.Errorf("a wrong checksum: %d entries, %+v, %v", len(entries), rep, err)
	}
	entries, rep, err = read(strings.NewReader("https://example.com/a\nhttps://example.com/b"), sitemap.Options{Truncated: true})
	if err != nil || len(entries) != 1 || !rep.Truncated {
		t.Errorf("lines that were cut: %q, %+v, %v", show(entries), rep, err)
	}
}

func TestLimits(t *testing.T) {
	doc := full(100)
	for _, c := range []struct {
		name      string
		opts      sitemap.Options
		body      []byte
		want      int
		truncated bool
	}{
		{"as many as there may be", sitemap.Options{MaxURLs: 100}, doc, 100, false},
		{"one more", sitemap.Options{MaxURLs: 99}, doc, 99, true},
		{"none", sitemap.Options{MaxURLs: -1, MaxBytes: -1, MaxRatio: -1, MaxURL: -1}, doc, 100, false},
		{"as long as it may be", sitemap.Options{MaxBytes: int64(len(doc))}, doc, 100, false},
		{"one byte more", sitemap.Options{MaxBytes: int64(len(doc)) - 1}, doc, 100, true},
		{"half as long", sitemap.Options{MaxBytes: int64(len(doc)) / 2}, doc, 50, true},
		{"half as long, compressed", sitemap.Options{MaxBytes: int64(len(doc)) / 2}, pack(doc), 50, true},
		{"as long as it may be, compressed", sitemap.Options{MaxBytes: int64(len(doc))}, pack(doc), 100, false},
		{"long URLs", sitemap.Options{MaxURL: 53}, doc, 10, false},
		{"not URLs", sitemap.Options{}, []byte("<urlset><url><loc>javascript:alert(1)</loc></url><url><loc>file:///etc/passwd</loc></url><url><loc>ftp://h/</loc></url>" +
			"<url><loc>http://</loc></url><url><loc>http:///x</loc></url><url><loc>https:/x</loc></url><url><loc>mailto:a@example.com</loc></url><url><loc>http://h/\x01</loc></url>" +
			"<url><loc> </loc></url><url></url><url/><url><loc>https://example.com/" + strings.Repeat("x", 5000) + "</loc></url></urlset>"), 0, false},
	} {
		entries, rep, err := read(bytes.NewReader(c.body), c.opts)
		if err != nil || len(entries) != c.want || rep.Truncated != c.truncated || rep.Entries != c.want || (rep.Reason != "") != c.truncated {
			t.Errorf("%s: %d entries, %+v, %v", c.name, len(entries), rep, err)
		}
		if c.name == "not URLs" && rep.BadURLs != 12 || c.name == "long URLs" && rep.BadURLs != 90 {
			t.Errorf("%s: %+v", c.name, rep)
		}
	}
	// The scheme of the document is allowed.
	entries, _, err := read(strings.NewReader("file:///a\nftp://h/\n/b"), sitemap.Options{URL: "file:///s.txt"})
	if got := show(entries); err != nil || !slices.Equal(got, []string{"file:///a"}) {
		t.Errorf("file: %q, %v", got, err)
	}
}

func TestDepth(t *testing.T) {
	const index = "<sitemapindex><sitemap><loc>https://example.com/s.xml</loc></sitemap></sitemapindex>"
	for _, c := range []struct{ depth, max, want int }{{0, 0, 1}, {1, 0, 1}, {2, 0, 0}, {1, 1, 0}, {0, 1, 1}, {1000, -1, 1}, {1000, 0, 0}} {
		entries, rep, err := read(strings.NewReader(index), sitemap.Options{Depth: c.depth, MaxDepth: c.max})
		if err != nil || len(entries) != c.want || rep.TooDeep != 1-c.want || rep.Truncated {
			t.Errorf("%+v: %d entries, %+v, %v", c, len(entries), rep, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, body := range []string{
		"", " \n", "\ufeff", "not found", "<!DOCTYPE html><html><body><urlset><url><loc>https://example.com/</loc></url></urlset>", "<a/>", "{\"urlset\": 1}", "\x89PNG\r\n\x1a\n\x00<\x00", "\x1f\x8b\x08", "\x1f\x8b\x08\xff\xff",
		string(pack(nil)), string(pack([]byte("no"))), strings.Repeat("<a>", 2<<20), "/a\n/b\n", "<OpenSearchDescription><Url template='x'/></OpenSearchDescription>", "<tv><channel><item><link>https://example.com/</link></item></channel></tv>", "User-agent: *\nDisallow: /\n",
	} {
		entries, rep, err := read(strings.NewReader(body), sitemap.Options{URL: home})
		if !errors.Is(err, sitemap.ErrFormat) || !strings.Contains(err.Error(), home) || len(entries) > 0 || rep.Format != sitemap.NoFormat {
			t.Errorf("%.40q: %q, %+v, %v", body, show(entries), rep, err)
		}
	}

	broken := errors.New("broken")
	half := full(2000)[:200_000]
	for name, body := range map[string][]byte{"xml": half, "gzip": pack(half)[:5000]} {
		entries, rep, err := read(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)), sitemap.Options{URL: home})
		if !errors.Is(err, broken) || !rep.Truncated || len(entries) < 100 {
			t.Errorf("%s from a broken reader: %d entries, %+v, %v", name, len(entries), rep, err)
		}
	}
	if _, _, err := read(iotest.ErrReader(broken), sitemap.Options{}); !errors.Is(err, broken) {
		t.Errorf("a reader that is broken from the beginning: %v", err)
	}
	if entries, rep, err := read(io.MultiReader(bytes.NewReader(half), neverReader{}), sitemap.Options{}); !errors.Is(err, io.ErrNoProgress) || !rep.Truncated || len(entries) < 900 {
		t.Errorf("a reader without progress: %d entries, %+v, %v", len(entries), rep, err)
	}
	for _, contentType := range []string{"text/plain", "text/plain; charset=utf-8"} {
		robots := "User-agent: *\nDisallow: /\nSitemap: https://example.com/sitemap.xml\n"
		if entries, rep, err := read(strings.NewReader(robots), sitemap.Options{ContentType: contentType}); !errors.Is(err, sitemap.ErrFormat) {
			t.Errorf("robots.txt: %q, %+v, %v", show(entries), rep, err)
		}
	}
}

// neverReader reads nothing, for ever.
type neverReader struct{}

func (neverReader) Read([]byte) (int, error) { return 0, nil }

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := sitemap.NewReader(bytes.NewReader(full(1000)), sitemap.Options{})
	n := 0
	var last error
	for _, err := range r.All(ctx) {
		if n++; n == 10 {
			cancel()
		}
		last = err
	}
	if n != 11 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d pairs, %v", n, last)
	}
	for _, err := range r.All(context.Background()) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	}

	// Nothing to yield, and no end.
	ctx, cancel = context.WithCancel(context.Background())
	spam := &endless{cancel: cancel}
	for _, err := range sitemap.NewReader(spam, sitemap.Options{MaxBytes: -1}).All(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("an endless comment: %v", err)
		}
	}
}

// endless is a comment without end; it cancels after a MiB.
type endless struct {
	n      int
	cancel context.CancelFunc
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, "<!--"[min(e.n, 4):])
	for ; n < len(b); n++ {
		b[n] = 'x'
	}
	if e.n += n; e.n > 1<<20 {
		e.cancel()
	}
	return n, nil
}

func TestAllGoesOn(t *testing.T) {
	r := sitemap.NewReader(bytes.NewReader(full(10)), sitemap.Options{})
	var urls []string
	for range 12 {
		for e, err := range r.All(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			urls = append(urls, e.URL)
			break
		}
	}
	all, rep, _ := read(bytes.NewReader(full(10)), sitemap.Options{})
	if want := show(all); len(urls) != 10 || !strings.HasPrefix(want[9], urls[9]) || r.Report() != rep {
		t.Errorf("%q, %+v, want %+v", urls, r.Report(), rep)
	}
}

func TestChangeFreq(t *testing.T) {
	for f, want := range map[string]int{
		"": 0, "seldom": 0, "always": 1, "hourly": 3600, "Daily": 86400, "weekly": 604800,
		"monthly": 2592000, "YEARLY": 31536000, "never": 1<<31 - 1,
	} {
		entries, _, err := read(strings.NewReader("<urlset><url><loc>https://example.com/</loc><changefreq>"+f+"</changefreq></url></urlset>"), sitemap.Options{})
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		word := strings.ToLower(f)
		if want == 0 {
			word = ""
		}
		if e := entries[0]; e.ChangeFreq != word || e.Interval != time.Duration(want)*time.Second {
			t.Errorf("%q: %+v", f, e)
		}
	}
}

func TestPriorities(t *testing.T) {
	for in, want := range map[string]float32{
		"0": 0, "1": 1, "0.5": 0.5, "0,5": 0.5, "1.0": 1, ".3": 0.3, "+0.2": 0.2, "1.": 1, " 0.70\n": 0.7,
		"NaN": -1, "Inf": -1, "1.1": -1, "-0.1": -1, "5": -1, "50%": -1, "high": -1, "0x1": -1, "1e-1": -1, "0.5.5": -1, "": 0, strings.Repeat("0", 200): -1,
	} {
		entries, rep, err := read(strings.NewReader("<urlset><url><loc>https://example.com/</loc><priority>"+in+"</priority></url></urlset>"), sitemap.Options{})
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		e := entries[0]
		switch given := want >= 0 && in != ""; {
		case e.HasPriority != given, given && e.Priority != want, !given && e.Priority != 0, (rep.BadFields == 1) != (want < 0):
			t.Errorf("%q: %v, %v, %+v", in, e.Priority, e.HasPriority, rep)
		}
	}
}
