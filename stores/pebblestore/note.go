package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
)

const (
	noteName    = "NOTE"
	newNoteName = "NOTE.new"
)

// A Note is what the process that has a store open says about itself, for others that
// find the directory in use.
type Note struct {
	// Process wrote it, at Time.
	Process int
	Time    time.Time
	Text    []byte
}

// WriteNote leaves a text beside the store, replacing an earlier one. [ReadNote] returns it to
// other processes as long as this one has the directory open. It is not part of the store:
// Close removes it, and an error harms nothing else.
func (d *DB) WriteNote(text []byte) error {
	if d.readOnly {
		return ErrReadOnly
	}
	v := view{errClosed: crawldb.ErrClosed}
	if err := d.enter(context.Background(), &v); err != nil {
		return err
	}
	defer d.leave()
	d.noting.Lock()
	defer d.noting.Unlock()
	if err := d.note(text); err != nil {
		return fmt.Errorf("pebblestore: note in %s: %w", d.dir, err)
	}
	return nil
}

func (d *DB) note(text []byte) error {
	made := filepath.Join(d.dir, newNoteName)
	d.noted = true
	if err := writeFile(d.under, made, fmt.Appendf(nil, "%d\n%s", os.Getpid(), text)); err != nil {
		return errors.Join(err, removed(d.under, made))
	}
	if err := d.under.Rename(made, filepath.Join(d.dir, noteName)); err != nil {
		return err
	}
	return syncDir(d.under, d.dir)
}

// dropNote removes the note of this process, or of one that was killed.
func dropNote(under vfs.FS, dir string) error {
	return errors.Join(removed(under, filepath.Join(dir, noteName)), removed(under, filepath.Join(dir, newNoteName)))
}

// removed removes a file, if it exists.
func removed(under vfs.FS, name string) error {
	if err := under.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadNote returns the note of the process that has the store in dir open. If it has
// left none, or nobody has the store open, the error wraps fs.ErrNotExist.
func ReadNote(dir string) (Note, error) {
	n, err := readNote(dir)
	if err != nil {
		return Note{}, fmt.Errorf("pebblestore: note in %s: %w", dir, err)
	}
	return n, nil
}

func readNote(dir string) (n Note, err error) {
	// Without a lock the note was left by a killed process.
	lock, err := lockShared(filepath.Join(dir, lockName))
	if err == nil {
		return n, errors.Join(fs.ErrNotExist, lock.Close())
	}
	if !errors.Is(err, ErrLocked) {
		return n, err
	}
	f, err := machine().Open(filepath.Join(dir, noteName))
	if err != nil {
		return n, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return n, err
	}
	all := make([]byte, min(info.Size(), maxNote))
	if _, err := f.ReadAt(all, 0); err != nil {
		return n, err
	}
	owner, text, ok := bytes.Cut(all, []byte("\n"))
	if n.Process, err = strconv.Atoi(string(owner)); err != nil || !ok {
		return Note{}, fmt.Errorf("%w: the note is invalid", fs.ErrNotExist)
	}
	n.Time, n.Text = info.ModTime(), text
	return n, nil
}

// maxNote limits what is read: anybody may have put a file there.
const maxNote = 16 << 20
