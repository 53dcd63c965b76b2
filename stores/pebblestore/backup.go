package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// BackupOptions are the settings of Backup.
type BackupOptions struct {
	// Copy copies every file, even where the file system could share those that never
	// change. Such a backup takes as much room as the store, and does not depend on the
	// same blocks of the disk.
	Copy bool
}

// BackupReport says what a backup contains and what it cost.
type BackupReport struct {
	// Files and Bytes count all files, shared with the store or not.
	Files, Bytes int64
	// Held is how long changes to the store waited.
	Held time.Duration
}

// Where a backup is made.
const (
	stagingName = "BACKUP.new" // in the store, where files can be shared
	backupMark  = "BACKUP"     // marks a directory in which a copy is made
)

// Backup copies the whole store as it is at one moment, crawl db, host db, link db and
// segments, to newDir, which must not exist or be empty; its parent must exist. A crawl may
// be running meanwhile. The copy is what a kill at that moment would have left, with
// everything that was committed. It can be opened, verified, copied and moved like any
// store, and a crawl can continue from it.
//
// Changes wait while the files get second names, which takes about as long as syncing a
// file; on a file system without hard links, as long as copying the store. Then files that
// were being written are copied, and all others too if newDir is on another file system or
// BackupOptions.Copy is set. A shared file is never changed by either side, and takes room
// until both have removed it.
//
// The backup gets its name when it is complete and durable, not before. If the file system
// of newDir is full or fails, the backup ends with an error and the store goes on. The next
// opening of the store removes what a killed process has left. A copy to another file system
// is made beside newDir, under its name with ".backup" appended, and the next backup to
// newDir removes what is left of it. A store that is open for reading only is copied.
func (d *DB) Backup(ctx context.Context, newDir string, o BackupOptions) (BackupReport, error) {
	b := backup{d: d, o: o, staging: filepath.Join(d.dir, stagingName)}
	if err := b.run(ctx, newDir); err != nil {
		return b.report, fmt.Errorf("pebblestore: backup of %s to %s: %w", d.dir, newDir, err)
	}
	return b.report, nil
}

type backup struct {
	d       *DB
	o       BackupOptions
	staging string
	report  BackupReport
	growing []growing
}

// growing is a part that is not committed yet; its first size bytes belong to the backup.
type growing struct {
	link, name string
	size       int64
}

func (b *backup) run(ctx context.Context, newDir string) (err error) {
	d := b.d
	v := view{errClosed: crawldb.ErrClosed}
	if err := d.take(ctx, &v, d.backing); err != nil {
		return err
	}
	defer d.give(d.backing)
	ctx, stop := d.whileOpen(ctx, &v, nil)
	defer stop()
	if _, err := d.under.Stat(filepath.Dir(filepath.Clean(newDir))); err != nil {
		return err
	}
	// A backup that has got its name may have been killed before it removed this.
	if err := dropWork(d.under, workOf(newDir), backupMark); err != nil && !errors.Is(err, errNotLeft) {
		return err
	}
	if err := vacant(d.under, d.dir, newDir); err != nil {
		return err
	}
	if d.readOnly { // nothing changes
		return b.copyTo(ctx, newDir, d.dir)
	}
	// Flush the memtables before changes have to wait, even if they are empty: until the
	// engine has changed its manifest once since it was opened, a checkpoint has an empty one.
	d.unflushed.Store(true)
	if err := d.writeOut(); err != nil {
		return err
	}
	if err := d.under.RemoveAll(b.staging); err != nil {
		return err
	}
	defer func() {
		if d.fs.Failure() == nil { // if not, the next opening removes it
			err = errors.Join(err, d.under.RemoveAll(b.staging))
		}
	}()
	if err := d.under.MkdirAll(filepath.Join(b.staging, segmentsName), 0o777); err != nil {
		return err
	}
	if err := d.starts.close(ctx); err != nil {
		return err
	}
	err = b.hold(ctx)
	if err == nil {
		// A part that is opened for writing may lose its last blocks, so copy these
		// before any is.
		err = b.copyGrowing(ctx)
	}
	d.starts.open()
	if err != nil {
		return err
	}
	if err := b.seal(ctx); err != nil {
		return err
	}
	return b.move(ctx, newDir)
}

