package control

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

	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Only the process that has a store open can back it up. Another process requests a backup
// with a file, which it touches while it waits, and finds the reply in a second file.

const (
	pollInterval = 250 * time.Millisecond
	// A waiting process touches its request every touchInterval. If it has not for
	// requestPatience, it counts as dead.
	touchInterval   = time.Second
	requestPatience = 15 * time.Second
)

type backupRequest struct {
	ID      string                    `json:"id"`
	Dir     string                    `json:"dir"`
	Options pebblestore.BackupOptions `json:"options"`
}

type backupReply struct {
	ID     string                   `json:"id"`
	Report pebblestore.BackupReport `json:"report"`
	Error  string                   `json:"error,omitempty"`
}

// RequestBackup requests a backup of the store in dir from the process that has it open, and
// waits for it. The backup is made with the permissions of that process and its view of newDir.
// It waits until that process replies or ends: one that does not run [Announce] never replies.
// If no process has the store open for writing, the error is fs.ErrNotExist, and the caller
// can open the store and make the backup. The end of the context ends the backup, too.
func RequestBackup(ctx context.Context, dir, newDir string, o pebblestore.BackupOptions) (pebblestore.BackupReport, error) {
	r, err := requestBackup(ctx, dir, newDir, o)
	if err != nil {
		return r, fmt.Errorf("request a backup of %s to %s: %w", dir, newDir, err)
	}
	return r, nil
}

func requestBackup(ctx context.Context, dir, newDir string, o pebblestore.BackupOptions) (_ pebblestore.BackupReport, err error) {
	mine := backupRequest{ID: rand.Text(), Options: o}
	if mine.Dir, err = filepath.Abs(newDir); err != nil {
		return pebblestore.BackupReport{}, err
	}
	run := pebblestore.RunDir(dir)
	defer func() { // the request must not outlive the wait for its reply
		for _, name := range [...]string{requestFile, replyFile} {
			var file struct{ ID string }
			if _, err := readJSON(run, name, &file); err == nil && file.ID == mine.ID {
				_ = os.Remove(filepath.Join(run, name))
			}
		}
	}()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var others liveness
	for touched := time.Now(); ; {
		used, err := pebblestore.InUse(dir)
		// Look for a reply even if the process has ended: it may have replied first.
		var reply backupReply
		if _, rerr := readJSON(run, replyFile, &reply); rerr == nil && reply.ID == mine.ID {
			if reply.Error != "" {
				err = errors.New(reply.Error)
			}
			return reply.Report, err
		}
		if err != nil {
			return pebblestore.BackupReport{}, err
		}
		if !used {
			return pebblestore.BackupReport{}, fs.ErrNotExist
		}
		var present backupRequest
		switch at, rerr := readJSON(run, requestFile, &present); {
		case rerr == nil && present.ID == mine.ID:
			if time.Since(touched) > touchInterval {
				touched = time.Now()
				_ = os.Chtimes(filepath.Join(run, requestFile), touched, touched)
			}
		default:
			err := mine.put(run)
			switch {
			case errors.Is(err, fs.ErrNotExist): // the process has not begun to reply to requests
				err = nil
			case errors.Is(err, fs.ErrExist): // that of another process, which may be dead
				if err = nil; others.dead(present.ID, at) {
					err = os.Remove(filepath.Join(run, requestFile))
				}
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return pebblestore.BackupReport{}, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return pebblestore.BackupReport{}, ctx.Err()
		}
	}
}

// put writes the request, unless there is one of another process: then the error is
// fs.ErrExist.
func (q *backupRequest) put(run string) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(run, requestFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// liveness tells a process that waits for a backup from one that died, by when its request
// was last touched. It measures with the clock of this process: the file's may be another.
type liveness struct {
	id      string
	touched time.Time
	since   time.Time // when this process first saw that time
}

// dead reports whether the request was not touched for requestPatience.
func (l *liveness) dead(id string, touched time.Time) bool {
	if l.since.IsZero() || l.id != id || !l.touched.Equal(touched) {
		*l = liveness{id, touched, time.Now()}
	}
	return time.Since(l.since) > requestPatience
}

// answerBackups makes the backups that other processes request with [RequestBackup], one
// after another, until the context ends. That also ends a backup under way; the process that
// requested it waits until this one has closed the store.
func answerBackups(ctx context.Context, db *pebblestore.DB, run string) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	answered, delivered := "", true
	var reply backupReply
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !delivered { // try again: the disk may have been full
			delivered = writeJSON(run, replyFile, &reply) == nil
		}
		var q backupRequest
		if _, err := readJSON(run, requestFile, &q); err != nil || q.ID == answered || q.Dir == "" {
			continue
		}
		r, err := backUpWhileWanted(ctx, db, run, &q)
		if ctx.Err() != nil {
			return
		}
		answered, delivered, reply = q.ID, false, backupReply{ID: q.ID, Report: r}
		if err != nil {
			reply.Error = err.Error()
		}
	}
}

// backUpWhileWanted makes a backup, and stops it when its request is gone or its process dead.
func backUpWhileWanted(ctx context.Context, db *pebblestore.DB, run string, q *backupRequest) (pebblestore.BackupReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		var waiting liveness
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var now backupRequest
			if touched, err := readJSON(run, requestFile, &now); err != nil || now.ID != q.ID || waiting.dead(now.ID, touched) {
				cancel()
			}
		}
	})
	return db.Backup(ctx, q.Dir, q.Options)
}
