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

// Source is a segment to merge, and the store that has it.
type Source struct {
	Store segment.Store
	Name  string
}

// SegmentOptions say what the merged segments hold. The zero value makes one
// segment of everything.
type SegmentOptions struct {
	// Accept says which URLs are kept, and how they are spelled: of pages, and of
	// the targets to which they give score. Pages whose URLs become one are
	// merged. Nil keeps all as they are. (Nutch: -normalize, -filter.)
	Accept AcceptFunc
	// Slice is how many URLs a merged segment holds at most; zero means no end.
	// (Nutch: -slice.)
	Slice int
	// NutchCompat merges each part by itself, newest segment first, so that the
	// text of a page may be older than its content; only parts that every source
	// has; no visit that failed for now or brought not_modified, and nothing of a
	// page that has no other; nothing of what a redirect gives its target. The
	// first of several slices is one URL short. (Nutch: SegmentMerger.) What
	// links give stays with the page that has them: of the links to a page Nutch
	// keeps those of the newest segment that has any, and the votes of pages in
	// older ones are lost, which is not done here.
	NutchCompat bool
	// Complete, if not nil, is called with the name of each segment when all of
	// it is written, before the commit that makes it one: who owns the
	// destination may note there that the segment is not to be worked on. An
	// error ends the merge.
	Complete func(ctx context.Context, name string) error
	// SortMemory bounds the bytes of records held in memory; zero means 64 MiB.
	// The records of one URL are held apart from it.
	SortMemory int
	// TempDir is where records go that do not fit; empty means os.TempDir. Nothing
	// is left there; on Linux not even if the process is killed.
	TempDir string
	// Now is the time to name segments after; nil means time.Now.
	Now func() time.Time

	block int // pages in one block
}

// SegmentReport counts what a merge of segments read and made.
type SegmentReport struct {
	// Segments are the segments that were made.
	Segments []string
	// URLs counts those that they hold, Visits the visits among them.
	URLs, Visits int
	// Superseded counts visits that gave way to another, Rejected records of any
	// part whose URL was rejected.
	Superseded, Rejected int
	// Unparsed counts pages with content that no one has parsed, and that no one
	// will: parse a segment before it is merged.
	Unparsed int
}

// Segments makes one segment of several, or as many as Slice asks for, sorted by
// URL. The sources stay as they are.
//
// A page comes from one visit with all that belongs to it: the newest that was
// not put off, did not fail for now and brought more than not_modified; only if
// there is none, the newest of these. A part is made if any source has it. A
// URL that was selected and never visited stays in the fetch list.
//
// Every part a source has must be committed; a source without any is an error
// that is segment.ErrNotFound. The fetch list is committed last, so that a
// segment of which the making was interrupted is one whose selection was:
// generate.Recover removes it. With an error nothing stays.
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
	parts  map[string]bool // which are made
	report SegmentReport
	sorter *extsort.Sorter
	key    []byte
	value  []byte

	out    *output
	slices int // segments that are complete
	room   int // URLs that the segment at hand still takes
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

// check finds out which parts there are.
func (m *segmentMerger) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	count := map[string]int{}
	for _, s := range m.srcs {
		some := false
		for _, part := range segment.Parts() {
			info, err := s.Store.Stat(ctx, s.Name, part)
			if notFound(err) {
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

// sort puts all records under their URLs.
func (m *segmentMerger) sort(ctx context.Context) error {
	for n := range m.srcs {
		err := read(ctx, m, n, kindVisit, func(r *segment.Visit) *string { return &r.URL })
		if err == nil {
			err = read(ctx, m, n, kindListed, func(r *crawldb.Datum) *string { return &r.URL })
		}
		if err == nil {
			err = read(ctx, m, n, kindContent, func(r *page.Content) *string { return &r.URL })
		}
		if err == nil {
			err = read(ctx, m, n, kindText, func(r *segment.Text) *string { return &r.URL })
		}
		if err == nil {
			err = read(ctx, m, n, kindData, func(r *segment.Data) *string { return &r.URL })
		}
		if err == nil {
			err = read(ctx, m, n, kindParse, func(r *segment.Parse) *string { return &r.URL })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// What the sorter holds under the key of a URL. The kinds sort in this order: the
// visits come first, since they decide.
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
		if m.value, err = segment.AppendRecord(appendPart(m.value, from), &rec); err != nil {
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
		if p.parse == nil && p.visit.ContentType != "" && m.parts[segment.ParsePart] {
			m.report.Unparsed++
		}
	}
	return m.out.add(ctx, p)
}

// begin makes the next segment, under a name that nobody has, also of those who look for
// one at the same time: what they make is not ours to remove.
func (m *segmentMerger) begin(ctx context.Context) error {
	last := ""
	for {
		name, err := segment.NewName(ctx, m.dst, m.o.Now())
		if err != nil {
			return err
		}
		if name <= last { // which may not be listed yet
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

// complete ends the segment at hand.
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

// undo removes what was made.
func (m *segmentMerger) undo(ctx context.Context) {
	if m.out != nil {
		m.out.close()
	}
	for _, name := range m.report.Segments {
		// What cannot be removed has no fetch list, or is a whole segment.
		_ = m.dst.Remove(ctx, name)
	}
}
