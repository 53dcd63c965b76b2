package render

import (
	"encoding/hex"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// VisitJSON returns a visit under the names of docs/json.md.
func VisitJSON(v *segment.Visit) any {
	return map[string]any{"url": v.URL, "time": v.Time, "outcome": v.Outcome.Code.String(), "status": v.Outcome.Status, "location": v.Outcome.Location, "reason": v.Outcome.Reason,
		"retry_after_seconds": v.Outcome.RetryAfter.Seconds(), "content_type": v.ContentType, "etag": v.ETag, "last_modified": v.LastModified, "truncated": v.Truncated,
		"bytes": v.Bytes, "elapsed_ms": v.Elapsed.Milliseconds(), "hops": v.Hops, "via": v.Via}
}

// DataJSON returns what was parsed of a page, without text and links.
func DataJSON(d *segment.Data) any {
	p := &d.Parsed
	type link struct {
		URL    string `json:"url"`
		Anchor string `json:"anchor"`
	}
	links := []link{}
	for _, l := range p.Outlinks {
		links = append(links, link{l.URL, l.Anchor})
	}
	m := map[string]any{"url": d.URL, "title": p.Title, "outlinks": links, "outlinks_cut": p.OutlinksCut, "charset": p.Charset, "noindex": p.NoIndex, "nofollow": p.NoFollow, "noarchive": p.NoArchive,
		"refresh": p.Refresh, "canonical": p.Canonical, "truncated": p.Truncated, "meta": PropertiesJSON(p.Meta)}
	if !p.UnavailableAfter.IsZero() {
		m["unavailable_after"] = p.UnavailableAfter
	}
	return m
}

type propertyJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PropertiesJSON returns the meta elements of a page.
func PropertiesJSON(all []page.Property) []propertyJSON {
	list := make([]propertyJSON, len(all))
	for i, p := range all {
		list[i] = propertyJSON(p)
	}
	return list
}

// ParseJSON returns how the parsing of a page ended.
func ParseJSON(p *segment.Parse) any {
	type link struct {
		URL   string  `json:"url"`
		Score float64 `json:"score"`
	}
	links := []link{}
	for _, l := range p.Links {
		links = append(links, link{l.URL, l.Score})
	}
	return map[string]any{"url": p.URL, "signature": hex.EncodeToString(p.Signature), "error": p.Error, "gave": p.Gave, "links": links, "refresh": p.Refresh}
}
