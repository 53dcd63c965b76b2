package extract

import (
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// Limits of what is read of a page beside its text.
const (
	maxMeta   = 250
	maxValue  = 4096
	maxJSONLD = 64
)

// found collects candidates for the properties of a page, the first of each source, with white space folded.
type found struct {
	title, h1                     string
	h1s                           int
	meta                          map[string]string // the first value of each name, in lower case
	canonical                     string
	itemAuthor, relAuthor, byline string
	itemPublished, itemModified   string
	timePublished, timeAny        string
	itemHeadline                  string
}

// readMeta reads what the page says of itself.
func (a *Article) readMeta() {
	f := &found{meta: map[string]string{}}
	root := a.page.Doc.FirstChild
	a.Language = dom.Clip(strings.TrimSpace(dom.Attr(root, "lang")), 35)
	if a.Language == "" {
		a.Language = dom.Clip(strings.TrimSpace(dom.Attr(root, "xml:lang")), 35)
	}
	blocks := 0
	for n := range dom.Elements(root) {
		switch n.DataAtom {
		case atom.Title:
			if f.title == "" && n.Parent.DataAtom != atom.Svg {
				f.title = dom.Text(n, 1000)
			}
		case atom.Meta:
			a.readMetaElement(f, n)
		case atom.Link:
			if rel := strings.ToLower(dom.Attr(n, "rel")); f.canonical == "" && strings.TrimSpace(rel) == "canonical" {
				f.canonical = dom.Attr(n, "href")
			}
		case atom.H1:
			if t := dom.Text(n, 1000); t != "" {
				if f.h1s++; f.h1s == 1 {
					f.h1 = t
				}
			}
		case atom.Script:
			if blocks < maxJSONLD {
				if values, ok := dom.JSONLD(n); ok {
					blocks++
					a.data = append(a.data, values...)
				}
			}
		case atom.Time:
			f.readTime(n)
		}
		f.readNames(n)
	}
	ld := a.dataFacts()
	a.Canonical = a.resolveNonEmpty(f.canonical, f.meta["og:url"])
	a.Image = a.resolveNonEmpty(f.meta["og:image"], f.meta["twitter:image"], ld.image)
	a.Description = dom.Clip(first(f.meta["og:description"], f.meta["description"], f.meta["twitter:description"], ld.description), maxValue)
	a.Site = dom.Clip(first(f.meta["og:site_name"], f.meta["application-name"], ld.site), 256)
	a.Language = first(a.Language, strings.ReplaceAll(f.meta["og:locale"], "_", "-"), ld.language, f.meta["content-language"], f.meta["language"])
	a.Title = a.chooseTitle(f, ld.headline)
	a.Author = chooseAuthor(ld.author, f.meta["author"], f.meta["article:author"], f.meta["dc.creator"], f.meta["parsely-author"], f.meta["sailthru.author"], f.itemAuthor, f.relAuthor, f.byline)
	a.Published = firstTime(f.meta["article:published_time"], ld.published, f.itemPublished, f.meta["datepublished"], f.meta["dc.date.issued"], f.meta["parsely-pub-date"], f.meta["sailthru.date"],
		f.meta["pubdate"], f.meta["publishdate"], f.meta["publish-date"], f.meta["date"], f.meta["dc.date"], f.meta["dcterms.created"], f.meta["og:published_time"], f.timePublished, f.timeAny)
	a.Modified = firstTime(f.meta["article:modified_time"], ld.modified, f.itemModified, f.meta["og:updated_time"], f.meta["lastmod"], f.meta["last-modified"], f.meta["dcterms.modified"])
}

func (a *Article) readMetaElement(f *found, n *html.Node) {
	name := strings.ToLower(strings.TrimSpace(first(dom.Attr(n, "property"), dom.Attr(n, "name"), dom.Attr(n, "http-equiv"))))
	value := dom.Clip(dom.Fold(dom.Attr(n, "content")), maxValue)
	if name == "" || value == "" || len(name) > 256 {
		if p := strings.ToLower(dom.Attr(n, "itemprop")); p != "" && value != "" {
			f.item(p, value)
		}
		return
	}
	if _, ok := f.meta[name]; !ok && len(f.meta) < maxMeta {
		f.meta[name] = value
	}
	if len(a.OpenGraph) >= maxMeta {
		return
	}
	for _, p := range [...]string{"og:", "article:", "product:", "twitter:"} {
		if strings.HasPrefix(name, p) {
			a.OpenGraph = append(a.OpenGraph, page.Property{Name: name, Value: value})
		}
	}
}

func (f *found) item(name, value string) {
	set := func(s *string) {
		if *s == "" {
			*s = value
		}
	}
	switch name {
	case "datepublished":
		set(&f.itemPublished)
	case "datemodified":
		set(&f.itemModified)
	case "author":
		set(&f.itemAuthor)
	case "headline":
		set(&f.itemHeadline)
	}
}

func (f *found) readTime(n *html.Node) {
	value := dom.Fold(first(dom.Attr(n, "datetime"), dom.Attr(n, "content"), dom.Text(n, 100)))
	if p := strings.ToLower(dom.Attr(n, "itemprop")); p != "" {
		f.item(p, value)
	}
	names := strings.ToLower(dom.Attr(n, "class"))
	if f.timePublished == "" && (dom.HasAttr(n, "pubdate") || strings.Contains(names, "publish") || strings.Contains(names, "entry-date") || strings.Contains(names, "posted")) {
		f.timePublished = value
	}
	if f.timeAny == "" && dom.Attr(n, "datetime") != "" && !strings.Contains(names, "updated") {
		f.timeAny = value
	}
}

// readNames reads who wrote the page from rel, itemprop and class.
func (f *found) readNames(n *html.Node) {
	for i := range n.Attr {
		v := n.Attr[i].Val
		switch n.Attr[i].Key {
		case "rel":
			if f.relAuthor == "" && n.DataAtom == atom.A && hasWord(v, "author") {
				f.relAuthor = dom.Text(n, 200)
			}
		case "itemprop":
			if n.DataAtom == atom.Meta || n.DataAtom == atom.Time {
				continue
			}
			switch v {
			case "author":
				if f.itemAuthor == "" {
					f.itemAuthor = dom.Text(n, 200)
				}
			case "datePublished", "dateModified":
				f.item(strings.ToLower(v), dom.Fold(first(dom.Attr(n, "content"), dom.Attr(n, "datetime"), dom.Text(n, 100))))
			case "headline":
				f.item("headline", dom.Text(n, 500))
			}
		case "class":
			if f.byline == "" && len(v) < 256 {
				if w := strings.ToLower(v); strings.Contains(w, "byline") || strings.Contains(w, "author-name") || strings.Contains(w, "author__name") || hasWord(w, "author") {
					f.byline = dom.Text(n, 200)
				}
			}
		}
	}
}

func hasWord(s, word string) bool {
	for w := range strings.FieldsSeq(s) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (a *Article) resolveNonEmpty(refs ...string) string {
	for _, r := range refs {
		if r != "" {
			if u := a.resolve(r); u != "" {
				return u
			}
		}
	}
	return ""
}

// chooseTitle returns the headline. The title element, and og:title on many sites, also name the site.
func (a *Article) chooseTitle(f *found, headline string) string {
	og := first(f.meta["og:title"], f.meta["twitter:title"])
	if f.h1s == 1 && len(f.h1) > 3 && (strings.Contains(f.title, f.h1) || strings.Contains(og, f.h1) || f.h1 == headline) {
		return f.h1
	}
	return a.withoutSite(first(og, headline, f.title, f.itemHeadline, f.h1))
}

// withoutSite removes the name of the site from the end of a title.
func (a *Article) withoutSite(t string) string {
	host := ""
	if u, err := url.Parse(a.page.Base); err == nil {
		host = strings.TrimPrefix(u.Hostname(), "www.")
	}
	for _, sep := range [...]string{" | ", " - ", " – ", " — ", " · ", " :: ", " » ", " / "} {
		i := strings.LastIndex(t, sep)
		if i <= 0 {
			continue
		}
		end := t[i+len(sep):]
		squeezed := strings.ToLower(strings.ReplaceAll(end, " ", ""))
		if a.Site != "" && strings.EqualFold(end, a.Site) || squeezed != "" && strings.Contains(strings.ReplaceAll(host, "-", ""), squeezed) || sep == " | " && len(end) < 30 && i > 15 {
			return strings.TrimSpace(t[:i])
		}
	}
	return t
}

// chooseAuthor returns the first candidate that looks like names of people.
func chooseAuthor(candidates ...string) string {
	for _, c := range candidates {
		for _, p := range [...]string{"by ", "By ", "BY ", "Written by ", "written by ", "Von ", "von ", "Par ", "Por ", "Posted by ", "Author: "} {
			c = strings.TrimPrefix(c, p)
		}
		for _, sep := range [...]string{" | ", " • ", " · ", " on ", " - "} {
			c, _, _ = strings.Cut(c, sep)
		}
		if c = strings.Trim(c, " ,;:|\""); len(c) < 2 || len(c) > 120 || strings.Contains(c, "://") || strings.ContainsAny(c, "{}<>@") || strings.HasPrefix(c, "www.") {
			continue
		}
		return c
	}
	return ""
}

// firstTime returns the first that is a time.
func firstTime(values ...string) time.Time {
	for _, v := range values {
		if v == "" {
			continue
		}
		if t, ok := parseTime(v); ok {
			return t
		}
	}
	return time.Time{}
}

// parseTime reads the forms of dates that pages use in metadata. The zones that this machine knows mean nothing.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 64 {
		return time.Time{}, false
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02T15:04-07:00", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02", "2006/01/02", "20060102", time.RFC1123, time.RFC1123Z, "January 2, 2006", "Jan 2, 2006", "Jan. 2, 2006", "2 January 2006", "2 Jan 2006", "02.01.2006", "January 2, 2006 3:04 pm", "2006-01-02T15:04:05.000-0700", "Mon Jan 2 15:04:05 MST 2006"} {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil && t.Year() > 1970 && t.Year() < 2200 {
			return t, true
		}
	}
	if len(s) > 10 && s[4] == '-' && s[7] == '-' {
		if t, err := time.Parse("2006-01-02", s[:10]); err == nil && t.Year() > 1970 && t.Year() < 2200 {
			return t, true
		}
	}
	return time.Time{}, false
}
