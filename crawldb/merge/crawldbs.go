package merge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
)

// CrawlDBOptions say which records are merged. The zero value takes all.
type CrawlDBOptions struct {
	// Accept says which URLs are kept, and how they are spelled: records whose
	// URLs become the same are merged. Nil keeps all as they are. It is not
	// applied to what the destination already has. (Nutch: -normalize, -filter.)
	Accept AcceptFunc
	// PurgeGone and PurgeOrphans leave out records that are db_gone or db_orphan,
	// before they are merged. (Nutch: db.update.purge.404,
	// db.update.purge.orphans.)
	PurgeGone, PurgeOrphans bool
	// NutchCompat takes the time of the last fetch to be that of the next one less
	// the interval, or never for a db_unfetched page; of equal records it keeps
	// the first, counting the destination before the sources. It keeps leases.
	// (Nutch: CrawlDbMerger.)
	NutchCompat bool
	// SortMemory limits the bytes of records held in memory; zero means 64 MiB.
	SortMemory int
	// TempDir is where records that do not fit are written; empty means
	// os.TempDir. No file is left there; on Linux not even if the process
	// is killed.
	TempDir string

	chunk int
}

// CrawlDBReport counts what a merge of crawl dbs read and wrote.
type CrawlDBReport struct {
	// Records counts the records of the sources, Rejected and Purged those that
	// were left out.
	Records, Rejected, Purged int
	// Pages counts the URLs that were merged into the destination.
	Pages int
}

// CrawlDBs merges the records of several crawl dbs into another, which may already have
// records. Of the records of a URL the one with the latest visit wins, then the one due
// last; remaining ties are broken by the other fields, so that the order of the sources
// does not matter. Its metadata are completed by those of the others, newer ones first,
// except for what the latest visit would have removed: what a page said of itself, and
// what waited for the next visit. What was learned of how often a page changes is kept,
// whichever crawl learned it; of the times at which a link to it was seen the latest
// counts. A lease is a promise of the crawl that gave it: those of the sources are
// dropped, those of the destination stay.
//
// All records of one URL are in memory at once: as many as there are sources, and more
// only if Accept makes many URLs one.
//
// It reads each source once, in whatever state it is, and may be repeated. When
// it returns without an error, everything is durable.
func CrawlDBs(ctx context.Context, dst crawldb.Store, srcs []crawldb.Store, o CrawlDBOptions) (CrawlDBReport, error) {
	scans := make([]iter.Seq2[crawldb.Datum, error], len(srcs))
	for n, src := range srcs {
		scans[n] = src.Scan(ctx, crawldb.Range{})
	}
	m := crawlMerger{o: o, dst: dst}
	err := m.run(ctx, scans)
	if err != nil {
		err = fmt.Errorf("merge: crawl dbs: %w", err)
	}
	return m.report, err
}

// Records merges records in any order, such as those of nutchtext.ReadDump, into a
// crawl db, as [CrawlDBs] does those of a source. Nothing is merged if the sequence
// yields an error.
func Records(ctx context.Context, dst crawldb.Store, records iter.Seq2[crawldb.Datum, error], o CrawlDBOptions) (CrawlDBReport, error) {
	m := crawlMerger{o: o, dst: dst}
	err := m.run(ctx, []iter.Seq2[crawldb.Datum, error]{records})
	if err != nil {
		err = fmt.Errorf("merge: records: %w", err)
	}
	return m.report, err
}

type crawlMerger struct {
	o      CrawlDBOptions
	dst    crawldb.Store
	report CrawlDBReport
	urls   []string
	groups [][]crawldb.Datum // the versions of each URL, in order of arrival
}

func (m *crawlMerger) run(ctx context.Context, srcs []iter.Seq2[crawldb.Datum, error]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.o.chunk = cmp.Or(m.o.chunk, chunk)
	sorter := extsort.New(extsort.Options{MemoryBytes: m.o.SortMemory, Dir: m.o.TempDir})
	defer sorter.Close()
	var key, value []byte
	for n, src := range srcs {
		for d, err := range src {
			if err != nil {
				return fmt.Errorf("source %d: %w", n+1, err)
			}
			m.report.Records++
			if d.Status == crawldb.Gone && m.o.PurgeGone || d.Status == crawldb.Orphan && m.o.PurgeOrphans {
				m.report.Purged++
				continue
			}
			if m.o.Accept != nil {
				u, ok := m.o.Accept(d.URL)
				if !ok {
					m.report.Rejected++
					continue
				}
				d.URL = u
			}
			key = crawldb.AppendKey(key[:0], d.URL)
			if value, err = d.AppendBinary(binary.BigEndian.AppendUint32(value[:0], uint32(n))); err != nil {
				return err
			}
			if err := sorter.Add(key, value); err != nil {
				return err
			}
		}
	}
	for p, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		d := crawldb.Datum{URL: crawldb.URLOf(string(p.Key))}
		if len(p.Value) < 4 {
			return errSorted
		}
		if err := d.UnmarshalBinary(p.Value[4:]); err != nil {
			return err
		}
		if n := len(m.urls); n == 0 || m.urls[n-1] != d.URL {
			if n == m.o.chunk {
				if err := m.flush(ctx); err != nil {
					return err
				}
			}
			m.report.Pages++
			m.urls = append(m.urls, d.URL)
			m.groups = append(m.groups, nil)
		}
		last := &m.groups[len(m.groups)-1]
		*last = append(*last, d)
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	return m.dst.Sync(ctx)
}

