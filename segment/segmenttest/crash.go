package segmenttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/recrawl/recrawl/segment"
)

func crashRules() []rule {
	return []rule{
		{"Reopen finds what there was", needsReopen, func(c *check) {
			s := c.store()
			blocks := hostile(1 << 20)
			c.put(s, "a", "open", false, blocks...)
			c.put(s, "a", "done", true, blocks...)
			c.put(s, "b", "open", false)
			c.put(s, "c", "done", true)
			c.must(s.Remove(c.ctx, "c"), "Remove")
			for range 3 {
				s = c.reopen(s)
				c.holds(s, "a", "open", false, blocks)
				c.holds(s, "a", "done", true, blocks)
				c.holds(s, "b", "open", false, nil)
				c.lists(s, "a", "b")
			}
		}},
		{"a crash keeps what was synced or committed, and a prefix of the rest", needsCrash, func(c *check) {
			s := c.store()
			var model [][]byte
			for round := range 6 {
				done := fmt.Sprint("done", round)
				blocks := some(done, round)
				w := c.writer(s, "seg", done, 0)
				c.append(w, blocks...)
				c.must(w.Commit(c.ctx), "Commit")

				w = c.writer(s, "seg", "open", -1)
				c.holds(s, "seg", "open", false, model)
				synced := 0
				for i := range 5 {
					b := fmt.Appendf(nil, "round %d, block %d", round, i)
					c.append(w, b)
					model = append(model, b)
					if i == round%5 {
						c.must(w.Sync(c.ctx), "Sync")
						synced = len(model)
					}
				}
				s = c.crash(s)
				c.holds(s, "seg", done, true, blocks)
				got := c.read(s, "seg", "open", 0)
				if len(got) < synced || len(got) > len(model) {
					c.failf("after a crash %d blocks are left; %d were synced, %d written", len(got), synced, len(model))
				}
				model = model[:len(got)]
				c.holds(s, "seg", "open", false, model)
			}
		}},
		{"a crash keeps no writer and no removed segment", needsCrash, func(c *check) {
			s := c.store()
			c.put(s, "gone", "part", true, some("b", 3)...)
			w := c.writer(s, "seg", "part", 0)
			c.append(w, []byte("block"))
			c.must(w.Sync(c.ctx), "Sync")
			c.must(s.Remove(c.ctx, "gone"), "Remove")
			s = c.crash(s)
			c.missing(s, "gone", "part")
			c.lists(s, "seg")
			c.must(c.writer(s, "seg", "part", 1).Close(), "Close")
			c.must(s.Remove(c.ctx, "seg"), "Remove")
			c.lists(s)
		}},
		{"a torn block was never written", needsTear, func(c *check) {
			blocks := append(some("b", 4), []byte{}, []byte("the last block"))
			for n := 1; n < 150; n += 1 + n/20 {
				s := c.store()
				c.put(s, "seg", "part", false, blocks...)
				c.must(c.h.Tear(s, "seg", "part", n), "Tear")
				got := c.read(s, "seg", "part", 0)
				if len(got) >= len(blocks) {
					c.failf("%d blocks after a tear of %d bytes, want fewer than %d", len(got), n, len(blocks))
				}
				left := blocks[:len(got)]
				s = c.twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, left) })
				w := c.writer(s, "seg", "part", -1)
				c.append(w, []byte("more"))
				c.must(w.Commit(c.ctx), "Commit")
				c.twice(s, func(s segment.Store) {
					c.holds(s, "seg", "part", true, append(slices.Clone(left), []byte("more")))
				})
			}
		}},
		{"damage in a committed part is a CorruptError", needsDamage, func(c *check) {
			blocks := append(some("b", 3), []byte{}, bytes.Repeat([]byte("text "), 40))
			for at := range 300 {
				s := c.store()
				c.put(s, "seg", "part", true, blocks...)
				c.must(c.h.Damage(s, "seg", "part", at), "Damage")
				c.prefix = fmt.Sprintf("damaged at %d: ", at)
				corrupt := func(err error, what string) {
					if e := (*segment.CorruptError)(nil); !errors.As(err, &e) || e.File == "" {
						c.failf("%s: error is %v, want a *segment.CorruptError that names a file", what, err)
					}
				}
				var got [][]byte
				told := false
				for b, err := range s.Read(c.ctx, "seg", "part", 0) {
					if err != nil {
						corrupt(err, "Read")
						told = true
						break
					}
					if got = append(got, b); len(got) > len(blocks) {
						break
					}
					c.same(got, blocks[:len(got)], "Read")
				}
				if !told {
					c.same(got, blocks, "Read that told of no damage")
				}
				if info, err := s.Stat(c.ctx, "seg", "part"); err != nil {
					corrupt(err, "Stat")
				} else if !info.Committed || info.Blocks != len(blocks) {
					c.failf("Stat is %+v", info)
				}
				w, err := s.Append(c.ctx, "seg", "part", -1)
				if err == nil {
					w.Close()
					c.failf("a damaged committed part was opened for writing")
				}
				c.prefix = ""
				c.must(s.Remove(c.ctx, "seg"), "Remove of a damaged segment")
				c.lists(s)
			}
		}},
	}
}

