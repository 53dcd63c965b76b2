package s3store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/recrawl/recrawl/segment"
)

var (
	// ErrReadOnly says that a change was attempted on a store opened with Options.ReadOnly.
	ErrReadOnly = errors.New("s3store: store is read-only")
	// ErrConditions says that the server ignores If-None-Match, so that two processes could write
	// the same part without noticing.
	ErrConditions = errors.New("s3store: the server has no conditional writes (If-None-Match)")
	// ErrTakenOver says that another process has opened the part for writing, or removed it, so
	// that this writer cannot commit it.
	ErrTakenOver = errors.New("s3store: the part was taken over by another writer")
)

const (
	headsDir  = "heads/"
	blocksDir = "blocks/"
	goneDir   = "gone/"

	defaultPieceSize = 4 << 20
)

var _ segment.Store = (*Store)(nil)

// Store is a [segment.Store] in a bucket. Several processes may use one at the same time: a part
// belongs to the process that has last opened it for writing.
//
// A block is durable once Sync has returned.
type Store struct {
	bucket    *bucket
	pieceSize int
	readOnly  bool

	mu      sync.Mutex
	closed  bool
	writers map[partName]*writer
	gone    map[string]bool // segments that are being removed
	removed map[string]bool // segments that were removed, which a list may still show
	// seen has the parts of each segment that were found or made, which a list may not show.
	seen map[string]map[string]bool
	// committed has heads that are known to be the last ones.
	committed map[partName]*head
}

// partName names a part of a segment.
type partName struct{ segment, part string }

func (n partName) String() string { return n.segment + "/" + n.part }

func (n partName) headKey(number int, previous string) string {
	if number == 0 {
		return headsDir + n.String() + "/0"
	}
	return fmt.Sprintf("%s%v/%d-%s", headsDir, n, number, previous)
}

func (n partName) blockKey(name string) string { return blocksDir + n.String() + "/" + name }

// Open opens the store in a bucket, and completes a Remove that was interrupted. Unless it is
// opened for reading only, it writes and deletes a small object to see that it may, and that
// the server heeds If-None-Match; if it does not, the error is ErrConditions.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("s3store: open s3://%s/%s: %w", o.Bucket, o.Prefix, err)
	}
	return s, nil
}

func open(ctx context.Context, o Options) (*Store, error) {
	b, err := newBucket(o)
	if err != nil {
		return nil, err
	}
	s := &Store{bucket: b, pieceSize: o.PieceSize, readOnly: o.ReadOnly, writers: map[partName]*writer{}, gone: map[string]bool{}, removed: map[string]bool{}, seen: map[string]map[string]bool{}, committed: map[partName]*head{}}
	if s.pieceSize <= 0 {
		s.pieceSize = defaultPieceSize
	}
	if err := b.reach(ctx); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := b.checkConditions(ctx); err != nil {
			return nil, err
		}
	}
	gone, _, err := b.list(ctx, goneDir)
	if err != nil {
		return nil, err
	}
	for _, key := range gone {
		seg := strings.TrimPrefix(key, goneDir)
		if s.readOnly {
			s.gone[seg] = true
		} else if err := s.delete(ctx, seg); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// firstPatience is how long Open waits for a server that may not be there at all.
const firstPatience = 10 * time.Second

// reach sees whether there is the bucket.
func (b *bucket) reach(ctx context.Context) error {
	return b.retryFor(ctx, min(b.patience, firstPatience), "head", "", 0, func(ctx context.Context) error {
		found, err := b.client.BucketExists(ctx, b.name)
		if err == nil && !found {
			err = errNoBucket
		}
		return err
	})
}

var errNoBucket = errors.New("there is no such bucket")

// checkConditions sees whether the server heeds If-None-Match.
func (b *bucket) checkConditions(ctx context.Context) error {
	id := newID()
	key := "check/" + id
	err := b.create(ctx, key, []byte(id), id)
	if err == nil {
		err = b.upload(ctx, key, []byte(id), true)
	}
	if e := b.remove(ctx, key); e != nil {
		return e
	}
	var answer minio.ErrorResponse
	switch {
	case err == nil:
		return ErrConditions
	case errors.As(err, &answer) && answer.Code == "NotImplemented":
		return fmt.Errorf("%w: %w", ErrConditions, err)
	case !errors.Is(err, errExists):
		return err
	}
	return nil
}

func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Close ends the writers that are open, as [segment.BlockWriter.Close] does; after it every method
// returns an error that is segment.ErrClosed. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	var open []*writer
	for _, w := range s.writers {
		open = append(open, w)
	}
	s.mu.Unlock()
	var err error
	for _, w := range open {
		err = errors.Join(err, w.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return err
}

func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return segment.ErrClosed
	}
	return nil
}

func failed(op string, about fmt.Stringer, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("s3store: %s %v: %w", op, about, err)
}

// List implements [segment.Store].
func (s *Store) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := s.list(ctx)
		for _, name := range names {
			if err = s.ready(ctx); err != nil {
				break
			}
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", fmt.Errorf("s3store: list segments: %w", err))
		}
	}
}

func (s *Store) list(ctx context.Context) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	keys, _, err := s.bucket.list(ctx, headsDir)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, key := range keys {
		seg, rest, _ := strings.Cut(strings.TrimPrefix(key, headsDir), "/")
		if strings.HasSuffix(rest, "/0") && segment.ValidName(seg) == nil {
			found[seg] = true
		}
	}
	s.mu.Lock()
	maps.DeleteFunc(found, func(seg string, _ bool) bool { return s.removed[seg] || s.gone[seg] })
	unlisted := map[string][]string{}
	for seg, parts := range s.seen {
		if !found[seg] && !s.gone[seg] {
			unlisted[seg] = slices.Collect(maps.Keys(parts))
		}
	}
	s.mu.Unlock()
	for seg, parts := range unlisted { // the list is stale, or another process has removed it
		if found[seg], err = s.exists(ctx, seg, parts); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(found, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(found)), nil
}

