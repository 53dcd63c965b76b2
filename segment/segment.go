// Package segment keeps what one round of the crawl did: which URLs were
// selected and what came of each. A segment has Nutch's six parts:
//
//	crawl_generate   the fetch list: records as they were when selected   crawldb.Datum
//	crawl_fetch      how each visit ended                                 Visit
//	content          what was sent                                        page.Content
//	parse_text       the text of each page                                Text
//	parse_data       title, outlinks and properties of each page          Data
//	crawl_parse      signature of each page, and what its links give      Parse
//
// Records are written in blocks. Block number k of content, parse_text,
// parse_data and crawl_parse holds records of the pages that are in block k of
// crawl_fetch, in the same order, though not every page has one in every part.
// So the parts are joined by walking them side by side, and an interrupted
// fetch resumes after the last block that all of them have. A seventh part,
// page_events, is written in the same blocks when the round is over: an Event for
// each visit that says something of its page.
//
// A [Store] moves blocks of bytes and knows nothing of their contents; [Writer]
// and [Blocks] encode and decode. The stock engines are stores/memstore and
// stores/dirstore; a new one must pass segmenttest.Run.
package segment

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

var (
	// ErrNotFound says that there is no such segment or part, or that the part
	// was not committed yet.
	ErrNotFound = errors.New("segment: not found")
	// ErrCommitted says that a part is complete and cannot be written any more.
	ErrCommitted = errors.New("segment: part is committed")
	// ErrBusy says that another writer has the part open.
	ErrBusy = errors.New("segment: part is being written")
	// ErrName says that a name is not valid for a segment or part. Valid names
	// are 1 to 64 of a-z, 0-9, '_' and '-', not beginning with '-'.
	ErrName = errors.New("segment: invalid name")
	// ErrClosed says that the store or writer was closed.
	ErrClosed = errors.New("segment: closed")
)

// CorruptError says that what was read is not what was written.
type CorruptError = crawldb.CorruptError

// A Store keeps the blocks of the parts of segments.
//
// Concurrency: every method may be called from many goroutines at once. A part
// has at most one writer at a time; a second is refused with an error matching
// ErrBusy.
//
// Visibility: once Append has returned, Stat counts the block and Read yields it,
// whether it was synced or not.
//
// Order: segments are listed by name, blocks read in the order they were
// appended.
//
// Atomicity: a block exists whole or not at all. A part that was not
// committed keeps its blocks, but [Info] says that it is not complete.
//
// Durability: appended blocks survive any end of the process or machine once
// Sync has returned, the commit once Commit has. After a crash without Sync, a
// part holds a prefix of its blocks.
//
// Ownership: the caller owns the blocks it is given and those it passes in; the
// store retains neither.
//
// Cancellation: a method whose context is done before it starts returns an
// error that is ctx.Err() and changes nothing.
//
// Errors: a missing segment or part is an error matching ErrNotFound, a bad name
// one matching ErrName. Damage in a committed part is a *CorruptError; in a part
// that is not committed, the first bad block and all after it count as never
// written.
type Store interface {
	// List yields the names of the segments that have a part, in ascending byte
	// order.
	List(ctx context.Context) iter.Seq2[string, error]

	// Stat describes a part, committed or not.
	Stat(ctx context.Context, segment, part string) (Info, error)

	// Read yields the blocks of a part, committed or not, beginning with block
	// number from; none if there are not that many. The loop may break. An
	// error ends the sequence.
	Read(ctx context.Context, segment, part string, from int) iter.Seq2[[]byte, error]

	// Append opens a part for writing after its first keep blocks and drops the
	// rest; a negative keep keeps all. It creates the segment and part as
	// needed. If the part is committed, the error matches ErrCommitted; if it
	// has fewer than keep blocks, ErrNotFound.
	Append(ctx context.Context, segment, part string, keep int) (BlockWriter, error)

	// Remove deletes a segment with all its parts; a missing segment is not an
	// error. While a part is being written, it fails with an error matching
	// ErrBusy.
	Remove(ctx context.Context, segment string) error
}

