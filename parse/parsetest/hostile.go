package parsetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
)

// Hostile yields documents of about size bytes, each with a name that says what
// is wrong with it: markup that has made parsers crash, or take
// disproportionate time or memory. They are the same on every call. Most are
// HTML; other parsers just see unexpected bytes.
func Hostile(size int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, d := range fills {
			if !yield(d.name, fill(d.before, d.again, size, d.after)) {
				return
			}
		}
		for _, d := range made {
			if !yield(d.name, d.make(size)) {
				return
			}
		}
	}
}

// fill repeats one piece between two others.
func fill(before, again string, size int, after string) []byte {
	n := max(1, (size-len(before)-len(after))/len(again))
	return []byte(before + strings.Repeat(again, n) + after)
}

var fills = []struct{ name, before, again, after string }{
	// Depth.
	{"nested blocks", "", "<div>", ""},
	{"nested blocks, closed", "", "<div>x", "</div>"},
	{"nested inline elements", "", "<b><i><a href=x>", "y"},
	{"misnested inline elements in a table", "<table>", "<b><i><tr>", "y"},
	{"nested tables", "", "<table><tr><td>", "x"},
	{"nested lists", "", "<ul><li>", "x"},
	{"nested links", "", "<a href=/x>", "x"},
	{"nested templates", "", "<template>", "<a href=x>"},
	{"nested drawings", "", "<svg><foreignObject>", "<title>x"},
	{"drawings and formulas", "", "<svg><math><annotation-xml encoding=text/html>", "<p>x"},
	{"end tags only", "", "</p></b></svg></template>", ""},
	{"nested forms", "", "<form action=x>", "x"},
	{"forms around lines", strings.Repeat("<form action=x>", 500), "<br><p>", ""},
	{"forms around one word", strings.Repeat("<form action=x>", 500), "&nGt;", ""},
	{"end tags that reach no element", "<b><table><tr><td>" + strings.Repeat("<span>", 480), "</b>", ""},
	{"list items that reach no list", "<li><table><tr><td>" + strings.Repeat("<span>", 480), "<li></li>", ""},
	{"nested frames", "", "<frameset>", "<frame src=x>"},
	{"nested options", "<select>", "<optgroup><option>", "x"},

	// Unclosed constructs.
	{"open tags", "", "<a", ""},
	{"open tags with space", "", "<a ", ""},
	{"tag name without end", "<", "a", ""},
	{"attribute without end", "<a href=\"", "x", ""},
	{"attribute name without end", "<a ", "x", ""},
	{"comment without end", "<!--", " x", ""},
	{"comments that begin", "", "<!--", ""},
	{"comments that nearly end", "<!--", "-- -!", ""},
	{"declarations", "", "<!", ""},
	{"doctypes", "", "<!DOCTYPE html PUBLIC \"", ">"},
	{"processing instructions", "", "<?", ""},
	{"angle brackets", "", "<", ""},
	{"slashes", "", "</", ""},
	{"closing brackets", "", "]]>", ""},
	{"CDATA without end", "<svg><![CDATA[", "]]", ""},
	{"CDATA that begins", "<svg>", "<![CDATA[", ""},
	{"script without end", "<script>", "x</scrip", ""},
	{"script in comments in script", "<script><!--", "<script>-", ""},
	{"style without end", "<style>", "x{}</styl", ""},
	{"title without end", "<title>", "x</titl e>", ""},
	{"textarea without end", "<textarea>", "<a href=x>", ""},
	{"noscript without end", "<noscript>", "<a href=x>y</a>", ""},
	{"plaintext", "<plaintext>", "</plaintext>", ""},
	{"xmp", "", "<xmp>", ""},
	{"iframe without end", "<iframe src=x>", "</ifram", ""},

	// Many of something.
	{"bases", "", "<base href=//evil.example/>", "<a href=x>"},
	{"titles", "", "<title>x</title>", ""},
	{"titles of drawings", "<svg>", "<title>x</title>", ""},
	{"links to one page", "", "<a href=x>y</a>", ""},
	{"anchor text", "<a href=x>", "words ", "</a>"},
	{"pictures in an anchor", "<a href=x>", "<img src=i alt=words>", "</a>"},
	{"refreshes", "", "<meta http-equiv=refresh content='0; url=x'>", ""},
	{"directives", "<meta name=robots content='", "noindex,", "'>"},
	{"invalid dates", "<meta name=robots content='", "unavailable_after:1 JAN 2020 11:11:1a,", "'>"},
	{"directives with an invalid date", "", "<meta name=robots content=unavailable_after:2020-01-1a>", ""},
	{"canonicals", "", "<link rel=canonical href=x>", ""},
	{"relations", "<a href=x rel='", "no ", "'>"},
	{"charsets", "", "<meta charset=utf-16>", "\xff"},
	{"properties", "", "<meta name=x content=y>", ""},

	// Text.
	{"white space", "a", " \t\r\n", "b"},
	{"words of one letter", "", "a ", ""},
	{"one word", "", "a", ""},
	{"carriage returns", "", "\r", ""},
	{"NULs", "<p\x00>", "\x00<\x00", ""},
	{"control characters", "", "\x01\x1b[31m\x7f", ""},
	{"entities", "", "&amp;", ""},
	{"entities that grow", "", "&nGt;", ""},
	{"entities in an attribute", "<a href='", "&nGt;", "'>"},
	{"ampersands", "", "&", ""},
	{"entity without end", "&", "a", ""},
	{"entities without name", "", "&aaaaaaaaaaaaaaaa", ""},
	{"character reference without end", "&#", "9", ";"},
	{"invalid character references", "", "&#xD800;&#x110000;&#0;", ""},
	{"directions", "", "\u202e\u2066x\u200b", ""},

	// Bytes.
	{"bytes that are not UTF-8", "", "\xff\xc0\x80\xed\xa0\x80", ""},
	{"truncated characters", "", "\xf0\x9f\x98<", ""},
	{"UTF-16", "\xff\xfe", "<\x00a\x00", "x"},
	{"UTF-16 by halves", "\xfe\xff", "\xd8\x00", ""},
	{"escapes of ISO-2022-JP", "<meta charset=iso-2022-jp>", "\x1b$B\x1b(B", "\x1b"},
	{"shifts of ISO-2022-JP", "<meta charset=iso-2022-jp>", "\x1b(J\x1b(I\x1b$@", ""},
	{"Big5", "<meta charset=big5>", "\x88\x62", "\xfe"},
	{"a charset that replaces", "<meta charset=hz-gb-2312>", "<a href=x>~{", ""},
	{"GB18030", "<meta charset=gb18030>", "\x81\x30\x81", "\xff"},

	// URLs.
	{"dot segments", "<a href='", "x/../", "'>"},
	{"dot segments up", "<a href='", "../", "'>"},
	{"escaped dot segments", "<a href='/", "%2e%2E/", "'>"},
	{"percent signs", "<a href='", "%", "'>"},
	{"invalid escapes", "", "<a href='%zz%4?%zz'>", ""},
	{"slashes in a link", "<a href='", "/", "'>"},
	{"backslashes in a link", "<a href='", "\\", "'>"},
	{"newlines in a link", "<a href='", "\n\t", "x'>"},
	{"parameters", "<a href='?", "a=b&", "'>"},
	{"long name", "<a href='//", "a.", "'>"},
	{"long name, not ASCII", "<a href='//", "ß.", "'>"},
	{"invalid names", "", "<a href='//a b/'><a href='//%00/'><a href='//[::g]/'><a href='http://'><a href='//x:99999/'><a href='//256.256/'>", ""},
	{"long punycode names", "", "<a href='//xn--" + strings.Repeat("a9", 100) + "/'>", ""},
	{"users", "<a href='//", "u:p@", "h/'>"},
	{"schemes", "", "<a href='javascript:x'><a href='data:,x'><a href='file:///x'><a href='x-y+z.1:'><a href=':'><a href='http:x'>", ""},
	{"scheme without end", "<a href='", "a", ":x'>"},
}

