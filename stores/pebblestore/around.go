package pebblestore

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskPage is how much is given up of a file where the disk fails. No disk or file
// system in use has larger sectors or smaller pages.
const diskPage = 4 << 10

// around reads a file whose disk has places that cannot be read: the pages that they
// are in are zeros, which no checksum takes for right. Pages in a row are told once,
// by where they begin.
type around struct {
	r    io.ReaderAt
	lost func(at int64, err error)
	bad  map[int64]bool // by number; a failing disk takes seconds to say so again
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

// behind returns where a place ends that was found not to be readable; at itself if it
// was not.
func (a *around) behind(at int64) int64 {
	for a.bad[at/diskPage] {
		at = (at/diskPage + 1) * diskPage
	}
	return at
}

// aroundFile is a file that is read so.
type aroundFile struct {
	vfs.File
	around *around
}

func (f aroundFile) ReadAt(b []byte, at int64) (int, error) { return f.around.ReadAt(b, at) }

// unreadable reports whether a file is there and cannot be read, as where a disk fails
// or a link leads to itself; but not one that may not be opened.
func unreadable(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && (failed.Op == "read" || errors.Is(err, syscall.ELOOP))
}