// exists reports whether a segment has one of the parts, and forgets it if not.
func (s *Store) exists(ctx context.Context, seg string, parts []string) (bool, error) {
	for _, part := range parts {
		_, err := s.bucket.get(ctx, partName{seg, part}.headKey(0, ""), -1)
		if !errors.Is(err, errNoObject) {
			return err == nil, err
		}
		s.forgetCommitted(partName{seg, part})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, seg)
	return false, nil
}

// last returns the head of a part that is in force.
func (s *Store) last(ctx context.Context, n partName) (*head, error) {
	if err := segment.ValidName(n.segment, n.part); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	known, gone := s.committed[n], s.gone[n.segment]
	s.mu.Unlock()
	if gone {
		return nil, segment.ErrNotFound
	}
	if known != nil {
		return known, nil
	}
	var h *head
	for {
		number, previous := 0, ""
		if h != nil {
			number, previous = h.Number+1, h.ID
		}
		key := n.headKey(number, previous)
		data, err := s.bucket.get(ctx, key, -1)
		if errors.Is(err, errNoObject) {
			if h == nil {
				return nil, segment.ErrNotFound
			}
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		next, err := decodeHead(data, n.String(), number)
		if err != nil {
			return nil, &segment.CorruptError{File: s.bucket.place(key), Offset: -1, Err: err}
		}
		if h == nil {
			s.see(n)
		}
		if h = next; h.Committed {
			s.noteCommitted(n, h)
			return h, nil
		}
	}
}

// see notes that there is a part.
func (s *Store) see(n partName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[n.segment] == nil {
		s.seen[n.segment] = map[string]bool{}
	}
	s.seen[n.segment][n.part] = true
}

// mostKnown bounds the heads in memory.
const mostKnown = 10_000

func (s *Store) noteCommitted(n partName, h *head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.committed) >= mostKnown {
		clear(s.committed)
	}
	s.committed[n] = h
}

func (s *Store) forgetCommitted(n partName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.committed, n)
}

// Stat implements [segment.Store]. A part that is neither committed nor being written is read in
// full.
func (s *Store) Stat(ctx context.Context, seg, part string) (segment.Info, error) {
	n := partName{seg, part}
	info, err := s.stat(ctx, n)
	return info, failed("stat", n, err)
}

func (s *Store) stat(ctx context.Context, n partName) (segment.Info, error) {
	v, err := s.view(ctx, n)
	if err != nil {
		return segment.Info{}, err
	}
	if v.unknown {
		if v.pieces, err = s.whole(ctx, n, v.head); err != nil {
			return segment.Info{}, err
		}
	}
	blocks, bytes := total(v.pieces)
	return segment.Info{Blocks: blocks + v.tailBlocks, Bytes: bytes + int64(len(v.tail)), Committed: v.head.Committed}, nil
}

// Remove implements [segment.Store]. A Remove that is interrupted is completed by the next Open.
func (s *Store) Remove(ctx context.Context, seg string) error {
	return failed("remove", partName{segment: seg}, s.remove(ctx, seg))
}

func (s *Store) remove(ctx context.Context, seg string) error {
	if err := segment.ValidName(seg); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	if !s.startRemoving(seg) {
		return segment.ErrBusy
	}
	err := s.bucket.put(ctx, goneDir+seg, []byte(seg))
	if err == nil {
		err = s.delete(ctx, seg)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.gone, seg)
		delete(s.seen, seg)
		s.removed[seg] = true
	}
	return err
}

// startRemoving hides a segment and keeps writers away from it, unless there is one.
func (s *Store) startRemoving(seg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.writers {
		if n.segment == seg {
			return false
		}
	}
	s.gone[seg] = true
	for n := range s.committed {
		if n.segment == seg {
			delete(s.committed, n)
		}
	}
	return true
}

// delete deletes the objects of a segment that is marked as gone, and then the mark. The first
// heads of the parts that every segment has, and of those that were seen, are deleted even if a
// list does not show them; without its first head, an object belongs to no part.
func (s *Store) delete(ctx context.Context, seg string) error {
	heads := map[string]bool{}
	for _, part := range append(segment.Parts(), segment.EventPart) {
		heads[partName{seg, part}.headKey(0, "")] = true
	}
	s.mu.Lock()
	for part := range s.seen[seg] {
		heads[partName{seg, part}.headKey(0, "")] = true
	}
	s.mu.Unlock()
	for _, dir := range []string{headsDir, blocksDir} {
		keys, _, err := s.bucket.list(ctx, dir+seg+"/")
		if err != nil {
			return err
		}
		for _, key := range keys {
			delete(heads, key)
		}
		if err := s.deleteAll(ctx, keys); err != nil {
			return err
		}
	}
	for key := range heads {
		if err := s.bucket.remove(ctx, key); err != nil {
			return err
		}
	}
	return s.bucket.remove(ctx, goneDir+seg)
}

// deleteAll deletes objects, some at a time: not every server can delete several by one request.
func (s *Store) deleteAll(ctx context.Context, keys []string) error {
	const atOnce = 8
	var wg sync.WaitGroup
	errs := make([]error, atOnce)
	for i := range atOnce {
		wg.Go(func() {
			for k := i; k < len(keys) && errs[i] == nil; k += atOnce {
				errs[i] = s.bucket.remove(ctx, keys[k])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
