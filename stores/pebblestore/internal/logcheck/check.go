package logcheck

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// CheckLog distinguishes damage of a log from what a crash has cut off: each record
// says how far the log was synced when it was written, and a crash may lose sectors
// of the last record, but does not change them.
func CheckLog(under vfs.FS, path string) (Records, error) {
	r, err := ReadFile(under, path, LogNumber(path))
	if err == nil && r.Broken() {
		return Records{}, damage.At(path, r.End, ErrRecord)
	}
	return r, err
}

// LogNumber is the number of a log, which its records carry; zero for other
// files.
func LogNumber(path string) uint32 {
	text, ok := strings.CutSuffix(filepath.Base(path), ".log")
	n, err := strconv.ParseUint(text, 10, 32)
	if !ok || err != nil {
		return 0
	}
	return uint32(n)
}

func ReadFile(under vfs.FS, path string, number uint32) (Records, error) {
	f, err := under.Open(path)
	if err != nil {
		return Records{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Records{}, err
	}
	if info.Size() > MaxSize {
		return Records{}, damage.At(path, MaxSize, ErrLong)
	}
	return Read(f, info.Size(), number)
}

// CheckOptions protects the engine, which reads the whole file at once, from one that
// is far too long.
func CheckOptions(under vfs.FS, path string) error {
	info, err := under.Stat(path)
	if err == nil && info.Size() > storedir.MaxText {
		return damage.At(path, storedir.MaxText, ErrLong)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // opening it reports it
	}
	return err
}

var ErrLong = errors.New("it is far too long")

// CheckFiles checks the manifest and logs of a database, which may not exist yet.
// It reports what the engine will cut off their ends.
func CheckFiles(under vfs.FS, path string, torn func(file string, at, size int64)) error {
	names, err := under.List(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	manifest := CurrentManifest(names)
	for _, name := range names {
		full := under.PathJoin(path, name)
		var r Records
		switch {
		case name == manifest:
			r, err = CheckManifest(under, full, names)
		case strings.HasSuffix(name, ".log"):
			r, err = CheckLog(under, full)
		case strings.HasPrefix(name, "OPTIONS-"):
			err = CheckOptions(under, full)
		}
		if err != nil {
			return err
		}
		if r.Tail > 0 && torn != nil {
			torn(full, r.End, r.Tail)
		}
	}
	return nil
}

// ErrTorn says that a file ends with something that was being written.
var ErrTorn = errors.New("the rest is cut off: a crash left it incomplete")
