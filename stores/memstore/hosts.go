package memstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

var _ hostdb.Store = (*Hosts)(nil)

// Hosts is a [hostdb.Store].
type Hosts struct {
	hosts guarded[*hostdb.Host]
}

// Get implements [hostdb.Store].
func (s *Hosts) Get(ctx context.Context, name string) (hostdb.Host, error) {
	h, ok, err := s.hosts.get(ctx, name, hostdb.ErrClosed)
	if err == nil && !ok {
		err = hostdb.ErrNotFound
	}
	if err != nil {
		return hostdb.Host{}, failed("get host", name, err)
	}
	return *cloneHost(h), nil
}

// Update implements [hostdb.Store].
func (s *Hosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if err := s.update(ctx, name, next); err != nil {
		return failed("update host", name, err)
	}
	return nil
}

func (s *Hosts) update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	s.hosts.writing.Lock()
	defer s.hosts.writing.Unlock()
	kept, ok, err := s.hosts.get(ctx, name, hostdb.ErrClosed)
	if err != nil {
		return err
	}
	var old *hostdb.Host
	if ok {
		// Turns at a host are frequent, and its robots.txt files may take a
		// megabyte.
		old = copyHost(kept, func(b []byte) []byte { return b })
	}
	h, err := next(old)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.hosts.apply(hostdb.ErrClosed, func(t *table[*hostdb.Host]) {
		switch {
		case h == old:
		case h == nil:
			t.delete(name)
		default:
			h = copyHost(h, func(b []byte) []byte {
				if kept != nil && slices.ContainsFunc(kept.Robots, func(r hostdb.Robots) bool { return same(r.Body, b) }) {
					return b
				}
				return bytes.Clone(b)
			})
			h.Name = name
			t.set(name, h)
		}
	})
}

// Scan implements [hostdb.Store].
func (s *Hosts) Scan(ctx context.Context) iter.Seq2[hostdb.Host, error] {
	return func(yield func(hostdb.Host, error) bool) {
		for e, err := range s.hosts.scan(ctx, "", "", hostdb.ErrClosed) {
			if err != nil {
				yield(hostdb.Host{}, fmt.Errorf("memstore: scan hosts: %w", err))
				return
			}
			if !yield(*cloneHost(e.val), nil) {
				return
			}
		}
	}
}

// Sync implements [hostdb.Store]; there is nothing to make durable.
func (s *Hosts) Sync(ctx context.Context) error {
	if err := s.hosts.ready(ctx, hostdb.ErrClosed); err != nil {
		return fmt.Errorf("memstore: sync: %w", err)
	}
	return nil
}

// Close implements [hostdb.Store].
func (s *Hosts) Close() error {
	s.hosts.close()
	return nil
}

// same reports whether two slices are the same memory.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// cloneHost copies a host and everything it refers to.
func cloneHost(h *hostdb.Host) *hostdb.Host { return copyHost(h, bytes.Clone) }

// copyHost copies a host and everything it refers to: times as they are kept,
// bodies by the given function.
func copyHost(h *hostdb.Host, body func([]byte) []byte) *hostdb.Host {
	c := *h
	for _, t := range []*time.Time{&c.NextFetch, &c.LastFetch, &c.Spent.Day, &c.LastCheck, &c.Counted} {
		*t = kept(*t)
	}
	c.Grants = nil
	for _, t := range h.Grants {
		c.Grants = append(c.Grants, kept(t))
	}
	c.Fields = maps.Clone(h.Fields)
	c.Robots = slices.Clone(h.Robots)
	for i := range c.Robots {
		r := &c.Robots[i]
		r.Body = body(r.Body)
		for _, t := range []*time.Time{&r.Fetched, &r.Expires, &r.FailingSince} {
			*t = kept(*t)
		}
	}
	return &c
}

// kept returns a time as it is kept: to the millisecond and in UTC.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
