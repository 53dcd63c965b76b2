package segment

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// Record is what the six parts and the part of the events hold.
type Record interface {
	crawldb.Datum | Visit | page.Content | Text | Data | Parse | Event
}

// PartOf returns the name of the part that holds records of type T.
func PartOf[T Record]() string {
	var zero T
	switch any(zero).(type) {
	case crawldb.Datum:
		return GeneratePart
	case Visit:
		return FetchPart
	case page.Content:
		return ContentPart
	case Text:
		return ParseTextPart
	case Data:
		return ParseDataPart
	case Event:
		return EventPart
	default:
		return ParsePart
	}
}

// Visit is how the visit to one URL ended.
type Visit struct {
	URL string
	// Time is when the visit was made, by the clock of the crawl.
	Time time.Time
	// Outcome is what came of it.
	Outcome protocol.Outcome
	// ContentType is the media type of the content, in lower case and without
	// parameters; empty if there is none.
	ContentType string
	// ETag and LastModified are the validators of the content, as sent.
	ETag, LastModified string
	// Modified is LastModified as a time; zero if unknown.
	Modified time.Time
	// Truncated says that the content was cut.
	Truncated bool
	// Bytes counts the bytes of the body as sent; Elapsed is how long the visit
	// took.
	Bytes   int64
	Elapsed time.Duration
	// Signature is the fingerprint of the raw content, for a page that was not
	// parsed; nil if there is none. That of Parse takes precedence.
	Signature []byte
	// Hops is how many redirects in a row led here from a page on the fetch list,
	// and Via a page that made the last of them; zero and empty for URLs on the
	// list.
	Hops int
	Via  string
}

// Text is the text of one page.
type Text struct{ URL, Text string }

// Data is what a parser found in one page, except for its Text. Of the outlinks it
// has those that the crawl follows, in their normal form.
type Data struct {
	URL    string
	Parsed page.Parsed
}

// Parse is what the crawl db needs to know of one parsed page or redirect.
type Parse struct {
	URL string
	// Signature is the fingerprint of the content; nil for a redirect and for
	// what could not be parsed.
	Signature []byte
	// Error says why the content could not be parsed; empty if it was.
	Error string
	// Sitemap says that the content was read as a sitemap, not as a page. What it
	// says of other URLs is in the Meta of its Links: see crawldb.SitemapEntry and
	// crawldb.Sitemap.
	Sitemap bool
	// Links are the accepted targets, or the target of a redirect, with what
	// each is given.
	Links []Link
	// Refresh is the one of Links that the page itself goes on to after a while
	// (<meta http-equiv=refresh>); empty if there is none, or if it is not one of
	// Links.
	Refresh string
	// Gave is what the page gave away.
	Gave float64
	// Meta is what the crawl db is to keep of the properties of the page. (Nutch:
	// db.parsemeta.to.crawldb.)
	Meta crawldb.Meta
}

// Link is one target of a page.
type Link struct {
	URL   string
	Score float64
	// Meta is what the scoring filters pass along, or what a sitemap says.
	Meta crawldb.Meta
}

// Event is what one visit says of its page, compared with the state of the page before it. It is
// written once, after the update of the segment: later the crawl db has later states.
type Event struct {
	URL string
	// Kind is a recrawl.PageKind.
	Kind uint8
	// Changed says that the visit found a change; otherwise only those who hear of every visit
	// hear of it.
	Changed bool
	// Signature is the fingerprint of the content; nil if there is none.
	Signature []byte
	// ParseError says why the content could not be parsed; empty if it was.
	ParseError string
	// PreviousKind, PreviousTime and PreviousSignature are the state before the visit, as in
	// recrawl.PageState.
	PreviousKind      uint8
	PreviousTime      time.Time
	PreviousSignature []byte
}
