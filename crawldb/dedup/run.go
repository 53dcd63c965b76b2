package dedup

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/extsort"
)

// run is one run over the crawl db: its pages are sorted by signature and
// group, and each group is decided in passing, with one page of it in memory.
type run struct {
	o       Options
	crawl   crawldb.Store
	report  Report
	changes []change

	group []byte // the key of the current group
	size  int    // how many of it have passed
	best  member // the one that stays so far
	prev  member // the previous one
	at    string // where the previous one is in its group
}

// member is a page of a group.
type member struct {
	page
	status crawldb.Status
}

// change is a status to set on a record, if the record has not changed.
type change struct {
	url       string
	signature []byte
	from, to  crawldb.Status
}

func (r *run) run(ctx context.Context) error {
	sorter := extsort.New(extsort.Options{MemoryBytes: r.o.SortMemory, Dir: r.o.TempDir})
	defer sorter.Close()
	begin, err := r.resume(ctx)
	if err != nil {
		return err
	}
	var key, value []byte
	for d, err := range r.crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if !r.o.candidate(&d) {
			continue
		}
		r.report.Candidates++
		key, value = r.encode(key[:0], value[:0], &d)
		if err := sorter.Add(key, value); err != nil {
			return err
		}
	}
	for p, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		place, m, err := decode(p.Value)
		if err != nil {
			return err
		}
		if c := bytes.Compare(p.Key, begin.group); c < 0 || c == 0 && place <= begin.at {
			continue
		}
		if !bytes.Equal(p.Key, r.group) || r.size == 0 {
			r.endGroup()
			if len(r.changes) >= r.o.chunk {
				if err := r.flush(ctx, false); err != nil {
					return err
				}
			}
			r.group, r.size = append(r.group[:0], p.Key...), 0
			if begin.at != "" && bytes.Equal(p.Key, begin.group) {
				r.best, r.size = begin.best, 1
			}
		}
		r.at = place
		r.add(m)
		// A group is changed in one step, unless it is very large.
		if len(r.changes) >= 2*r.o.chunk {
			if err := r.flush(ctx, false); err != nil {
				return err
			}
		}
	}
	r.endGroup()
	if err := r.flush(ctx, true); err != nil {
		return err
	}
	return r.crawl.Sync(ctx)
}

// add decides between a page and the one that stays so far.
func (r *run) add(m member) {
	r.size++
	prev := r.prev
	r.prev = m
	if r.size == 1 {
		r.best = m
		return
	}
	if r.size == 2 {
		r.report.Groups++
	}
	if r.o.NutchCompat {
		switch d := nutch(r.o.Order, &r.best.page, &m.page); {
		case d > 0:
			r.duplicate(&m)
		case d < 0:
			r.duplicate(&r.best)
			r.best = m
		}
		return
	}
	// Twins are adjacent, https first.
	if twins(prev.url, m.url) && overruled(r.o.Order, &m.page, &prev.page) || better(r.o.Order, &r.best.page, &m.page) {
		r.duplicate(&m)
		return
	}
	r.duplicate(&r.best)
	r.best = m
}

func (r *run) duplicate(m *member) {
	if m.status != crawldb.Duplicate {
		r.report.Duplicates++
		r.change(m, crawldb.Duplicate)
	}
}

// endGroup restores the page that stays if it was marked as a duplicate.
func (r *run) endGroup() {
	if r.size > 0 && r.best.status == crawldb.Duplicate {
		r.report.Restored++
		r.change(&r.best, crawldb.Fetched)
	}
}

func (r *run) change(m *member, to crawldb.Status) {
	signature, _ := extsort.CutPart(r.group)
	r.changes = append(r.changes, change{m.url, signature, m.status, to})
}