var errSorted = errors.New("sorted data is damaged")

func (m *crawlMerger) flush(ctx context.Context) error {
	if len(m.urls) == 0 {
		return nil
	}
	groups := m.groups
	err := m.dst.Update(ctx, crawldb.Batch{URLs: m.urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		return next(old, groups[i], m.o.NutchCompat)
	}})
	m.urls, m.groups = nil, nil
	return err
}

// next merges the versions of a record into that of the destination.
func next(old *crawldb.Datum, versions []crawldb.Datum, compat bool) (*crawldb.Datum, error) {
	all := versions
	if old != nil {
		all = append([]crawldb.Datum{*old}, versions...)
	}
	if compat {
		d := first(all)
		return &d, nil
	}
	d, err := newest(all)
	if err != nil {
		return nil, err
	}
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	if old == nil {
		return &d, nil
	}
	d.LeasedUntil, d.LeasedBy = old.LeasedUntil, old.LeasedBy
	was, err := old.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	if is, err := d.AppendBinary(nil); err != nil || bytes.Equal(was, is) {
		return old, err
	}
	return &d, nil
}

// newest merges the versions of a record. They are a set: neither their order
// nor repetitions matter.
func newest(all []crawldb.Datum) (crawldb.Datum, error) {
	type version struct {
		d    crawldb.Datum
		core []byte // all but metadata and lease
	}
	sorted := make([]version, len(all))
	for i, d := range all {
		sorted[i].d = d
		d.Meta, d.LeasedUntil, d.LeasedBy = crawldb.Meta{}, time.Time{}, ""
		var err error
		if sorted[i].core, err = d.AppendBinary(nil); err != nil {
			return d, err
		}
	}
	slices.SortFunc(sorted, func(a, b version) int { // newest first
		return cmp.Or(b.d.LastFetch.Compare(a.d.LastFetch), b.d.FetchTime.Compare(a.d.FetchTime), bytes.Compare(b.core, a.core))
	})
	d := sorted[0].d
	d.Meta = crawldb.Meta{}
	linked := latestLink(all)
	for len(sorted) > 0 {
		older := sorted[0].d.LastFetch.Before(d.LastFetch)
		n := 1
		for n < len(sorted) && bytes.Equal(sorted[n].core, sorted[0].core) {
			n++
		}
		// Of otherwise equal versions the greater value counts.
		var meta crawldb.Meta
		for _, v := range sorted[:n] {
			for name, value := range v.d.Meta.All() {
				if older && ofOneVisit(name) {
					continue
				}
				if has, ok := meta.Get(name); !ok || has < value {
					meta.Set(name, value)
				}
			}
		}
		fill(&d.Meta, meta)
		sorted = sorted[n:]
	}
	if linked != "" {
		d.Meta.Set(linkedKey, linked)
	}
	return d, nil
}

// linkedKey is scoring.OrphanKey.
const linkedKey = "orphan.seen"

// ofOneVisit reports whether a name in Meta is about a single visit.
func ofOneVisit(name string) bool {
	switch name {
	case "schedule.since", "schedule.signs", "sitemap.planned", "Content-Type", "nutch.protocol.code", "_rs_", "_pst_":
		return true
	}
	return strings.HasPrefix(name, "page.")
}

// latestLink returns what the version that saw a link to the page last says about it,
// nothing if none says anything.
func latestLink(all []crawldb.Datum) (value string) {
	latest := int64(-1)
	for i := range all {
		v, ok := all[i].Meta.Get(linkedKey)
		if n, err := strconv.ParseInt(v, 10, 64); ok && err == nil && n > latest {
			value, latest = v, n
		}
	}
	return value
}

// fill adds the entries of more that m lacks.
func fill(m *crawldb.Meta, more crawldb.Meta) {
	more.Merge(*m)
	*m = more
}

// first merges versions as Nutch does, in order of arrival.
func first(all []crawldb.Datum) crawldb.Datum {
	best := all[0]
	for _, d := range all[1:] {
		if c := cmp.Or(cmp.Compare(lastFetch(&d), lastFetch(&best)), cmp.Compare(millis(d.FetchTime), millis(best.FetchTime))); c <= 0 {
			fill(&best.Meta, d.Meta)
			continue
		}
		fill(&d.Meta, best.Meta)
		best = d
	}
	return best
}

// lastFetch is when Nutch believes the page was fetched.
func lastFetch(d *crawldb.Datum) int64 {
	if d.Status == crawldb.Unfetched {
		return 0
	}
	return millis(d.FetchTime) - d.Interval.Milliseconds()
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
