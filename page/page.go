// Package page defines the vocabulary that all other packages share: the bytes
// that came back for a URL ([Content]), what a parser read in them ([Parsed]),
// and the links it found ([Outlink]).
//
// It imports nothing of this module and decides nothing. Start with [Parsed].
package page

import (
	"strings"
	"time"
)

// Content is what a server sent for one URL, decoded from its transfer and
// content encodings but not yet from its charset.
type Content struct {
	// URL is the URL that was asked for, which is also the base of relative
	// links until the page says otherwise.
	URL string
	// Type is the Content-Type as it was sent, parameters included; empty if
	// none was.
	Type string
	// Body is the decoded body, cut at the limit of the visit.
	Body []byte
	// Truncated says that Body is not all there was: a limit was reached, or the
	// transfer ended early.
	Truncated bool
	// Time is when the visit was made.
	Time time.Time
	// Robots holds the directives of X-Robots-Tag headers that apply to this
	// crawler, lower-case and separated by commas; empty if none was sent.
	// robots.ParseHeader reads it.
	Robots string
	// Refresh is the Refresh header as it was sent; empty if none was. A parser
	// reads it like a meta refresh that stands before all others.
	Refresh string
}

// Outlink is a link. As a parser returns it, it is absolute, but neither normalized
// nor filtered; a fetch keeps those that the crawl follows, in their normal form.
type Outlink struct {
	// URL is the absolute target.
	URL string
	// Anchor is the visible text of the link with white space folded; empty if
	// it has none.
	Anchor string
	// NoFollow says that the link, or its page, asks not to be followed.
	NoFollow bool
}

// Parsed is what a parser read in a [Content].
type Parsed struct {
	// Title is the title of the page with white space folded.
	Title string
	// Text is the visible text of the page.
	Text string
	// Outlinks are the links in the order of the page, each target once.
	Outlinks []Outlink
	// OutlinksCut counts the links that a limit of the parser left out.
	OutlinksCut int
	// Refresh is the absolute target of a meta refresh or Refresh header; empty
	// if there is none.
	Refresh string
	// RefreshDelay is how long that refresh asks to wait.
	RefreshDelay time.Duration
	// Canonical is the absolute URL the page calls its own (link rel=canonical);
	// empty if it names none. It is a hint from an untrusted page: nothing acts
	// on it by default.
	Canonical string
	// Directives are those of meta robots and X-Robots-Tag together. NoIndex is also
	// set once UnavailableAfter has passed. The crawl stores a NoArchive page like
	// any other; programs that show copies must not show it.
	Directives
	// Charset is the WHATWG name of the encoding the text was decoded from;
	// empty for formats that have none.
	Charset string
	// Meta are the named properties of the document in the order of the page. A
	// name may occur more than once.
	Meta []Property
	// Truncated says that the parser stopped before the end of the body; what it
	// had found by then is here.
	Truncated bool
}

// Property is a named property of a document.
type Property struct{ Name, Value string }

// FieldPrefix begins the names of those properties of a page that are fields: values that a
// parser such as that of parse/extract/fields extracts by rules. A property that a page itself names so is not one.
const FieldPrefix = "field."

// UsageName is the name of the property of what a page says that it may be used for.
const UsageName = "usage"

// Usage returns what the page says that it may be used for, such as "search=y, train-ai=n"; empty if it says nothing.
// robots.ParseUsage reads it.
func (p *Parsed) Usage() (usage string) {
	for _, q := range p.Meta {
		if q.Name == UsageName { // the crawl's stands behind those that the page calls so
			usage = q.Value
		}
	}
	return usage
}

// Fields returns the fields among the properties of a page, without the prefix: the values of each name, in the
// order of the page. It is nil if there are none.
func (p *Parsed) Fields() map[string][]string {
	var all map[string][]string
	for _, q := range p.Meta {
		if name, ok := strings.CutPrefix(q.Name, FieldPrefix); ok {
			if all == nil {
				all = map[string][]string{}
			}
			all[name] = append(all[name], q.Value)
		}
	}
	return all
}
