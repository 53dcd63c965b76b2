package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/salvage"

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
// Without a manifest it is unknown which tables had been replaced but not yet
// deleted, so a record that was removed shortly before may come back; of records
// found more than once the newest counts.
func Salvage(ctx context.Context, dir, newDir string, o SalvageOptions) (SalvageReport, error) {
	r, err := salvageFrom(ctx, storedir.Machine(), dir, newDir, o)
	if err != nil {
		return r, fmt.Errorf("pebblestore: salvage %s: %w", dir, err)
	}
	return r, nil
}

func salvageFrom(ctx context.Context, disk vfs.FS, dir, newDir string, o SalvageOptions) (SalvageReport, error) {
	var so salvage.Options
	if o.Lost != nil {
		so.Lost = func(l salvage.Loss) { o.Lost(Loss(l)) }
	}
	if o.Progress != nil {
		so.Progress = func(r salvage.Report) { o.Progress(SalvageReport(r)) }
	}
	src, err := claim(dir, true, nil)
	var unmarked error // why the directory is not known as a store
	if errors.Is(err, ErrDamaged) || storedir.Unreadable(err) || errors.Is(err, ErrNotStore) && hasDatabase(dir) {
		unmarked = err
		src, err = noFormat(dir)
	}
	if err != nil {
		return SalvageReport{}, err
	}
	defer src.lock.Close()
	s := salvage.New(disk, src.dir, so)
	if unmarked != nil {
		s.LostBy(salvage.Loss{What: "state", File: filepath.Join(dir, formatName), Block: -1}, unmarked)
	}
	err = salvageTo(ctx, s, disk, src.dir, newDir)
	return SalvageReport(s.Report()), err
}

// salvageTo fills a new store beside newDir, under its name with ".salvage" appended, and then
// moves it there; newDir must be absent or empty. A directory that a killed salvage has left is
// emptied first.
func salvageTo(ctx context.Context, s *salvage.Salvage, disk vfs.FS, dir, newDir string) error {
	if err := vacant(disk, dir, newDir); err != nil {
		return err
	}
	w, err := beginWork(disk, filepath.Clean(newDir)+".salvage", salvageMark)
	if err != nil {
		return err
	}
	db, err := Open(w.store(), Options{})
	if err != nil {
		return errors.Join(err, w.lock.Close())
	}
	err = s.Fill(ctx, salvage.Target{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()})
	if err = errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, w.lock.Close())
	}
	return w.move(newDir)
}

func hasDatabase(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, databaseName))
	return err == nil
}
