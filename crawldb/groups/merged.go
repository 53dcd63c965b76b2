package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// ErrReadOnly says that a change was attempted through the stores of [Merged].
var ErrReadOnly = errors.New("groups: a divided crawl is changed by its workers only")

// Merged returns all groups of a crawl as one, for reading: records and inlinks in their order, and
// segments, to whose names -gN is added for group N, as it is in the names of marks of such a
// segment. Other marks are those of the first group that has them. It takes no lease, and reads
// each group as it is at that moment. Closing the stores does nothing.
func Merged(ctx context.Context, e Engine) (Stores, error) {
	t, err := e.Table(ctx)
	if err != nil {
		return Stores{}, err
	}
	m := &merged{table: t, router: t.Routing.Router(), of: map[int]Stores{}}
	for _, g := range t.Groups {
		s, err := e.Open(ctx, Lease{Group: g.ID})
		if err != nil {
			return Stores{}, err
		}
		m.of[g.ID] = s
	}
	return Stores{Crawl: mergedCrawl{m}, Links: mergedLinks{m}, Segments: mergedSegments{m}, Hosts: m.of[t.Groups[0].ID].Hosts}, nil
}

type merged struct {
	table  Table
	router *Router
	of     map[int]Stores
}

// cutGroup cuts -gN off a name, and returns the stores of group N; false if there is no such group.
func (m *merged) cutGroup(name string) (s Stores, rest string, ok bool) {
	at := strings.LastIndex(name, "-g")
	if at < 0 {
		return Stores{}, "", false
	}
	id, err := strconv.Atoi(name[at+len("-g"):])
	s, ok = m.of[id]
	return s, name[:at], ok && err == nil
}

// group returns the stores of the group of a URL.
func (m *merged) group(url string) Stores { return m.of[m.table.OfSlot(m.router.Slot(url))] }

// inOrder merges the sequences of all groups, which are each in the order of their keys.
func inOrder[T any](m *merged, of func(group int) iter.Seq2[T, error], key func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		type head struct {
			value T
			key   string
			next  func() (T, error, bool)
		}
		var heads []head
		take := func(h head) (head, bool, error) {
			v, err, ok := h.next()
			if !ok || err != nil {
				return h, false, err
			}
			h.value, h.key = v, key(v)
			return h, true, nil
		}
		var none T
		for _, g := range m.table.Groups {
			next, stop := iter.Pull2(of(g.ID))
			defer stop()
			h, ok, err := take(head{next: next})
			if err != nil {
				yield(none, err)
				return
			}
			if ok {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if heads[i].key < heads[least].key {
					least = i
				}
			}
			if !yield(heads[least].value, nil) {
				return
			}
			h, ok, err := take(heads[least])
			switch {
			case err != nil:
				yield(none, err)
				return
			case ok:
				heads[least] = h
			default:
				heads = slices.Delete(heads, least, least+1)
			}
		}
	}
}

type mergedCrawl struct{ *merged }

func (m mergedCrawl) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	return m.group(url).Crawl.Get(ctx, url)
}

func (m mergedCrawl) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	scan := func(group int) iter.Seq2[crawldb.Datum, error] { return m.of[group].Crawl.Scan(ctx, r) }
	return inOrder(m.merged, scan, func(d crawldb.Datum) string { return crawldb.Key(d.URL) })
}

func (m mergedCrawl) Mark(ctx context.Context, name string) (string, error) {
	if found := markOfSegment().FindStringSubmatch(name); found != nil {
		if s, rest, ok := m.cutGroup(found[1]); ok {
			return s.Crawl.Mark(ctx, rest+found[2])
		}
	}
	for _, g := range m.table.Groups {
		if value, err := m.of[g.ID].Crawl.Mark(ctx, name); value != "" || err != nil {
			return value, err
		}
	}
	return "", nil
}

// markOfSegment matches the name of a mark of a segment with -gN.
func markOfSegment() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z]+/[0-9a-z_-]+-g[0-9]+)(/.*)?$`)
}

func (m mergedCrawl) Update(context.Context, crawldb.Batch) error { return ErrReadOnly }
func (m mergedCrawl) Sync(context.Context) error                  { return nil }
func (m mergedCrawl) Close() error                                { return nil }

type mergedLinks struct{ *merged }

func (m mergedLinks) Get(ctx context.Context, url string) ([]linkdb.Inlink, error) {
	return m.group(url).Links.Get(ctx, url)
}

func (m mergedLinks) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[linkdb.Entry, error] {
	scan := func(group int) iter.Seq2[linkdb.Entry, error] { return m.of[group].Links.Scan(ctx, r) }
	return inOrder(m.merged, scan, func(e linkdb.Entry) string { return crawldb.Key(e.URL) })
}

func (m mergedLinks) Merge(context.Context, []linkdb.Entry, int) error { return ErrReadOnly }
func (m mergedLinks) Close() error                                     { return nil }

type mergedSegments struct{ *merged }

func (m mergedSegments) List(ctx context.Context) iter.Seq2[string, error] {
	list := func(group int) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for name, err := range m.of[group].Segments.List(ctx) {
				if !yield(fmt.Sprintf("%s-g%d", name, group), err) {
					return
				}
			}
		}
	}
	return inOrder(m.merged, list, func(name string) string { return name })
}

// find returns the store and the name of a segment there.
func (m mergedSegments) find(name string) (segment.Store, string, error) {
	s, name, ok := m.cutGroup(name)
	if !ok {
		return nil, "", segment.ErrNotFound
	}
	return s.Segments, name, nil
}

func (m mergedSegments) Stat(ctx context.Context, name, part string) (segment.Info, error) {
	s, name, err := m.find(name)
	if err != nil {
		return segment.Info{}, err
	}
	return s.Stat(ctx, name, part)
}

func (m mergedSegments) Read(ctx context.Context, name, part string, from int) iter.Seq2[[]byte, error] {
	s, name, err := m.find(name)
	if err != nil {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	return s.Read(ctx, name, part, from)
}

func (m mergedSegments) Append(context.Context, string, string, int) (segment.BlockWriter, error) {
	return nil, ErrReadOnly
}

func (m mergedSegments) Remove(context.Context, string) error { return ErrReadOnly }
