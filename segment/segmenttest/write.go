package segmenttest

import (
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/segment"
)

func appendKeepsBlocksItIsToldTo(c *check) {
	for _, keep := range []int{-1, -7, 0, 1, 3, 4, 5} {
		s, part := c.Store(), fmt.Sprintf("keep%d", keep) // as messages have it
		old, added := some("old", 5), some("new", 3)
		c.put(s, "seg", part, false, old...)
		want := slices.Clone(old)
		if keep >= 0 {
			want = want[:keep]
		}
		w := c.writer(s, "seg", part, keep)
		c.holds(s, "seg", part, false, want)
		for _, b := range added {
			c.append(w, b)
			want = append(want, b)
			c.holds(s, "seg", part, false, want)
		}
		c.Must(w.Close(), "Close")
		s = c.Twice(s, func(s segment.Store) { c.holds(s, "seg", part, false, want) })
		w = c.writer(s, "seg", part, -1)
		c.Must(w.Commit(c.Ctx), "Commit")
		c.Twice(s, func(s segment.Store) { c.holds(s, "seg", part, true, want) })
	}
}

func appendThatKeepsTooManyIsErrNotFound(c *check) {
	s := c.Store()
	refused := func(seg, part string, keep int) {
		w, err := s.Append(c.Ctx, seg, part, keep)
		if err == nil {
			w.Close()
		}
		c.Is(err, segment.ErrNotFound, "Append %s/%s, keep %d", seg, part, keep)
	}
	refused("seg", "part", 1)
	c.missing(s, "seg", "part")
	c.lists(s)
	blocks := some("b", 2)
	c.put(s, "seg", "part", false, blocks...)
	refused("seg", "part", 3)
	c.holds(s, "seg", "part", false, blocks)
	refused("seg", "other", 1)
	c.missing(s, "seg", "other")
	c.append(c.writer(s, "seg", "part", 2), []byte("more"))
	c.holds(s, "seg", "part", false, append(blocks, []byte("more")))
}

func partHasOneWriter(c *check) {
	s := c.Store()
	blocks := some("b", 2)
	w := c.writer(s, "seg", "part", 0)
	c.append(w, blocks...)
	for _, keep := range []int{-1, 0, 1, 99} {
		second, err := s.Append(c.Ctx, "seg", "part", keep)
		if err == nil {
			second.Close()
		}
		c.Is(err, segment.ErrBusy, "Append with a writer open, keep %d", keep)
	}
	c.holds(s, "seg", "part", false, blocks)
	c.writer(s, "seg", "other", 0)
	c.writer(s, "other", "part", 0)
	c.append(w, []byte("more"))
	c.Must(w.Close(), "Close")
	w = c.writer(s, "seg", "part", -1)
	c.holds(s, "seg", "part", false, append(blocks, []byte("more")))
	c.Must(w.Commit(c.Ctx), "Commit")
}

func committedPartIsComplete(c *check) {
	s := c.Store()
	blocks := some("b", 3)
	c.put(s, "seg", "part", true, blocks...)
	c.Twice(s, func(s segment.Store) {
		for _, keep := range []int{-1, 0, 1, 3, 4} {
			w, err := s.Append(c.Ctx, "seg", "part", keep)
			if err == nil {
				w.Close()
			}
			c.Is(err, segment.ErrCommitted, "Append to a committed part, keep %d", keep)
		}
		c.holds(s, "seg", "part", true, blocks)
	})
}

func closedWriterLeavesPartOpen(c *check) {
	s := c.Store()
	blocks := some("b", 5)
	for i, b := range blocks {
		w := c.writer(s, "seg", "part", i)
		c.append(w, b)
		c.Must(w.Close(), "Close")
		s = c.Twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, blocks[:i+1]) })
	}
}

