package pebblestore

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskPage is the size of a piece of a file that is given up when the disk fails in it.
// No disk or file system in use has larger sectors or smaller pages.
const diskPage = 4 << 10

// around reads a file whose disk has unreadable places: it fills the pages that
// contain them with zeros, which no checksum accepts. Consecutive pages are reported
// once, by their beginning.
type around struct {
	r    io.ReaderAt
	lost func(at int64, err error)
	bad  map[int64]bool // by number; a failing disk takes seconds for each attempt
}

func newAround(r io.ReaderAt, lost func(at int64, err error)) *around {
	return &around{r, lost, map[int64]bool{}}
}

func (a *around) ReadAt(b []byte, at int64) (int, error) {
	if len(a.bad) == 0 {
		if n, err := a.r.ReadAt(b, at); n == len(b) || err == io.EOF {
			return n, err
		}
	}
	for n := 0; n < len(b); {
		from := at + int64(n)
		page := from / diskPage
		to := min(len(b), n+int((page+1)*diskPage-from))
		if !a.bad[page] {
			switch m, err := a.r.ReadAt(b[n:to], from); {
			case m == to-n:
			case err == io.EOF:
				return n + m, err
			case errors.Is(err, fs.ErrClosed):
				return n, err
			default:
				if a.bad[page] = true; !a.bad[page-1] {
					a.lost(page*diskPage, err)
				}
			}
		}
		if a.bad[page] {
			clear(b[n:to])
		}
		n = to
	}
	return len(b), nil
}

// behind returns the end of an unreadable place; at itself if the place is readable.
func (a *around) behind(at int64) int64 {
	for a.bad[at/diskPage] {
		at = (at/diskPage + 1) * diskPage
	}
	return at
}

// aroundFile is a file read through an around.
type aroundFile struct {
	vfs.File
	around *around
}

func (f aroundFile) ReadAt(b []byte, at int64) (int, error) { return f.around.ReadAt(b, at) }

// unreadable reports whether a file exists and cannot be read, because the disk fails
// or a link leads to itself, for example; not whether opening it is forbidden.
func unreadable(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && (failed.Op == "read" || errors.Is(err, syscall.ELOOP))
}
