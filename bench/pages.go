package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// pages is a web of pages of one size, as large as pages are: navigation, lists
// and paragraphs with links in them, attributes that no parser needs, a script, text.
// A little less than half of the links of a page lead where others lead, too; the
// others are to pages that only it links to, so that a crawl never comes to an end
// and finds more than it can visit. All that is said of a page follows from its
// number and that of its host.
type pages struct {
	// Hosts is how many there are, KB about how long a page is.
	Hosts, KB int
}

const pagesDomain = ".example.test"

// links is how many links a page has: 31 at 10 KB and 124 at 50 KB.
func (p *pages) links() int {
	if p.KB <= 10 {
		return max(31*p.KB/10, 4)
	}
	return 31 + (p.KB-10)*93/40
}

// fan is how many of them are to pages that no other page links to.
func (p *pages) fan() int { return p.links() * 55 / 100 }

func (p *pages) host(h int) string { return fmt.Sprintf("h%04d%s", h, pagesDomain) }

// path is that of page n of a host; page 0 is its start page.
func (p *pages) path(b []byte, h int, n uint64) []byte {
	if n == 0 {
		return append(b, '/')
	}
	r := mix(uint64(h)<<40 ^ n)
	b = append(b, '/')
	b = append(b, benchWords[r%uint64(len(benchWords))]...)
	b = append(b, "/20"...)
	b = strconv.AppendUint(b, 10+r>>8%16, 10)
	b = append(b, '/')
	for range 3 {
		r = mix(r)
		b = append(b, benchWords[r%uint64(len(benchWords))]...)
		b = append(b, '-')
	}
	b = strconv.AppendUint(b, n, 10)
	return append(b, ".html"...)
}

func (p *pages) url(h int, n uint64) string {
	return string(p.path([]byte("http://"+p.host(h)), h, n))
}

// find is the inverse of path.
func (p *pages) find(h int, path string) (n uint64, ok bool) {
	if path != "/" {
		number, _ := strings.CutSuffix(path[strings.LastIndexByte(path, '-')+1:], ".html")
		n, _ = strconv.ParseUint(number, 10, 64)
	}
	return n, string(p.path(nil, h, n)) == path
}

// list is the first n pages, of all hosts alike many.
func (p *pages) list(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = p.url(i%p.Hosts, uint64(i/p.Hosts))
	}
	return urls
}

// link returns where link i of a page leads: those of the navigation come first, its
// own last.
func (p *pages) link(h int, n uint64, i int) (int, uint64) {
	fan := p.fan()
	shared := p.links() - fan
	if i >= shared {
		return h, n*uint64(fan) + 1 + uint64(i-shared)
	}
	if i < min(8, p.links()/3) {
		return h, uint64(i)
	}
	r := mix(mix(uint64(h)<<40^n) + uint64(i))
	if r%4 == 0 {
		h = int(r >> 8 % uint64(p.Hosts))
	}
	return h, r >> 32 % uint64(4*fan)
}

