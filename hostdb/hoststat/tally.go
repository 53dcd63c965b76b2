package hoststat

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// Level is a part of a host name by which records are counted.
type Level uint8

const (
	Host   Level = iota // the host
	Domain              // the registered domain: see hostdb.Domain
	Suffix              // the public suffix: see hostdb.Suffix
	TLD                 // the top-level domain
)

// ParseLevel returns the level for Nutch's word: host, domain, suffix or tld.
func ParseLevel(word string) (Level, error) {
	for l := Host; l <= TLD; l++ {
		if l.String() == strings.ToLower(word) {
			return l, nil
		}
	}
	return 0, fmt.Errorf("hoststat: %q is not one of host, domain, suffix and tld", word)
}

// String returns Nutch's word.
func (l Level) String() string {
	switch l {
	case Host:
		return "host"
	case Domain:
		return "domain"
	case Suffix:
		return "suffix"
	case TLD:
		return "tld"
	}
	return "unknown"
}

// Key returns that part of the host of a URL; empty if there is none.
func (l Level) Key(url string) string {
	host := hostdb.ByHost.Key(url)
	switch l {
	case Domain:
		return hostdb.Domain(host)
	case Suffix:
		return hostdb.Suffix(host)
	case TLD:
		return hostdb.TLD(host)
	}
	return host
}

// Share counts the fetched records, those that are db_fetched or db_notmodified,
// and the others.
type Share struct{ Fetched, Unfetched int64 }

// Shares reads all records once and counts them by a part of their hosts; those
// without such a part are counted under the empty name. (Nutch: domainstats,
// crawlcomplete.)
func Shares(ctx context.Context, crawl crawldb.Store, l Level) (map[string]Share, error) {
	all := map[string]Share{}
	key, last := "", site("")
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, fmt.Errorf("hoststat: %w", err)
		}
		if !last.covers(d.URL) {
			key, last = l.Key(d.URL), siteOf(d.URL)
		}
		s := all[key]
		if d.Status == crawldb.Fetched || d.Status == crawldb.NotModified {
			s.Fetched++
		} else {
			s.Unfetched++
		}
		all[key] = s
	}
	return all, nil
}

// Codes reads all records once and counts them by the status of their last visit,
// for HTTP the number, as kept by update.Options.VisitMeta; records without one
// count as "UNFETCHED". (Nutch: protocolstats.)
func Codes(ctx context.Context, crawl crawldb.Store) (map[string]int64, error) {
	all := map[string]int64{}
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, fmt.Errorf("hoststat: %w", err)
		}
		code, ok := d.Meta.Get("nutch.protocol.code")
		if !ok {
			code = "UNFETCHED"
		}
		all[code]++
	}
	return all, nil
}
