package crawldb

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Mark returns the Marks of a [Batch] that writes one mark; an empty value removes it.
//
// The marks of a store are a small table of names and values beside its records, by
// which the stages of a crawl remember how far they have come and what they have
// learned. These names are in use; SEGMENT is the name of a segment, DOMAIN that of a
// domain, and N and M are numbers:
//
//	name                      owner              value
//	update/SEGMENT            update             how far the segment is applied; "done" at the end
//	sweep/…                   update             how far a sweep over all records has come; the name has its options
//	orphans                   update             the clock of scoring.Orphan
//	site/DOMAIN               internal/frontier  the account of a domain, its labels in reverse: records added, visits, parts of the site
//	rank/SEGMENT              scoring/rank       whether the links of the segment are in the graph
//	pagerank                  scoring/rank       the head of the graph
//	pagerank/pages/N/M        scoring/rank       a block of pages of the graph: its generation and number
//	pagerank/links/N/M        scoring/rank       a block of links of the graph
//	dedup                     crawldb/dedup      how far a run in Nutch's order has come
//	round/SEGMENT             segment            how far OnPage has come, or that the segment is done; its number in the feed
//	round/SEGMENT/before      recrawl            how many blocks hold the state of pages before the segment
//	round/SEGMENT/before/N    recrawl            such a block
//	invert/SEGMENT            recrawl            how far the links to pages of other groups are in the outbox; "done" at the end
//	outbox/N                  crawldb/groups     the numbers of the rows for group N that are kept
//	outbox/N/M                crawldb/groups     such a row
//	inbox/N                   crawldb/groups     the number of the next row to be folded from group N
//	moved/N                   crawldb/groups     how far a move of slots is; N is the version of its table
//	groups                    crawldb/groups     the division of the crawl, in the control store of a Local engine
//	feed                      recrawl            the numbers of the first segment in the change feed and of the next one
//	feed/N                    recrawl            the segment with that number: name, time, bytes, events
//	consumers                 recrawl            the names of the consumers of the feed
//	consumer/NAME             recrawl            how far a consumer has come
//	history                   recrawl            what the crawl has done, in points of time
//	run/rounds, run/ahead     recrawl            what a Run has started
//	schedule/plan             recrawl            the plan of a learned schedule
//	schedule/account          recrawl            the visits that the plan has paid for
//	schedule/left             recrawl            since when the crawl has left a learned schedule
//	command/kept              cmd/recrawl        the flags that a crawl keeps
//	command/untold            cmd/recrawl        output that is not printed yet
//
// A program may add marks under names that begin with its own name and a slash.
func Mark(name, value string) func() map[string]string {
	return func() map[string]string { return map[string]string{name: value} }
}

// A NamedMark is a mark with its name.
type NamedMark struct{ Name, Value string }

// MarkStore is the capability of a Store to list its marks, as a copy of a crawl needs it. Use it
// through [Marks].
type MarkStore interface {
	Store

	// Marks yields all marks in ascending byte order of their names. It is weak, as Scan is. The
	// loop may write and may break. An error ends the sequence.
	Marks(ctx context.Context) iter.Seq2[NamedMark, error]
}

// Marks yields all marks of a store if that is a [MarkStore], or wraps one and has a method
// Unwrap() Store. Of any other store it yields an error that is errors.ErrUnsupported.
func Marks(ctx context.Context, s Store) iter.Seq2[NamedMark, error] {
	if m, ok := as[MarkStore](s); ok {
		return m.Marks(ctx)
	}
	return func(yield func(NamedMark, error) bool) {
		yield(NamedMark{}, fmt.Errorf("crawldb: this store cannot list its marks: %w", errors.ErrUnsupported))
	}
}
