// Package sitemap reads what sites publish about themselves: sitemaps and
// sitemap indexes (sitemaps.org), in XML or as plain lines, and feeds (RSS
// 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0), all of them optionally compressed by
// gzip and in any charset of the web.
//
// It does no IO and makes no decisions: start with a [Reader], which takes the
// bytes of a document and yields its entries one by one, in memory that does not
// depend on the document. A [Scope] says which of them a site may speak of.
// Fetching, following an index, filtering, and how far an entry is trusted are up
// to the caller.
//
// Documents are read as they are, not as they should be. The form is determined
// from the bytes, not from a name or a Content-Type. Namespaces may be missing
// or wrong; a name counts by where it occurs, so image:loc is never loc. An
// ampersand that begins no reference is an ampersand. Reading continues after a
// syntax error. Document types are skipped: no entity is ever declared,
// expanded or fetched, except the five of XML and numeric ones.
package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"
)

// DefaultMaxBytes is how long a sitemap may be, as sitemaps.org has it: what somebody who
// fetches one has to ask for.
const DefaultMaxBytes = 50 << 20

// Defaults of the other limits of [Options].
const (
	defaultMaxURLs  = 50_000 // as sitemaps.org
	defaultMaxRatio = 500
	defaultMaxDepth = 2
	defaultMaxURL   = 4096
)

// DefaultPriority is the priority of a page whose entry gives none, as in
// sitemaps.org.
const DefaultPriority = 0.5

// ErrFormat is the error for a document that is neither a sitemap nor a feed,
// such as an HTML page that says there is none.
var ErrFormat = errors.New("not a sitemap")

// Options say where a document comes from and how much of it to read. In each
// limit zero means the default and a negative number means none.
type Options struct {
	// URL is where the document was found, after redirects. Relative references
	// are resolved against it if they are in a feed or begin with a slash;
	// without it they are bad. It names the document in errors.
	URL string
	// ContentType is the Content-Type as sent. Only its charset matters, and
	// that text/plain may begin with lines that are not URLs.
	ContentType string
	// Truncated says that the bytes are incomplete, like
	// page.Content.Truncated: a last line without a line end is ignored.
	Truncated bool

	// Depth is how many indexes led to the document: 0 for one that is listed in
	// robots.txt. From depth MaxDepth on, documents may not name others: such
	// entries are left out and counted. The default is 2, that is one index within
	// an index, although sitemaps.org allows none.
	Depth, MaxDepth int
	// MaxURLs is how many entries are yielded; the default is 50,000.
	MaxURLs int
	// MaxBytes is how much of the document is read, compressed or not; the
	// default is 50 MiB. (Nutch: sitemap.size.max.)
	MaxBytes int64
	// MaxRatio is how many times as long as its compressed form a document may
	// be, after the first MiB; the default is 500. The most that gzip can do is
	// 1,032.
	MaxRatio int
	// MaxURL is how many bytes a URL may have; the default is 4,096.
	MaxURL int
}

// Entry is what a document says about one URL. It shares no memory with the
// Reader.
type Entry struct {
	// URL is absolute, and of http or https unless the document itself has
	// another scheme. It is neither normalized nor filtered, and the document
	// may have no right to speak of it: see [Scope].
	URL string
	// Sitemap says that the URL is that of another sitemap, not of a page.
	Sitemap bool
	// Modified is when the page last changed, in UTC; zero if absent or
	// unreadable. Many documents give only a day or a month: the page changed
	// at or after Modified and before Modified.Add(Span). Dates in the future
	// are kept.
	Modified time.Time
	// Span is the length of the unit that Modified was given in: from a second to a
	// year. It is zero if Modified is.
	Span time.Duration
	// ChangeFreq is how often the page changes, as a word of sitemaps.org in lower case,
	// and Interval that time in Nutch's numbers: a second for "always", 30 days for
	// "monthly", 365 for "yearly", 2³¹-1 seconds for "never". Both are zero if absent or
	// unreadable.
	ChangeFreq string
	Interval   time.Duration
	// Priority is from 0 to 1; HasPriority says that it is present. A priority that
	// is out of range, or not a number, counts as absent.
	Priority    float32
	HasPriority bool
}

// interval is the time between two changes for each word of sitemaps.org, in Nutch's
// numbers.
func interval(changeFreq string) time.Duration {
	const day = 24 * time.Hour
	switch changeFreq {
	case "always":
		return time.Second
	case "hourly":
		return time.Hour
	case "daily":
		return day
	case "weekly":
		return 7 * day
	case "monthly":
		return 30 * day
	case "yearly":
		return 365 * day
	case "never":
		return (1<<31 - 1) * time.Second
	}
	return 0
}

