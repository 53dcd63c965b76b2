package crawldb

import (
	"math"
	"testing"
	"time"
)

func TestSitemapMark(t *testing.T) {
	var m Meta
	if _, ok := SitemapOf(m); ok {
		t.Error("a record without a mark has one")
	}
	a := Sitemap{Depth: 2, Budget: 7, Origins: []string{"http://b.test"}, Page: true}
	a.Set(&m)
	if text, _ := m.Get(sitemapKey); text != "2 page budget=7 http://b.test" {
		t.Errorf("%q", text)
	}
	b := Sitemap{Depth: 1, Budget: 9, Origins: []string{"http://a.test", "http://b.test"}}
	for _, got := range []Sitemap{a.With(b), b.With(a)} {
		var m Meta
		got.Set(&m)
		if text, _ := m.Get(sitemapKey); text != "1 page budget=9 http://a.test http://b.test" {
			t.Errorf("%q", text)
		}
		if again, ok := SitemapOf(m); !ok || len(again.Origins) != 2 || !again.Page || again.Budget != 9 || again.Depth != 1 {
			t.Errorf("%+v", again)
		}
	}
	many := Sitemap{}
	for i := range 40 {
		many = many.With(Sitemap{Origins: []string{"http://" + string(rune('A'+i)) + ".test"}})
	}
	if len(many.Origins) != maxOrigins {
		t.Errorf("%d origins", len(many.Origins))
	}
	for _, bad := range []string{"", "x", "-1", "0 budget=x", "0 budget=-1"} {
		if s, ok := SitemapOf(MetaOf(sitemapKey, bad)); ok {
			t.Errorf("%q: %+v", bad, s)
		}
	}
	if s, ok := SitemapOf(MetaOf(sitemapKey, "0")); !ok || s.Depth != 0 {
		t.Errorf("the mark of a seed: %+v %v", s, ok)
	}
	ClearSitemap(&m)
	if m.Len() != 0 {
		t.Error("the mark is still there")
	}
}

func TestHint(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, h := range []SitemapEntry{
		{},
		{Modified: at, Span: time.Second},
		{Modified: time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), Span: 365 * 24 * time.Hour},
		{Every: time.Hour},
		{Priority: 0.7, HasPriority: true},
		{HasPriority: true},
		{Modified: at, Span: 24 * time.Hour, Every: 24 * time.Hour, Priority: 1, HasPriority: true},
	} {
		var m Meta
		h.Set(&m)
		got, ok := SitemapEntryOf(m)
		if !ok || got != h {
			t.Errorf("%+v: %+v %v", h, got, ok)
		}
		if v, _ := m.Get(entryKey); len(v) > 16 {
			t.Errorf("%d bytes", len(v))
		}
	}
	for _, p := range []float32{-1, 1.5, float32(math.Inf(1)), float32(math.NaN())} {
		var m Meta
		SitemapEntry{Modified: at, Priority: p, HasPriority: true}.Set(&m)
		if h, ok := SitemapEntryOf(m); !ok || h.HasPriority || h.Modified.IsZero() {
			t.Errorf("with a priority of %v: %+v, %v", p, h, ok)
		}
	}
	day := SitemapEntry{Modified: at.Truncate(24 * time.Hour), Span: 24 * time.Hour, Every: time.Hour}
	second := SitemapEntry{Modified: at.Truncate(24 * time.Hour), Span: time.Second, Every: 2 * time.Hour, Priority: 0.5, HasPriority: true}
	want := SitemapEntry{Modified: day.Modified, Span: time.Second, Every: time.Hour, Priority: 0.5, HasPriority: true}
	if a, b := day.With(second), second.With(day); a != want || b != want {
		t.Errorf("%+v %+v", a, b)
	}
	for _, bad := range []string{"", "\x08", "\x01", "\x01\x00", "\x04\x7f\xc0\x00\x00", "\x04\xbf\x80\x00\x00", "\x00x"} {
		if h, ok := SitemapEntryOf(MetaOf(entryKey, bad)); ok {
			t.Errorf("%q: %+v", bad, h)
		}
	}
}

// A round trip changes nothing, and With does not depend on the order.
func FuzzSitemapMeta(f *testing.F) {
	f.Add("0", "\x00", "1 page budget=7 hops=2 http://a.test", "\x07\x02\x01\x3c\x3f\x00\x00\x00")
	f.Add("2 http://b.test http://a.test", "\x01\x90\x01\x01", "", "\x02\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")
	f.Fuzz(func(t *testing.T, mark, hint, mark2, hint2 string) {
		a, ok := SitemapOf(MetaOf(sitemapKey, mark))
		b, ok2 := SitemapOf(MetaOf(sitemapKey, mark2))
		if ok && ok2 {
			var x, y Meta
			a.With(b).Set(&x)
			b.With(a).Set(&y)
			if x != y {
				t.Errorf("%q %q: %q or %q", mark, mark2, x.Encoded(), y.Encoded())
			}
			c, ok := SitemapOf(x)
			var again Meta
			c.Set(&again)
			if !ok || again != x {
				t.Errorf("%q is read as %+v", x.Encoded(), c)
			}
		}
		h, ok := SitemapEntryOf(MetaOf(entryKey, hint))
		g, ok2 := SitemapEntryOf(MetaOf(entryKey, hint2))
		if ok && ok2 {
			if x, y := h.With(g), g.With(h); x != y {
				t.Errorf("%+v %+v: %+v or %+v", h, g, x, y)
			}
			var m Meta
			h.Set(&m)
			if again, ok := SitemapEntryOf(m); !ok || again != h && !h.Modified.IsZero() == again.Modified.IsZero() {
				t.Errorf("%+v is read as %+v", h, again)
			}
		}
	})
}

func TestIsSitemap(t *testing.T) {
	d := Datum{URL: "http://a.test/s"}
	if d.IsSitemap() {
		t.Error("a page is taken for a sitemap")
	}
	Sitemap{Page: true}.Set(&d.Meta)
	if d.IsSitemap() {
		t.Error("what may be a page is taken for none")
	}
	Sitemap{}.Set(&d.Meta)
	if !d.IsSitemap() {
		t.Error("a sitemap is taken for a page")
	}
	for raw, want := range map[string]string{
		"http://A.test:80/x": "http://a.test", "https://a.test:443": "https://a.test", "https://a.test:80/": "https://a.test:80", "http://[::1]:8080/": "http://[::1]:8080",
		"http://İ.test/": "http://İ.test", "ftp://a.test/": "", "a.test": "", "http:///x": "", "%": "",
	} {
		if got := Origin(raw); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
