package segmenttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/recrawl/recrawl/segment"
)

func reopenFindsEverything(c *check) {
	s := c.Store()
	blocks := hostile(1 << 20)
	c.put(s, "a", "open", false, blocks...)
	c.put(s, "a", "done", true, blocks...)
	c.put(s, "b", "open", false)
	c.put(s, "c", "done", true)
	c.Must(s.Remove(c.Ctx, "c"), "Remove")
	for range 3 {
		s = c.Reopen(s)
		c.holds(s, "a", "open", false, blocks)
		c.holds(s, "a", "done", true, blocks)
		c.holds(s, "b", "open", false, nil)
		c.lists(s, "a", "b")
	}
}

func crashKeepsWhatWasSynced(c *check) {
	s := c.Store()
	var model [][]byte
	for round := range 6 {
		done := fmt.Sprint("done", round)
		blocks := some(done, round)
		w := c.writer(s, "seg", done, 0)
		c.append(w, blocks...)
		c.Must(w.Commit(c.Ctx), "Commit")

		w = c.writer(s, "seg", "open", -1)
		c.holds(s, "seg", "open", false, model)
		synced := 0
		for i := range 5 {
			b := fmt.Appendf(nil, "round %d, block %d", round, i)
			c.append(w, b)
			model = append(model, b)
			if i == round%5 {
				c.Must(w.Sync(c.Ctx), "Sync")
				synced = len(model)
			}
		}
		s = c.Crash(s)
		c.holds(s, "seg", done, true, blocks)
		got := c.read(s, "seg", "open", 0)
		if len(got) < synced || len(got) > len(model) {
			c.Failf("after a crash %d blocks are left; %d were synced, and %d written", len(got), synced, len(model))
		}
		model = model[:len(got)]
		c.holds(s, "seg", "open", false, model)
	}
}

func noWritersAfterCrash(c *check) {
	s := c.Store()
	c.put(s, "gone", "part", true, some("b", 3)...)
	w := c.writer(s, "seg", "part", 0)
	c.append(w, []byte("block"))
	c.Must(w.Sync(c.Ctx), "Sync")
	c.Must(s.Remove(c.Ctx, "gone"), "Remove")
	s = c.Crash(s)
	c.missing(s, "gone", "part")
	c.lists(s, "seg")
	c.Must(c.writer(s, "seg", "part", 1).Close(), "Close")
	c.Must(s.Remove(c.Ctx, "seg"), "Remove")
	c.lists(s)
}

func tornBlockWasNeverWritten(c *check) {
	c.Need(c.h.Tear != nil, "Harness.Tear is nil")
	blocks := append(some("b", 4), []byte{}, []byte("the last block"))
	for n := 1; n < 150; n += 1 + n/20 {
		s := c.Store()
		c.put(s, "seg", "part", false, blocks...)
		c.Must(c.h.Tear(s, "seg", "part", n), "Tear")
		got := c.read(s, "seg", "part", 0)
		if len(got) >= len(blocks) {
			c.Failf("%d blocks after a tear of %d bytes, want fewer than %d", len(got), n, len(blocks))
		}
		left := blocks[:len(got)]
		s = c.Twice(s, func(s segment.Store) { c.holds(s, "seg", "part", false, left) })
		w := c.writer(s, "seg", "part", -1)
		c.append(w, []byte("more"))
		c.Must(w.Commit(c.Ctx), "Commit")
		c.Twice(s, func(s segment.Store) {
			c.holds(s, "seg", "part", true, append(slices.Clone(left), []byte("more")))
		})
	}
}

