package render

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// RecordJSON is a record as JSON, with Nutch's names where it has them.
type RecordJSON struct {
	URL          string            `json:"url"`
	StatusCode   uint8             `json:"statusCode"`
	StatusName   string            `json:"statusName"`
	FetchTime    time.Time         `json:"fetchTime"`
	LastFetch    *time.Time        `json:"lastFetch,omitempty"`
	ModifiedTime *time.Time        `json:"modifiedTime,omitempty"`
	Retries      int               `json:"retriesSinceFetch"`
	Interval     int64             `json:"retryIntervalSeconds"`
	Score        float32           `json:"score"`
	Priority     float32           `json:"priority"`
	Signature    string            `json:"signature,omitempty"`
	ETag         string            `json:"etag,omitempty"`
	LastModified string            `json:"lastModified,omitempty"`
	LeasedUntil  *time.Time        `json:"leasedUntil,omitempty"`
	LeasedBy     string            `json:"leasedBy,omitempty"`
	Meta         map[string]string `json:"metadata,omitempty"`
}

// NewRecordJSON returns a record for JSON.
func NewRecordJSON(d *crawldb.Datum) RecordJSON {
	r := RecordJSON{URL: d.URL, StatusCode: uint8(d.Status), StatusName: d.Status.String(), FetchTime: JSONTime(d.FetchTime),
		LastFetch: TimeOrNil(d.LastFetch), ModifiedTime: TimeOrNil(d.Modified), Retries: d.Retries, Interval: int64(d.Interval / time.Second),
		Score: d.Score, Priority: d.Priority, Signature: hex.EncodeToString(d.Signature), ETag: d.ETag, LastModified: d.LastModified,
		LeasedUntil: TimeOrNil(d.LeasedUntil), LeasedBy: d.LeasedBy}
	for name, value := range d.Meta.All() {
		if r.Meta == nil {
			r.Meta = map[string]string{}
		}
		r.Meta[name] = Printable(value)
	}
	return r
}

// Record prints a record, with Nutch's names where it has them.
func Record(w io.Writer, d *crawldb.Datum) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "URL: %s\nStatus: %d (%s)\nFetch time: %s\n", d.URL, d.Status, d.Status, Time(d.FetchTime))
	fmt.Fprintf(b, "Last fetch: %s\nModified time: %s\nRetries since fetch: %d\n", Time(d.LastFetch), Time(d.Modified), d.Retries)
	secs := int64(d.Interval / time.Second)
	fmt.Fprintf(b, "Retry interval: %d seconds (%d days)\nScore: %v\nPriority: %v\nSignature: %s\n", secs, secs/86400, d.Score, d.Priority, OrNull(hex.EncodeToString(d.Signature)))
	if d.ETag != "" || d.LastModified != "" {
		fmt.Fprintf(b, "ETag: %s\nLast-Modified: %s\n", d.ETag, d.LastModified)
	}
	if d.LeasedBy != "" {
		fmt.Fprintf(b, "Leased: by %s until %s\n", d.LeasedBy, Time(d.LeasedUntil))
	}
	if d.Meta.Len() > 0 {
		fmt.Fprintln(b, "Metadata:")
		for name, value := range d.Meta.All() {
			fmt.Fprintf(b, "\t%s=%s\n", name, Printable(value))
		}
	}
	fmt.Fprintln(b)
	return b.Flush()
}

// BestScored returns the n records with the best scores, none below least. NaN ranks
// below every score.
func BestScored(ctx context.Context, db crawldb.Store, n int, least float64) ([]crawldb.Datum, error) {
	var best []crawldb.Datum
	better := func(x, y crawldb.Datum) int {
		switch {
		case x.Score > y.Score:
			return -1
		case x.Score < y.Score:
			return 1
		}
		return crawldb.Compare(x.URL, y.URL)
	}
	for d, err := range db.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		if !(float64(d.Score) >= least) {
			continue
		}
		if best = append(best, d); len(best) >= 2*n+1000 {
			slices.SortFunc(best, better)
			best = best[:n]
		}
	}
	slices.SortFunc(best, better)
	return best[:min(n, len(best))], nil
}