var made = []struct {
	name string
	make func(size int) []byte
}{
	{"empty", func(int) []byte { return nil }},
	{"attributes", func(size int) []byte {
		return counted("<a href=x", " a%d=b", size, ">y</a>")
	}},
	{"attributes, then tags", func(size int) []byte {
		return append(counted("<a href=x", " a%d", size/2, ">"), fill("", "<b a>", size/2, "")...)
	}},
	{"attributes, then titles", func(size int) []byte {
		return append(counted("<svg", " a%d", size/2, ">"), fill("", "<title a>", size/2, "")...)
	}},
	{"attributes, then end tags", func(size int) []byte {
		return append(counted("<title", " a%d", size/2, "></title>"), fill("", "</b a>", size/2, "")...)
	}},
	{"links to many pages", func(size int) []byte {
		return counted("", "<a href=%d>y</a>", size, "")
	}},
	{"links to many hosts", func(size int) []byte {
		return counted("", "<a href=//h%d.example>y</a>", size, "")
	}},
	{"short links, long base", func(size int) []byte {
		base := "<base href='/" + strings.Repeat("x", min(size/2, 4000)) + "/'>"
		return counted(base, "<a href=%d>", size, "")
	}},
	{"short links, very long base", func(size int) []byte {
		base := "<base href='/" + strings.Repeat("x/", size/4) + "'>"
		return counted(base, "<a href=%d>", size, "")
	}},
	{"base at the end", func(size int) []byte {
		return counted("", "<a href=%d>", size, "<base href=/x/>")
	}},
	{"many properties", func(size int) []byte {
		return counted("", "<meta name=n%d content=x>", size, "")
	}},
	{"random bytes", func(size int) []byte {
		rnd := rand.New(rand.NewPCG(1, 2))
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}},
	{"random markup", func(size int) []byte {
		rnd := rand.New(rand.NewPCG(3, 4))
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return []byte(b.String())
	}},
}

// counted repeats a piece with a number in it.
func counted(before, again string, size int, after string) []byte {
	var b strings.Builder
	b.WriteString(before)
	for i := 0; i == 0 || b.Len() < size-len(after); i++ {
		fmt.Fprintf(&b, again, i)
	}
	b.WriteString(after)
	return []byte(b.String())
}

// pieces are what random markup is made of.
var pieces = []string{
	"<a href=", "<a href='", "</a>", "<b>", "<p>", "</p>", "<svg>", "</svg>", "<math>", "<title>", "</title>",
	"<script>", "</script>", "<style>", "</style>", "<template>", "</template>", "<noscript>", "</noscript>",
	"<!--", "-->", "<![CDATA[", "]]>", "<base href=", "<meta http-equiv=refresh content=", "<link rel=next href=",
	"<iframe src=", "<foreignObject>", "<textarea>", "</textarea>", "<table>", "<td>", "<img alt=", "'", "\"", ">", "/>", "=",
	" ", "\n", "x", "word", "&amp;", "&#", "\x00", "\xff", "é", "//h", "/", "..", "?", "#", ":", "\\", "%", "%2e", "http:",
}
