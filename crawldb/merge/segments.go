package merge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// Source is a segment to merge, and the store that holds it.
type Source struct {
	Store segment.Store
	Name  string
}

// SegmentOptions say what the merged segments hold. The zero value makes one
// segment of everything.
type SegmentOptions struct {
	// Accept says which URLs are kept, and how they are spelled, of pages and of
	// the targets to which they give score. Pages whose URLs become the same are
	// merged. Nil keeps all as they are. (Nutch: -normalize, -filter.)
	Accept AcceptFunc
	// Slice is how many URLs a merged segment may hold; zero means no limit.
	// (Nutch: -slice.)
	Slice int
	// NutchCompat merges each part by itself, newest segment first, so that the
	// text of a page may be older than its content. It merges only parts that
	// every source has, drops visits that had a transient failure or brought
	// not_modified, pages without any other visit, and what a redirect gives its
	// target. The first of several slices is one URL short. (Nutch:
	// SegmentMerger.) What links give stays with the page that has them: of the
	// links to a page Nutch keeps only those in the newest segment that has any,
	// losing the votes of pages in older ones, which is not imitated.
	NutchCompat bool
	// Complete, if not nil, is called with the name of each segment when all of
	// it is written, before the commit that makes it visible: the owner of the
	// destination may note then that the segment needs no more work. An error
	// ends the merge.
	Complete func(ctx context.Context, name string) error
	// SortMemory limits the bytes of records held in memory; zero means 64 MiB.
	// The records of a single URL do not count towards it.
	SortMemory int
	// TempDir is where records that do not fit are written; empty means
	// os.TempDir. No file is left there; on Linux not even if the process
	// is killed.
	TempDir string
	// Now is the time used to name segments; nil means time.Now.
	Now func() time.Time

	block int // pages in one block
}

// SegmentReport counts what a merge of segments read and wrote.
type SegmentReport struct {
	// Segments are the segments that were made.
	Segments []string
	// URLs counts the URLs in them, Visits the visits.
	URLs, Visits int
	// Superseded counts visits that gave way to another, Rejected the records,
	// in any part, whose URL was rejected.
	Superseded, Rejected int
	// Unparsed counts pages whose content was not parsed and will not be: parse
	// a segment before merging it.
	Unparsed int
}

// Segments merges several segments into one, or as many as Slice requires,
// sorted by URL. The sources stay as they are.
//
// Everything about a page comes from one visit: the newest that was not put
// off, had no transient failure and brought more than not_modified, or else the
// newest of the others. A part is written if any source has it. A URL that was
// selected but never visited stays in the fetch list.
//
// Every part a source has must be committed; for a source without parts the
// error matches segment.ErrNotFound. The fetch list is committed last, so that
// an interrupted merge looks like an interrupted selection, which
// generate.Recover removes. After an error nothing is left.
func Segments(ctx context.Context, dst segment.Store, srcs []Source, o SegmentOptions) (SegmentReport, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.block = cmp.Or(o.block, 500)
	m := segmentMerger{o: o, dst: dst, srcs: slices.Clone(srcs), parts: map[string]bool{}}
	slices.SortStableFunc(m.srcs, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	err := m.run(ctx)
	if err != nil {
		clean, done := grace.Context(ctx)
		m.undo(clean)
		done()
		m.report.Segments = nil
		err = fmt.Errorf("merge: segments: %w", err)
	}
	return m.report, err
}

type segmentMerger struct {
	o      SegmentOptions
	dst    segment.Store
	srcs   []Source
	parts  map[string]bool // that are written
	report SegmentReport
	sorter *extsort.Sorter
	key    []byte
	value  []byte

	out    *output
	slices int // complete segments
	room   int // URLs that the current segment still takes
}

func (m *segmentMerger) run(ctx context.Context) error {
	if err := m.check(ctx); err != nil || len(m.parts) == 0 {
		return err
	}
	m.sorter = extsort.New(extsort.Options{MemoryBytes: m.o.SortMemory, Dir: m.o.TempDir})
	defer m.sorter.Close()
	if err := m.sort(ctx); err != nil {
		return err
	}
	g := group{m: m}
	for p, err := range m.sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		if !bytes.Equal(p.Key, g.key) || !g.some {
			if err := m.write(ctx, &g); err != nil {
				return err
			}
			g.begin(p.Key)
		}
		if err := g.add(p.Value); err != nil {
			return err
		}
	}
	if err := m.write(ctx, &g); err != nil {
		return err
	}
	return m.complete(ctx)
}

// check determines which parts there are.
func (m *segmentMerger) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	count := map[string]int{}
	for _, s := range m.srcs {
		some := false
		for _, part := range segment.Parts() {
			info, err := s.Store.Stat(ctx, s.Name, part)
			if errors.Is(err, segment.ErrNotFound) {
				continue
			}
			if err == nil && !info.Committed {
				err = fmt.Errorf("%s is not complete: %w", part, segment.ErrNotFound)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			some = true
			count[part]++
		}
		if !some {
			return fmt.Errorf("%s: %w", s.Name, segment.ErrNotFound)
		}
	}
	for part, n := range count {
		if n == len(m.srcs) || !m.o.NutchCompat {
			m.parts[part] = true
		}
	}
	return nil
}

