package pebblestore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Only the process that has a store open can back it up. Another process asks it to with
// a file beside the store, which it touches while it waits, and finds the answer in a
// second file.
const (
	askName       = "ASK" // empty until it is written
	answerName    = "ANSWER"
	newAnswerName = "ANSWER.new"
)

const (
	askPoll = 250 * time.Millisecond
	// A waiting process touches its file every askTouch. If it has not for askPatience,
	// it counts as gone.
	askTouch    = time.Second
	askPatience = 15 * time.Second
)

type ask struct {
	ID     string        `json:"id"`
	Dir    string        `json:"dir"`
	Option BackupOptions `json:"options"`
}

type answer struct {
	ID     string       `json:"id"`
	Report BackupReport `json:"report"`
	Error  string       `json:"error,omitempty"`
}

// dropAsk removes what was asked of an earlier process.
func dropAsk(under vfs.FS, dir string) error {
	var errs []error
	for _, name := range [...]string{askName, answerName, newAnswerName} {
		errs = append(errs, removed(under, filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// look reads one of these files. An invalid one counts as missing.
func look(dir, name string, v any) (at time.Time, ok bool) {
	f, err := machine().Open(filepath.Join(dir, name))
	if err != nil {
		return at, false
	}
	info, err := f.Stat()
	err = errors.Join(err, f.Close())
	if err != nil {
		return at, false
	}
	text, err := readFile(machine(), filepath.Join(dir, name))
	if err != nil || json.Unmarshal(text, v) != nil {
		return info.ModTime(), false
	}
	return info.ModTime(), true
}

// AskBackup asks the process that has the store in dir open for a [DB.Backup], which is
// made with the permissions of that process and its view of newDir, and returns when it
// is done. It waits until that process answers or ends: one that does not call
// [DB.AnswerBackups] never answers. If nobody has the store open, the error is
// fs.ErrNotExist, and the caller can open the store and make the backup. The end of the
// context ends the backup, too.
func AskBackup(ctx context.Context, dir, newDir string, o BackupOptions) (BackupReport, error) {
	r, err := askBackup(ctx, dir, newDir, o)
	if err != nil {
		return r, fmt.Errorf("pebblestore: ask for a backup of %s to %s: %w", dir, newDir, err)
	}
	return r, nil
}

func askBackup(ctx context.Context, dir, newDir string, o BackupOptions) (_ BackupReport, err error) {
	mine := ask{ID: rand.Text(), Option: o}
	if mine.Dir, err = filepath.Abs(newDir); err != nil {
		return BackupReport{}, err
	}
	defer func() {
		// The request must not outlive the wait for its answer.
		for _, name := range [...]string{askName, answerName} {
			var a ask
			if _, ok := look(dir, name, &a); ok && a.ID == mine.ID {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	}()
	tick := time.NewTicker(askPoll)
	defer tick.Stop()
	last := heard{moment: time.Now()}
	for touched := time.Now(); ; {
		held, err := inUse(dir)
		// Look for an answer even if the process has ended: it may have answered first.
		var a answer
		if _, ok := look(dir, answerName, &a); ok && a.ID == mine.ID {
			if a.Error != "" {
				err = errors.New(a.Error)
			}
			return a.Report, err
		}
		if err != nil {
			return BackupReport{}, err
		}
		if !held {
			return BackupReport{}, fs.ErrNotExist
		}
		var other ask
		switch at, ok := look(dir, askName, &other); {
		case ok && other.ID == mine.ID:
			if time.Since(touched) > askTouch {
				touched = time.Now()
				_ = os.Chtimes(filepath.Join(dir, askName), touched, touched)
			}
		default:
			err := mine.put(dir)
			if errors.Is(err, fs.ErrExist) {
				// Somebody else is asking, unless that process is gone.
				if err = nil; last.gone(other.ID, at) {
					err = removed(vfs.Default, filepath.Join(dir, askName))
				}
			}
			if err != nil {
				return BackupReport{}, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return BackupReport{}, ctx.Err()
		}
	}
}

// put asks, unless somebody else is asking.
func (a *ask) put(dir string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, askName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// inUse reports whether a process has a store open to change it.
func inUse(dir string) (bool, error) {
	lock, err := lockShared(filepath.Join(dir, lockName))
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// heard is when the asking process last touched its file, by the clock of the process
// that looks.
type heard struct {
	id     string
	touch  time.Time
	moment time.Time
}

// gone reports whether the file was not touched for too long.
func (h *heard) gone(id string, touch time.Time) bool {
	if h.id != id || !h.touch.Equal(touch) {
		*h = heard{id, touch, time.Now()}
	}
	return time.Since(h.moment) > askPatience
}

// AnswerBackups makes the backups that other processes ask for with [AskBackup], one after
// another, until the context ends. That also ends a backup under way; whoever asked for it
// waits until this process has closed the store. It looks for a request four times a second.
func (d *DB) AnswerBackups(ctx context.Context) {
	tick := time.NewTicker(askPoll)
	defer tick.Stop()
	answered, told := "", true
	var reply answer
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-d.closing:
			return
		}
		if !told { // try again: the disk may have had no room
			told = reply.put(d.dir) == nil
		}
		var a ask
		if _, ok := look(d.dir, askName, &a); !ok || a.ID == answered || a.Dir == "" {
			continue
		}
		r, err := d.answer(ctx, &a)
		if ctx.Err() != nil {
			return
		}
		answered, told, reply = a.ID, false, answer{ID: a.ID, Report: r}
		if err != nil {
			reply.Error = err.Error()
		}
	}
}

func (a *answer) put(dir string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	made := filepath.Join(dir, newAnswerName)
	if err := os.WriteFile(made, text, 0o666); err != nil {
		return err
	}
	return os.Rename(made, filepath.Join(dir, answerName))
}

// answer makes a backup, and ends it when nobody waits for it any more.
func (d *DB) answer(ctx context.Context, a *ask) (BackupReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		tick := time.NewTicker(askPoll)
		defer tick.Stop()
		var h heard
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var now ask
			if at, ok := look(d.dir, askName, &now); !ok || now.ID != a.ID || h.gone(now.ID, at) {
				cancel()
			}
		}
	})
	return d.Backup(ctx, a.Dir, a.Option)
}