func modelRules() []rule {
	return []rule{
		{"any sequence of calls agrees with the model", 0, func(c *check) {
			for seed := range uint64(4) {
				c.model(c.h.Seed + seed)
			}
		}},
	}
}

// modelPart is what a part should be.
type modelPart struct {
	blocks    [][]byte
	committed bool
	writer    segment.BlockWriter
}

func (c *check) model(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := c.store()
	model := map[[2]string]*modelPart{}
	segs, parts := []string{"s0", "s1"}, []string{"p0", "p1", "p2"}
	for step := range 400 {
		c.prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
		at := [2]string{segs[r.IntN(len(segs))], parts[r.IntN(len(parts))]}
		m := model[at]
		switch op := r.IntN(40); {
		case op < 8: // open a writer
			keep := r.IntN(6) - 1
			var want error
			switch {
			case m != nil && m.committed:
				want = segment.ErrCommitted
			case m != nil && m.writer != nil:
				want = segment.ErrBusy
			case m == nil && keep > 0 || m != nil && keep > len(m.blocks):
				want = segment.ErrNotFound
			}
			w, err := s.Append(c.ctx, at[0], at[1], keep)
			if want != nil {
				c.is(err, want, "Append %q, keep %d", at, keep)
				break
			}
			c.must(err, "Append %q, keep %d", at, keep)
			c.writers = append(c.writers, w)
			if m == nil {
				m = &modelPart{}
				model[at] = m
			}
			if keep >= 0 {
				m.blocks = slices.Clone(m.blocks[:keep])
			}
			m.writer = w
		case op < 30:
			if m == nil || m.writer == nil {
				break
			}
			switch {
			case op < 24:
				b := make([]byte, r.IntN(200))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				c.must(m.writer.Append(c.ctx, b), "Append of a block to %q", at)
				m.blocks = append(m.blocks, b)
			case op < 26:
				c.must(m.writer.Sync(c.ctx), "Sync %q", at)
			case op < 29:
				c.must(m.writer.Close(), "Close %q", at)
				m.writer = nil
			default:
				c.must(m.writer.Commit(c.ctx), "Commit %q", at)
				m.writer, m.committed = nil, true
			}
		case op < 32:
			busy := false
			for k, m := range model {
				busy = busy || k[0] == at[0] && m.writer != nil
			}
			err := s.Remove(c.ctx, at[0])
			if busy {
				c.is(err, segment.ErrBusy, "Remove %s", at[0])
				break
			}
			c.must(err, "Remove %s", at[0])
			for _, p := range parts {
				delete(model, [2]string{at[0], p})
			}
		case op == 32 && c.h.Reopen != nil:
			s = c.reopen(s)
			for _, m := range model {
				m.writer = nil
			}
		case op == 33 && c.h.Crash != nil:
			// What outlives a crash without a Sync is not promised, so all is synced.
			for at, m := range model {
				if m.writer != nil {
					c.must(m.writer.Sync(c.ctx), "Sync %q", at)
				} else if !m.committed {
					w := c.writer(s, at[0], at[1], -1)
					c.must(w.Sync(c.ctx), "Sync %q", at)
				}
				m.writer = nil
			}
			s = c.crash(s)
		default:
			if m == nil {
				c.missing(s, at[0], at[1])
				break
			}
			from := r.IntN(len(m.blocks) + 2)
			c.same(c.read(s, at[0], at[1], from), m.blocks[min(from, len(m.blocks)):], "Read %q from %d", at, from)
		}
	}
	c.prefix = fmt.Sprintf("seed %d, at the end: ", seed)
	has := map[string]bool{}
	for at, m := range model {
		c.holds(s, at[0], at[1], m.committed, m.blocks)
		has[at[0]] = true
	}
	var names []string
	for _, seg := range segs {
		if has[seg] {
			names = append(names, seg)
		}
	}
	c.lists(s, names...)
	c.prefix = ""
}
