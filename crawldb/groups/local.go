package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/recrawl/recrawl/crawldb"
)

// Local is an [Engine] over stores of one process. The table and the posted rows are kept in a
// crawl db of their own; the leases are in memory, since all workers are in this process: other
// processes must be kept away by the stores, as those of pebblestore do.
type Local struct {
	control crawldb.Store
	open    func(group int) (Stores, func() error, error)

	posting sync.Mutex // held while a row is posted, or the table replaced

	mu      sync.Mutex // guards what follows
	table   Table
	groups  map[int]*localGroup
	workers map[string]int64
	closed  bool
}

// localGroup is a group with its stores.
type localGroup struct {
	stores  Stores
	close   func() error
	writers *openWriters // of the lease
	// writing is held for reading while something is written with a lease, and for writing while
	// the lease changes. Take it before Local.mu.
	writing sync.RWMutex
	owner   string // guarded by Local.mu, and changed only while writing is held
	epoch   int64  // likewise
}

var _ Engine = (*Local)(nil)

// tableMark is the mark of the control store with the table.
const tableMark = "groups"

// OpenLocal opens a divided crawl, or makes one with the given table if the control store has
// none. open opens the stores of a group when they are first needed, once for each group, and
// returns a function that closes them. Close calls those, and closes the control store; Hosts
// belongs to the caller.
func OpenLocal(ctx context.Context, control crawldb.Store, first Table, open func(group int) (s Stores, close func() error, err error)) (*Local, error) {
	l := &Local{control: control, open: open, groups: map[int]*localGroup{}, workers: map[string]int64{}}
	text, err := control.Mark(ctx, tableMark)
	if err != nil {
		return nil, fmt.Errorf("groups: open: %w", err)
	}
	if text == "" {
		if err := first.Check(); err != nil {
			return nil, err
		}
		l.table = first
		if err := l.storeTable(ctx, first); err != nil {
			return nil, fmt.Errorf("groups: open: %w", err)
		}
	} else if l.table, err = DecodeTable(text); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Local) storeTable(ctx context.Context, t Table) error {
	if err := l.control.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(tableMark, t.Encode())}); err != nil {
		return err
	}
	return l.control.Sync(ctx)
}

var errClosed = errors.New("groups: engine is closed")

// group returns a group of the table with its stores.
func (l *Local) group(id int) (*localGroup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if g := l.groups[id]; g != nil {
		return g, nil
	}
	if _, ok := l.table.Group(id); !ok {
		return nil, fmt.Errorf("%w: %d", ErrNoGroup, id)
	}
	stores, end, err := l.open(id)
	if err != nil {
		return nil, fmt.Errorf("groups: open group %d: %w", id, err)
	}
	g := &localGroup{stores: stores, close: end, writers: &openWriters{}}
	l.groups[id] = g
	return g, nil
}

// State implements [Coordinator].
func (l *Local) State(ctx context.Context) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return State{}, errClosed
	}
	var s State
	for _, g := range l.table.Groups {
		state := GroupState{Group: g.ID}
		if have := l.groups[g.ID]; have != nil {
			state.Owner, state.Epoch = have.owner, have.epoch
		}
		s.Groups = append(s.Groups, state)
	}
	for _, owner := range slices.Sorted(maps.Keys(l.workers)) {
		s.Workers = append(s.Workers, WorkerState{owner, l.workers[owner]})
	}
	return s, nil
}

// Renew implements [Coordinator].
func (l *Local) Renew(ctx context.Context, owner string) ([]Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	l.workers[owner]++
	return l.heldBy(owner), nil
}

func (l *Local) heldBy(owner string) (held []Lease) {
	for _, id := range slices.Sorted(maps.Keys(l.groups)) {
		if g := l.groups[id]; g.owner == owner {
			held = append(held, Lease{id, owner, g.epoch})
		}
	}
	return held
}

// Acquire implements [Coordinator].
func (l *Local) Acquire(ctx context.Context, owner string, group int) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	g, err := l.group(group)
	if err != nil {
		return Lease{}, err
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.workers[owner]; !known || g.owner != "" {
		return Lease{}, fmt.Errorf("groups: acquire group %d for %q: %w", group, owner, ErrTaken)
	}
	g.writers.close() // those of the lease before
	g.owner = owner
	g.epoch++
	return Lease{group, owner, g.epoch}, nil
}