// Format is the form of a document: what its root is called, or "text".
type Format string

// The forms that are read.
const (
	NoFormat Format = ""
	URLSet   Format = "urlset"
	Index    Format = "sitemapindex"
	Text     Format = "text"
	RSS      Format = "rss" // 0.9x and 2.0
	RDF      Format = "rdf" // RSS 0.90 and 1.0
	Atom     Format = "atom"
)

// Report is what was read so far, and what was left out.
type Report struct {
	Format Format
	Gzip   bool // the document was compressed
	// Bytes counts what was read, after decompression; Encoded before.
	Bytes, Encoded int64

	Entries   int // yielded
	BadURLs   int // entries left out: no URL, not absolute, too long, another scheme
	BadFields int // dates, frequencies and priorities that could not be read
	TooDeep   int // entries left out by MaxDepth
	Faults    int // syntax errors after which reading continued

	// Truncated says that there was more than could be read; Reason says why: a
	// limit, broken compression, or a missing end of the document. Every entry
	// that was yielded was complete.
	Truncated bool
	Reason    string
}

// Reader reads one document. It must be used by one goroutine at a time.
type Reader struct {
	opts   Options
	src    source               // the bytes as given
	text   limited              // and without compression
	scan   scanner              // and as UTF-8
	parse  func() (Entry, bool) // the next entry; nil until the form is known
	report Report
	err    error // why reading ended: io.EOF at the end

	unfinished string // why the document has no end; empty if it has one
}

// NewReader returns a Reader of the document in r. It reads nothing before All
// is called.
func NewReader(r io.Reader, opts Options) *Reader {
	opts.MaxDepth = orDefault(opts.MaxDepth, defaultMaxDepth, math.MaxInt)
	opts.MaxURLs = orDefault(opts.MaxURLs, defaultMaxURLs, math.MaxInt)
	opts.MaxBytes = orDefault(opts.MaxBytes, DefaultMaxBytes, 1<<62)
	opts.MaxRatio = orDefault(opts.MaxRatio, defaultMaxRatio, math.MaxInt)
	opts.MaxURL = orDefault(opts.MaxURL, defaultMaxURL, math.MaxInt)
	return &Reader{opts: opts, src: source{r: r}}
}

// All yields the entries in the order of the document; duplicates are not
// removed. After a loop that was left early, another call continues.
//
// The last pair has an error and no entry if the context ended, if the
// io.Reader failed, or if this is not a sitemap or feed ([ErrFormat]). Later
// calls return the same error. A document that is broken or too long is no
// error: its Report says so.
func (r *Reader) All(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r.src.ctx = ctx
		for {
			e, ok := r.next(ctx)
			if !ok {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if r.err != io.EOF {
			yield(Entry{}, r.fail())
		}
	}
}

// Report returns what was read so far.
func (r *Reader) Report() Report {
	rep := r.report
	rep.Encoded, rep.Bytes = r.src.n, r.text.n
	rep.Faults += r.scan.faults
	return rep
}

func (r *Reader) fail() error {
	if r.opts.URL == "" {
		return fmt.Errorf("sitemap: %w", r.err)
	}
	return fmt.Errorf("sitemap %s: %w", r.opts.URL, r.err)
}

// next returns the next entry, or false and sets err.
func (r *Reader) next(ctx context.Context) (Entry, bool) {
	if r.err == nil && r.parse == nil {
		r.open()
	}
	for r.err == nil {
		if r.err = ctx.Err(); r.err != nil {
			break
		}
		e, ok := r.parse()
		if !ok {
			r.end()
			break
		}
		if e.Sitemap && r.opts.Depth >= r.opts.MaxDepth {
			r.report.TooDeep++
			continue
		}
		if r.report.Entries >= r.opts.MaxURLs {
			r.cut(fmt.Sprintf("more than %d URLs", r.opts.MaxURLs))
			r.err = io.EOF
			break
		}
		r.report.Entries++
		return e, true
	}
	return Entry{}, false
}

func (r *Reader) cut(reason string) {
	if !r.report.Truncated {
		r.report.Truncated, r.report.Reason = true, reason
	}
}

func orDefault[T int | int64](n, std, none T) T {
	switch {
	case n == 0:
		return std
	case n < 0:
		return none
	}
	return n
}