// flush applies the changes, and records how far they go if that matters.
func (r *run) flush(ctx context.Context, end bool) error {
	changes := r.changes
	r.changes = nil
	slices.SortFunc(changes, func(a, b change) int { return crawldb.Compare(a.url, b.url) })
	urls := make([]string, len(changes))
	for i, c := range changes {
		urls[i] = c.url
	}
	b := crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		c := &changes[i]
		if old == nil || old.Status != c.from || !bytes.Equal(old.Signature, c.signature) {
			return old, nil
		}
		d := *old
		d.Status = c.to
		return &d, nil
	}}
	if r.o.NutchCompat {
		cursor := ""
		if !end {
			cursor = r.cursor()
		}
		b.Marks = crawldb.Mark(markName, cursor)
	} else if len(urls) == 0 {
		return nil
	}
	return r.crawl.Update(ctx, b)
}

// encode encodes a record for the sorter: by signature and group, and within
// that so that twins are adjacent, or by the key of the URL for Nutch.
func (r *run) encode(key, value []byte, d *crawldb.Datum) ([]byte, []byte) {
	key = extsort.AppendPart(key, string(d.Signature))
	switch r.o.Group {
	case ByHost:
		key = append(key, hostdb.ByHost.Key(d.URL)...)
	case ByDomain:
		domain := hostdb.ByDomain.Key
		if r.o.NutchCompat {
			domain = hostdb.ByDomain.NutchKey
		}
		key = append(key, domain(d.URL)...)
	}
	t, place := d.LastFetch, ""
	if r.o.NutchCompat {
		t, place = d.FetchTime, crawldb.Key(d.URL)
	} else if rest, ok := strings.CutPrefix(d.URL, "https://"); ok {
		place = rest + "\x00s"
	} else if rest, ok := strings.CutPrefix(d.URL, "http://"); ok {
		place = rest + "\x00t"
	} else {
		place = d.URL + "\x00u"
	}
	m := member{page: page{url: d.URL, score: d.Score, time: t.UnixMilli()}, status: d.Status}
	return key, m.append(extsort.AppendPart(value, place))
}

func (m *member) append(b []byte) []byte {
	b = append(b, byte(m.status))
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(m.score))
	b = binary.BigEndian.AppendUint64(b, uint64(m.time))
	return append(b, m.url...)
}

const memberSize = 1 + 4 + 8

func decode(value []byte) (place string, m member, err error) {
	head, b := extsort.CutPart(value)
	if len(b) < memberSize {
		return "", member{}, errSorted
	}
	m.status = crawldb.Status(b[0])
	m.score = math.Float32frombits(binary.BigEndian.Uint32(b[1:]))
	m.time = int64(binary.BigEndian.Uint64(b[5:]))
	m.url = string(b[memberSize:])
	m.key = crawldb.Key(m.url)
	m.length = -1
	return string(head), m, nil
}

// begin says where a run continues: after a page of a group, and which page of
// that group stays so far.
type begin struct {
	group []byte
	at    string
	best  member
}

// cursor encodes the position of the run; it is valid for the same options
// only.
func (r *run) cursor() string {
	b := extsort.AppendPart(nil, r.options())
	b = extsort.AppendPart(b, string(r.group))
	b = extsort.AppendPart(b, r.at)
	return string(r.best.append(extsort.AppendPart(b, "")))
}

func (r *run) options() string { return fmt.Sprint(r.o.Group, r.o.Order) }

// resume decodes it.
func (r *run) resume(ctx context.Context) (begin, error) {
	if !r.o.NutchCompat {
		return begin{}, nil
	}
	cursor, err := r.crawl.Mark(ctx, markName)
	if err != nil || cursor == "" {
		return begin{}, err
	}
	options, rest := extsort.CutPart([]byte(cursor))
	if string(options) != r.options() {
		return begin{}, nil
	}
	group, rest := extsort.CutPart(rest)
	at, rest := extsort.CutPart(rest)
	_, best, err := decode(rest)
	if err != nil {
		return begin{}, fmt.Errorf("progress mark %q: %w", markName, err)
	}
	r.report.Resumed = true
	return begin{group: group, at: string(at), best: best}, nil
}
