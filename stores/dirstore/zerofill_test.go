package dirstore

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"testing"
)

// failing is a file of ones whose disk fails in some sectors of 512 bytes.
type failing struct {
	size int64
	bad  map[int64]bool
}

func (f *failing) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		switch p := at + int64(n); {
		case p >= f.size:
			return n, io.EOF
		case f.bad[p/512]:
			return n, errSector
		}
		b[n] = 1
		n++
	}
	return n, nil
}

// Unreadable pages read as zeros and are reported once each; all else reads
// as it is, up to the end of the file.
func TestUnreadablePagesAreZero(t *testing.T) {
	const size = 5*DiskPage + 100
	f := &failing{size: size, bad: map[int64]bool{8: true, 16: true, 40: true}} // pages 1, 2 and 5
	want := bytes.Repeat([]byte{1}, size)
	clear(want[DiskPage : 3*DiskPage])
	clear(want[5*DiskPage:])
	for _, piece := range []int{1, 100, 512, DiskPage, DiskPage + 1, size} {
		var failed []int64
		r := NewZeroFillReader(f, func(at int64, err error) {
			if failed = append(failed, at); !errors.Is(err, errSector) {
				t.Error(err)
			}
		})
		var got []byte
		b := make([]byte, piece)
		for len(got) < size {
			n, err := r.ReadAt(b[:min(piece, size-len(got))], int64(len(got)))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b[:n]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("in pieces of %d bytes: other contents", piece)
		}
		if !reflect.DeepEqual(failed, []int64{DiskPage, 2 * DiskPage, 5 * DiskPage}) {
			t.Errorf("in pieces of %d bytes: reported at %v", piece, failed)
		}
		for at, want := range map[int64]int64{0: 0, DiskPage: 3 * DiskPage, 3*DiskPage - 1: 3 * DiskPage, 3 * DiskPage: 3 * DiskPage} {
			if next := r.ReadableFrom(at); next != want {
				t.Errorf("readable from %d is %d, want %d", at, next, want)
			}
		}
	}
}

type closedFile struct{}

func (closedFile) ReadAt([]byte, int64) (int, error) { return 0, fs.ErrClosed }

// A file that was closed is no failing disk.
func TestClosedFileIsAnError(t *testing.T) {
	r := NewZeroFillReader(closedFile{}, func(at int64, err error) { t.Errorf("reported at %d: %v", at, err) })
	if _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}
