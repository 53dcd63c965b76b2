package segment

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// Record is what the six parts hold.
type Record interface {
	crawldb.Datum | Visit | page.Content | Text | Data | Parse
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
	default:
		return ParsePart
	}
}

// Visit is how the visit to one URL ended.
type Visit struct {
	URL string
	// Time is when the visit was made, in the time that the crawl records.
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
	// Signature is the fingerprint of the content as it came, of a page that nobody
	// has parsed; nil if there is none. That of Parse counts before it.
	Signature []byte
	// Hops is how many redirects in a row led here from a page on the fetch list,
	// and Via a page that made the last of them; zero and empty for what is on the
	// list.
	Hops int
	Via  string
}

// Text is the text of one page.
type Text struct{ URL, Text string }

// Data is what a parser found in one page, its Text apart.
type Data struct {
	URL    string
	Parsed page.Parsed
}

// Parse is what the crawl db needs of one page that was parsed, redirects
// included.
type Parse struct {
	URL string
	// Signature is the fingerprint of the content; nil for a redirect and for
	// what could not be parsed.
	Signature []byte
	// Error says why the content could not be parsed; empty if it was.
	Error string
	// Sitemap says that the content was read as a sitemap and not as a page. What
	// it says of other URLs is in the Meta of its Links: see crawldb.Hint and
	// crawldb.Sitemap.
	Sitemap bool
	// Links are the accepted targets, or the target of a redirect, and what each
	// is given.
	Links []Link
	// Refresh is the one of Links to which the page itself leads on, after a while
	// (<meta http-equiv=refresh>); empty if it leads nowhere, or not to a link.
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
