package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// A Loss is something that could not be kept.
type Loss struct {
	// File and Offset name the damage; Offset is negative if unknown.
	File   string
	Offset int64
	// What names the kind of data: "crawl db", "leases", "host db", "link db", "marks",
	// "state", "log" or "segment".
	What string
	// After and To are keys (crawldb.Key, or names of hosts) between which
	// records are lost, To included; both are empty if the range is unknown.
	After, To string
	// URL is that of the record lost, if it is a single one.
	URL string
	// Segment, Part and Block say what is lost of a segment; an empty Part means all
	// of it, a negative Block all of the part. A block that is lost is lost in all
	// parts.
	Segment, Part string
	Block         int
	Err           error
}

// String names the place, what is lost, and why.
func (l Loss) String() string {
	var b strings.Builder
	b.WriteString(l.What)
	switch {
	case l.Segment != "" && l.Part == "":
		fmt.Fprintf(&b, " %s", l.Segment)
	case l.Segment != "" && l.Block < 0:
		fmt.Fprintf(&b, " %s/%s", l.Segment, l.Part)
	case l.Segment != "":
		fmt.Fprintf(&b, " %s, block %d of %s", l.Segment, l.Block, l.Part)
	case l.URL != "":
		fmt.Fprintf(&b, ", the record of %q", l.URL)
	case l.After != "" || l.To != "":
		fmt.Fprintf(&b, ", keys after %q up to %q", l.After, l.To)
	}
	if l.File != "" {
		fmt.Fprintf(&b, ": %s", l.File)
		if l.Offset >= 0 {
			fmt.Fprintf(&b, " at %d", l.Offset)
		}
	}
	if l.Err != nil {
		fmt.Fprintf(&b, ": %v", l.Err)
	}
	return b.String()
}

// SalvageOptions are the settings of Salvage.
type SalvageOptions struct {
	// Lost, if not nil, is called with everything that is lost.
	Lost func(Loss)
	// Progress, if not nil, is called from time to time.
	Progress func(SalvageReport)
}

// SalvageReport counts what was kept and what was not.
type SalvageReport struct {
	// Records, Hosts, Targets (pages with inlinks), Marks, Segments and
	// SegmentBlocks count what was kept.
	Records, Hosts, Targets, Marks, Segments, SegmentBlocks int64
	// Losses counts the calls of Lost, Leases those that were ended because
	// their segment, or their place on its list, is lost.
	Losses, Leases int64
}

// salvageMark is the file that marks a directory as a salvage under way.
const salvageMark = "SALVAGE"

// Salvage makes a new store in newDir, which must be empty or not exist, of everything
// that is whole in a damaged store, which it does not change. It keeps every whole
// block of tables, whether or not manifest and indexes are whole; every step in the
// logs; and of segments the blocks that are whole in all parts. Where the disk
// fails, only the data there is lost. The crawl stays consistent:
// leases on a lost segment are ended, and pages of a lost block are due again if
// their update was still to come. The index of due records is built anew.
//
// The new store is made beside newDir, under its name with ".salvage" appended, and
// moved there once it is complete; a salvage that was interrupted is started over by
// the next, and while one is at work there another fails.
//
// Without a manifest nobody can tell which tables had been replaced but not yet
// deleted, so a record that was removed shortly before may come back; of records
// found more than once the newest counts.
func Salvage(ctx context.Context, dir, newDir string, o SalvageOptions) (SalvageReport, error) {
	s := &salvage{o: o, disk: storedir.Machine()}
	if err := s.run(ctx, dir, newDir); err != nil {
		return s.report, fmt.Errorf("pebblestore: salvage %s: %w", dir, err)
	}
	return s.report, nil
}

type salvage struct {
	o      SalvageOptions
	disk   vfs.FS // below the database to read
	report SalvageReport
	steps  int

	src      *home
	segments *dirstore.Store // nil if there are none
	db       *DB

	kept map[string]*keptSegment
}

func (s *salvage) lost(l Loss) {
	s.report.Losses++
	if s.o.Lost != nil {
		s.o.Lost(l)
	}
}

// lostBy is lost for an error that names the place.
func (s *salvage) lostBy(l Loss, err error) {
	var damage *crawldb.CorruptError
	l.Err, l.Offset = err, -1
	if errors.As(err, &damage) {
		l.File, l.Offset, l.Err = damage.File, damage.Offset, damage.Err
	}
	s.lost(l)
}

const salvageProgress = 4096

func (s *salvage) step(ctx context.Context) error {
	if s.steps++; s.steps%salvageProgress == 0 && s.o.Progress != nil {
		s.o.Progress(s.report)
	}
	return ctx.Err()
}

func (s *salvage) run(ctx context.Context, dir, newDir string) (err error) {
	if s.src, err = claim(dir, true, nil); errors.Is(err, ErrDamaged) || storedir.Unreadable(err) || errors.Is(err, ErrNotStore) && hasDatabase(dir) {
		damage := err
		if s.src, err = noFormat(dir); err == nil {
			s.lostBy(Loss{What: "state", File: filepath.Join(dir, formatName), Block: -1}, damage)
		}
	}
	if err != nil {
		return err
	}
	defer s.src.lock.Close()
	if err := vacant(s.disk, s.src.dir, newDir); err != nil {
		return err
	}
	w, err := beginWork(s.disk, filepath.Clean(newDir)+".salvage", salvageMark)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, w.store()); err != nil {
		return errors.Join(err, w.lock.Close())
	}
	return w.move(newDir)
}

func hasDatabase(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, databaseName))
	return err == nil
}

func (s *salvage) fill(ctx context.Context, target string) (err error) {
	s.segments, err = dirstore.Open(filepath.Join(s.src.dir, segmentsName), dirstore.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		s.lostBy(Loss{What: "segment", File: filepath.Join(s.src.dir, segmentsName), Block: -1}, err)
	} else if err != nil {
		return err
	} else {
		defer s.segments.Close()
	}
	if s.db, err = Open(target, Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	if err := s.copySegments(ctx); err != nil {
		return err
	}
	in, err := s.openSources(ctx, s.disk, filepath.Join(s.src.dir, databaseName))
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
	for _, err := range crawldb.Due(ctx, s.db.Crawl(), crawldb.DueQuery{Limit: 1}) {
		if err != nil {
			return err
		}
	}
	return s.db.Crawl().Sync(ctx)
}
