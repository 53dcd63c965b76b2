package memstore

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

var _ crawldb.Store = (*Crawl)(nil)

// Crawl is a [crawldb.Store]. It keeps records encoded, which takes a third of
// the memory and shares none with the caller.
//
// Updates run one at a time, but Get and Scan do not wait for them, so Next may take its time.
// A Next that calls Update, which the contract forbids, blocks forever.
type Crawl struct {
	records guarded[[]byte]
	marks   map[string]string // guarded by records.mu
}

// Get implements [crawldb.Store].
func (s *Crawl) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	enc, ok, err := s.records.get(ctx, crawldb.Key(url), crawldb.ErrClosed)
	if err == nil && !ok {
		err = crawldb.ErrNotFound
	}
	d := crawldb.Datum{URL: url}
	if err == nil {
		err = d.UnmarshalBinary(enc)
	}
	if err != nil {
		return crawldb.Datum{}, failed("get", url, err)
	}
	return d, nil
}

// Scan implements [crawldb.Store].
func (s *Crawl) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for e, err := range s.records.scan(ctx, r.From, r.To, crawldb.ErrClosed) {
			d := crawldb.Datum{URL: crawldb.URLOf(e.key)}
			if err == nil {
				err = d.UnmarshalBinary(e.val)
			}
			if err != nil {
				yield(crawldb.Datum{}, fmt.Errorf("memstore: scan: %w", err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Update implements [crawldb.Store].
func (s *Crawl) Update(ctx context.Context, b crawldb.Batch) error {
	if err := s.update(ctx, b); err != nil {
		return fmt.Errorf("memstore: update: %w", err)
	}
	return nil
}

func (s *Crawl) update(ctx context.Context, b crawldb.Batch) error {
	keys := make([]string, len(b.URLs))
	for i, url := range b.URLs {
		keys[i] = crawldb.Key(url)
		if i > 0 && keys[i] <= keys[i-1] {
			return fmt.Errorf("%q after %q: %w", url, b.URLs[i-1], crawldb.ErrOrder)
		}
	}
	s.records.writing.Lock()
	defer s.records.writing.Unlock()

	var changes []entry[[]byte] // nil deletes
	for i, url := range b.URLs {
		enc, ok, err := s.records.get(ctx, keys[i], crawldb.ErrClosed)
		if err != nil {
			return err
		}
		var old *crawldb.Datum
		if ok {
			old = &crawldb.Datum{URL: url}
			if err := old.UnmarshalBinary(enc); err != nil {
				return fmt.Errorf("%q: %w", url, err)
			}
		}
		d, err := b.Next(i, old)
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", url, err)
		case d == old:
		case d == nil:
			changes = append(changes, entry[[]byte]{keys[i], nil})
		default:
			enc, err := d.AppendBinary(nil)
			if err != nil {
				return fmt.Errorf("%q: %w", url, err)
			}
			changes = append(changes, entry[[]byte]{keys[i], enc})
		}
	}
	var marks map[string]string
	if b.Marks != nil {
		marks = b.Marks()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.records.apply(crawldb.ErrClosed, func(t *table[[]byte]) {
		for _, c := range changes {
			if c.val == nil {
				t.delete(c.key)
			} else {
				t.set(c.key, c.val)
			}
		}
		for name, value := range marks {
			if value == "" {
				delete(s.marks, name)
				continue
			}
			if s.marks == nil {
				s.marks = map[string]string{}
			}
			s.marks[name] = value
		}
	})
}

// Sync implements [crawldb.Store]; there is nothing to make durable.
func (s *Crawl) Sync(ctx context.Context) error {
	if err := s.records.ready(ctx, crawldb.ErrClosed); err != nil {
		return fmt.Errorf("memstore: sync: %w", err)
	}
	return nil
}

// Mark implements [crawldb.Store].
func (s *Crawl) Mark(ctx context.Context, name string) (string, error) {
	if err := s.records.ready(ctx, crawldb.ErrClosed); err != nil {
		return "", failed("mark", name, err)
	}
	s.records.mu.RLock()
	defer s.records.mu.RUnlock()
	return s.marks[name], nil
}

// Marks implements [crawldb.MarkStore].
func (s *Crawl) Marks(ctx context.Context) iter.Seq2[crawldb.NamedMark, error] {
	return func(yield func(crawldb.NamedMark, error) bool) {
		s.records.mu.RLock()
		marks := maps.Clone(s.marks)
		s.records.mu.RUnlock()
		for _, name := range slices.Sorted(maps.Keys(marks)) {
			if err := s.records.ready(ctx, crawldb.ErrClosed); err != nil {
				yield(crawldb.NamedMark{}, failed("marks", name, err))
				return
			}
			if !yield(crawldb.NamedMark{Name: name, Value: marks[name]}, nil) {
				return
			}
		}
		if err := s.records.ready(ctx, crawldb.ErrClosed); err != nil {
			yield(crawldb.NamedMark{}, failed("marks", "", err))
		}
	}
}

// Close implements [crawldb.Store].
func (s *Crawl) Close() error {
	s.records.close()
	return nil
}
