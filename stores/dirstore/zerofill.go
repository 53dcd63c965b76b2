package dirstore

import (
	"errors"
	"io"
	"io/fs"
)

// DiskPage is the size, in bytes, of a piece of a file that is given up when the disk fails in it. No disk
// or file system in use has larger sectors or smaller pages.
const DiskPage = 4 << 10

// A ZeroFillReader fills the unreadable pages of a file with zeros, which no checksum accepts:
// for engines that look for the undamaged rest. Each page is tried once, because a failing disk
// takes seconds for each attempt. It is for use by one goroutine.
type ZeroFillReader struct {
	r      io.ReaderAt
	failed func(at int64, err error)
	bad    map[int64]bool // by number of the page
}

// NewZeroFillReader returns a reader of r. It calls failed once for each unreadable page, with
// its offset and the error of the disk.
func NewZeroFillReader(r io.ReaderAt, failed func(at int64, err error)) *ZeroFillReader {
	return &ZeroFillReader{r, failed, map[int64]bool{}}
}

// ReadAt implements [io.ReaderAt]. An error is io.EOF or wraps fs.ErrClosed.
func (z *ZeroFillReader) ReadAt(b []byte, at int64) (int, error) {
	if len(z.bad) == 0 {
		if n, err := z.r.ReadAt(b, at); n == len(b) || err == io.EOF {
			return n, err
		}
	}
	for n := 0; n < len(b); {
		from := at + int64(n)
		page := from / DiskPage
		to := min(len(b), n+int((page+1)*DiskPage-from))
		if !z.bad[page] {
			switch m, err := z.r.ReadAt(b[n:to], from); {
			case m == to-n:
			case err == io.EOF:
				return n + m, err
			case errors.Is(err, fs.ErrClosed):
				return n, err
			default:
				z.bad[page] = true
				z.failed(page*DiskPage, err)
			}
		}
		if z.bad[page] {
			clear(b[n:to])
		}
		n = to
	}
	return len(b), nil
}

// ReadableFrom returns the end of an unreadable run of pages; at itself if the place is readable.
func (z *ZeroFillReader) ReadableFrom(at int64) int64 {
	for z.bad[at/DiskPage] {
		at = (at/DiskPage + 1) * DiskPage
	}
	return at
}