func writerAfterCloseOrCommitIsErrClosed(c *check) {
	s := c.Store()
	for _, part := range []string{"open", "done"} {
		w := c.writer(s, "seg", part, 0)
		c.append(w, []byte("block"))
		if part == "done" {
			c.Must(w.Commit(c.Ctx), "Commit")
		} else {
			c.Must(w.Close(), "Close")
		}
		for range 2 {
			c.Is(w.Append(c.Ctx, []byte("late")), segment.ErrClosed, "Append to the writer of part %s", part)
			c.Is(w.Sync(c.Ctx), segment.ErrClosed, "Sync of the writer of part %s", part)
			c.Is(w.Commit(c.Ctx), segment.ErrClosed, "Commit of the writer of part %s", part)
			c.Must(w.Close(), "second Close of the writer of part %s", part)
		}
		c.holds(s, "seg", part, part == "done", [][]byte{[]byte("block")})
	}
	// And it does not affect a later writer.
	old := c.writer(s, "seg", "part", 0)
	c.Must(old.Close(), "Close")
	w := c.writer(s, "seg", "part", 0)
	c.Must(old.Close(), "second Close")
	c.Is(old.Append(c.Ctx, []byte("late")), segment.ErrClosed, "Append to a closed writer")
	c.append(w, []byte("block"))
	c.Must(w.Commit(c.Ctx), "Commit")
	c.holds(s, "seg", "part", true, [][]byte{[]byte("block")})
}

func syncHasNoVisibleEffect(c *check) {
	s := c.Store()
	w := c.writer(s, "seg", "part", 0)
	blocks := some("b", 4)
	for i, b := range blocks {
		c.Must(w.Sync(c.Ctx), "Sync")
		c.append(w, b)
		c.Must(w.Sync(c.Ctx), "Sync")
		c.holds(s, "seg", "part", false, blocks[:i+1])
	}
	c.Must(w.Close(), "Close")
	c.Twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, blocks) })
}

func removeDeletesSegmentWithAllItsParts(c *check) {
	s := c.Store()
	blocks := some("b", 3)
	for _, seg := range []string{"a", "aa", "a-", "b"} {
		c.put(s, seg, "open", false, blocks...)
		c.put(s, seg, "done", true, blocks...)
	}
	c.Must(s.Remove(c.Ctx, "a"), "Remove")
	s = c.Twice(s, func(s segment.Store) {
		c.missing(s, "a", "open")
		c.missing(s, "a", "done")
		c.lists(s, "a-", "aa", "b")
		for _, seg := range []string{"aa", "a-", "b"} {
			c.holds(s, seg, "open", false, blocks)
			c.holds(s, seg, "done", true, blocks)
		}
	})
	// A new segment of the same name has nothing of the old one.
	c.put(s, "a", "done", false, []byte("fresh"))
	c.Twice(s, func(s segment.Store) {
		c.holds(s, "a", "done", false, [][]byte{[]byte("fresh")})
		c.missing(s, "a", "open")
	})
}

func removeOfMissingSegmentDoesNothing(c *check) {
	s := c.Store()
	c.Must(s.Remove(c.Ctx, "seg"), "Remove from an empty store")
	c.put(s, "seg", "part", true)
	for range 2 {
		c.Must(s.Remove(c.Ctx, "seg"), "Remove")
	}
	c.Must(s.Remove(c.Ctx, "part"), "Remove")
	c.lists(s)
}

func removeIsErrBusyWhilePartIsBeingWritten(c *check) {
	s := c.Store()
	blocks := some("b", 3)
	c.put(s, "seg", "done", true, blocks...)
	w := c.writer(s, "seg", "part", 0)
	c.append(w, blocks...)
	c.Is(s.Remove(c.Ctx, "seg"), segment.ErrBusy, "Remove with a writer open")
	c.holds(s, "seg", "done", true, blocks)
	c.holds(s, "seg", "part", false, blocks)
	c.append(w, []byte("more"))
	c.Must(w.Close(), "Close")
	c.holds(s, "seg", "part", false, append(blocks, []byte("more")))
	c.Must(s.Remove(c.Ctx, "seg"), "Remove")
	c.lists(s)
}
