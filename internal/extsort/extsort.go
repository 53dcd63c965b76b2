// Package extsort sorts more records than fit into memory: the rest is divided
// by key into temporary files, which are sorted one after the other, in memory,
// when the records are read back. It knows nothing of the contents of records: keys and
// values are compared as bytes. Start with [New].
package extsort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
)

var (
	// ErrUsed says that the records were already requested: they are yielded
	// once, and none can be added afterwards.
	ErrUsed = errors.New("extsort: records were already read")
	// ErrClosed says that the sorter was closed.
	ErrClosed = errors.New("extsort: closed")
	// ErrCorrupt says that a temporary file does not hold what was written.
	ErrCorrupt = errors.New("extsort: temporary file is damaged")
)

const (
	defaultMemory = 64 << 20
	// maxFan is the maximum number of buckets, not counting those added when records
	// arrive in order: more would fill the first-level cache of a core with their
	// ends.
	maxFan = 128
	// leastBlock is how much goes into a bucket at a time if there is little
	// memory.
	leastBlock = 1 << 10
	// maxRecord keeps every length in a file within 32 bits.
	maxRecord = 1 << 30
)

// Options say how much memory a [Sorter] uses and where the rest goes.
type Options struct {
	// MemoryBytes limits the records held in memory, bookkeeping included; zero means 64 MiB.
	// Larger records are accepted, up to 1 GiB.
	MemoryBytes int
	// Dir is where temporary files are created; empty means os.TempDir. It is created when
	// first needed. The files are not compressed, and take as much as the records, less the
	// common prefixes of adjacent keys; twice that if the first records do not represent the
	// others. The files have no names there, so a process that is killed leaves none. Where the
	// system does not allow removing the name of an open file, it begins with "extsort-" and is
	// removed by Close; leftovers may be deleted.
	Dir string
}

// Pair is one record. It is valid until the next step of the sequence it comes
// from, and must not be modified.
type Pair struct{ Key, Value []byte }

// Sorter takes records in any order and yields them sorted. It is for use by
// one goroutine at a time, and must be closed.
type Sorter struct {
	fan    int
	block  int
	dir    string
	temp   func(dir string) (temp, error)
	held   held
	spilt  []*buckets // with all records once they do not fit, and parts of them again
	used   bool
	closed bool
	err    error // the first failure to write; all later calls return it
}

// New returns an empty sorter. It creates no file and starts no goroutine.
func New(o Options) *Sorter {
	memory := o.MemoryBytes
	if memory <= 0 {
		memory = defaultMemory
	}
	// An eighth is for the blocks of buckets that are not full.
	fan := min(max(memory/8/leastBlock, 4), maxFan)
	return &Sorter{
		fan:   fan,
		block: min(max(memory/16/fan, leastBlock/8), 128<<10),
		dir:   o.Dir,
		temp:  newTemp,
		held:  newHeld(memory - memory/8),
	}
}

// Add adds a copy of a record. Duplicates are kept. An error is final: after it
// the sorter can only be closed.
func (s *Sorter) Add(key, value []byte) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.err != nil:
		return s.err
	case s.used:
		return ErrUsed
	case len(key) > maxRecord-len(value):
		return fmt.Errorf("extsort: a record of %d and %d bytes is too large", len(key), len(value))
	}
	if len(s.spilt) == 0 {
		if s.held.add(key, value) {
			return nil
		}
		if s.err = s.spill(); s.err != nil {
			return s.err
		}
	}
	s.err = s.spilt[0].add(Pair{key, value})
	return s.err
}

// spill divides the records in memory.
func (s *Sorter) spill() error {
	b, err := s.divide()
	if err != nil {
		return err
	}
	s.held.each(func(p Pair) bool {
		err = b.add(p)
		return err == nil
	})
	s.held = newHeld(s.held.memory)
	return err
}

// divide makes buckets according to what is in memory.
func (s *Sorter) divide() (*buckets, error) {
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fmt.Errorf("extsort: %w", err)
		}
	}
	f, err := s.temp(s.dir)
	if err != nil {
		return nil, fmt.Errorf("extsort: %w", err)
	}
	b := newBuckets(f, &s.held, s.fan, s.block)
	s.spilt = append(s.spilt, b)
	return b, nil
}

// Sorted yields every record, ascending by key and then by value, as bytes
// compare. It can be ranged over once. The loop may break; an error ends the
// sequence and comes with a zero Pair. A context that is done ends it with
// ctx.Err().
func (s *Sorter) Sorted(ctx context.Context) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		err := s.sorted(ctx, func(p Pair) bool { return yield(p, nil) })
		if err != nil && err != errBreak {
			yield(Pair{}, err)
		}
	}
}

func (s *Sorter) sorted(ctx context.Context, yield func(Pair) bool) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.err != nil:
		return s.err
	case s.used:
		return ErrUsed
	}
	s.used = true
	n := 0
	// step checks the context every few records.
	step := func(p Pair) error {
		if n++; n%256 == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case !yield(p):
			return errBreak
		case s.closed:
			return ErrClosed
		}
		return nil
	}
	var err error
	if len(s.spilt) == 0 {
		err = s.sortHeld(step)
	} else {
		err = s.buckets(ctx, step)
	}
	return cmp.Or(err, ctx.Err())
}

// errBreak ends the loop of a caller that breaks.
var errBreak = errors.New("extsort: break")

// sortHeld calls f with the records in memory, in order.
func (s *Sorter) sortHeld(f func(Pair) error) (err error) {
	s.held.sort()
	s.held.each(func(p Pair) bool {
		err = f(p)
		return err == nil
	})
	return err
}

// buckets calls f with the records of the last buckets, in order, and ends them.
func (s *Sorter) buckets(ctx context.Context, f func(Pair) error) error {
	b := s.spilt[len(s.spilt)-1]
	if err := b.finish(); err != nil {
		return err
	}
	for i := range b.list {
		if err := s.bucket(ctx, b, b.list[i].blocks, f); err != nil {
			return err
		}
		if i == len(b.splitters) {
			break
		}
		for range b.splitters[i].count {
			if err := f(b.splitters[i].Pair); err != nil {
				return err
			}
		}
	}
	s.spilt = s.spilt[:len(s.spilt)-1]
	return b.end()
}

// bucket calls f with the records of one bucket, in order. If they do not fit into
// memory they are divided again, with a sample from all of them: the first sample did
// not represent them, as when records arrive in order.
func (s *Sorter) bucket(ctx context.Context, b *buckets, blocks []extent, f func(Pair) error) error {
	s.held.reset()
	fits := true
	hold := func(p Pair) bool {
		fits = s.held.add(p.Key, p.Value)
		return fits
	}
	for _, e := range blocks {
		if err := b.each(e, hold); err != nil {
			return err
		}
		if !fits {
			break
		}
	}
	if fits {
		return s.sortHeld(f)
	}
	s.held.reset()
	if err := b.some(blocks, s.fan, hold); err != nil {
		return err
	}
	parts, err := s.divide()
	if err != nil {
		return err
	}
	var failed error
	for _, e := range blocks {
		err := b.each(e, func(p Pair) bool {
			failed = parts.add(p)
			return failed == nil
		})
		if err = cmp.Or(err, failed, ctx.Err()); err != nil {
			return err
		}
	}
	return s.buckets(ctx, f)
}

// Close removes the temporary files and closes the sorter. A second Close does
// nothing.
func (s *Sorter) Close() error {
	s.closed = true
	var errs []error
	for _, b := range s.spilt {
		errs = append(errs, b.end())
	}
	s.held, s.spilt = held{}, nil
	return errors.Join(errs...)
}
