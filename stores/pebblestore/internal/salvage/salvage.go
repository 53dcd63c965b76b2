// Package salvage copies what is whole of a damaged store to a new one: from every table, log and
// segment on its own, whatever the engine says of them. It changes nothing of the source and
// does not make the new store. Start with Salvage.Fill.
package salvage

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// Names of the parts of a store below its directory.
const (
	databaseName = "db"
	segmentsName = "segments"
)

// A Loss is something that could not be kept: a pebblestore.Loss.
type Loss struct {
	File          string
	Offset        int64
	What          string
	After, To     string
	URL           string
	Segment, Part string
	Block         int
	Err           error
}

// A Report counts what was kept and what was not: a pebblestore.SalvageReport.
type Report struct {
	Records, Hosts, Targets, Marks, Segments, SegmentBlocks int64
	Losses, Leases                                          int64
}

// Options are those of a salvage.
type Options struct {
	Lost     func(Loss)   // may be nil
	Progress func(Report) // may be nil
}

// A Target is the new store.
type Target struct {
	Crawl    crawldb.Store
	Hosts    hostdb.Store
	Links    linkdb.Store
	Segments segment.Store
}

// A Salvage copies what is whole of one store. It is for use by one goroutine.
type Salvage struct {
	o      Options
	disk   vfs.FS // below the database to read
	dir    string // of the store
	report Report
	steps  int

	segments     *dirstore.Store // nil if there are none
	target       Target
	keptSegments map[string]*keptSegment
}

// New returns a Salvage of the store in a directory, whose database is read through a file
// system.
func New(disk vfs.FS, dir string, o Options) *Salvage { return &Salvage{o: o, disk: disk, dir: dir} }

// Report returns what was kept and lost so far.
func (s *Salvage) Report() Report { return s.report }

// Lost reports a loss.
func (s *Salvage) Lost(l Loss) {
	s.report.Losses++
	if s.o.Lost != nil {
		s.o.Lost(l)
	}
}

// LostBy is Lost for an error that names the place.
func (s *Salvage) LostBy(l Loss, err error) {
	var damage *crawldb.CorruptError
	l.Err, l.Offset = err, -1
	if errors.As(err, &damage) {
		l.File, l.Offset, l.Err = damage.File, damage.Offset, damage.Err
	}
	s.Lost(l)
}

const progressSteps = 4096

func (s *Salvage) step(ctx context.Context) error {
	if s.steps++; s.steps%progressSteps == 0 && s.o.Progress != nil {
		s.o.Progress(s.report)
	}
	return ctx.Err()
}

// Fill copies what is whole to an empty store.
func (s *Salvage) Fill(ctx context.Context, to Target) (err error) {
	s.target = to
	s.segments, err = dirstore.Open(filepath.Join(s.dir, segmentsName), dirstore.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		s.LostBy(Loss{What: "segment", File: filepath.Join(s.dir, segmentsName), Block: -1}, err)
	} else if err != nil {
		return err
	} else {
		defer s.segments.Close()
	}
	if err := s.copySegments(ctx); err != nil {
		return err
	}
	in, err := s.openSources(ctx, s.disk, filepath.Join(s.dir, databaseName))
	if err != nil {
		return err
	}
	defer in.close()
	for _, do := range []func(context.Context, *sources) error{s.copyMarks, s.copyRecords, s.copyLinks, s.copyHosts} {
		if err := do(ctx, in); err != nil {
			return err
		}
	}
	// The first selection builds the index.
	for _, err := range crawldb.Due(ctx, s.target.Crawl, crawldb.DueQuery{Limit: 1}) {
		if err != nil {
			return err
		}
	}
	return s.target.Crawl.Sync(ctx)
}