func damageInCommittedPartIsCorruptError(c *check) {
	c.Need(c.h.Damage != nil, "Harness.Damage is nil")
	blocks := append(some("b", 3), []byte{}, bytes.Repeat([]byte("text "), 40))
	var s segment.Store
	for at := range 300 {
		if at%50 == 0 {
			s = c.Store()
		}
		c.put(s, "seg", "part", true, blocks...)
		c.Must(c.h.Damage(s, "seg", "part", at), "Damage")
		c.Prefix = fmt.Sprintf("damaged at %d: ", at)
		corrupt := func(err error, what string) {
			if e := (*segment.CorruptError)(nil); !errors.As(err, &e) || e.File == "" {
				c.Failf("%s: error is %v, want a *segment.CorruptError that names a file", what, err)
			}
		}
		var got [][]byte
		told := false
		for b, err := range s.Read(c.Ctx, "seg", "part", 0) {
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
			c.same(got, blocks, "Read that reported no damage")
		}
		if info, err := s.Stat(c.Ctx, "seg", "part"); err != nil {
			corrupt(err, "Stat")
		} else if !info.Committed || info.Blocks != len(blocks) {
			c.Failf("Stat is %+v", info)
		}
		w, err := s.Append(c.Ctx, "seg", "part", -1)
		if err == nil {
			w.Close()
			c.Failf("a damaged committed part was opened for writing")
		}
		c.Prefix = ""
		c.Must(s.Remove(c.Ctx, "seg"), "Remove of a damaged segment")
		c.lists(s)
	}
}

func anySequenceOfCallsAgreesWithModel(c *check) {
	for seed := range uint64(4) {
		c.model(c.h.Seed + seed)
	}
}

// modelPart is what a part should hold.
type modelPart struct {
	blocks    [][]byte
	committed bool
	writer    segment.BlockWriter
}

func (c *check) model(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := c.Store()
	model := map[[2]string]*modelPart{}
	segs, parts := []string{"s0", "s1"}, []string{"p0", "p1", "p2"}
	for step := range 400 {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
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
			w, err := s.Append(c.Ctx, at[0], at[1], keep)
			if want != nil {
				c.Is(err, want, "Append %q, keep %d", at, keep)
				break
			}
			c.Must(err, "Append %q, keep %d", at, keep)
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
				c.Must(m.writer.Append(c.Ctx, b), "Append of a block to %q", at)
				m.blocks = append(m.blocks, b)
			case op < 26:
				c.Must(m.writer.Sync(c.Ctx), "Sync %q", at)
			case op < 29:
				c.Must(m.writer.Close(), "Close %q", at)
				m.writer = nil
			default:
				c.Must(m.writer.Commit(c.Ctx), "Commit %q", at)
				m.writer, m.committed = nil, true
			}
		case op < 32:
			busy := false
			for k, m := range model {
				busy = busy || k[0] == at[0] && m.writer != nil
			}
			err := s.Remove(c.Ctx, at[0])
			if busy {
				c.Is(err, segment.ErrBusy, "Remove %s", at[0])
				break
			}
			c.Must(err, "Remove %s", at[0])
			for _, p := range parts {
				delete(model, [2]string{at[0], p})
			}
		case op == 32 && c.h.Reopen != nil:
			s = c.Reopen(s)
			for _, m := range model {
				m.writer = nil
			}
		case op == 33 && c.h.Crash != nil:
			// Unsynced blocks may or may not outlive a crash, so sync all.
			for at, m := range model {
				if m.writer != nil {
					c.Must(m.writer.Sync(c.Ctx), "Sync %q", at)
				} else if !m.committed {
					w := c.writer(s, at[0], at[1], -1)
					c.Must(w.Sync(c.Ctx), "Sync %q", at)
				}
				m.writer = nil
			}
			s = c.Crash(s)
		default:
			if m == nil {
				c.missing(s, at[0], at[1])
				break
			}
			from := r.IntN(len(m.blocks) + 2)
			c.same(c.read(s, at[0], at[1], from), m.blocks[min(from, len(m.blocks)):], "Read %q from %d", at, from)
		}
	}
	c.Prefix = fmt.Sprintf("seed %d, at the end: ", seed)
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
	c.Prefix = ""
}
