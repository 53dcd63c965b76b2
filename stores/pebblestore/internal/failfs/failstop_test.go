package failfs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writesFS counts the writes to its files, which fail after some.
type writesFS struct {
	vfs.FS
	writes, most int
}

type writesFile struct {
	vfs.File
	fs *writesFS
}

var errWrites = errors.New("that was the last write")

func (f *writesFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return &writesFile{file, f}, err
}

func (f *writesFile) Write(p []byte) (int, error) {
	if f.fs.writes++; f.fs.writes > f.fs.most {
		return 0, errWrites
	}
	return f.File.Write(p)
}

// What is written to a table is gathered, and complete when it is synced or closed. A log
// is written at once. A failure ends the use of the disk whenever it comes.
func TestTablesAreWrittenInLargePieces(t *testing.T) {
	piece := bytes.Repeat([]byte("piece"), 600)
	const pieces, synced = 101, 51
	for _, test := range []struct {
		name         string
		most, writes int
	}{
		{"000001.sst", 100, 6}, {"bulk-links-0", 100, 6}, {"000002.log", 200, pieces},
		{"000003.sst", 1, 2}, {"000004.sst", 2, 3}, {"000005.sst", 5, 6},
	} {
		disk := &writesFS{FS: vfs.NewMem(), most: test.most}
		f := NewFailStop(disk, Hooks{OnFail: func(error) {}, Gather: func(name string) bool { return strings.HasPrefix(name, "bulk-") }})
		file, err := f.Create(test.name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		size := func() int {
			r, err := disk.Open(test.name)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			b, err := io.ReadAll(r)
			if want := bytes.Repeat(piece, pieces); err != nil || !bytes.HasPrefix(want, b) {
				t.Errorf("%s: %d bytes that are not what was written, %v", test.name, len(b), err)
			}
			return len(b)
		}
		var failed []error
		for i := range pieces {
			_, err := file.Write(bytes.Clone(piece)) // the engine lets files spoil it
			failed = append(failed, err)
			if i+1 == synced {
				failed = append(failed, file.Sync())
				if n := size(); n != synced*len(piece) && f.Failure() == nil {
					t.Errorf("%s: %d bytes when synced", test.name, n)
				}
			}
		}
		failed = append(failed, file.Close())
		if n := size(); n != pieces*len(piece) && f.Failure() == nil {
			t.Errorf("%s: %d bytes when closed", test.name, n)
		}
		if disk.writes != test.writes {
			t.Errorf("%s: %d writes, want %d", test.name, disk.writes, test.writes)
		}
		if fails := disk.writes > disk.most; fails != (f.Failure() != nil) || fails != (errors.Join(failed...) != nil) {
			t.Errorf("%s: %v, %v", test.name, f.Failure(), errors.Join(failed...))
		}
	}
}
