// Package urlfilter decides which URLs belong to a crawl ([Filter]) and how
// they are spelled ([Normalizer]). The two are always used together, as [Rules]:
// Rules.Apply is the only call a stage of the crawl makes. It fetches nothing and knows no page; it
// sees one URL at a time. Start with [Default], the rules of a new crawl.
//
// Filters: [NewRegex], [NewPrefix], [NewSuffix], [Within], [NewValidator], [Traps]. [OpenFilter] reads
// the files of Nutch with [ParseRegex], [ParseAutomaton], [ParsePrefix], [ParseSuffix], [ParseDomain],
// [ParseDomainDeny] or [ParseFast]; [Exemptions] are rules about links to other hosts. Normalizers:
// [Basic], [SessionIDs], [NewRegexNormalizer], [NewQueryNormalizer], [NewAjaxNormalizer]. [OpenNormalizer]
// reads files with [ParseRegexNormalizer], [ParseHostNormalizer], [ParseProtocolNormalizer] or
// [ParseSlashNormalizer]; [NewScoped] has another for each scope. Rules that are in a file are read
// again by Rules.Reload, and Rules.Explain says which of them decides about a URL.
package urlfilter

import (
	"errors"
	"fmt"
	"strings"
)

// A Filter accepts or rejects a URL.
//
// It is called from many goroutines at once, must answer for any string, and
// must give the same answer for the same URL, unless it is a [Reloader] that
// was reloaded.
type Filter interface {
	// Accept reports whether the URL may be part of the crawl.
	Accept(url string) bool
}

// FilterFunc is a function that is a [Filter].
type FilterFunc func(url string) bool

// Accept calls f.
func (f FilterFunc) Accept(url string) bool { return f(url) }

// A Normalizer brings the spellings of a URL into one form.
//
// It is called from many goroutines at once and must answer for any string. Its
// result is its own normal form: normalizing it again changes nothing. (The
// stock ones under NutchCompat do what Nutch's do, for which that is not always
// true.)
type Normalizer interface {
	// Normalize returns the normal form of an absolute URL, or an error if the
	// string is not a URL to crawl.
	Normalize(scope Scope, url string) (string, error)
}

// Scope says where in the crawl a URL turned up. A normalizer may treat scopes
// differently. The values are Nutch's.
type Scope string

const (
	Inject   Scope = "inject"   // a seed
	Outlink  Scope = "outlink"  // a link of a page
	Fetcher  Scope = "fetcher"  // the target of a redirect
	Generate Scope = "generate" // a record about to be selected
	CrawlDB  Scope = "crawldb"  // a record about to be written
	LinkDB   Scope = "linkdb"   // one end of a link
	Indexer  Scope = "indexer"  // a document about to be indexed

	// AnyScope is the scope to which a normalizer is bound for all scopes
	// without rules of their own; Partition and HostCount are those in which
	// generate groups URLs.
	AnyScope  Scope = "default"
	Partition Scope = "partition"
	HostCount Scope = "generate_host_count"
)

// Scopes lists every scope.
func Scopes() []Scope {
	return []Scope{AnyScope, Partition, HostCount, Fetcher, CrawlDB, LinkDB, Inject, Outlink, Indexer, Generate}
}

// An Explainer is a [Filter] or [Normalizer] that can name the rule that
// decided.
type Explainer interface {
	// Explain returns the rule that decides about a URL, such as
	// "regex-urlfilter.txt:12: -[?*!@=]"; empty if none does and the default holds.
	Explain(url string) (rule string)
}

// A Reloader is a [Filter] or [Normalizer] that comes from a file and can read
// it again while in use.
type Reloader interface {
	// Reload reads the file again if it has changed, and reports whether it
	// had. On an error everything stays as it was.
	Reload() (changed bool, err error)
}

// ErrRejected says that a filter rejected a URL; ErrInvalid says that a
// normalizer refused it or that it is too long.
var (
	ErrRejected = errors.New("urlfilter: rejected")
	ErrInvalid  = errors.New("urlfilter: not a URL to crawl")
)

// DefaultMaxLength is the longest URL that Rules accept by default, in bytes.
// (Nutch: db.max.outlink.length.)
const DefaultMaxLength = 4096

// Rules are the normalizers and filters of a crawl. The zero value accepts any
// string of at most DefaultMaxLength bytes and leaves it as it is. Rules must
// not be changed once in use.
type Rules struct {
	// Normalizers are applied in order. Nil means none. (Nutch:
	// urlnormalizer.order; those that it does not name are not run.)
	Normalizers []Normalizer
	// Loops is the maximum number of times the normalizers are applied, as long
	// as they change something; Nutch's default is 1. Zero means until none of
	// them changes the result of the others, so that it is a normal form of
	// all; a URL for which that takes more than 16 rounds is refused. (Nutch:
	// urlnormalizer.loop.count.)
	Loops int
	// Filters must all accept the result of the normalizers. Nil means none.
	Filters []Filter
	// MaxLength limits the URL before and after the normalizers, in bytes; zero
	// means DefaultMaxLength, negative no limit.
	MaxLength int
}

// Apply returns the normal form of a URL if it belongs to the crawl. Otherwise
// the error is ErrRejected or ErrInvalid and says which rule it was; it does not
// repeat the URL.
func (r *Rules) Apply(scope Scope, url string) (string, error) {
	if r.tooLong(url) {
		return "", errTooLong
	}
	url, err := normalizeAll(r.Normalizers, r.Loops, scope, url)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.tooLong(url) {
		return "", errTooLong
	}
	if err := r.accept(url); err != nil {
		return "", err
	}
	return url, nil
}

// ApplySitemap does for a sitemap what Apply does for a page. A compressed file
// belongs to the crawl if it would without the ".gz"; pages reject such names,
// to keep out archives.
func (r *Rules) ApplySitemap(scope Scope, url string) (string, error) {
	normal, err := r.Apply(scope, url)
	if !errors.Is(err, ErrRejected) {
		return normal, err
	}
	names := Rules{Normalizers: r.Normalizers, Loops: r.Loops, MaxLength: r.MaxLength}
	normal, e := names.Apply(scope, url)
	if plain, ok := strings.CutSuffix(normal, ".gz"); e == nil && ok && r.accept(plain) == nil {
		return normal, nil
	}
	return "", err
}

func (r *Rules) accept(url string) error {
	for i, f := range r.Filters {
		if !f.Accept(url) {
			return &rejection{f, i}
		}
	}
	return nil
}

func (r *Rules) tooLong(url string) bool {
	limit := r.MaxLength
	if limit == 0 {
		limit = DefaultMaxLength
	}
	return limit > 0 && len(url) > limit
}

var errTooLong = fmt.Errorf("%w: too long", ErrInvalid)

// rejection names the filter lazily: most rejections are only counted.
type rejection struct {
	filter Filter
	index  int
}

func (r *rejection) Error() string {
	name := fmt.Sprintf("filter %d (%T)", r.index+1, r.filter)
	if s, ok := r.filter.(fmt.Stringer); ok {
		name = s.String()
	}
	return "urlfilter: rejected by " + name
}

func (r *rejection) Is(target error) bool { return target == ErrRejected }