// Release implements [Coordinator].
func (l *Local) Release(ctx context.Context, lease Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := l.group(lease.Group)
	if err != nil {
		return err
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.isHeld(lease) {
		return fmt.Errorf("groups: release group %d: %w", lease.Group, crawldb.ErrFenced)
	}
	g.owner = ""
	return nil
}

// isHeld reports whether a lease is the current one.
func (g *localGroup) isHeld(l Lease) bool { return g.owner == l.Owner && g.epoch == l.Epoch }

// Expel implements [Coordinator].
func (l *Local) Expel(ctx context.Context, w WorkerState) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var locked []*localGroup
	for {
		// Wait for what is being written, without a lock that Renew needs.
		for _, g := range locked {
			g.writing.Lock()
		}
		held, err := l.tryExpel(w, locked)
		for _, g := range locked {
			g.writing.Unlock()
		}
		if len(held) == 0 {
			return err
		}
		locked = held
	}
}

// tryExpel expels a worker if all its groups are locked; otherwise it returns them, by ascending
// number.
func (l *Local) tryExpel(w WorkerState, locked []*localGroup) (held []*localGroup, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, known := l.workers[w.Owner]; !known || n != w.Counter {
		return nil, fmt.Errorf("groups: expel %q: %w", w.Owner, ErrTaken)
	}
	for _, lease := range l.heldBy(w.Owner) {
		held = append(held, l.groups[lease.Group])
	}
	if slices.ContainsFunc(held, func(g *localGroup) bool { return !slices.Contains(locked, g) }) {
		return held, nil
	}
	for _, g := range held {
		g.owner = ""
	}
	delete(l.workers, w.Owner)
	return nil, nil
}

// Table implements [Engine].
func (l *Local) Table(ctx context.Context) (Table, error) {
	if err := ctx.Err(); err != nil {
		return Table{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Table{}, errClosed
	}
	t := l.table
	t.Groups = slices.Clone(t.Groups)
	return t, nil
}

// SetTable implements [Engine].
func (l *Local) SetTable(ctx context.Context, t Table) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	l.posting.Lock()
	defer l.posting.Unlock()
	l.mu.Lock()
	version := l.table.Version
	l.mu.Unlock()
	if t.Version != version+1 {
		return fmt.Errorf("groups: replace table %d by %d: %w", version, t.Version, ErrTaken)
	}
	if err := l.storeTable(ctx, t); err != nil {
		return fmt.Errorf("groups: replace the table: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Groups = slices.Clone(t.Groups)
	l.table = t
	return nil
}

// Open implements [Engine].
func (l *Local) Open(ctx context.Context, lease Lease) (Stores, error) {
	if err := ctx.Err(); err != nil {
		return Stores{}, err
	}
	g, err := l.group(lease.Group)
	if err != nil {
		return Stores{}, err
	}
	return fenced(g.stores, g.writers, func(write func() error) error {
		g.writing.RLock()
		defer g.writing.RUnlock()
		l.mu.Lock()
		held := g.isHeld(lease)
		l.mu.Unlock()
		if !held {
			return crawldb.ErrFenced
		}
		return write()
	}), nil
}

// Marks implements [Engine].
func (l *Local) Marks(ctx context.Context, names []MarkName) ([]string, error) {
	values := make([]string, len(names))
	read := map[int]crawldb.Store{} // the stores whose marks were read
	for i, n := range names {
		store := l.control
		if n.Group != Outside {
			g, err := l.group(n.Group)
			if err != nil {
				return nil, err
			}
			store = g.stores.Crawl
		}
		var err error
		if values[i], err = store.Mark(ctx, n.Name); err != nil {
			return nil, fmt.Errorf("groups: mark %q of group %d: %w", n.Name, n.Group, err)
		}
		if values[i] != "" {
			read[n.Group] = store
		}
	}
	for _, store := range read { // makes the values durable
		if err := store.Sync(ctx); err != nil {
			return nil, fmt.Errorf("groups: marks: %w", err)
		}
	}
	return values, nil
}

// Post implements [Engine].
func (l *Local) Post(ctx context.Context, group int, row string) error {
	if row == "" {
		return errors.New("groups: post: an empty row")
	}
	if _, err := l.group(group); err != nil {
		return err
	}
	l.posting.Lock()
	defer l.posting.Unlock()
	marks, err := l.Marks(ctx, exchangeMarks(Outside, group))
	if err != nil {
		return err
	}
	b, next, err := parseExchange(marks)
	if err != nil {
		return err
	}
	changes := map[string]string{RowMark(group, b.Next): row}
	for _, folded := range b.CutFolded(group, next) {
		changes[folded] = ""
	}
	b.Next++
	changes[OutboxMark(group)] = b.String()
	err = l.control.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return changes }})
	if err == nil {
		err = l.control.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("groups: post a row for group %d: %w", group, err)
	}
	return nil
}

// Close implements [Engine].
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	for _, g := range l.groups {
		errs = append(errs, g.close())
	}
	return errors.Join(append(errs, l.control.Close())...)
}
