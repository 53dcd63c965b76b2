package segmenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

func doneContextChangesNothing(c *check) {
	s := c.Store()
	blocks := some("b", 2)
	c.put(s, "seg", "done", true, blocks...)
	c.put(s, "seg", "open", false, blocks...)
	w := c.writer(s, "seg", "part", 0)
	c.append(w, blocks...)
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	canceled := func(err error, what string) { c.Is(err, context.Canceled, "%s with a done context", what) }
	_, err := s.Stat(ctx, "seg", "done")
	canceled(err, "Stat")
	canceled(c.readError(ctx, s, "seg", "done", 0), "Read")
	steps := 0
	for name, err := range s.List(ctx) {
		canceled(err, "List")
		if steps++; name != "" || steps > 1 {
			c.Failf("List with a done context yielded %q in step %d", name, steps)
		}
	}
	if steps == 0 {
		c.Failf("List with a done context yielded no error")
	}
	for _, part := range []string{"open", "new"} {
		late, err := s.Append(ctx, "seg", part, 0)
		if err == nil {
			late.Close()
		}
		canceled(err, "Append")
	}
	canceled(s.Remove(ctx, "seg"), "Remove")
	canceled(w.Append(ctx, []byte("late")), "Append to a writer")
	canceled(w.Sync(ctx), "Sync")
	canceled(w.Commit(ctx), "Commit")
	c.missing(s, "seg", "new")
	c.holds(s, "seg", "done", true, blocks)
	c.holds(s, "seg", "open", false, blocks)
	c.holds(s, "seg", "part", false, blocks)
	c.append(w, []byte("more"))
	c.Must(w.Commit(c.Ctx), "Commit")
	c.holds(s, "seg", "part", true, append(blocks, []byte("more")))
	c.Must(c.writer(s, "seg", "open", -1).Close(), "Close")
}

func loopEndsWhenItsContextDoes(c *check) {
	s := c.Store()
	for i := range 50 {
		c.put(s, fmt.Sprintf("seg%02d", i), "part", true)
	}
	c.put(s, "seg", "part", true, some("b", 50)...)
	ctx, cancel := context.WithCancel(c.Ctx)
	steps := 0
	var last error
	for _, err := range s.Read(ctx, "seg", "part", 0) {
		cancel()
		steps, last = steps+1, err
	}
	cancel()
	c.Is(last, context.Canceled, "step %d of Read, the last one, after a cancel in the first", steps)
}

func oneOfSeveralConcurrentAppendsWins(c *check) {
	s := c.Store()
	for round := range 20 {
		part := fmt.Sprint("part", round)
		var wg sync.WaitGroup
		writers, errs := make([]segment.BlockWriter, 8), make([]error, 8)
		for i := range writers {
			wg.Go(func() { writers[i], errs[i] = s.Append(c.Ctx, "seg", part, 0) })
		}
		wg.Wait()
		won := 0
		for i, w := range writers {
			if errs[i] == nil {
				won++
				c.writers = append(c.writers, w)
				continue
			}
			c.Is(errs[i], segment.ErrBusy, "Append during others")
		}
		if won != 1 {
			c.Failf("%d writers of one part", won)
		}
	}
}

func readerSeesWholeBlocksInOrder(c *check) {
	s := c.Store()
	block := func(part, i int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "part %d block %d;", part, i), 1+i%7*200)
	}
	const parts, blocks = 4, 60
	errs := make(chan error, 2*parts)
	var wg sync.WaitGroup
	for p := range parts {
		name := fmt.Sprint("part", p)
		w := c.writer(s, "seg", name, 0)
		written := make(chan struct{})
		wg.Go(func() {
			defer close(written)
			for i := range blocks {
				if err := w.Append(c.Ctx, block(p, i)); err != nil {
					errs <- fmt.Errorf("Append: %w", err)
					return
				}
			}
			if err := w.Commit(c.Ctx); err != nil {
				errs <- fmt.Errorf("Commit: %w", err)
			}
		})
		wg.Go(func() {
			for least, done := 0, false; !done; {
				select {
				case <-written:
					done = true
				default:
				}
				info, err := s.Stat(c.Ctx, "seg", name)
				if err != nil {
					errs <- fmt.Errorf("Stat: %w", err)
					return
				}
				least = max(least, info.Blocks)
				n := 0
				for b, err := range s.Read(c.Ctx, "seg", name, 0) {
					if err != nil || !bytes.Equal(b, block(p, n)) {
						errs <- fmt.Errorf("Read, block %d: %s, %v", n, show(b), err)
						return
					}
					n++
				}
				if n < least {
					errs <- fmt.Errorf("Read yielded %d blocks after Stat counted %d", n, least)
					return
				}
				least = n
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		c.Must(err, "beside others")
	}
	for p := range parts {
		var want [][]byte
		for i := range blocks {
			want = append(want, block(p, i))
		}
		c.holds(s, "seg", fmt.Sprint("part", p), true, want)
	}
}

func removeDuringReadsDoesNoHarm(c *check) {
	s := c.Store()
	for round := range 10 {
		blocks := some(fmt.Sprint("round ", round), 40)
		c.put(s, "seg", "done", true, blocks...)
		c.put(s, "seg", "open", false, blocks...)
		errs := make(chan error, 4)
		begun := make(chan struct{}, 8) // two signals each, so that none waits
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				defer func() { begun <- struct{}{} }()
				var got [][]byte
				for b, err := range s.Read(c.Ctx, "seg", []string{"done", "open"}[i%2], 0) {
					if err != nil {
						if !errors.Is(err, segment.ErrNotFound) {
							errs <- err
						}
						break
					}
					got = append(got, b)
					if len(got) == 1+i {
						begun <- struct{}{}
					}
				}
				if len(got) > len(blocks) {
					errs <- fmt.Errorf("%d blocks, want at most %d", len(got), len(blocks))
				} else if err := same(got, blocks[:len(got)]); err != nil {
					errs <- err
				}
			})
		}
		<-begun
		err := s.Remove(c.Ctx, "seg")
		wg.Wait()
		close(errs)
		c.Must(err, "Remove")
		for err := range errs {
			c.Must(err, "Read during Remove")
		}
		c.missing(s, "seg", "done")
		c.missing(s, "seg", "open")
		c.lists(s)
	}
}
