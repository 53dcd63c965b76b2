package httpapi

import (
	"bytes"
	"embed"
	"fmt"
	"hash/crc32"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed pages
var files embed.FS

// templates are the pages, parsed.
type templates struct {
	t       *template.Template
	version string // of the style sheet
}

func newTemplates() (*templates, error) {
	style, err := files.ReadFile("pages/style.css")
	if err != nil {
		return nil, err
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"number": number, "percent": percent, "bytes": byteSize, "stamp": stamp, "duration": seconds, "digits3": digits3,
		"datetime":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"web":       func(u string) bool { return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://") },
		"bytes64":   func(n int) string { return byteSize(int64(n)) },
		"changesOf": func(v view, c []change) partOfView { return partOfView{View: v, Changes: c} },
		"urlsOf":    func(v view, u []urlState) partOfView { return partOfView{View: v, URLs: u} },
		"linksOf":   func(v view, l []pageLink) partOfView { return partOfView{View: v, Links: l} },
		"words":     func(s string) string { return strings.ReplaceAll(strings.TrimPrefix(s, "db_"), "_", " ") },
	}).ParseFS(files, "pages/*.html")
	if err != nil {
		return nil, err
	}
	return &templates{t, fmt.Sprintf("%08x", crc32.ChecksumIEEE(style))}, nil
}

// view is what a template is given.
type view struct {
	Title, Heading, Prefix, Style string
	Page                          string // the name of the template
	Now                           time.Time
	Self                          string // the query of this page as JSON
	Refresh                       int
	Data                          any
}

// partOfView is what a template of a part of a page is given.
type partOfView struct {
	View    view
	Changes []change
	URLs    []urlState
	Links   []pageLink
}

// Ago says how long ago a time was, or in how long it will be.
func (v view) Ago(t time.Time) string {
	switch d := v.Now.Sub(t); {
	case t.IsZero():
		return "never"
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + seconds((-d).Seconds())
	default:
		return seconds(d.Seconds()) + " ago"
	}
}

func (p *templates) serve(w http.ResponseWriter, q *request, rt route, data any) {
	p.serveStatus(w, q, http.StatusOK, rt, data)
}

func (p *templates) serveStatus(w http.ResponseWriter, q *request, status int, rt route, data any) {
	query := q.URL.Query()
	query.Set("format", "json")
	v := view{
		Title: q.h.o.Title, Heading: rt.title, Prefix: q.h.o.Prefix, Style: p.version, Page: rt.template, Now: q.now, Data: data,
		Self: "?" + query.Encode(),
	}
	if o, ok := data.(overview); ok {
		v.Refresh = o.Refresh
	}
	var b bytes.Buffer
	if err := p.t.ExecuteTemplate(&b, rt.template+".html", v); err != nil {
		q.h.o.Logger.Error("httpapi: a page could not be made", "page", rt.template, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// serveFile serves the style sheet or the icon.
func (p *templates) serveFile(w http.ResponseWriter, r *http.Request, name, mediaType string) {
	text, err := files.ReadFile("pages/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=86400")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}

// number writes a whole number with commas.
func number(v any) string {
	s := fmt.Sprint(v)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// digits3 writes a number with three digits.
func digits3(v float64) string {
	if math.Abs(v) >= 100 {
		return number(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func byteSize(n int64) string {
	v, units := float64(n), []string{"B", "kB", "MB", "GB", "TB"}
	for i, u := range units {
		if v < 1000 || i == len(units)-1 {
			if i == 0 {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", v, u)
		}
		v /= 1000
	}
	return ""
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// seconds writes a duration with its greatest unit, or the two greatest.
func seconds(s float64) string {
	switch {
	case s < 1:
		return strconv.FormatFloat(1000*s, 'f', 0, 64) + " ms"
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 120:
		return strconv.FormatFloat(s, 'f', 0, 64) + " s"
	case s < 7200:
		return strconv.FormatFloat(s/60, 'f', 0, 64) + " min"
	case s < 48*3600:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	case s < 730*86400:
		return strconv.FormatFloat(s/86400, 'f', 1, 64) + " d"
	}
	return strconv.FormatFloat(s/31557600, 'f', 1, 64) + " years"
}
