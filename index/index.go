// Package index turns what a crawl found into documents for a search index. A
// [Document] joins the record of a page, its inlinks and what was fetched and
// parsed; a [Writer] takes documents and deletions. The stock writer,
// [JSONL], writes JSON lines; the package has no search engine. Start with [Run].
// examples/search shows how an index follows a crawl round by
// round, across kill -9.
package index

import (
	"context"
	"time"
)

// A Writer puts documents into an index.
//
// It is used by one goroutine at a time. Write neither changes nor retains a
// document. Write and Delete may be repeated for a URL; the last one counts. What
// was written is safe once Commit has returned. A done context makes a method
// return an error that is ctx.Err().
type Writer interface {
	// Write adds or replaces the document of a URL.
	Write(ctx context.Context, d *Document) error
	// Delete removes the document of a URL, if there is one.
	Delete(ctx context.Context, url string) error
	// Commit makes everything before it visible and durable.
	Commit(ctx context.Context) error
}

// Document is one page in the form for an index.
type Document struct {
	// URL identifies the document.
	URL string `json:"url"`
	// Title and Text are what the parser read.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	// Anchors are the anchor texts of links to the page, each once, in the order
	// of linkdb.
	Anchors []string `json:"anchors,omitempty"`
	// Host is the host of the URL.
	Host string `json:"host,omitempty"`
	// ContentType is the media type.
	ContentType string `json:"content_type,omitempty"`
	// Fetched is when the content was fetched; Modified when it was last seen to
	// change.
	Fetched  time.Time `json:"fetched,omitzero"`
	Modified time.Time `json:"modified,omitzero"`
	// Signature is the fingerprint of the content in hexadecimal.
	Signature string `json:"signature,omitempty"`
	// Score is the score of the page.
	Score float32 `json:"score"`
	// Boost is the weight of the document, 1 being normal; 0 if documents are not
	// weighted.
	Boost float32 `json:"boost,omitempty"`
	// NoArchive says that the page asks that no copy of it be shown. (Nutch: the
	// field cache of index-basic.)
	NoArchive bool `json:"noarchive,omitempty"`
	// UnavailableAfter is when the page asks to be taken out of the index; zero if it does
	// not. Run does so only when it sees a visit after that, with the segment that holds
	// the content.
	UnavailableAfter time.Time `json:"unavailable_after,omitzero"`
	// Usage is what the page says it may be used for, such as "search=y, train-ai=n"; empty if it says
	// nothing. Consumer.Index of the crawler adds what the robots.txt of its site says: see robots.Usage.
	Usage string `json:"usage,omitempty"`
	// Segment names the segment that holds the content.
	Segment string `json:"segment,omitempty"`
	// BinaryContent has the bytes that were fetched, if requested; in JSON they
	// are base64.
	BinaryContent []byte `json:"binary_content,omitempty"`
	// Charset is the WHATWG name of the encoding of BinaryContent; empty without that, or if it is not text.
	Charset string `json:"charset,omitempty"`
	// Fields are what was extracted from the page beside its text: see page.FieldPrefix.
	Fields map[string][]string `json:"fields,omitempty"`
}
