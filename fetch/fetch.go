// Package fetch visits the pages on the fetch list of a segment, many hosts at
// once and each as politely as it asks for, and writes what came back into the
// same segment.
//
// One loop owns the queues of the hosts and decides who is visited when; a fixed
// number of workers visit and parse; one writer puts the results into the
// segment in groups, so an interrupted fetch resumes after the last group instead
// of starting over. The number of goroutines is O(workers), whatever the number
// of hosts and URLs.
//
// Politeness lives in the hostdb.Store and counts from the end of the last
// request to a host, whoever made it: a round, another crawler on the same store,
// or this process before it was killed.
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
