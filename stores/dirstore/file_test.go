package dirstore

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/recrawl/recrawl/segment"
)

// encode makes a file of blocks.
func encode(commit bool, blocks ...[]byte) []byte {
	out := appendHead(nil, "file")
	sum := int64(0)
	for i, b := range blocks {
		out = append(appendFrame(out, i, b), b...)
		sum += int64(len(b))
	}
	if commit {
		out = appendFoot(out, len(blocks), sum)
	}
	return out
}

// Whatever a file holds, reading it ends, with blocks that are in it or with an
// error that names the damage.
func FuzzFile(f *testing.F) {
	for _, commit := range []bool{false, true} {
		f.Add(encode(commit), commit)
		f.Add(encode(commit, small()...), commit)
		f.Add(encode(commit, small()...), !commit)
		f.Add(encode(commit, bytes.Repeat([]byte{1}, 300))[:200], commit)
		// A size that is not in the file, under a check that is right.
		frame := appendFrame(appendHead(nil, "file"), 0, nil)
		frame[headSize], frame[headSize+4] = 0x3f, 0
		f.Add(frame, commit)
		f.Add(appendFoot(appendHead(nil, "file"), math.MaxInt, -1), commit)
		f.Add([]byte(magic+"\x00\x00\x00\x01"), commit)
		f.Add([]byte(magic+"\x00\x00\x00\x03"), commit)
		f.Add([]byte{}, commit)
	}
	f.Fuzz(func(t *testing.T, data []byte, committed bool) {
		r := bytes.NewReader(data)
		var corrupt *segment.CorruptError
		b, err := openBlocks(r, int64(len(data)), "file", committed)
		if err != nil {
			if !errors.As(err, &corrupt) || corrupt.File != "file" || corrupt.Offset > int64(len(data)) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		skipper, err := openBlocks(r, int64(len(data)), "file", committed)
		if err != nil {
			t.Fatal(err)
		}
		var blocks [][]byte
		for {
			block, err := b.next(false)
			_, skipErr := skipper.next(true)
			if err == io.EOF {
				if skipErr != io.EOF {
					t.Fatalf("skipping ends with %v", skipErr)
				}
				break
			}
			if err != nil {
				if !committed || !errors.As(err, &corrupt) || corrupt.Offset > int64(len(data)) {
					t.Fatalf("block %d: %v", len(blocks), err)
				}
				return
			}
			if skipErr != nil {
				t.Fatalf("skipping block %d: %v", len(blocks), skipErr)
			}
			blocks = append(blocks, block)
		}
		// What was read without an error is what such a file holds.
		want := encode(committed, blocks...)
		if len(data) >= headSize && data[headSize-1] < version { // whose heads are others
			copy(want[len(magic):], data[len(magic):headSize])
		}
		if b.at > 0 && !bytes.HasPrefix(data, want) || committed && len(want) != len(data) {
			t.Fatalf("%d blocks were read that are not in the file", len(blocks))
		}
	})
}

func TestFrameChecksItsNumber(t *testing.T) {
	// The second block is the first once more.
	data := appendHead(nil, "file")
	for range 2 {
		data = append(appendFrame(data, 0, []byte("x")), 'x')
	}
	data = appendFoot(data, 2, 2)
	b, err := openBlocks(bytes.NewReader(data), int64(len(data)), "file", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.next(false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.next(false); !errors.Is(err, errFrame) {
		t.Errorf("a repeated block: %v", err)
	}
}