// hold gives every file a second name while nothing changes.
func (b *backup) hold(ctx context.Context) error {
	d := b.d
	if err := d.changes.close(ctx); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		b.report.Held = time.Since(began)
		d.changes.open()
	}()
	err := checkpoint(d.db, filepath.Join(b.staging, databaseName))
	if d.fs.Failure() != nil {
		return d.failed()
	}
	if err != nil {
		return err
	}
	return b.eachPart(filepath.Join(d.dir, segmentsName), func(seg, name string, info vfs.FileInfo) error {
		from, dir := filepath.Join(d.dir, segmentsName, seg, name), filepath.Join(b.staging, segmentsName, seg)
		if err := errors.Join(ctx.Err(), d.under.MkdirAll(dir, 0o777)); err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if strings.HasSuffix(name, ".open") {
			b.growing = append(b.growing, growing{to + ".link", to, info.Size()})
			to += ".link"
		}
		err := d.under.Link(from, to)
		if failfs.CannotLink(err) {
			err = b.copyFile(ctx, from, to, info.Size())
		}
		return err
	})
}

// checkpoint is db.Checkpoint, which panics if a directory cannot be synced. It holds no
// lock of the engine then.
func checkpoint(db *pebble.DB, dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			err = cause
		}
	}()
	return db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// eachPart calls f for each file of segments.
