package segmenttest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/segment"
)

func blocksAreReadAsTheyWereAppended(c *check) {
	s := c.Store()
	blocks := hostile(5 << 20)
	for n := range 70 {
		blocks = append(blocks, bytes.Repeat([]byte{byte(n)}, n))
	}
	c.put(s, "seg", "open", false, blocks...)
	c.put(s, "seg", "done", true, blocks...)
	c.Twice(s, func(s segment.Store) {
		c.holds(s, "seg", "open", false, blocks)
		c.holds(s, "seg", "done", true, blocks)
	})
}

func partMayHaveNoBlocks(c *check) {
	s := c.Store()
	c.put(s, "seg", "open", false)
	c.put(s, "seg", "done", true)
	c.Twice(s, func(s segment.Store) {
		c.holds(s, "seg", "open", false, nil)
		c.holds(s, "seg", "done", true, nil)
		c.lists(s, "seg")
	})
}

func readBeginsWithRequestedBlock(c *check) {
	s := c.Store()
	blocks := some("b", 6)
	c.put(s, "seg", "open", false, blocks...)
	c.put(s, "seg", "done", true, blocks...)
	c.Twice(s, func(s segment.Store) {
		for _, part := range []string{"open", "done"} {
			for from := range len(blocks) + 1 {
				c.same(c.read(s, "seg", part, from), blocks[from:], "Read seg/%s from %d", part, from)
			}
			for _, from := range []int{len(blocks) + 1, 1 << 30} {
				c.same(c.read(s, "seg", part, from), nil, "Read seg/%s from %d", part, from)
			}
		}
	})
}

func partThatIsBeingWrittenCanBeRead(c *check) {
	s := c.Store()
	blocks := some("b", 4)
	w := c.writer(s, "seg", "part", 0)
	c.holds(s, "seg", "part", false, nil)
	for i, b := range blocks {
		c.append(w, b)
		c.holds(s, "seg", "part", false, blocks[:i+1])
	}
	c.Must(w.Commit(c.Ctx), "Commit")
	c.holds(s, "seg", "part", true, blocks)
}

func statReturnsSize(c *check) {
	s := c.Store()
	c.put(s, "seg", "small", true, []byte("x"))
	c.put(s, "seg", "large", true, hostile(1<<20)...)
	c.Twice(s, func(s segment.Store) {
		small, err := s.Stat(c.Ctx, "seg", "small")
		c.Must(err, "Stat")
		large, err := s.Stat(c.Ctx, "seg", "large")
		c.Must(err, "Stat")
		// The large one has 1 MiB of noise, which cannot be compressed.
		if small.Bytes <= 0 || large.Bytes < 1<<20 || large.Bytes <= small.Bytes {
			c.Failf("sizes are %d and %d bytes", small.Bytes, large.Bytes)
		}
	})
}

func missingPartIsErrNotFound(c *check) {
	s := c.Store()
	c.missing(s, "seg", "part")
	c.put(s, "seg", "part", true)
	s = c.Twice(s, func(s segment.Store) {
		c.missing(s, "seg", "other")
		c.missing(s, "other", "part")
		c.missing(s, "part", "seg")
	})
	c.lists(s, "seg")
}

func callerOwnsWhatItGets(c *check) {
	s := c.Store()
	blocks := [][]byte{[]byte("first"), []byte("other"), []byte("third")}
	c.put(s, "seg", "part", true, blocks...)
	var got [][]byte
	for b, err := range s.Read(c.Ctx, "seg", "part", 0) {
		c.Must(err, "Read")
		got = append(got, b)
	}
	c.same(got, blocks, "blocks kept until the end of the loop")
	for _, b := range got {
		clear(b[:cap(b)])
	}
	c.holds(s, "seg", "part", true, blocks)
}

func storeKeepsNoMemoryOfItsCaller(c *check) {
	s := c.Store()
	w := c.writer(s, "seg", "part", 0)
	block := make([]byte, 100)
	var want [][]byte
	for i := range 10 {
		copy(block, strings.Repeat(fmt.Sprint(i), len(block)))
		c.append(w, block)
		want = append(want, bytes.Clone(block))
	}
	copy(block, "changed after Append returned")
	c.Must(w.Commit(c.Ctx), "Commit")
	c.holds(s, "seg", "part", true, want)
}

func loopMayBreak(c *check) {
	s := c.Store()
	blocks := some("b", 3)
	c.put(s, "seg", "part", true, blocks...)
	c.put(s, "seg2", "part", false, blocks...)
	c.Within("a loop over blocks that uses the store", func() {
		for b, err := range s.Read(c.Ctx, "seg", "part", 0) {
			c.Must(err, "Read")
			c.holds(s, "seg", "part", true, blocks)
			c.put(s, "seg", "copy", false, b)
			c.lists(s, "seg", "seg2")
		}
		c.holds(s, "seg", "copy", false, blocks[2:])
	})
	c.Within("a loop over names that uses the store", func() {
		for name, err := range s.List(c.Ctx) {
			c.Must(err, "List")
			c.put(s, name, "other", false, []byte(name))
		}
	})
	c.Within("calls after a loop that broke", func() {
		for range s.List(c.Ctx) {
			break
		}
		for range s.Read(c.Ctx, "seg", "part", 0) {
			break
		}
		for range s.Read(c.Ctx, "seg2", "part", 0) {
			break
		}
		c.append(c.writer(s, "seg2", "part", 0), blocks...)
		c.Must(s.Remove(c.Ctx, "seg"), "Remove")
		c.lists(s, "seg2")
	})
}
