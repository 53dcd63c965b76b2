package parse_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

// named is a parser that returns its own name as the title.
type named string

func (n named) Parse(context.Context, *page.Content) (page.Parsed, error) {
	return page.Parsed{Title: string(n)}, nil
}

func TestMediaType(t *testing.T) {
	for _, c := range []struct{ typ, body, want string }{
		{"text/html", "", "text/html"},
		{" Text/HTML ; charset=utf-8", "", "text/html"},
		{"text/html; charset", "%PDF-1.4", "text/html"},
		{"text/html; charset=a; charset=b", "", "text/html"},
		{"text/html;;", "", "text/html"},
		{"text/html, text/plain", "", "text/html, text/plain"},
		{"", "<!DOCTYPE html><p>x", "text/html"},
		{"", "%PDF-1.4", "application/pdf"},
		{"", "hello", "text/plain"},
		{"nothing", "hello", "nothing"},
		{"", "", "text/plain"},
		{"", strings.Repeat(" ", 512) + "<html>", "text/plain"},
	} {
		if got := parse.MediaType(&page.Content{Type: c.typ, Body: []byte(c.body)}); got != c.want {
			t.Errorf("%q %.20q: %q, want %q", c.typ, c.body, got, c.want)
		}
	}
}

func TestMux(t *testing.T) {
	m := parse.Mux{"text/html": named("html"), "text/*": named("text"), "image/svg+xml": named("svg")}
	for typ, want := range map[string]string{
		"text/html; charset=x": "html",
		"TEXT/HTML":            "html",
		"text/css":             "text",
		"image/svg+xml":        "svg",
		"":                     "text",
	} {
		got, err := m.Parse(t.Context(), &page.Content{Type: typ})
		if err != nil || got.Title != want {
			t.Errorf("%q is read by %q, want %q: %v", typ, got.Title, want, err)
		}
	}
	for _, typ := range []string{"image/png", "application/xhtml+xml", "html"} {
		if _, err := m.Parse(t.Context(), &page.Content{Type: typ}); !errors.Is(err, parse.ErrUnsupported) {
			t.Errorf("%q: %v", typ, err)
		}
	}
	if _, err := parse.Mux(nil).Parse(t.Context(), &page.Content{}); !errors.Is(err, parse.ErrUnsupported) {
		t.Errorf("no parsers: %v", err)
	}
}

func FuzzMediaType(f *testing.F) {
	f.Add("text/html; charset=utf-8", []byte("x"))
	f.Add("A/B;;;=\"", []byte(nil))
	f.Fuzz(func(t *testing.T, typ string, body []byte) {
		got := parse.MediaType(&page.Content{Type: typ, Body: body})
		if strings.ContainsAny(got, ";") || got != strings.ToLower(got) {
			t.Errorf("%q of %q", got, typ)
		}
	})
}

func TestResolve(t *testing.T) {
	web := []string{"http", "https"}
	for _, c := range []struct {
		base, ref string
		schemes   []string
		want      string
	}{
		{"http://h.example/a/b?c", " d#e", web, "http://h.example/a/d#e"},
		{"http://h.example/a/b?c", "?q", nil, "http://h.example/a/b?q"},
		{"http://h.example/a/b?c", "/100%", nil, "http://h.example/100%25"},
		{"http://h.example/", "mailto:a@h.example", nil, "mailto:a@h.example"},
		{"http://h.example/", "mailto:a@h.example", web, ""},
		{"file:///a/b", "c", web, ""},
		{"not absolute", "c", nil, ""},
		{"not absolute", "HTTP://H.example", web, "http://h.example/"},
		{"http://h.example/", "http://[", nil, ""},
	} {
		got, ok := parse.Resolve(c.base, c.ref, c.schemes...)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q from %q: %q, %v, want %q", c.ref, c.base, got, ok, c.want)
		}
	}
}
