// Package extsort sorts more records than fit into memory: what does not fit is
// written as sorted runs to temporary files, which are merged when the records
// are read back.
package extsort

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
)

var (
	// ErrUsed says that the records were already asked for: they are yielded
	// once, and none can be added after.
	ErrUsed = errors.New("extsort: records were already read")
	// ErrClosed says that the sorter was closed.
	ErrClosed = errors.New("extsort: closed")
	// ErrCorrupt says that a temporary file does not hold what was written.
	ErrCorrupt = errors.New("extsort: temporary file is damaged")
)

const (
	defaultMemory = 64 << 20
	// fanIn runs of one level become one of the next, so that the number of open
	// files, and of blocks in memory, grows with the logarithm of the input.
	fanIn = 32
	// maxRecord keeps every length in a file within 32 bits.
	maxRecord = 1 << 30
)

// Options say how much memory a [Sorter] uses and where the rest goes.
type Options struct {
	// MemoryBytes bounds the records held in memory, bookkeeping included; zero
	// means 64 MiB. What is read back from files takes up to a quarter of it. A
	// record is not refused for being larger, but for being larger than 1 GiB.
	MemoryBytes int
	// Dir is where temporary files are made; empty means os.TempDir. It is made
	// when it is first needed. The files have no names there, so a process that is
	// killed leaves none. Where the system does not let go of the name of a file
	// that is open, it begins with "extsort-" and goes with Close; what was left
	// there may be deleted.
	Dir string
}

// Pair is one record. It is valid until the next step of the sequence it comes
// from, and not to be changed.
type Pair struct{ Key, Value []byte }

// Sorter takes records in any order and gives them back sorted. It is used by
// one goroutine at a time, and must be closed.
type Sorter struct {
	memory int
	block  int
	dir    string
	temp   func(dir string) (temp, error)
	held   held
	out    runWriter
	runs   []run // levels descend; each is an open file
	used   bool
	closed bool
	err    error // the first failure to write; all later calls return it
}

// New returns an empty sorter. It makes no file and starts nothing.
func New(o Options) *Sorter {
	memory := o.MemoryBytes
	if memory <= 0 {
		memory = defaultMemory
	}
	return &Sorter{
		memory: memory,
		// Two blocks of each run that is merged, packed and unpacked, are in
		// memory at a time: an eighth of it.
		block: min(max(memory/(16*fanIn), 256), 128<<10),
		dir:   o.Dir,
		temp:  newTemp,
		held:  newHeld(memory),
	}
}

// Add adds a record, of which it keeps a copy. Equal records are all kept. An
// error is final: the sorter is good for nothing but Close.
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
	if !s.held.add(key, value) {
		if s.err = s.spill(); s.err != nil {
			return s.err
		}
		s.held.add(key, value)
	}
	return nil
}

// Sorted yields every record, ascending by key and then by value, as bytes
// compare. It can be ranged over once. The loop may break; an error ends the
// sequence and comes with a zero Pair. A context that is done ends it with
// ctx.Err().
func (s *Sorter) Sorted(ctx context.Context) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		err := s.sorted(ctx, func(p Pair) bool { return yield(p, nil) })
		if err != nil {
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
	// done is asked for every record, and asks the context for a few of them.
	done := func() error {
		if s.closed {
			return ErrClosed
		}
		if n++; n%256 != 1 {
			return nil
		}
		return ctx.Err()
	}
	if len(s.runs) == 0 {
		s.held.sort()
		var err error
		stopped := false
		s.held.each(func(p Pair) bool {
			if err = done(); err == nil {
				stopped = !yield(p)
			}
			return err == nil && !stopped
		})
		if err != nil || stopped {
			return err
		}
		return ctx.Err()
	}
	if s.err = s.spill(); s.err != nil {
		return s.err
	}
	s.held = held{}
	m, err := open(s.runs)
	if err != nil {
		return err
	}
	for {
		if err := done(); err != nil {
			return err
		}
		p, ok, err := m.next()
		if err != nil {
			return err
		}
		if !ok || !yield(p) {
			return nil
		}
	}
}

// Close removes the temporary files and ends the use of the sorter. A second
// Close does nothing.
func (s *Sorter) Close() error {
	s.closed = true
	err := end(s.runs)
	s.held, s.out, s.runs = held{}, runWriter{}, nil
	return err
}

// end gives up runs.
func end(runs []run) error {
	var errs []error
	for _, r := range runs {
		if err := r.file.end(); err != nil {
			errs = append(errs, fmt.Errorf("extsort: %w", err))
		}
	}
	return errors.Join(errs...)
}

// spill writes the records in memory as a run, and merges runs if there are
// enough of one level.
func (s *Sorter) spill() error {
	if len(s.held.entries) == 0 {
		return nil
	}
	s.held.sort()
	r, err := s.write(0, s.held.each)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	s.held.reset()
	for {
		from := len(s.runs) - fanIn
		if from < 0 || s.runs[from].level != s.runs[len(s.runs)-1].level {
			return nil
		}
		if err := s.merge(from); err != nil {
			return err
		}
	}
}

// merge replaces the runs beginning with number from by one.
func (s *Sorter) merge(from int) error {
	old := s.runs[from:]
	m, err := open(old)
	if err != nil {
		return err
	}
	var merr error
	r, err := s.write(old[0].level+1, func(f func(Pair) bool) {
		for {
			p, ok, err := m.next()
			if merr = err; err != nil || !ok || !f(p) {
				return
			}
		}
	})
	if merr != nil && err == nil {
		err = errors.Join(merr, r.file.end())
	}
	if err != nil {
		return err
	}
	err = end(old)
	s.runs = append(s.runs[:from], r)
	return err
}

// write makes a run of the records that each yields in order.
func (s *Sorter) write(level int, each func(func(Pair) bool)) (run, error) {
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return run{}, fmt.Errorf("extsort: %w", err)
		}
	}
	f, err := s.temp(s.dir)
	if err != nil {
		return run{}, fmt.Errorf("extsort: %w", err)
	}
	r := run{file: f, level: level}
	if err := s.out.write(&r, s.block, each); err != nil {
		return run{}, errors.Join(err, f.end())
	}
	return r, nil
}