func (b *backup) eachPart(dir string, f func(seg, name string, info vfs.FileInfo) error) error {
	under := b.d.under
	segs, err := under.List(dir)
	if err != nil {
		return err
	}
	for _, seg := range segs {
		if info, err := under.Stat(filepath.Join(dir, seg)); err != nil {
			return err
		} else if strings.HasPrefix(seg, ".") || !info.IsDir() {
			continue // being removed, or not ours
		}
		names, err := under.List(filepath.Join(dir, seg))
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := under.Stat(filepath.Join(dir, seg, name))
			if err == nil && info.Mode().IsRegular() {
				err = f(seg, name, info)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *backup) copyGrowing(ctx context.Context) error {
	for _, g := range b.growing {
		if err := b.copyFile(ctx, g.link, g.name, g.size); err != nil {
			return err
		}
		if err := b.d.under.Remove(g.link); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies the first size bytes of a file and makes them durable.
func (b *backup) copyFile(ctx context.Context, from, to string, size int64) error {
	in, err := b.d.under.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := b.d.under.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, &io.LimitedReader{R: readerUntil{ctx, in}, N: size})
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// readerUntil is a reader that fails when a context has ended.
type readerUntil struct {
	ctx context.Context
	r   io.Reader
}

func (r readerUntil) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// seal turns the linked and copied files into a store that was closed: nothing was being
// written to the log meanwhile.
func (b *backup) seal(ctx context.Context) error {
	under, db := b.d.under, filepath.Join(b.staging, databaseName)
	text, err := storedir.ReadFile(under, filepath.Join(b.d.dir, formatName))
	if err != nil {
		return err
	}
	if err := storedir.WriteFile(under, filepath.Join(b.staging, formatName), text); err != nil {
		return err
	}
	if err := logcheck.Seal(b.staging, under, db); err != nil {
		return err
	}
	return b.walk(ctx, b.staging, func(name string, info vfs.FileInfo) error {
		if info.IsDir() {
			return storedir.SyncDir(under, name)
		}
		b.count(info)
		return nil
	})
}

func (b *backup) count(info vfs.FileInfo) {
	b.report.Files++
	b.report.Bytes += info.Size()
}

// walk calls f for everything below a directory, and then for the directory.
func (b *backup) walk(ctx context.Context, name string, f func(name string, info vfs.FileInfo) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	info, err := b.d.under.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := b.d.under.List(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := b.walk(ctx, filepath.Join(name, n), f); err != nil {
				return err
			}
		}
	}
	return f(name, info)
}

// move gives the backup its name, or makes a copy of that name.
func (b *backup) move(ctx context.Context, newDir string) error {
	under := b.d.under
	if !b.o.Copy {
		if err := under.Remove(newDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// An error means another file system, which systems report in different ways.
		if err := under.Rename(b.staging, newDir); err == nil {
			return errors.Join(storedir.SyncDir(under, filepath.Dir(filepath.Clean(newDir))), storedir.SyncDir(under, b.d.dir))
		}
	}
	b.report.Files, b.report.Bytes = 0, 0 // of what shares its files with the store
	return b.copyTo(ctx, newDir, b.staging)
}

// workOf returns the working directory of a copy.
func workOf(newDir string) string { return filepath.Clean(newDir) + ".backup" }

// copyTo copies a store, without what belongs to the process that has it open.
func (b *backup) copyTo(ctx context.Context, newDir, from string) error {
	w, err := beginWork(b.d.under, workOf(newDir), backupMark)
	if err != nil {
		return err
	}
	store := w.store()
	err = b.d.under.MkdirAll(store, 0o777)
	for _, name := range [...]string{formatName, logcheck.SealName, databaseName, segmentsName} {
		if err == nil {
			err = b.copyAll(ctx, filepath.Join(from, name), filepath.Join(store, name))
		}
	}
	if err == nil {
		err = storedir.SyncDir(b.d.under, store)
	}
	if err != nil {
		return errors.Join(err, w.drop())
	}
	return w.move(newDir)
}

// copyAll copies a file or a directory, if it exists.
func (b *backup) copyAll(ctx context.Context, from, to string) error {
	under := b.d.under
	if _, err := under.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return b.walk(ctx, from, func(name string, info vfs.FileInfo) error {
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		to := filepath.Join(to, rel)
		if info.IsDir() { // its contents are complete
			return errors.Join(under.MkdirAll(to, 0o777), storedir.SyncDir(under, to))
		}
		if !info.Mode().IsRegular() {
			return nil // not ours
		}
		if err := under.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		b.count(info)
		return b.copyFile(ctx, name, to, info.Size())
	})
}

// stagedFS takes the engine's checkpoint past d.fs: a failure there ends the backup,
// not the store.
type stagedFS struct {
	vfs.FS
	under vfs.FS
	dir   string
}

func (f stagedFS) Unwrap() vfs.FS { return f.FS }

func (f stagedFS) of(name string) vfs.FS {
	if rest, ok := strings.CutPrefix(name, f.dir); ok && (rest == "" || rest[0] == filepath.Separator || rest[0] == '/') {
		return f.under
	}
	return f.FS
}

func (f stagedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.of(name).Create(name, c)
}

func (f stagedFS) Link(oldname, newname string) error {
	to := f.of(newname)
	err := to.Link(oldname, newname)
	if to == f.under && failfs.CannotLink(err) { // see failfs.FailStop.Link
		err = fmt.Errorf("%w: %v", errors.ErrUnsupported, err)
	}
	return err
}

func (f stagedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.of(name).OpenReadWrite(name, c, opts...)
}

func (f stagedFS) OpenDir(name string) (vfs.File, error)       { return f.of(name).OpenDir(name) }
func (f stagedFS) Remove(name string) error                    { return f.of(name).Remove(name) }
func (f stagedFS) RemoveAll(name string) error                 { return f.of(name).RemoveAll(name) }
func (f stagedFS) Rename(from, to string) error                { return f.of(to).Rename(from, to) }
func (f stagedFS) MkdirAll(dir string, perm fs.FileMode) error { return f.of(dir).MkdirAll(dir, perm) }
