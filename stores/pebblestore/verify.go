package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// Verify checks a whole store: every file, every block of every table by its checksum, the
// records of logs and manifest, the index of due records, and what package verify checks of
// the stores and their agreement. It reports all that it finds, not only the first.
//
// It does not read the locks, the settings of the command and the files of running and killed
// processes (see RunDir), which hold nothing of the crawl. Damage in a part of a segment that is not
// complete is a harmless finding: what follows counts as never written. The note of leases of a
// segment whose fetch list is complete counts as a complete part.
//
// It changes no byte of the directory, which no other handle may have open for writing. What
// a crash leaves is not damage: a log that was cut off ends with its last whole record, and
// what follows is a harmless finding, which Report.Torn counts; a table that was being
// written is no finding. A store that cannot be opened is a finding. An error means that the
// check could not continue; it is [ErrNotStore] also for a directory in which a store was
// only being made.
func Verify(ctx context.Context, dir string, o verify.Options) (verify.Report, error) {
	c := verify.NewCheck(o)
	if err := check(ctx, dir, c); err != nil {
		return c.Report, fmt.Errorf("pebblestore: verify %s: %w", dir, err)
	}
	return c.Report, nil
}

// partHead is the size of the head of a part, before the first block.
const partHead = 12

// checkTails counts what a crash has left at the end of incomplete parts.
// Blocks after a bad one are treated as never written; that there are any is
// worth reporting.
func checkTails(ctx context.Context, dir string, c *verify.Check) error {
	open := openParts(dir)
	if len(open) == 0 {
		return nil
	}
	s, err := dirstore.Open(dir, dirstore.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, path := range open {
		seg, part := filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".open")
		if segment.ValidName(seg, part) != nil {
			continue
		}
		// The note of leases is durable before the fetch list is complete, and is not written
		// after that.
		harmless := true
		if part == "leases" {
			list, err := s.Stat(ctx, seg, segment.GeneratePart)
			harmless = err != nil || !list.Committed
		}
		var bad, failed error
		blocks := 0
		for _, err := range s.Whole(ctx, seg, part) {
			var damage *crawldb.CorruptError
			if err == nil {
				blocks++
			}
			switch {
			case err == nil && bad != nil:
				c.Add(verify.Finding{File: path, Offset: offsetOf(bad), Segment: seg, Part: part, Block: -1, Harmless: harmless, Err: errBehind})
				bad = nil
			case errors.As(err, &damage):
				bad = err
			case err != nil:
				failed = err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if failed != nil {
			continue // reading the part reports it
		}
		if bad == nil && blocks > 0 {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if bad == nil && info.Size() >= partHead {
			continue // only a head
		}
		torn := info.Size() - offsetOf(bad)
		switch {
		case torn > 0 && !harmless:
			c.Add(verify.Finding{File: path, Offset: offsetOf(bad), Segment: seg, Part: part, Block: -1, Err: errNote})
		case torn > 0:
			c.Report.Torn += torn
			c.Add(verify.Finding{File: path, Offset: offsetOf(bad), Segment: seg, Part: part, Block: -1, Harmless: true, Err: logcheck.ErrTorn})
		}
	}
	return nil
}

// openParts returns the files of incomplete parts. A directory that cannot be listed is
// reported when it is read.
func openParts(dir string) (files []string) {
	segs, _ := os.ReadDir(dir)
	for _, seg := range segs {
		parts, _ := os.ReadDir(filepath.Join(dir, seg.Name()))
		for _, part := range parts {
			if strings.HasSuffix(part.Name(), ".open") {
				files = append(files, filepath.Join(dir, seg.Name(), part.Name()))
			}
		}
	}
	return files
}

var errNote = errors.New("a note of leases is damaged; nothing needs it any more, since the fetch list is complete")

var errBehind = errors.New("blocks follow a damaged one; they count as never written")

func offsetOf(err error) int64 {
	var damage *crawldb.CorruptError
	if errors.As(err, &damage) {
		return damage.Offset
	}
	return 0
}

func check(ctx context.Context, dir string, c *verify.Check) error {
	h, err := claim(dir, true, nil)
	known := true
	if damage := err; errors.Is(err, ErrDamaged) || storedir.Unreadable(err) {
		// Its contents can still be checked.
		known = false
		if h, err = noFormat(dir); err == nil {
			c.Damage(damage)
		}
	}
	if err != nil {
		return err
	}
	if err := checkFiles(ctx, h.dir, c); err != nil || !known {
		if err == nil {
			err = checkSegments(ctx, filepath.Join(h.dir, segmentsName), c)
		}
		return errors.Join(err, h.lock.Close())
	}
	db, err := openClaimed(h, Options{ReadOnly: true, CacheSize: onceCache}) // with the lock, for which others are waiting
	if errors.Is(err, ErrDamaged) || storedir.Unreadable(err) || errors.Is(err, fs.ErrNotExist) {
		c.Damage(err)
		return checkSegments(ctx, filepath.Join(h.dir, segmentsName), c)
	}
	if err != nil {
		return err
	}
	err = db.verify(ctx, c)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// noFormat is claim for a directory whose FORMAT cannot be read.
func noFormat(dir string) (*home, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, err
	}
	lock, err := storedir.LockShared(filepath.Join(abs, lockName))
	return &home{dir: abs, lock: lock}, err
}

// verify checks the contents of an open store.
func (d *DB) verify(ctx context.Context, c *verify.Check) error {
	stores := verify.Stores{Crawl: d.Crawl(), Hosts: d.Hosts(), Links: d.Links(), Segments: d.Segments()}
	if err := c.Stores(ctx, stores); err != nil {
		return err
	}
	found := func(err error) { c.Damage(err) }
	for _, check := range []func(context.Context, func(error)) error{d.checkTables, d.checkKeys, d.hosts.check, d.crawl.checkDue} {
		if err := check(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

var errTables = errors.New("it is in no table")

// checkTables finds rows that belong to no table.
func (d *DB) checkTables(ctx context.Context, found func(error)) error {
	return d.inMoment(ctx, func(now rows.Snapshot) error {
		it := now.Iterator()
		for ok := it.First(); ok; {
			k := it.Key()
			if len(k) == 0 || !strings.ContainsRune(codec.AllTables, rune(k[0])) {
				found(d.damaged("a row", string(k), errTables))
				ok = it.Next()
				continue
			}
			ok = it.SeekGE([]byte{k[0] + 1})
		}
		if err := it.Error(); err != nil && !pebble.IsCorruptionError(err) { // the reader of the table reports damage
			return d.outcome("tables", err)
		}
		return nil
	})
}

// checkSegments checks the segments of a store whose database cannot be opened.
func checkSegments(ctx context.Context, dir string, c *verify.Check) error {
	s, err := dirstore.Open(dir, dirstore.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // already reported
	}
	if err != nil {
		return err
	}
	err = c.Stores(ctx, verify.Stores{Segments: s})
	return errors.Join(err, s.Close())
}

// checkFiles checks the files of a store, each by itself.
func checkFiles(ctx context.Context, dir string, c *verify.Check) error {
	if err := foreignFiles(ctx, dir, c); err != nil {
		return err
	}
	if err := checkTails(ctx, filepath.Join(dir, segmentsName), c); err != nil {
		return err
	}
	path := filepath.Join(dir, databaseName)
	sealed := true // the manifest, as far as is known
	long := ""     // a file that was reported, and need not be read to its end
	if text, err := storedir.ReadFile(storedir.Machine(), filepath.Join(dir, logcheck.SealName)); err == nil {
		if !logcheck.WholeSeal(text) {
			c.Add(verify.Finding{File: filepath.Join(dir, logcheck.SealName), Offset: 0, Block: -1, Err: logcheck.ErrSeal})
		} else if err := logcheck.CheckSeal(text, storedir.Machine(), path); err != nil {
			sealed = false
			c.Damage(err)
			if damage := new(crawldb.CorruptError); errors.Is(err, logcheck.ErrLong) && errors.As(err, &damage) {
				long = damage.File
			}
		}
	} else if storedir.Unreadable(err) {
		c.Damage(err)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names, err := storedir.Machine().List(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // opening it reports it
		}
		return err
	}
	slices.Sort(names)
	manifest := logcheck.CurrentManifest(names)
	var counts map[uint64]sstables.Live
	if sealed {
		if counts, err = sstables.LiveTables(storedir.Machine(), path); err != nil {
			return err
		}
	}
	missing, _ := logcheck.MissingLogs(storedir.Machine(), path) // what cannot be read is reported below
	for _, damage := range missing {
		c.Damage(damage)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := filepath.Join(path, name)
		c.Report.Files++
		switch ext := filepath.Ext(name); {
		case full == long:
		case ext == ".sst" && !counted(counts, name):
			// It was being written when the process was killed, or was replaced.
		case ext == ".sst":
			err = checkTable(ctx, full, counts[tableNumber(name)], c)
		case name == manifest:
			_, err = logcheck.CheckManifest(storedir.Machine(), full, names)
		case strings.HasPrefix(name, "OPTIONS-"):
			err = logcheck.CheckOptions(storedir.Machine(), full)
		case ext == ".log":
			var log logcheck.Records
			log, err = logcheck.CheckLog(storedir.Machine(), full)
			c.Report.Blocks += int64(log.Chunks)
			c.Report.Bytes += log.Size
			if c.Report.Torn += log.Tail; log.Tail > 0 {
				c.Add(verify.Finding{File: full, Offset: log.End, Block: -1, Harmless: true, Err: logcheck.ErrTorn})
			}
		}
		switch {
		case errors.Is(err, ErrDamaged):
			c.Damage(err)
			err = nil
		case storedir.Absent(err):
			c.Damage(&crawldb.CorruptError{File: full, Offset: -1, Err: err})
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counted reports whether a table is one that the engine reads; if the engine
// cannot say, all are.
func counted(counts map[uint64]sstables.Live, name string) bool {
	number := tableNumber(name)
	_, ok := counts[number]
	return counts == nil || ok || number == 0
}

// tableNumber is the number of a table; zero if the name has none.
func tableNumber(name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(name, ".sst"), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

// checkTable checks a table, and that it is the one that the manifest means, if that says
// anything.
func checkTable(ctx context.Context, path string, means sstables.Live, c *verify.Check) error {
	t, err := sstables.Open(storedir.Machine(), path)
	if t != nil {
		defer t.Close()
	}
	var damage *crawldb.CorruptError
	if errors.As(err, &damage) {
		c.Damage(err)
		return nil
	}
	if err != nil {
		return err
	}
	whole := true
	is, err := t.Check(ctx, func(n int64) { c.Report.Blocks++; c.Report.Bytes += n }, func(err error) { whole = false; c.Damage(err) })
	if err == nil && whole && !means.Has(is) {
		c.Damage(&crawldb.CorruptError{File: path, Offset: -1, Err: errOther})
	}
	return err
}

var errOther = errors.New("it is another table than the manifest says")

// foreignFiles reports files that do not belong to the store.
func foreignFiles(ctx context.Context, dir string, c *verify.Check) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if (rel == stagingName || rel == runName) && e.IsDir() { // left by a killed process; the next opening removes it
			return fs.SkipDir
		}
		if ours(filepath.ToSlash(rel), e) {
			return nil
		}
		c.Add(verify.Finding{File: path, Offset: -1, Block: -1, Harmless: true, Err: errForeign})
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

var errForeign = errors.New("not a file of the store")

// ours reports whether a file or directory belongs to a store.
func ours(rel string, e fs.DirEntry) bool {
	parts := strings.Split(rel, "/")
	name := parts[len(parts)-1]
	switch {
	case len(parts) == 1:
		return slices.Contains([]string{formatName, newName, lockName, logcheck.SealName, logcheck.NewSealName, databaseName, segmentsName, configName}, rel) || slices.Contains(formerRunNames(), rel)
	case parts[0] == databaseName:
		return len(parts) == 2 && (name == "LOCK" || strings.HasSuffix(name, ".dbtmp") || engineFile(name))
	case len(parts) == 2:
		return e.IsDir() && (segment.ValidName(name) == nil || strings.HasPrefix(name, ".recrawl-removed-"))
	default:
		return len(parts) == 3 && !e.IsDir() && segment.ValidName(strings.TrimSuffix(name, ".open")) == nil
	}
}

// engineFile reports whether a file has a name that the engine uses.
func engineFile(name string) bool {
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	for _, prefix := range []string{logcheck.ManifestPrefix, "OPTIONS-", "marker.", "temporary.", bulkPrefix, logcheck.LogsPrefix, logcheck.SyncedPrefix} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range []string{".sst", ".log", ".blob"} {
		if s, ok := strings.CutSuffix(name, suffix); ok && digits(s) {
			return true
		}
	}
	return false
}

var (
	errKey   = errors.New("it is under the key of another URL")
	errLayer = errors.New("it is in no layer")
)

// checkKeys checks that each record of the crawl db, and each page of the link db, is
// under the key of its URL.
func (d *DB) checkKeys(ctx context.Context, found func(error)) error {
	var again []byte
	return d.eachRow(ctx, []codec.Table{codec.CrawlTable, codec.LinkTable, codec.LayerTable}, func(_ rows.Snapshot, key, _ []byte) error {
		page := key[1:]
		if codec.IsLinkKey(key) {
			var known bool
			if _, page, known = codec.SplitLinkKey(key); !known {
				found(d.damaged("a row of the link db", string(key), errLayer))
				return nil
			}
		}
		url := crawldb.URLOf(string(page))
		if again = crawldb.AppendKey(again[:0], url); !bytes.Equal(again, page) {
			found(d.damaged("the key of", url, errKey))
		}
		return nil
	})
}
