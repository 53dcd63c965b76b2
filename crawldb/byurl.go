package crawldb

import (
	"context"
	"iter"
	"slices"
	"strings"
)

// ScanByURL yields all records in ascending byte order of their URLs: the order
// of Nutch's dumps, which is not that of the keys. It reads the store twice,
// holds one string for each site, that is scheme, host and port, and is weak as
// [Store]'s Scan is: a site that first appears while it runs may be left out.
func ScanByURL(ctx context.Context, s Store) iter.Seq2[Datum, error] {
	return func(yield func(Datum, error) bool) {
		var starts []string
		last := ""
		for d, err := range s.Scan(ctx, Range{}) {
			if err != nil {
				yield(Datum{}, err)
				return
			}
			// The records of a start are adjacent.
			if start := start(d.URL); len(starts) == 0 || start != last {
				starts, last = append(starts, start), start
			}
		}
		slices.Sort(starts)
		for _, start := range slices.Compact(starts) {
			from := Key(start)
			r := Range{From: from, To: from + "\x00"}
			if siteEnd(start) == len(start) && from[0] != '!' {
				// The last byte of a start is '/', '?' or '#'.
				r.To = from[:len(from)-1] + string(from[len(from)-1]+1)
			}
			for d, err := range s.Scan(ctx, r) {
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// start returns the part of a URL up to and including the byte that begins the
// path, or the whole URL if it has no path or its key is made of all of it.
// Between URLs that begin with a start there are no others.
func start(url string) string {
	if n := siteEnd(url); n > 0 && !strings.HasPrefix(Key(url), "!") {
		return url[:n]
	}
	return url
}
