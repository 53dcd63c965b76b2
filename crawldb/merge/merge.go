// Package merge merges several crawl dbs ([CrawlDBs]), link dbs ([LinkDBs]) or
// segments ([Segments]) into one. If a page is in several, the record of the latest visit
// stays. It changes no source, and merges no host dbs: package hoststat computes those
// again.
//
// The result does not depend on the order of the sources, and merging the same
// sources again changes nothing; so an interrupted merge is simply repeated.
package merge

// AcceptFunc returns the normalized spelling of a URL, and whether it may be
// kept at all. It is called by one goroutine at a time. Usually it is
// urlfilter.Rules.Apply with a scope.
type AcceptFunc = func(url string) (string, bool)

// chunk is the number of URLs in one Update or Merge of a store.
const chunk = 10_000