// render appends a page.
func (p *pages) render(b []byte, h int, n uint64) []byte {
	from := len(b)
	r := mix(uint64(h)<<40 ^ n ^ 1)
	title := func(h int, n uint64) {
		t := mix(uint64(h)<<40 ^ n ^ 2)
		for i := range 4 {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(b, benchWords[t%uint64(len(benchWords))]...)
			t = mix(t)
		}
	}
	text := func(until int) {
		for i := 0; len(b) < until; i++ {
			b = append(b, usualWords[r%uint64(len(usualWords))]...)
			switch {
			case r>>32%13 == 0:
				b = append(b, ". "...)
			case r>>32%61 == 1:
				b = append(b, " &amp; "...)
			case r>>32%97 == 2:
				b = append(b, " — "...)
			default:
				b = append(b, ' ')
			}
			if r >>= 7; r>>48 == 0 || i%5 == 4 {
				r = mix(r + uint64(len(b)))
			}
		}
	}
	b = append(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>"...)
	title(h, n)
	b = append(b, "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"stylesheet\" href=\"/assets/site.css?v=3\">\n"...)
	if p.KB > 5 {
		b = append(b, "<meta property=\"og:type\" content=\"article\">\n<meta name=\"description\" content=\""...)
		text(len(b) + 120)
		b = append(b, "\">\n<link rel=\"icon\" href=\"/favicon.ico\">\n<script>window.dataLayer = window.dataLayer || []; function tag() { dataLayer.push(arguments); } if (1 < 2 && !window.tagged) { tag('page', '"...)
		title(h, n)
		b = append(b, "'); }</script>\n"...)
	}
	b = append(b, "</head>\n<body class=\"article\">\n<header><nav id=\"top\" class=\"nav\"><ul>\n"...)
	links := p.links()
	size := p.KB * 1000
	list := true
	for i := range links {
		if i == min(8, links/3) {
			b = append(b, "</ul></nav></header>\n<main>\n<h1>"...)
			title(h, n)
			b = append(b, "</h1>\n<p class=\"lead\">"...)
			list = false
		}
		toHost, to := p.link(h, n, i)
		if list {
			b = append(b, "<li class=\"nav-item\">"...)
		} else if i%3 == 0 && p.KB > 5 {
			b = append(b, "</p>\n<div class=\"card card-small\" data-track=\"related\"><span class=\"card-label\">See also:</span> "...)
		}
		b = append(b, "<a href=\""...)
		if toHost != h {
			b = append(b, "http://"...)
			b = append(b, p.host(toHost)...)
		}
		b = p.path(b, toHost, to)
		if i%11 == 3 {
			b = append(b, "#section-2"...)
		}
		b = append(b, '"')
		if i%3 == 0 {
			b = append(b, " class=\"link link-inline\" rel=\"related\" title=\""...)
			title(toHost, to)
			b = append(b, '"')
		}
		b = append(b, '>')
		title(toHost, to)
		b = append(b, "</a>"...)
		if list {
			b = append(b, "</li>\n"...)
			continue
		}
		if i%3 == 0 && p.KB > 5 {
			b = append(b, "</div>\n<p class=\"body-text\">"...)
		}
		b = append(b, ' ')
		text(from + (size-100)*(i+1)/links)
		if i%3 == 2 {
			b = append(b, "</p>\n<p class=\"body-text\">"...)
		}
		if i%16 == 15 {
			b = append(b, "<img src=\"/media/"...)
			b = strconv.AppendInt(b, int64(i), 10)
			b = append(b, ".jpg\" alt=\"\" width=\"640\" height=\"360\" loading=\"lazy\"> "...)
		}
	}
	return append(b, "</p>\n</main>\n<footer><p>&copy; the authors</p></footer>\n</body>\n</html>\n"...)
}

// ServeHTTP answers for the host that the request names.
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var h int
	if n, err := fmt.Sscanf(r.Host, "h%04d", &h); n != 1 || err != nil || h >= p.Hosts || p.host(h) != r.Host {
		http.Error(w, "no such host here", http.StatusMisdirectedRequest)
		return
	}
	header := w.Header()
	if r.URL.Path == "/robots.txt" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, "User-agent: *\nDisallow: /search\nDisallow: /*?sort=\nAllow: /\n")
		return
	}
	n, ok := p.find(h, r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	b := p.render(make([]byte, 0, p.KB*1000+p.KB*100+2000), h, n)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(b)))
	header.Set("Cache-Control", "max-age=600")
	header.Set("ETag", `"`+strconv.FormatUint(n, 36)+`-1"`)
	header.Set("Last-Modified", "Tue, 04 Jun 2024 09:00:00 GMT")
	header.Set("Vary", "Accept-Encoding")
	header.Set("X-Content-Type-Options", "nosniff")
	// A client that went away is none of our business.
	_, _ = w.Write(b)
}

// mix is splitmix64's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
