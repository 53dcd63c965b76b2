package warc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// SegmentsDescription is for the warcinfo record of files that [WriteSegments] writes: the
// value of a field "description".
const SegmentsDescription = "HTTP messages were composed from a crawl's segments, which keep bodies as decoded and few headers; there are no requests"

// WriteSegments writes the visits that segments keep; all segments of the store if none is
// named. A segment does not keep messages as they were received, so each is composed: the
// status, the headers Content-Type, Content-Length, ETag, Last-Modified, Location, Refresh
// and X-Robots-Tag as far as they are known, and the decoded body. A visit that got no
// answer has no record, nor has one whose content the segment does not keep.
func WriteSegments(ctx context.Context, w *Writer, s segment.Store, segments ...string) error {
	if len(segments) == 0 {
		for name, err := range s.List(ctx) {
			if err != nil {
				return fmt.Errorf("warc: %w", err)
			}
			segments = append(segments, name)
		}
	}
	for _, name := range segments {
		if err := writeSegment(ctx, w, s, name); err != nil {
			return fmt.Errorf("warc: segment %s: %w", name, err)
		}
	}
	return nil
}

func writeSegment(ctx context.Context, w *Writer, s segment.Store, name string) error {
	nextContents, stop := iter.Pull2(segment.Partial[page.Content](ctx, s, name, 0))
	defer stop()
	for visits, err := range segment.Partial[segment.Visit](ctx, s, name, 0) {
		if err != nil {
			if errors.Is(err, segment.ErrNotFound) { // generated, and not fetched
				return nil
			}
			return err
		}
		contents, err, ok := nextContents()
		if err != nil && !errors.Is(err, segment.ErrNotFound) {
			return err
		}
		if !ok || err != nil {
			contents = nil
		}
		for i := range visits {
			v := &visits[i]
			content := page.Content{}
			if len(contents) > 0 && contents[0].URL == v.URL {
				content, contents = contents[0], contents[1:]
			}
			if err := writeVisit(w, v, &content); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeVisit writes what is kept of a visit.
func writeVisit(w *Writer, v *segment.Visit, c *page.Content) error {
	hasContent := c.URL != ""
	if v.Outcome.Code == protocol.Success && !hasContent {
		return nil
	}
	if v.Outcome.Status < 100 {
		if hasContent && v.Outcome.Code == protocol.Success && !isHTTPURL(v.URL) {
			return w.Resource(v.URL, c.Type, v.Time, c.Body)
		}
		return nil
	}
	x := capture{kind: TypeResponse, id: newID(), url: v.URL, at: v.Time, status: v.Outcome.Status, mime: mediaType(c.Type)}
	head := fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", v.Outcome.Status, http.StatusText(v.Outcome.Status))
	headers := Fields{
		{"Content-Type", c.Type}, {"ETag", v.ETag}, {"Last-Modified", v.LastModified},
		{"Location", v.Outcome.Location}, {"Refresh", c.Refresh}, {"X-Robots-Tag", c.Robots},
	}
	for _, h := range headers {
		if h.Value != "" {
			head = Fields{h}.append(head)
		}
	}
	if v.Outcome.Status != http.StatusNotModified {
		head = Fields{{"Content-Length", strconv.Itoa(len(c.Body))}}.append(head)
	}
	head = append(head, "\r\n"...)
	x.headers = len(head)
	x.block = append(head, c.Body...)
	x.digest = digest(c.Body)
	x.fields = Fields{{"Content-Type", "application/http; msgtype=response"}}
	if v.Truncated {
		x.fields = append(x.fields, Field{"WARC-Truncated", "length"})
	}
	return w.write(&x)
}

func isHTTPURL(url string) bool {
	return strings.HasPrefix(url, "http:") || strings.HasPrefix(url, "https:")
}
