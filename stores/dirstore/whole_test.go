package dirstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/segment"
)

// wholeOf returns the numbers of the whole blocks of a part, which must be as they were
// written, and the damage reported.
func wholeOf(t *testing.T, s *Store, seg, part string, want [][]byte) (numbers []int, told []error) {
	t.Helper()
	for b, err := range s.Whole(t.Context(), seg, part) {
		var damage *segment.CorruptError
		switch {
		case errors.As(err, &damage):
			told = append(told, err)
		case err != nil:
			t.Fatal(err)
		case !bytes.Equal(b.Block, want[b.Number]):
			t.Errorf("block %d is %.20q, and was %.20q", b.Number, b.Block, want[b.Number])
		default:
			numbers = append(numbers, b.Number)
		}
	}
	return numbers, told
}

var errSector = errors.New("input/output error")

// sectors is a file system whose files cannot be read in some places.
type sectors struct {
	FS
	from, to int64
}

type sectorFile struct {
	File
	from, to int64
}

func (s *sectors) OpenFile(name string, flag int) (File, error) {
	f, err := s.FS.OpenFile(name, flag)
	return &sectorFile{f, s.from, s.to}, err
}

func (f *sectorFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.to && at+int64(len(b)) > f.from {
		return 0, errSector
	}
	return f.File.ReadAt(b, at)
}

// Where the disk fails the blocks there are lost, and no others, whether they are
// lost by what says where blocks begin, by the head or by the foot.
func TestWholeAroundReadErrors(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]byte
	for i := range 8 {
		blocks = append(blocks, bytes.Repeat([]byte{byte('a' + i)}, 3000))
	}
	put(t, s, "seg", "part", true, blocks...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const frame = frameSize + 3000
	size := int64(headSize + 8*frame + footSize)
	for _, tt := range []struct {
		what     string
		from, to int64
		lost     []int
	}{
		{"nothing", 0, 0, nil},
		{"the head", 0, 512, []int{0, 1}},
		{"a sector", 5 * DiskPage, 5*DiskPage + 512, []int{6, 7}},
		{"the header of block 4", headSize + 4*frame, headSize + 4*frame + 1, []int{4}},
		{"the foot", size - 1, size, []int{6, 7}},
		{"all", 0, size, []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{FS: &sectors{dirFS{root}, tt.from, tt.to}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			numbers, told := wholeOf(t, s, "seg", "part", blocks)
			var lost []int
			for k := range blocks {
				if !slices.Contains(numbers, k) {
					lost = append(lost, k)
				}
			}
			if !slices.Equal(lost, tt.lost) {
				t.Errorf("blocks %v are lost, want %v: %v", lost, tt.lost, told)
			}
			if err := errors.Join(told...); (err != nil) != (tt.to > 0) || err != nil && !errors.Is(err, errSector) {
				t.Errorf("errors %v, want the error of the disk", err)
			}
		})
	}
}

// A file of another segment or part gives no block to this one, though each is whole;
// one whose own place has lost a bit does.
func TestWholeOfAnotherPlace(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	blocks := small()
	put(t, s, "seg", "part", true, blocks...)
	put(t, s, "other", "part", true, blocks...)
	put(t, s, "seg", "other", true, blocks...)
	put(t, s, "seg", "open", false, blocks...)
	name := func(seg, part string) string { return filepath.Join(s.dir, seg, part) }
	own, err := os.ReadFile(name("seg", "part"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{name("other", "part"), name("seg", "other"), name("seg", "open.open")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name("seg", "part"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		if numbers, told := wholeOf(t, s, "seg", "part", blocks); len(numbers) > 0 || len(told) != 1 || !errors.Is(told[0], errPlace) {
			t.Errorf("%s in its place: blocks %v, errors %v", from, numbers, told)
		}
	}
	for bit := range 32 {
		b := bytes.Clone(own)
		b[len(magic)+bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(name("seg", "part"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		if numbers, told := wholeOf(t, s, "seg", "part", blocks); len(numbers) != len(blocks) || len(told) == 0 {
			t.Errorf("bit %d of the place flipped: blocks %v, errors %v", bit, numbers, fmt.Sprint(told))
		}
	}
}
