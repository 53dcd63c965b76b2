package dirstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/recrawl/recrawl/segment"
)

// A WholeBlock is a block that was found whole in a file.
type WholeBlock struct {
	// Number is that of the block in its part, and Offset where it begins.
	Number int
	Offset int64
	Block  []byte
}

// Whole yields every undamaged block of a part, those after damage included, in the
// order of their numbers. Each damaged place comes as an error that is a
// *segment.CorruptError, and does not end the sequence; any other error does. A part
// that is not committed ends where it was cut off; if that is within a block, it is
// reported as damage. What the disk fails to return is damage like any other, and in
// a file of another segment or part no block belongs to this one.
func (s *Store) Whole(ctx context.Context, seg, part string) iter.Seq2[WholeBlock, error] {
	return func(yield func(WholeBlock, error) bool) {
		err := s.whole(ctx, seg, part, yield)
		if err != nil && !errors.Is(err, errStop) {
			yield(WholeBlock{}, failed("read", err, seg, part))
		}
	}
}

// errStop says that the caller left the loop.
var errStop = errors.New("stop")

// inRow is how many blocks in a row may be lost before those after them are not
// found.
const inRow = 64

func (s *Store) whole(ctx context.Context, seg, part string, yield func(WholeBlock, error) bool) error {
	f, size, name, committed, err := s.raw(ctx, seg, part)
	if err != nil {
		return err
	}
	defer f.Close()
	var unread error // of the last unreadable page, until it is reported
	disk := NewZeroFillReader(f, func(_ int64, err error) { unread = err })
	b, err := openBlocks(disk, size, name, committed)
	tell := func(err error) error {
		var damage *segment.CorruptError
		if unread != nil && errors.As(err, &damage) {
			err = &segment.CorruptError{File: damage.File, Offset: damage.Offset, Err: fmt.Errorf("%w: %w", damage.Err, unread)}
			unread = nil
		}
		if !yield(WholeBlock{}, failed("read", err, seg, part)) {
			return errStop
		}
		return nil
	}
	switch {
	case errors.Is(err, errPlace) && foreign(disk, name, size):
		return tell(err)
	case err == nil && b.end == 0 && size >= headSize:
		err = b.corrupt(0, errHead)
		fallthrough
	case damage(err) || errors.Is(err, errHead) || errors.Is(err, errFoot) || errors.Is(err, errPlace) || errors.Is(err, ErrVersion):
		// Neither head nor foot is needed to find the blocks.
		if err := tell(err); err != nil {
			return err
		}
		b = &blockFile{end: size}
	case err != nil:
		return err
	case b.end == 0:
		return nil
	}
	end := b.end
	r := &blockFile{r: disk, name: name, end: end, at: headSize}
	foot := committed && end == size-footSize
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, number := r.at, r.number
		block, n, err := r.frame(false)
		switch {
		case err == nil:
			if !yield(WholeBlock{number, at, block}, nil) {
				return errStop
			}
			r.at, r.number = at+frameSize+n, number+1
			continue
		case err == io.EOF:
			if foot && number != b.blocks {
				return tell(r.corrupt(at, errEnd))
			}
			return nil
		case !damage(err):
			return err
		}
		// The foot of a file that did not look committed is not a block.
		if !foot && end-at == footSize && footAt(disk, at, end) {
			return nil
		}
		if err := tell(r.corrupt(at, err)); err != nil {
			return err
		}
		if r.at, r.number, err = nextFrame(ctx, disk, at, end, number, errors.Is(err, errHash)); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// foreign reports whether a file belongs to another place, rather than having a
// flipped bit in its own place: the head has no sum.
func foreign(r io.ReaderAt, name string, size int64) bool {
	var head [headSize]byte
	if readAt(r, head[:], 0, size) != nil {
		return false
	}
	place := binary.BigEndian.Uint32(head[len(magic):]) >> 8
	for v := byte(1); v <= version; v++ {
		if bits.OnesCount32(place^placeOf(name, v)) <= 1 {
			return false
		}
	}
	return true
}

func footAt(r io.ReaderAt, at, end int64) bool {
	var b [4]byte
	return readAt(r, b[:], at, end) == nil && binary.BigEndian.Uint32(b[:]) == footMark
}

// emptyHash is that of an empty block.
const emptyHash = 0xef46db3751d8e999

// nextFrame looks for the block after a damaged one that begins at a place. If
// the header of the damaged one is good, its size is known.
func nextFrame(ctx context.Context, r io.ReaderAt, at, end int64, number int, known bool) (int64, int, error) {
	if known {
		var h [4]byte
		if err := readAt(r, h[:], at, end); err != nil {
			return 0, 0, err
		}
		return at + frameSize + int64(binary.BigEndian.Uint32(h[:])), number + 1, nil
	}
	buf := make([]byte, 64<<10)
	for from := at + 1; end-from >= frameSize; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		b := buf[:min(int64(len(buf)), end-from)]
		if err := readAt(r, b, from, end); err != nil {
			return 0, 0, err
		}
		for i := 0; i+frameSize <= len(b); i++ {
			n, check, hash := binary.BigEndian.Uint32(b[i:]), binary.BigEndian.Uint32(b[i+4:]), binary.BigEndian.Uint64(b[i+8:])
			// Nor is each byte of a hole in a file an empty block.
			if int64(n) > end-from-int64(i)-frameSize || n == 0 && hash != emptyHash {
				continue
			}
			for k := number; k <= number+inRow; k++ {
				if checkFrame(k, n, hash) == check {
					return from + int64(i), k, nil
				}
			}
		}
		from += int64(len(b)) - frameSize + 1
	}
	return 0, 0, io.EOF
}

// raw opens the file of a part as it is.
func (s *Store) raw(ctx context.Context, seg, part string) (f File, size int64, name string, committed bool, err error) {
	err = s.use(ctx, []string{seg, part}, func() (err error) {
		name = path.Join(seg, part)
		committed = true
		f, size, err = openFile(s.fs, name, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			name += openSuffix
			committed = false
			f, size, err = openFile(s.fs, name, os.O_RDONLY)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return segment.ErrNotFound
		}
		return err
	})
	return f, size, filepath.Join(s.dir, filepath.FromSlash(name)), committed, err
}

// Parts returns the names of the parts of a segment, and whether each is
// committed, whatever the files contain.
func (s *Store) Parts(ctx context.Context, seg string) (map[string]bool, error) {
	parts := map[string]bool{}
	err := s.use(ctx, []string{seg}, func() error {
		entries, err := readDir(s.fs, seg)
		for _, e := range entries {
			if !isPart(e) {
				continue
			}
			name := strings.TrimSuffix(e.Name(), openSuffix)
			parts[name] = parts[name] || name == e.Name()
		}
		return err
	})
	if err != nil {
		return nil, failed("list", err, seg)
	}
	return parts, nil
}
