package segmenttest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/recrawl/recrawl/segment"
)

func (c *check) writer(s segment.Store, seg, part string, keep int) segment.BlockWriter {
	w, err := s.Append(c.Ctx, seg, part, keep)
	c.Must(err, "Append %s/%s, keep %d", seg, part, keep)
	if w == nil {
		c.Failf("Append %s/%s returned no writer", seg, part)
	}
	c.writers = append(c.writers, w)
	return w
}

func (c *check) append(w segment.BlockWriter, blocks ...[]byte) {
	for i, b := range blocks {
		c.Must(w.Append(c.Ctx, b), "Append of block %d", i)
	}
}

// put writes a part: committed, or left open without a writer.
func (c *check) put(s segment.Store, seg, part string, commit bool, blocks ...[]byte) {
	w := c.writer(s, seg, part, 0)
	c.append(w, blocks...)
	if commit {
		c.Must(w.Commit(c.Ctx), "Commit %s/%s", seg, part)
	}
	c.Must(w.Close(), "Close of the writer of %s/%s", seg, part)
}

func (c *check) read(s segment.Store, seg, part string, from int) [][]byte {
	var all [][]byte
	for b, err := range s.Read(c.Ctx, seg, part, from) {
		c.Must(err, "Read %s/%s from %d, block %d", seg, part, from, from+len(all))
		all = append(all, b)
	}
	return all
}

// holds demands that Stat and Read agree that the part has these blocks.
func (c *check) holds(s segment.Store, seg, part string, committed bool, want [][]byte) {
	c.same(c.read(s, seg, part, 0), want, "Read %s/%s", seg, part)
	info, err := s.Stat(c.Ctx, seg, part)
	c.Must(err, "Stat %s/%s", seg, part)
	if info.Blocks != len(want) || info.Committed != committed {
		c.Failf("Stat %s/%s: %d blocks, committed %v; want %d, %v", seg, part, info.Blocks, info.Committed, len(want), committed)
	}
}

func (c *check) same(got, want [][]byte, format string, args ...any) {
	if err := same(got, want); err != nil {
		c.Failf("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

func same(got, want [][]byte) error {
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("block %d is %s, want %s", i, show(got[i]), show(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d blocks, want %d", len(got), len(want))
	}
	return nil
}

func show(b []byte) string {
	if len(b) <= 16 {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q... (%d bytes)", b[:16], len(b))
}

// missing demands that there is no such part.
func (c *check) missing(s segment.Store, seg, part string) {
	info, err := s.Stat(c.Ctx, seg, part)
	c.Is(err, segment.ErrNotFound, "Stat %s/%s", seg, part)
	if info != (segment.Info{}) {
		c.Failf("Stat %s/%s returned %+v with the error", seg, part, info)
	}
	for _, from := range []int{0, 5} {
		c.Is(c.readError(c.Ctx, s, seg, part, from), segment.ErrNotFound, "Read %s/%s from %d", seg, part, from)
	}
}

// readError demands that Read yields one error and no block, and returns the error.
func (c *check) readError(ctx context.Context, s segment.Store, seg, part string, from int) error {
	steps := 0
	var last error
	for b, err := range s.Read(ctx, seg, part, from) {
		if steps++; err == nil || b != nil {
			c.Failf("Read %s/%s yielded block %s and error %v, want only an error", seg, part, show(b), err)
		}
		last = err
	}
	if steps > 1 {
		c.Failf("Read %s/%s went on after an error", seg, part)
	}
	return last
}

func (c *check) list(s segment.Store) []string {
	var names []string
	for name, err := range s.List(c.Ctx) {
		c.Must(err, "List")
		names = append(names, name)
	}
	return names
}

func (c *check) lists(s segment.Store, want ...string) {
	if got := c.list(s); !slices.Equal(got, want) {
		c.Failf("List yielded %q, want %q", got, want)
	}
}

// some returns n blocks, different for each tag.
func some(tag string, n int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, fmt.Appendf(nil, "%s, block %d", tag, i))
	}
	return all
}

// hostile returns blocks that a careless store might not return unchanged, one of
// them large.
func hostile(large int) [][]byte {
	r := rand.NewChaCha8([32]byte{1})
	noise := func(n int) []byte {
		b := make([]byte, n)
		r.Read(b)
		return b
	}
	return [][]byte{
		{}, {0}, {0xff}, []byte("\n"), {}, {}, noise(1), []byte("\r\n\r\n"),
		make([]byte, 4096), bytes.Repeat([]byte{0xff}, 4097), noise(65535), noise(65536), noise(65537),
		noise(large), []byte("a block after a large one"), {},
	}
}
