package crawldb

import (
	"encoding/binary"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What sitemaps say about a record is in its Meta, under these names. They
// belong to the stages: fetch sets them on links, update on records.
const (
	sitemapKey = "sitemap.mark"
	entryKey   = "sitemap.hint"
)

// maxOrigins is how many of the sites that list a sitemap are remembered.
const maxOrigins = 16

// Sitemap marks the record of a sitemap, which is fetched when it is due like
// any other, and then read as a sitemap. No page can set the mark: it comes from
// robots.txt, from an index, from a seed ("sitemap.mark=0") or from an operator.
type Sitemap struct {
	// Depth is how many indexes led to it.
	Depth int
	// Budget is how many other sitemaps it and those it names may name together:
	// so an index of indexes comes to an end.
	Budget int
	// Hops is how many redirects led to it from where it was named.
	Hops int
	// Origins are the sites, as "https://example.com", whose robots.txt lists it or
	// an index that leads to it, in ascending order and 16 at most. It may speak of
	// their pages.
	Origins []string
	// Page says that the URL is also known as that of a page, because a seed or a
	// link named it. If it turns out not to be a sitemap, it is then read as a
	// page.
	Page bool
}

// SitemapOf returns the mark of a record or a link, and whether it has one.
func SitemapOf(m Meta) (Sitemap, bool) {
	var s Sitemap
	text, ok := m.Get(sitemapKey)
	if !ok {
		return s, false
	}
	var err error
	for i, f := range strings.Fields(text) {
		switch {
		case i == 0:
			if s.Depth, err = strconv.Atoi(f); err != nil || s.Depth < 0 {
				return Sitemap{}, false
			}
		case f == "page":
			s.Page = true
		case strings.HasPrefix(f, "budget="):
			if s.Budget, err = strconv.Atoi(f[len("budget="):]); err != nil || s.Budget < 0 {
				return Sitemap{}, false
			}
		case strings.HasPrefix(f, "hops="):
			if s.Hops, err = strconv.Atoi(f[len("hops="):]); err != nil || s.Hops < 0 {
				return Sitemap{}, false
			}
		default:
			s.Origins = append(s.Origins, f)
		}
	}
	return s, text != ""
}

// IsSitemap reports whether the record is that of a sitemap, with nothing to
// suggest that it may be a page.
func (d *Datum) IsSitemap() bool {
	s, ok := SitemapOf(d.Meta)
	return ok && !s.Page
}

// Set puts the mark into m. It is text, such as "1 budget=40 https://example.com".
func (s Sitemap) Set(m *Meta) {
	var b strings.Builder
	b.WriteString(strconv.Itoa(s.Depth))
	if s.Page {
		b.WriteString(" page")
	}
	if s.Budget > 0 {
		b.WriteString(" budget=" + strconv.Itoa(s.Budget))
	}
	if s.Hops > 0 {
		b.WriteString(" hops=" + strconv.Itoa(s.Hops))
	}
	for _, o := range s.Origins {
		b.WriteString(" " + o)
	}
	m.Set(sitemapKey, b.String())
}

// With merges two marks of one record, in either order: the lesser depth, the
// larger budget, the fewer hops, the sites of both.
func (s Sitemap) With(t Sitemap) Sitemap {
	s.Hops = min(s.Hops, t.Hops)
	s.Depth, s.Budget, s.Page = min(s.Depth, t.Depth), max(s.Budget, t.Budget), s.Page || t.Page
	s.Origins = slices.Concat(s.Origins, t.Origins)
	slices.Sort(s.Origins)
	s.Origins = slices.Compact(s.Origins)
	s.Origins = s.Origins[:min(len(s.Origins), maxOrigins)]
	return s
}

// ClearSitemap removes the mark from m.
func ClearSitemap(m *Meta) { m.Delete(sitemapKey) }

// Origin returns the site of a URL as "https://example.com", in lower case and
// without the default port; empty if the scheme is not http or https.
func Origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	host := lower(u.Host)
	if port := u.Port(); port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host
}

// SitemapEntry is what a sitemap or feed says of a page. It takes a few bytes of Meta.
type SitemapEntry struct {
	// Modified is when the page last changed: at Modified or later, and before
	// Modified.Add(Span). It is zero if not given, and is kept to the second.
	Modified time.Time
	Span     time.Duration
	// Every is how often it changes, in whole seconds; zero if not given.
	Every time.Duration
	// Priority is from 0 to 1; HasPriority says whether it is given.
	Priority    float32
	HasPriority bool
}

const (
	entryModified = 1 << iota
	entryEvery
	entryPriority
	entryAll = 1<<iota - 1
)

// SitemapEntryOf returns the entry of a record or a link, and whether it has one.
func SitemapEntryOf(m Meta) (h SitemapEntry, ok bool) {
	text, ok := m.Get(entryKey)
	if !ok || text == "" || text[0]&^entryAll != 0 {
		return h, false
	}
	b := []byte(text[1:])
	var v uint64
	if text[0]&entryModified != 0 {
		v, b = cutNumber(b)
		h.Modified = time.Unix(signed(v), 0).UTC()
		v, b = cutBelow(b, math.MaxInt32)
		h.Span = time.Duration(v) * time.Second
	}
	if text[0]&entryEvery != 0 {
		v, b = cutBelow(b, math.MaxInt32)
		h.Every = time.Duration(v) * time.Second
	}
	if text[0]&entryPriority != 0 {
		h.Priority, b = cutFloat32(b)
		h.HasPriority = true
	}
	if b == nil || len(b) > 0 || !(h.Priority >= 0 && h.Priority <= 1) {
		return SitemapEntry{}, false
	}
	return h, true
}

// Set puts the entry into m, leaving out values that are out of range.
func (h SitemapEntry) Set(m *Meta) {
	b := []byte{0}
	if !h.Modified.IsZero() {
		b[0] |= entryModified
		b = binary.AppendVarint(b, h.Modified.Unix())
		b = binary.AppendUvarint(b, uint64(max(0, min(h.Span/time.Second, math.MaxInt32))))
	}
	if h.Every >= time.Second {
		b[0] |= entryEvery
		b = binary.AppendUvarint(b, uint64(min(h.Every/time.Second, math.MaxInt32)))
	}
	if h.HasPriority && h.Priority >= 0 && h.Priority <= 1 { // otherwise it could not be read
		b[0] |= entryPriority
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(h.Priority))
	}
	m.Set(entryKey, string(b))
}

// With merges two entries about one page, in either order: it keeps the later
// change, or of two at the same time the more precise one; the shorter
// interval; the higher priority.
func (h SitemapEntry) With(o SitemapEntry) SitemapEntry {
	if c := o.Modified.Compare(h.Modified); c > 0 || c == 0 && o.Span < h.Span {
		h.Modified, h.Span = o.Modified, o.Span
	}
	if o.Every > 0 && (h.Every == 0 || o.Every < h.Every) {
		h.Every = o.Every
	}
	if o.HasPriority && (!h.HasPriority || o.Priority > h.Priority) {
		h.Priority, h.HasPriority = o.Priority, true
	}
	return h
}

// ClearSitemapEntry removes the entry from m.
func ClearSitemapEntry(m *Meta) { m.Delete(entryKey) }
