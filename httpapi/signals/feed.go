package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/recrawl/recrawl/parse/sitemap"
)

// maxEntries limits the entries that are read of a feed.
const maxEntries = 500

// readFeed returns the entries of a feed in Atom, RSS or JSON, or of a sitemap: as many as can be read.
// Relative links are resolved against topic, except those of JSON.
func readFeed(ctx context.Context, topic string, body []byte) (entries []change) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '{' {
		return readJSONFeed(trimmed)
	}
	r := sitemap.NewReader(bytes.NewReader(body), sitemap.Options{URL: topic, MaxURLs: maxEntries, MaxBytes: maxBody})
	for e, err := range r.All(ctx) {
		if err != nil {
			break
		}
		if !e.Sitemap {
			entries = append(entries, change{e.URL, e.Modified})
		}
	}
	return entries
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
