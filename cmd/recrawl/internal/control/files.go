// Package control is how processes of the command talk about a crawl that one of them has
// open: what the running one reports of itself, and the backups and changes that others request from it. It
// does not open crawls; its files are in the directory of [pebblestore.RunDir]. Announce is
// the side of the running process, ReadRunStatus, RequestBackup and FeedClient
// are that of the others.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The files of this package.
const (
	statusFile  = "status.json"
	requestFile = "backup-request.json" // empty until it is written
	replyFile   = "backup-reply.json"
)

// maxFile limits what is read: any process may have put a file there.
const maxFile = 128 << 20

// writeJSON replaces a file by the encoding of v: a reader sees the old contents or the new.
func writeJSON(dir, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	made := filepath.Join(dir, name+".new")
	if err := os.WriteFile(made, text, 0o644); err != nil {
		return err
	}
	return os.Rename(made, filepath.Join(dir, name))
}

// readJSON decodes a file into v, and returns when it was written. The error wraps
// fs.ErrNotExist if there is none, or an invalid one: its writer may not be done.
func readJSON(dir, name string, v any) (written time.Time, err error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return written, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return written, fmt.Errorf("%s is not a regular file: %w", path, fs.ErrNotExist)
	}
	f, err := os.Open(path)
	if err != nil {
		return written, err
	}
	if info, err = f.Stat(); err == nil {
		written = info.ModTime()
	}
	text, rerr := io.ReadAll(io.LimitReader(f, maxFile))
	if err = errors.Join(err, rerr, f.Close()); err != nil {
		return written, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return written, fmt.Errorf("%s is invalid (%v): %w", path, err, fs.ErrNotExist)
	}
	return written, nil
}
