package htmlparse

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/charset"
	"github.com/recrawl/recrawl/page"
	"golang.org/x/text/encoding/htmlindex"
)

func TestCharset(t *testing.T) {
	late := strings.Repeat(" ", 1500)
	for _, c := range []struct{ name, typ, body, charset, text string }{
		{"none", "", "abc", "utf-8", "abc"},
		{"header", "text/html; charset=ISO-8859-5", "\xbf\xe0", "iso-8859-5", "Пр"},
		{"header in quotes", `text/html; charset="koi8-r"`, "\xf0", "koi8-r", "П"},
		{"header twice", `text/html; charset=koi8-r; charset=utf-8`, "\xf0", "koi8-r", "П"},
		{"header without type", `charset=koi8-r`, "\xf0", "koi8-r", "П"},
		{"header with an unknown charset", "text/html; charset=none", "é", "utf-8", "é"},
		{"mark before header", "text/html; charset=koi8-r", "\xef\xbb\xbfé", "utf-8", "é"},
		{"UTF-16 little", "", "\xff\xfe<\x00p\x00>\x00\x1f\x04", "utf-16le", "П"},
		{"UTF-16 big", "text/html; charset=utf-8", "\xfe\xff\x00<\x00p\x00>\x04\x1f\x00", "utf-16be", "П\ufffd"},
		{"UTF-16 by header", "text/html; charset=utf-16", "\x1f\x04", "utf-16le", "П"},
		{"header before meta", "text/html; charset=utf-8", "<meta charset=koi8-r>é", "utf-8", "é"},
		{"meta", "", "<META CHARSET=' KOI8-R '>\xf0", "koi8-r", "П"},
		{"pragma", "", `<meta content="text/html; charset='shift_jis'" http-equiv=content-type>` + "\x83\x65", "shift_jis", "テ"},
		{"pragma without http-equiv", "", `<meta content="text/html; charset=koi8-r">` + "\xe9", "windows-1252", "é"},
		{"meta in a comment", "", "<!-- <meta charset=koi8-r> -->\xe9", "windows-1252", "é"},
		{"meta that cannot be", "", "<meta charset=utf-16>é", "utf-8", "é"},
		{"meta of the user", "", "<meta charset=x-user-defined>\xe9", "windows-1252", "é"},
		{"first meta that is known", "", "<meta charset=no><meta charset=koi8-r>\xf0", "koi8-r", "П"},
		{"XML declaration", "application/xhtml+xml", "<?xml version='1.0' encoding = \"iso-8859-2\" ?><p>\xb1</p>", "iso-8859-2", "ą"},
		{"late meta and no UTF-8", "", late + "<meta charset=koi8-r>\xf0", "koi8-r", "П"},
		{"late meta and UTF-8", "", late + "<meta charset=koi8-r>é", "utf-8", "é"},
		{"not UTF-8", "", "\x93caf\xe9\x94", "windows-1252", "“café”"},
		{"UTF-8 cut off", "", "caf\xc3\xa9\xe2\x82", "utf-8", "café\ufffd"},
		{"invalid bytes", "text/html; charset=utf-8", "a\xffb\xc0\xafc\xed\xa0\x80d", "utf-8", "a\ufffdb\ufffd\ufffdc\ufffd\ufffd\ufffdd"},
		{"refused by the standard", "text/html; charset=iso-2022-kr", "<p>abc", "replacement", "\ufffd"},
		{"UTF-7 is none", "text/html; charset=utf-7", "+ADw-script+AD4-", "utf-8", "+ADw-script+AD4-"},
		{"UTF-32 is none", "text/html; charset=utf-32", "abc", "utf-8", "abc"},
		{"ISO-2022-JP", "text/html; charset=iso-2022-jp", "\x1b$B%F\x1b(Ba", "iso-2022-jp", "テa"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, &Parser{}, &page.Content{Type: c.typ, Body: []byte(c.body)})
			if got.Charset != c.charset || got.Text != c.text {
				t.Errorf("got %s %q, want %s %q", got.Charset, got.Text, c.charset, c.text)
			}
		})
	}
}

// TestCharsetDeclarationsOfNutch replays Nutch's test of its HTML parser: five words, in a
// document for each way to declare a charset.
func TestCharsetDeclarationsOfNutch(t *testing.T) {
	const words = "français, español, русский язык, čeština, ελληνικά"
	doc := func(head string) string {
		return "<html><head>" + head + "<title>" + words + "</title><meta name=keywords content='" + words + "'></head><body>" + words + "</body></html>"
	}
	utf16, err := htmlindex.Get("utf-16le")
	if err != nil {
		t.Fatal(err)
	}
	wide, err := utf16.NewEncoder().String("\ufeff" + doc(""))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"pragma":        doc("<meta http-equiv=Content-Type content=text/html;charset=utf-8>"),
		"pragma quoted": doc(`<meta http-equiv="Content-Type" content="text/html; charset=utf-8" />`),
		"pragma single": doc(`<meta http-equiv='Content-Type' content='text/html; charset=utf-8' />`),
		"meta":          doc("<meta charset=utf-8>"),
		"mark":          "\ufeff" + doc(""),
		"wide mark":     wide,
	} {
		got := readHTML(t, body)
		if got.Title != words || got.Text != words || len(got.Meta) != 1 || got.Meta[0].Value != words {
			t.Errorf("%s: %q %q %v", name, got.Title, got.Text, got.Meta)
		}
	}
}

func FuzzCharset(f *testing.F) {
	f.Add("text/html; charset=utf-8", []byte("é"))
	f.Add("text/html; charset='", []byte("<meta charset=\"koi8-r\">\xf0"))
	f.Add("", []byte("<?xml encoding='utf-16'?>\xff"))
	f.Add("charset charset = iso-2022-jp", []byte("\x1b$B%F\x1b(B"))
	f.Add("", []byte("\xff\xfe\x00\xd8"))
	f.Add("x;charset=gb18030", []byte("\x81\x30\x81"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		for _, markup := range []bool{false, true} {
			rest, enc, name := decode(body, contentType, markup)
			if len(rest) > len(body) || name == "" || charset.Lookup([]byte(name)) != name && name != "replacement" {
				t.Fatalf("charset %q of %q", name, body)
			}
			if enc == nil && !utf8.Valid(rest) {
				t.Fatalf("%q taken for UTF-8", rest)
			}
		}
		got, err := (&Text{}).Parse(t.Context(), &page.Content{Type: contentType, Body: body})
		if err != nil || !utf8.ValidString(got.Text) {
			t.Fatalf("%q: %q %v", body, got.Text, err)
		}
	})
}
