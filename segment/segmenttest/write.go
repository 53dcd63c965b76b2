package segmenttest

import (
	"slices"

	"github.com/recrawl/recrawl/segment"
)

func writeRules() []rule {
	return []rule{
		{"Append keeps the blocks it is told to", 0, func(c *check) {
			for _, keep := range []int{-1, -7, 0, 1, 3, 4, 5} {
				s := c.store()
				old, added := some("old", 5), some("new", 3)
				c.put(s, "seg", "part", false, old...)
				want := slices.Clone(old)
				if keep >= 0 {
					want = want[:keep]
				}
				w := c.writer(s, "seg", "part", keep)
				c.holds(s, "seg", "part", false, want)
				for _, b := range added {
					c.append(w, b)
					want = append(want, b)
					c.holds(s, "seg", "part", false, want)
				}
				c.must(w.Close(), "Close")
				s = c.twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, want) })
				w = c.writer(s, "seg", "part", -1)
				c.must(w.Commit(c.ctx), "Commit")
				c.twice(s, func(s segment.Store) { c.holds(s, "seg", "part", true, want) })
			}
		}},
		{"Append that is to keep too much is ErrNotFound and changes nothing", 0, func(c *check) {
			s := c.store()
			refused := func(seg, part string, keep int) {
				w, err := s.Append(c.ctx, seg, part, keep)
				if err == nil {
					w.Close()
				}
				c.is(err, segment.ErrNotFound, "Append %s/%s, keep %d", seg, part, keep)
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
		}},
		{"a part has one writer", 0, func(c *check) {
			s := c.store()
			blocks := some("b", 2)
			w := c.writer(s, "seg", "part", 0)
			c.append(w, blocks...)
			for _, keep := range []int{-1, 0, 1, 99} {
				second, err := s.Append(c.ctx, "seg", "part", keep)
				if err == nil {
					second.Close()
				}
				c.is(err, segment.ErrBusy, "Append with a writer open, keep %d", keep)
			}
			c.holds(s, "seg", "part", false, blocks)
			c.writer(s, "seg", "other", 0)
			c.writer(s, "other", "part", 0)
			c.append(w, []byte("more"))
			c.must(w.Close(), "Close")
			w = c.writer(s, "seg", "part", -1)
			c.holds(s, "seg", "part", false, append(blocks, []byte("more")))
			c.must(w.Commit(c.ctx), "Commit")
		}},
		{"a committed part is complete", 0, func(c *check) {
			s := c.store()
			blocks := some("b", 3)
			c.put(s, "seg", "part", true, blocks...)
			c.twice(s, func(s segment.Store) {
				for _, keep := range []int{-1, 0, 1, 3, 4} {
					w, err := s.Append(c.ctx, "seg", "part", keep)
					if err == nil {
						w.Close()
					}
					c.is(err, segment.ErrCommitted, "Append to a committed part, keep %d", keep)
				}
				c.holds(s, "seg", "part", true, blocks)
			})
		}},
		{"a writer that is closed leaves the part open", 0, func(c *check) {
			s := c.store()
			blocks := some("b", 5)
			for i, b := range blocks {
				w := c.writer(s, "seg", "part", i)
				c.append(w, b)
				c.must(w.Close(), "Close")
				s = c.twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, blocks[:i+1]) })
			}
		}},
		{"a writer that ended is ErrClosed", 0, func(c *check) {
			s := c.store()
			for _, part := range []string{"open", "done"} {
				w := c.writer(s, "seg", part, 0)
				c.append(w, []byte("block"))
				if part == "done" {
					c.must(w.Commit(c.ctx), "Commit")
				} else {
					c.must(w.Close(), "Close")
				}
				for range 2 {
					c.is(w.Append(c.ctx, []byte("late")), segment.ErrClosed, "Append to the writer of part %s", part)
					c.is(w.Sync(c.ctx), segment.ErrClosed, "Sync of the writer of part %s", part)
					c.is(w.Commit(c.ctx), segment.ErrClosed, "Commit of the writer of part %s", part)
					c.must(w.Close(), "second Close of the writer of part %s", part)
				}
				c.holds(s, "seg", part, part == "done", [][]byte{[]byte("block")})
			}
			// Nor does it get in the way of the writer that comes after it.
			old := c.writer(s, "seg", "part", 0)
			c.must(old.Close(), "Close")
			w := c.writer(s, "seg", "part", 0)
			c.must(old.Close(), "second Close")
			c.is(old.Append(c.ctx, []byte("late")), segment.ErrClosed, "Append to a closed writer")
			c.append(w, []byte("block"))
			c.must(w.Commit(c.ctx), "Commit")
			c.holds(s, "seg", "part", true, [][]byte{[]byte("block")})
		}},
		{"Sync changes nothing that can be seen", 0, func(c *check) {
			s := c.store()
			w := c.writer(s, "seg", "part", 0)
			blocks := some("b", 4)
			for i, b := range blocks {
				c.must(w.Sync(c.ctx), "Sync")
				c.append(w, b)
				c.must(w.Sync(c.ctx), "Sync")
				c.holds(s, "seg", "part", false, blocks[:i+1])
			}
			c.must(w.Close(), "Close")
			c.twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, blocks) })
		}},
	}
}

func removeRules() []rule {
	return []rule{
		{"Remove deletes a segment with all its parts, and no other", 0, func(c *check) {
			s := c.store()
			blocks := some("b", 3)
			for _, seg := range []string{"a", "aa", "a-", "b"} {
				c.put(s, seg, "open", false, blocks...)
				c.put(s, seg, "done", true, blocks...)
			}
			c.must(s.Remove(c.ctx, "a"), "Remove")
			s = c.twice(s, func(s segment.Store) {
				c.missing(s, "a", "open")
				c.missing(s, "a", "done")
				c.lists(s, "a-", "aa", "b")
				for _, seg := range []string{"aa", "a-", "b"} {
					c.holds(s, seg, "open", false, blocks)
					c.holds(s, seg, "done", true, blocks)
				}
			})
			// What is made under the name again has nothing of the old.
			c.put(s, "a", "done", false, []byte("fresh"))
			c.twice(s, func(s segment.Store) {
				c.holds(s, "a", "done", false, [][]byte{[]byte("fresh")})
				c.missing(s, "a", "open")
			})
		}},
		{"Remove of a missing segment does nothing", 0, func(c *check) {
			s := c.store()
			c.must(s.Remove(c.ctx, "seg"), "Remove from an empty store")
			c.put(s, "seg", "part", true)
			for range 2 {
				c.must(s.Remove(c.ctx, "seg"), "Remove")
			}
			c.must(s.Remove(c.ctx, "part"), "Remove")
			c.lists(s)
		}},
		{"Remove is ErrBusy while a part is being written", 0, func(c *check) {
			s := c.store()
			blocks := some("b", 3)
			c.put(s, "seg", "done", true, blocks...)
			w := c.writer(s, "seg", "part", 0)
			c.append(w, blocks...)
			c.is(s.Remove(c.ctx, "seg"), segment.ErrBusy, "Remove with a writer open")
			c.holds(s, "seg", "done", true, blocks)
			c.holds(s, "seg", "part", false, blocks)
			c.append(w, []byte("more"))
			c.must(w.Close(), "Close")
			c.holds(s, "seg", "part", false, append(blocks, []byte("more")))
			c.must(s.Remove(c.ctx, "seg"), "Remove")
			c.lists(s)
		}},
	}
}
