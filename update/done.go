package update

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
)

// MarkDone records that a segment must not be applied: its contents already
// were, from the segments that it was merged from.
func MarkDone(ctx context.Context, crawl crawldb.Store, segment string) error {
	if err := crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(SegmentMark(segment), done)}); err != nil {
		return fmt.Errorf("update %s: %w", segment, err)
	}
	return nil
}