// sort sorts all records under their URLs.
func (m *segmentMerger) sort(ctx context.Context) error {
	for n := range m.srcs {
		for _, read := range []func(ctx context.Context, source int) error{
			reader(m, kindVisit, func(r *segment.Visit) *string { return &r.URL }),
			reader(m, kindListed, func(r *crawldb.Datum) *string { return &r.URL }),
			reader(m, kindContent, func(r *page.Content) *string { return &r.URL }),
			reader(m, kindText, func(r *segment.Text) *string { return &r.URL }),
			reader(m, kindData, func(r *segment.Data) *string { return &r.URL }),
			reader(m, kindParse, func(r *segment.Parse) *string { return &r.URL }),
		} {
			if err := read(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader returns a function that sorts one part of a source.
func reader[T segment.Record](m *segmentMerger, kind byte, url func(*T) *string) func(ctx context.Context, source int) error {
	return func(ctx context.Context, source int) error { return read(ctx, m, source, kind, url) }
}

// The kinds of values that the sorter holds under the key of a URL. They sort
// in this order: the visits come first, since they decide.
const (
	kindVisit byte = iota
	kindListed
	kindContent
	kindText
	kindData
	kindParse
)

// read sorts one part of one source.
func read[T segment.Record](ctx context.Context, m *segmentMerger, n int, kind byte, url func(*T) *string) error {
	s := m.srcs[n]
	if !m.parts[segment.PartOf[T]()] {
		return nil
	}
	if ok, err := segment.Has[T](ctx, s.Store, s.Name); err != nil || !ok {
		return err
	}
	for rec, err := range segment.Records[T](ctx, s.Store, s.Name) {
		if err != nil {
			return err
		}
		u := url(&rec)
		from := *u
		if m.o.Accept != nil {
			accepted, ok := m.o.Accept(from)
			if !ok {
				m.report.Rejected++
				continue
			}
			*u = accepted
		}
		m.key = crawldb.AppendKey(m.key[:0], *u)
		m.value = binary.BigEndian.AppendUint32(append(m.value[:0], kind), uint32(n))
		if m.value, err = segment.AppendRecord(extsort.AppendPart(m.value, from), &rec); err != nil {
			return err
		}
		if err := m.sorter.Add(m.key, m.value); err != nil {
			return err
		}
	}
	return nil
}

// write writes the page of a group, if there is one.
func (m *segmentMerger) write(ctx context.Context, g *group) error {
	if !g.some {
		return nil
	}
	p := g.page()
	if *p == (merged{}) {
		return nil
	}
	if m.out != nil && m.room == 0 {
		if err := m.complete(ctx); err != nil {
			return err
		}
	}
	if m.out == nil {
		if err := m.begin(ctx); err != nil {
			return err
		}
	}
	if m.o.Slice > 0 {
		m.room--
	}
	m.report.URLs++
	if p.visit != nil {
		m.report.Visits++
		if p.parse == nil && !g.parsed && p.visit.ContentType != "" && m.parts[segment.ParsePart] {
			m.report.Unparsed++
		}
	}
	return m.out.add(ctx, p)
}

// begin creates the next segment under a name that is not in use, nor taken by another
// process at the same time: a segment of others must not be removed.
func (m *segmentMerger) begin(ctx context.Context) error {
	last := ""
	for {
		name, err := segment.NewName(ctx, m.dst, m.o.Now())
		if err != nil {
			return err
		}
		if name <= last { // it may not be listed yet
			name = segment.NameAfter(last)
		}
		last = name
		out, err := openOutput(ctx, m.dst, name, m.parts, m.o.block)
		if errors.Is(err, segment.ErrBusy) || errors.Is(err, segment.ErrCommitted) {
			out.close()
			continue
		}
		m.room = max(m.o.Slice, 1)
		if m.o.NutchCompat && m.slices == 0 && m.o.Slice > 1 {
			m.room-- // Nutch counts before it divides
		}
		m.out, m.report.Segments = out, append(m.report.Segments, name)
		return err
	}
}

// complete ends the current segment.
func (m *segmentMerger) complete(ctx context.Context) error {
	if m.out == nil {
		return nil
	}
	err := m.out.commit(ctx, m.o.Complete)
	if err == nil {
		m.out = nil
		m.slices++
	}
	return err
}

// undo removes what was created.
func (m *segmentMerger) undo(ctx context.Context) {
	if m.out != nil {
		m.out.close()
	}
	for _, name := range m.report.Segments {
		// What cannot be removed has no fetch list, or is a complete segment.
		_ = m.dst.Remove(ctx, name)
	}
}
