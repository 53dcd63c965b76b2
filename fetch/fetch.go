// Package fetch visits the pages on the fetch list of a segment, many hosts at once
// and each at its own pace, and writes the results into the same segment. It neither
// selects pages (package generate) nor changes their records (package update). Start
// with [Run]; the options that limit the load on hosts are [Politeness].
//
// One goroutine, the loop, owns the queues of the hosts and picks each visit; workers
// visit and parse; one writer appends the results to the segment in groups, so that an
// interrupted fetch resumes after the last group instead of starting over. The number
// of goroutines is O(workers), whatever the number of hosts and URLs.
//
// The pauses of hosts are kept in the hostdb.Store and count from the end of the last
// request to a host, of this run or an earlier one, of this process or another on the
// same store. A request needs a grant: an entry in the record of its host that ends
// with the request, or after hostdb.MaxGrant if its process dies.
package fetch

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/segment"
)

// Run visits the pages of a segment that have not been visited yet. When its
// context ends it soon stops, keeps what is complete, and returns an error that
// is ctx.Err(); called again, it resumes from there. A complete segment is left
// alone. Pages fetched without a parser are parsed once there is one.
func Run(ctx context.Context, segments segment.Store, name string, o Options) (Report, error) {
	if o.Protocol == nil {
		return Report{}, errNoProtocol
	}
	if o.Hosts == nil {
		return Report{}, errNoHosts
	}
	r, err := fetchSegment(ctx, segments, name, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("fetch %s: %w", name, err)
	}
	return r, err
}
