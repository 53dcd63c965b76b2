package pgstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

var _ linkdb.Store = (*linkStore)(nil)

// linkStore is the link db: a row for each page. Merges take turns.
type linkStore struct {
	view
	turn chan struct{}
}

// Get implements [linkdb.Store].
func (s *linkStore) Get(ctx context.Context, url string) ([]linkdb.Inlink, error) {
	index, _ := indexed(crawldb.AppendKey(nil, url))
	var value []byte
	err := s.read(ctx, func(ctx context.Context) error {
		return s.db.pool.QueryRow(ctx, `SELECT inlinks FROM link WHERE key = $1`, index).Scan(&value)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	var links []linkdb.Inlink
	if err == nil {
		links, err = s.decode(url, value)
	}
	if err != nil {
		return nil, fmt.Errorf("pgstore: get inlinks of %q: %w", url, err)
	}
	return links, nil
}

func (s *linkStore) decode(url string, value []byte) ([]linkdb.Inlink, error) {
	links, ok := decodeInlinks(value)
	if !ok {
		return nil, s.db.damaged("link", url, errInlinks)
	}
	return links, nil
}

// linkSource is the table of inlinks; a row may have some hundred kilobytes.
var linkSource = source{table: "link", values: "inlinks", rows: 500}

// Scan implements [linkdb.Store].
func (s *linkStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[linkdb.Entry, error] {
	return func(yield func(linkdb.Entry, error) bool) {
		for x, err := range s.scan(ctx, linkSource, r) {
			var e linkdb.Entry
			if err == nil {
				e.URL = crawldb.URLOf(string(x.key))
				e.Inlinks, err = s.decode(e.URL, x.value)
			}
			if err != nil {
				yield(linkdb.Entry{}, fmt.Errorf("pgstore: scan of inlinks: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Merge implements [linkdb.Store]. It is applied whole or not at all.
func (s *linkStore) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	if err := s.merge(ctx, entries, limit); err != nil {
		return fmt.Errorf("pgstore: merge inlinks: %w", err)
	}
	return nil
}

func (s *linkStore) merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	index, tails := make([][]byte, len(entries)), make([][]byte, len(entries))
	for i, e := range entries {
		if i > 0 && crawldb.Compare(entries[i-1].URL, e.URL) >= 0 {
			return fmt.Errorf("%q after %q: %w", e.URL, entries[i-1].URL, linkdb.ErrOrder)
		}
		index[i], tails[i] = indexed(crawldb.AppendKey(nil, e.URL))
	}
	if err := s.take(ctx, s.turn); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	// Merging again changes nothing, so a commit whose answer was lost is repeated.
	return s.write(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			if err := s.db.fence(ctx, tx); err != nil {
				return err
			}
			old, err := readInlinks(ctx, tx, index)
			if err != nil {
				return err
			}
			return s.mergeRows(ctx, tx, entries, limit, index, tails, old)
		})
	})
}

// readInlinks returns the encoded inlinks of pages, nil for a page that has none.
func readInlinks(ctx context.Context, tx pgx.Tx, index [][]byte) ([][]byte, error) {
	old := make([][]byte, len(index))
	rows, err := tx.Query(ctx, `SELECT u.i, l.inlinks FROM unnest($1::bytea[]) WITH ORDINALITY AS u (key, i) JOIN link l ON l.key = u.key`, index)
	if err != nil {
		return nil, err
	}
	var i int64
	var value []byte
	_, err = pgx.ForEachRow(rows, []any{&i, &value}, func() error { old[i-1] = value; return nil })
	return old, err
}

func (s *linkStore) mergeRows(ctx context.Context, tx pgx.Tx, entries []linkdb.Entry, limit int, index, tails, old [][]byte) error {
	var added, replaced struct{ keys, tails, values [][]byte }
	for i, e := range entries {
		var had []linkdb.Inlink
		if old[i] != nil {
			var err error
			if had, err = s.decode(e.URL, old[i]); err != nil {
				return err
			}
		}
		links := linkdb.Union(had, e.Inlinks, limit)
		to := &added
		switch {
		case len(links) == 0 || slices.Equal(links, had):
			continue
		case had != nil:
			to = &replaced
		}
		to.keys, to.tails, to.values = append(to.keys, index[i]), append(to.tails, tails[i]), append(to.values, appendInlinks(nil, links))
	}
	var b pgx.Batch
	if len(added.keys) > 0 {
		b.Queue(`INSERT INTO link (key, tail, inlinks) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])`, added.keys, added.tails, added.values)
	}
	if len(replaced.keys) > 0 {
		b.Queue(`UPDATE link l SET inlinks = u.inlinks FROM unnest($1::bytea[], $2::bytea[]) AS u (key, inlinks) WHERE l.key = u.key`, replaced.keys, replaced.values)
	}
	return tx.SendBatch(ctx, &b).Close()
}

// Close implements [linkdb.Store].
func (s *linkStore) Close() error {
	s.end()
	return nil
}

// inlinksVersion is the first byte of encoded inlinks. Each link is its page and its anchor,
// both as the length of the prefix that they share with those of the link before, the length
// of the rest, and the rest.
const inlinksVersion = 1

// mostInlinkBytes bounds the text of the inlinks of a page, since a few damaged bytes could ask
// for any amount of memory.
const mostInlinkBytes = 256 << 20

var errInlinks = errors.New("not encoded inlinks")

func appendInlinks(b []byte, links []linkdb.Inlink) []byte {
	b = append(b, inlinksVersion)
	var last linkdb.Inlink
	for _, l := range links {
		b = appendShared(b, last.From, l.From)
		b = appendShared(b, last.Anchor, l.Anchor)
		last = l
	}
	return b
}

func appendShared(b []byte, last, s string) []byte {
	n := 0
	for n < len(last) && n < len(s) && last[n] == s[n] {
		n++
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n)), uint64(len(s)-n))
	return append(b, s[n:]...)
}

func decodeInlinks(b []byte) (links []linkdb.Inlink, ok bool) {
	if len(b) == 0 || b[0] != inlinksVersion {
		return nil, false
	}
	b = b[1:]
	var l linkdb.Inlink
	for size := 0; len(b) > 0; {
		if l.From, b, ok = cutShared(b, l.From); !ok {
			return nil, false
		}
		if l.Anchor, b, ok = cutShared(b, l.Anchor); !ok {
			return nil, false
		}
		if size += len(l.From) + len(l.Anchor); size > mostInlinkBytes {
			return nil, false
		}
		links = append(links, l)
	}
	return links, true
}

func cutShared(b []byte, last string) (s string, rest []byte, ok bool) {
	shared, n := binary.Uvarint(b)
	if n <= 0 || shared > uint64(len(last)) {
		return "", nil, false
	}
	b = b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, false
	}
	own, rest := b[n:n+int(size)], b[n+int(size):]
	if size == 0 {
		return last[:shared], rest, true
	}
	return last[:shared] + string(own), rest, true
}
