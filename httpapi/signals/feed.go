package signals

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"time"
)

// maxEntries limits the entries that are read of a feed.
const maxEntries = 500

// readFeed returns the entries of an Atom, RSS or JSON feed: as many as can be read.
func readFeed(body []byte) (entries []change) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '{' {
		return readJSONFeed(trimmed)
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	var e *change // the entry that is being read
	for len(entries) < maxEntries {
		token, err := d.Token()
		if err != nil {
			return entries
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch name := t.Name.Local; {
			case name == "entry" || name == "item":
				e = &change{}
			case e == nil:
			case name == "link":
				readLink(d, t, e)
			case name == "updated" || name == "published" || name == "pubDate" || name == "date":
				var text string
				if d.DecodeElement(&text, &t) == nil {
					if at := readTime(text); at.After(e.at) {
						e.at = at
					}
				}
			}
		case xml.EndElement:
			if name := t.Name.Local; e != nil && (name == "entry" || name == "item") {
				if e.url != "" {
					entries = append(entries, *e)
				}
				e = nil
			}
		}
	}
	return entries
}

// readLink reads the link of an entry: an attribute in Atom, text in RSS.
func readLink(d *xml.Decoder, t xml.StartElement, e *change) {
	rel, href := "alternate", ""
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "rel":
			rel = a.Value
		case "href":
			href = a.Value
		}
	}
	var text string
	if d.DecodeElement(&text, &t) == nil && href == "" {
		href = strings.TrimSpace(text)
	}
	if rel == "alternate" && e.url == "" {
		e.url = href
	}
}

func readJSONFeed(body []byte) (entries []change) {
	var feed struct {
		Items []struct {
			URL       string    `json:"url"`
			Modified  time.Time `json:"date_modified"`
			Published time.Time `json:"date_published"`
		} `json:"items"`
	}
	if json.Unmarshal(body, &feed) != nil {
		return nil
	}
	for _, i := range feed.Items[:min(len(feed.Items), maxEntries)] {
		if at := i.Published; i.URL != "" {
			if i.Modified.After(at) {
				at = i.Modified
			}
			entries = append(entries, change{i.URL, at})
		}
	}
	return entries
}

func readTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, time.RFC1123Z, time.RFC1123, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