// A BlockWriter writes one part. It is used by one goroutine at a time.
type BlockWriter interface {
	// Append adds a block, which may be empty.
	Append(ctx context.Context, block []byte) error
	// Sync makes durable what was appended.
	Sync(ctx context.Context) error
	// Commit makes the part durable and complete, and ends the writer.
	Commit(ctx context.Context) error
	// Close ends the writer. A part that was not committed stays as it is, to be
	// appended to later. After Commit or Close, Close does nothing and the other
	// methods return an error matching ErrClosed.
	Close() error
}

// Info describes a part.
type Info struct {
	// Blocks is the number of whole blocks, Bytes their size in the store.
	Blocks int
	Bytes  int64
	// Committed says that the part is complete.
	Committed bool
}

// The names of the parts.
const (
	GeneratePart  = "crawl_generate"
	FetchPart     = "crawl_fetch"
	ContentPart   = "content"
	ParseTextPart = "parse_text"
	ParseDataPart = "parse_data"
	ParsePart     = "crawl_parse"
)

// EventPart is the name of the part with the events of a segment. It is not one of
// Nutch's six: a segment that was merged has none, nor has one of former versions.
const EventPart = "page_events"

// Parts returns the names of the six parts in the order in which a round
// writes them.
func Parts() []string {
	return []string{GeneratePart, FetchPart, ContentPart, ParseTextPart, ParseDataPart, ParsePart}
}

// ValidName returns an error matching ErrName unless each of the names is valid for a
// segment or part.
func ValidName(names ...string) error {
	for _, name := range names {
		ok := 0 < len(name) && len(name) <= 64 && name[0] != '-'
		for i := range len(name) {
			c := name[i]
			ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-')
		}
		if !ok {
			return fmt.Errorf("%w %q", ErrName, name)
		}
	}
	return nil
}

// NewName returns a name for a segment generated at now: Nutch's fourteen
// digits in UTC, a dash and three digits. It is greater than every name of that form
// in use: after a name of a later time, given when a clock was ahead, it uses the
// second after that. So segments are named in the order in which they are made. 999
// is followed by 999000, so that names ascend even if the clock stands still.
func NewName(ctx context.Context, s Store, now time.Time) (string, error) {
	prefix := now.UTC().Format(nameTime) + "-"
	last, ahead := "", time.Time{}
	for name, err := range s.List(ctx) {
		if err != nil {
			return "", fmt.Errorf("segment: new name: %w", err)
		}
		if strings.HasPrefix(name, prefix) {
			last = name // they ascend
		} else if at, ok := timeOf(name); ok && name > prefix {
			ahead = at
		}
	}
	next := prefix + "000"
	switch {
	case !ahead.IsZero():
		next = ahead.Add(time.Second).Format(nameTime) + "-000"
	case last != "":
		next = NameAfter(last)
	}
	return next, ValidName(next)
}

const nameTime = "20060102150405"

// TimeOf returns the time in a name that NewName created, and the zero time for others.
func TimeOf(name string) time.Time {
	at, _ := timeOf(name)
	return at
}

// timeOf returns the time of a name created by NewName. There is none for the last
// second of the last year that has four digits.
func timeOf(name string) (at time.Time, ok bool) {
	digits, number, _ := strings.Cut(name, "-")
	at, err := time.Parse(nameTime, digits)
	if err != nil || len(number) < 3 || strings.Trim(number, "0123456789") != "" || at.Add(time.Second).Year() > 9999 {
		return time.Time{}, false
	}
	return at, true
}

// NameAfter returns the name that NewName would give after name if the clock
// stood still.
func NameAfter(name string) string {
	if cut := strings.LastIndexByte(name, '-') + 1; len(name)-cut >= 3 {
		if n, err := strconv.ParseUint(name[len(name)-3:], 10, 16); err == nil && n < 999 {
			return fmt.Sprintf("%s%03d", name[:len(name)-3], n+1)
		}
	}
	return name + "000"
}
