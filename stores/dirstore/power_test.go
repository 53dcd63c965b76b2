package dirstore_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
)

var long = flag.Bool("long", false, "fail every operation in every way")

func openDisk(t *testing.T, d *dirstoretest.Disk) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open("disk", dirstore.Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The kit, on a disk that loses half of what was not synced at every crash.
func TestStoreOnDisk(t *testing.T) {
	disks := map[segment.Store]*dirstoretest.Disk{}
	open := func(d *dirstoretest.Disk) (segment.Store, error) {
		s, err := dirstore.Open("disk", dirstore.Options{FS: d})
		disks[s] = d
		return s, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	segmenttest.Run(t, segmenttest.Harness{
		Open:   func() (segment.Store, error) { return open(dirstoretest.NewDisk()) },
		Close:  func(s segment.Store) error { return s.(*dirstore.Store).Close() },
		Reopen: func(s segment.Store) (segment.Store, error) { return open(disks[s]) },
		Crash: func(s segment.Store) (segment.Store, error) {
			// Blocks that were appended but not synced are kept, for the kit, which demands it.
			return open(disks[s].Crash(1, rng))
		},
	})
}

// account is what the store has acknowledged to a run.
type account map[[2]string]part

type part struct {
	blocks    [][]byte // appended, or on the way
	synced    int      // of these, made durable
	committed bool     // Commit has returned
	ending    bool     // Commit was called
	removing  bool     // Remove was called
	removed   bool     // and has returned
}

func (a account) clone() account { return maps.Clone(a) } // nothing in a part changes but its end

// work does everything that a store can do, until something fails.
func (a account) work(ctx context.Context, s *dirstore.Store) error {
	set := func(at [2]string, change func(*part)) {
		p := a[at]
		change(&p)
		a[at] = p
	}
	appendTo := func(w segment.BlockWriter, at [2]string, n int) error {
		for range n {
			block := []byte(strings.Repeat(fmt.Sprint(at, len(a[at].blocks)), 60*len(a[at].blocks)))
			set(at, func(p *part) { p.blocks = append(slices.Clip(p.blocks), block) })
			if err := w.Append(ctx, block); err != nil {
				return err
			}
		}
		return nil
	}
	sync := func(w segment.BlockWriter, at [2]string) error {
		err := w.Sync(ctx)
		if err == nil {
			set(at, func(p *part) { p.synced = len(p.blocks) })
		}
		return err
	}
	commit := func(w segment.BlockWriter, at [2]string) error {
		set(at, func(p *part) { p.ending = true })
		err := w.Commit(ctx)
		if err == nil {
			set(at, func(p *part) { p.synced, p.committed = len(p.blocks), true })
		}
		return err
	}
	for i := range 3 {
		seg := fmt.Sprint("seg", i)
		for _, name := range []string{"one", "two"} {
			at := [2]string{seg, name}
			w, err := s.Append(ctx, seg, name, 0)
			if err != nil {
				return err
			}
			err = errors.Join(appendTo(w, at, 3))
			if err == nil {
				err = sync(w, at)
			}
			if err == nil && i > 0 {
				err = appendTo(w, at, 4)
			}
			if err = errors.Join(err, w.Close()); err != nil {
				return err
			}
			keep := 3 + i
			if w, err = s.Append(ctx, seg, name, min(keep, len(a[at].blocks))); err != nil {
				return err
			}
			set(at, func(p *part) { p.blocks = p.blocks[:min(keep, len(p.blocks)):min(keep, len(p.blocks))] })
			if err = appendTo(w, at, 2); err == nil && name == "one" {
				err = commit(w, at)
			} else if err == nil {
				err = sync(w, at)
			}
			if err = errors.Join(err, w.Close()); err != nil {
				return err
			}
		}
		if i == 1 {
			for _, done := range []bool{false, true} {
				for at := range a {
					if at[0] == "seg0" {
						set(at, func(p *part) { p.removing, p.removed = true, done })
					}
				}
				if !done {
					if err := s.Remove(ctx, "seg0"); err != nil {
						return err
					}
				}
			}
		}
	}
	return s.Close()
}

// check compares a disk, after a power failure, with what was acknowledged.
func (a account) check(t *testing.T, what string, d *dirstoretest.Disk) {
	t.Helper()
	s := openDisk(t, d)
	listed := map[string]bool{}
	for seg, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		listed[seg] = true
	}
	for at, p := range a {
		info, err := s.Stat(t.Context(), at[0], at[1])
		if errors.Is(err, segment.ErrNotFound) {
			if p.synced > 0 && !p.removing {
				t.Errorf("%s: %v is gone; %d blocks were synced", what, at, p.synced)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v: %v", what, at, err)
			continue
		}
		if p.removed {
			t.Errorf("%s: %v was removed and is there", what, at)
		}
		if p.committed && !info.Committed || info.Committed && !p.ending {
			t.Errorf("%s: %v: committed %t", what, at, info.Committed)
		}
		var got [][]byte
		for b, err := range s.Read(t.Context(), at[0], at[1], 0) {
			if err != nil {
				t.Errorf("%s: %v: %v", what, at, err)
			}
			got = append(got, b)
		}
		// After what was synced, blocks that were dropped since may still exist.
		same := 0
		for same < min(len(got), len(p.blocks)) && bytes.Equal(got[same], p.blocks[same]) {
			same++
		}
		if same < p.synced || info.Committed && (same != len(got) || same != len(p.blocks)) {
			t.Errorf("%s: %v has %d blocks, %d of them right; %d were appended, %d synced", what, at, len(got), same, len(p.blocks), p.synced)
		}
		if info.Committed {
			continue
		}
		// It can be gone on with.
		w, err := s.Append(t.Context(), at[0], at[1], p.synced)
		if err == nil {
			err = errors.Join(w.Append(t.Context(), []byte("more")), w.Commit(t.Context()), w.Close())
		}
		if err != nil {
			t.Errorf("%s: %v: going on: %v", what, at, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The power goes before each operation, and nothing, half or all of what was not
// synced is on the disk.
func TestPowerLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	disk, a := dirstoretest.NewDisk(), account{}
	points := 0
	disk.OnOp = func(op dirstoretest.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		for _, survives := range []float64{0, 0.5, 0.5, 1} {
			points++
			told := a.clone()
			told.check(t, fmt.Sprintf("crash %d before %v, %.0f %% survive", points, op, 100*survives), disk.Crash(survives, rng))
		}
		return nil
	}
	if err := a.work(t.Context(), openDisk(t, disk)); err != nil {
		t.Fatal(err)
	}
	disk.OnOp = nil
	a.check(t, "at the end", disk.Crash(0, rng))
	t.Logf("%d crash points", points)
	if points < 300 {
		t.Errorf("%d crash points", points)
	}
}

// Each operation fails, once or permanently, in all ways. The error is reported. Acknowledged
// blocks are kept, even if the machine fails then, and so are those that are acknowledged after
// the store is opened again.
func TestEveryOperationFails(t *testing.T) {
	rare := 7 // of the causes that are like others, every seventh operation
	if *long {
		rare = 1
	}
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.EINTR, dirstoretest.ShortWrite(syscall.ENOSPC)}
	points := 0
	for i, cause := range causes {
		for _, once := range []bool{true, false} {
			step := rare
			if cause == syscall.EIO || cause == causes[len(causes)-1] {
				step = 1
			}
			for at := i % step; ; at += step {
				disk, a := dirstoretest.NewDisk(), account{}
				n, last := 0, dirstoretest.Op{}
				disk.OnOp = func(op dirstoretest.Op) error {
					if n++; n-1 < at || once && n-1 > at {
						return nil
					}
					last = op
					return cause
				}
				s, err := dirstore.Open("disk", dirstore.Options{FS: disk})
				if err == nil {
					err = a.work(t.Context(), s)
					err = errors.Join(err, s.Close())
				}
				disk.OnOp = nil
				if n <= at {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				points++
				what := fmt.Sprintf("%v at operation %d, %v, once %t", cause, at, last, once)
				if want := cmp.Or(errors.Unwrap(cause), cause); !errors.Is(err, want) {
					t.Errorf("%s: %v", what, err)
				}
				rng := rand.New(rand.NewPCG(1, uint64(at)))
				a.check(t, what+", and then the power", disk.Crash(0, rng))
				a.again(t, what+", and again", disk)
				a.check(t, what+", and again, and then the power", disk.Crash(0, rng))
			}
		}
	}
	t.Logf("%d faults", points)
}

// again opens a store where an operation failed and nothing else happened, and
// acknowledges all that it finds.
func (a account) again(t *testing.T, what string, d *dirstoretest.Disk) {
	t.Helper()
	s := openDisk(t, d)
	defer s.Close()
	for at, p := range a {
		info, err := s.Stat(t.Context(), at[0], at[1])
		if errors.Is(err, segment.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v: %v", what, at, err)
			continue
		}
		if p.committed = info.Committed; !p.committed {
			w, err := s.Append(t.Context(), at[0], at[1], -1)
			if err == nil {
				err = errors.Join(w.Sync(t.Context()), w.Close())
			}
			if err != nil {
				t.Errorf("%s: %v: %v", what, at, err)
			}
		}
		// Of blocks that were to be dropped some may be there for those that were
		// to come.
		p.synced = min(info.Blocks, len(p.blocks))
		a[at] = p
	}
}

// A part has its name only when it is on the disk, and is acknowledged as complete or synced
// only when its names are.
func TestOrderOfOperations(t *testing.T) {
	var dirty, unnamed = map[string]bool{}, map[string]bool{}
	disk := dirstoretest.NewDisk()
	disk.OnOp = func(op dirstoretest.Op) error {
		dir := func(name string) string {
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				return name[:i]
			}
			return "."
		}
		switch op.Kind {
		case dirstoretest.Create, dirstoretest.Mkdir:
			unnamed[dir(op.Name)] = true
		case dirstoretest.Write, dirstoretest.Truncate:
			dirty[op.Name] = true
		case dirstoretest.Sync:
			delete(dirty, op.Name)
		case dirstoretest.SyncDir:
			delete(unnamed, op.Name)
		case dirstoretest.Rename:
			if dirty[op.Name] {
				t.Errorf("%v, and the file is not synced", op)
			}
			unnamed[dir(op.To)] = true
		}
		return nil
	}
	s := openDisk(t, disk)
	told := func(what string, err error) {
		t.Helper()
		if err != nil || len(dirty) > 0 || len(unnamed) > 0 {
			t.Errorf("%s has returned %v; files %v are not synced, nor directories %v", what, err, dirty, unnamed)
		}
	}
	for _, seg := range []string{"a", "b"} {
		for _, name := range []string{"one", "two"} {
			w, err := s.Append(t.Context(), seg, name, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := w.Append(t.Context(), []byte("block")); err != nil {
					t.Fatal(err)
				}
				told("Sync", w.Sync(t.Context()))
			}
			told("Commit", w.Commit(t.Context()))
		}
	}
	// What Remove has renamed is gone; if it comes back under the new name, the
	// next Open deletes it.
	told("Remove", s.Remove(t.Context(), "a"))
}
