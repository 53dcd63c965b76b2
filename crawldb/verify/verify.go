// Package verify checks that the stores of a crawl are intact and agree with
// each other. It reads through their contracts, so it works with any engine;
// files and indexes below them are checked by the engine itself (for
// stores/pebblestore: its Verify).
//
// These invariants hold at every moment of a crawl, even after its process was
// killed:
//
//   - records are in the order of their keys, each under its own key, and have a known
//     status; a lease names its segment and its end;
//   - a record is leased by a segment that exists and, once that has a list, lists it;
//   - inlinks are distinct and in order; hosts are in the order of their names;
//   - every block of every part of a segment can be read;
//   - visits have a fetch list and contents, and complete contents have visits; the texts,
//     properties and links of pages exist together or not at all (if not, the segment
//     has not been parsed);
//   - visits are complete only if their contents are, and the signatures and links of
//     pages only if their texts are;
//   - a part has as many blocks as the visits, or more while they are written, and
//     its block k has pages of block k of the visits, in their order;
//   - a segment that is being folded into the crawl db is fetched, and one whose round
//     is done is folded in; no mark is invalid.
//
// It changes nothing. It holds eight bytes for each page of the segment that it checks and
// of the lists of those that are not folded in, the names of all segments, and the first 100,000
// places of damage that it has reported; nothing else grows with the size of the stores.
package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// Stores are the stores to check; nil ones are skipped. They must not
// change during the check.
type Stores struct {
	Crawl    crawldb.Store
	Hosts    hostdb.Store
	Links    linkdb.Store
	Segments segment.Store
}

// Options are the settings of a check.
type Options struct {
	// Found, if not nil, is called with every finding, in the order of the check,
	// from one goroutine.
	Found func(Finding)
	// Progress, if not nil, is called now and then with the counts so far.
	Progress func(Report)
	// Now is the clock of the crawl, by which leases are judged: it is read once. Nil
	// means time.Now.
	Now func() time.Time
}

// Finding is something damaged or wrong. It is an error, and wraps the cause.
type Finding struct {
	// File and Offset name the place of damage; Offset is negative if there is
	// none, and File is empty if the bytes are good but what they say is wrong.
	File   string
	Offset int64
	// URL names the record, Segment and Part the part of a segment, and Block the
	// block in it; those that do not apply are empty, or negative.
	URL           string
	Segment, Part string
	Block         int
	// Harmless says that nothing is lost or wrong: it is a leftover.
	Harmless bool
	Err      error
}

// Error names the place and the cause.
func (f Finding) Error() string {
	var damage *crawldb.CorruptError
	if errors.As(f.Err, &damage) && f.Segment == "" {
		return damage.Error()
	}
	where := f.File
	if where != "" && f.Offset >= 0 {
		where = fmt.Sprintf("%s at %d", where, f.Offset)
	}
	add := func(s string) {
		if where != "" {
			where += ": "
		}
		where += s
	}
	if f.Segment != "" {
		name := "segment " + f.Segment
		if f.Part != "" {
			name += "/" + f.Part
		}
		if f.Block >= 0 {
			name = fmt.Sprintf("%s, block %d", name, f.Block)
		}
		add(name)
	}
	if f.URL != "" {
		add(fmt.Sprintf("%q", f.URL))
	}
	if damage != nil {
		add(damage.Error())
	} else {
		add(f.Err.Error())
	}
	return where
}

// Unwrap returns the cause.
func (f Finding) Unwrap() error { return f.Err }

// Report says what was read, and how much of it is damaged or wrong.
type Report struct {
	// Findings counts what is damaged or wrong, Harmless the leftovers.
	Findings, Harmless int
	// Files, Blocks and Bytes count what an engine has below its stores.
	Files, Blocks, Bytes int64
	// Records counts those of the crawl db, Leased those of them that are leased;
	// Hosts, Targets and Inlinks what the other stores hold.
	Records, Leased, Hosts, Targets, Inlinks int64
	// Segments, Parts, SegmentBlocks and SegmentRecords count what segments hold.
	Segments, Parts, SegmentBlocks, SegmentRecords int64
	// Torn counts the bytes after the last whole record in files that a crash cut
	// short: they were never acknowledged.
	Torn int64
}

// Run checks the stores. Findings are passed to Options.Found and counted; an
// error means that the check could not continue.
func Run(ctx context.Context, s Stores, o Options) (Report, error) {
	c := NewCheck(o)
	err := c.Stores(ctx, s)
	return c.Report, err
}

// A Check is a check under way, for engines that add their own findings to
// those of the stores.
type Check struct {
	Report Report
	o      Options
	now    time.Time
	steps  int
	// folded are the segments that were folded into the crawl db, listed are the sorted hashes
	// of the URLs on the list of each other one, if it could be read.
	folded map[string]bool
	listed map[string][]uint64
	seed   maphash.Seed
	// damaged are places of damage that were reported.
	damaged map[place]bool
}

// mostPlaces is how many places of damage are remembered. Some of the others may be reported
// more than once.
const mostPlaces = 100_000

type place struct {
	file   string
	offset int64
	url    string
	// Of damage without an offset, what and where it is.
	text string
}

// NewCheck starts a check.
func NewCheck(o Options) *Check {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Check{o: o, now: o.Now(), folded: map[string]bool{}, listed: map[string][]uint64{}, seed: maphash.MakeSeed()}
}

// Add reports a finding, unless damage was reported at its place before: every reader of a
// bad block fails there.
func (c *Check) Add(f Finding) {
	if at := (place{file: f.File, offset: f.Offset, url: f.URL}); f.Offset >= 0 || f.File != "" {
		if f.Offset < 0 {
			at.text = f.Error()
		}
		if c.damaged[at] {
			return
		}
		if !f.Harmless && len(c.damaged) < mostPlaces {
			if c.damaged == nil {
				c.damaged = map[place]bool{}
			}
			c.damaged[at] = true
		}
	}
	if f.Harmless {
		c.Report.Harmless++
	} else {
		c.Report.Findings++
	}
	if c.o.Found != nil {
		c.o.Found(f)
	}
}

// Damage reports an error that a store has returned.
func (c *Check) Damage(err error) { c.Add(finding(err)) }

// finding makes a Finding of an error.
func finding(err error) Finding {
	f := Finding{Offset: -1, Block: -1, Err: err}
	var damage *crawldb.CorruptError
	if errors.As(err, &damage) {
		f.File, f.Offset, f.URL = damage.File, damage.Offset, damage.URL
	}
	return f
}

const progressEvery = 4096

// Step is called once for each item that was read.
func (c *Check) Step(ctx context.Context) error {
	if c.steps++; c.steps%progressEvery == 0 && c.o.Progress != nil {
		c.o.Progress(c.Report)
	}
	return ctx.Err()
}

// Stores checks the stores.
func (c *Check) Stores(ctx context.Context, s Stores) error {
	segments, err := c.segments(ctx, s)
	if err == nil && s.Crawl != nil {
		err = c.records(ctx, s, segments)
	}
	if err == nil && s.Links != nil {
		err = c.links(ctx, s.Links)
	}
	if err == nil && s.Hosts != nil {
		err = c.hosts(ctx, s.Hosts)
	}
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// stopped reports whether an error ends the check, and is not a finding.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, crawldb.ErrClosed) || errors.Is(err, segment.ErrClosed) ||
		errors.Is(err, hostdb.ErrClosed) || errors.Is(err, linkdb.ErrClosed)
}
