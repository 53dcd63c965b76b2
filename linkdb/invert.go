package linkdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/places"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// One Merge holds up to this many bytes, or a quarter of SortMemory if that is less: if a
// page has more links, the rest go into the next. The fewer there are the better: a store
// may write a table for each, which it compacts the sooner. It may also have to compact
// tables of the same page, so a Merge ends between two once seven eighths are full.
const (
	maxChunkBytes = 16 << 20
	minChunkBytes = 64 << 10
)

// What an Entry and an Inlink take beside their text.
const (
	entryBytes  = 48
	inlinkBytes = 36
)

// InvertOptions say which links [Invert] keeps. The zero value keeps every link
// that may be followed, within limits.
type InvertOptions struct {
	// Accept returns the normalized spelling of a URL, and whether it may be kept
	// at all. It is called by one goroutine at a time: for each page, whose links
	// are all dropped if it is rejected, and for the target of each link that is
	// not NoFollow. Nil keeps all as they are. Links already in the link db are
	// left alone; see merge.LinkDBs for those. (Nutch: linkdb.url.normalizer,
	// linkdb.url.filters.)
	Accept func(url string) (string, bool)
	// MaxInlinks bounds the links kept for one page, those found earlier
	// included; zero means 10,000, negative no limit. Which are kept depends on
	// the links alone, see [Union]. (Nutch: linkdb.max.inlinks.)
	MaxInlinks int
	// IgnoreInternal drops links between pages of the same host. It is off by
	// default, so that the pages of a single site have inlinks, and on with
	// NutchCompat unless KeepInternal is set. (Nutch:
	// linkdb.ignore.internal.links, by default true.)
	IgnoreInternal, KeepInternal bool
	// IgnoreExternal drops links from one host to another. Together with
	// IgnoreInternal it leaves nothing, which is an error. (Nutch:
	// linkdb.ignore.external.links.)
	IgnoreExternal bool
	// MaxAnchor is where anchors are cut, in characters; zero means 100, negative
	// never. A character is never split. (Nutch: linkdb.max.anchor.length.)
	MaxAnchor int
	// Divert, if not nil, is called with the links to each page, in the order of the keys of pages.
	// If it returns true, Invert does not merge them: Divert has taken them elsewhere, such as to
	// another group of a divided crawl. A page with many links may come several times in a row,
	// with other links. An error ends Invert.
	Divert func(ctx context.Context, e Entry) (bool, error)
	// NutchCompat drops internal links unless KeepInternal is set, compares hosts
	// before Accept has normalized the URLs, drops links without a host, and
	// measures anchors in UTF-16 units, with a question mark for half a character
	// at the cut. Ignoring both internal and external links then does nothing
	// instead of being an error.
	NutchCompat bool
	// SortMemory limits the memory, in bytes, for the links being sorted, the pages
	// they are on and what is merged at a time; zero means 64 MiB.
	SortMemory int
	// TempDir is where links that do not fit are written, at some 70 bytes each;
	// empty means os.TempDir. No file is left there; on Linux not even if the
	// process is killed.
	TempDir string
}

// DefaultMaxInlinks is how many links are kept for one page by default.
const DefaultMaxInlinks = 10_000

// InvertReport counts what [Invert] did. Links is the sum of Inlinks and of
// what was dropped.
type InvertReport struct {
	// Pages counts the pages read, and Links the links on them.
	Pages, Links int
	// Targets counts the pages that were linked to, and Inlinks the links to
	// them, known ones included.
	Targets, Inlinks int
	// Links were dropped because they ask not to be followed, because they stay
	// on or leave the host, because Accept rejected them or their page, because the
	// page had the same link to the same target before, and because the target
	// has MaxInlinks others.
	NoFollow, Internal, External, Rejected, Repeated, OverLimit int
	// AnchorsCut counts the links whose anchor was cut.
	AnchorsCut int
}

// Invert reads the outlinks of segments and adds each to the inlinks of its
// target. A link that is NoFollow, by itself or by its page, is a vote withheld
// and not added. A page found in several segments adds the links it has in any
// of them: links are never removed.
//
// It may be repeated, also after a failure and with segments in any order, and
// changes nothing the second time. If the parse_data of a segment was not
// committed, the error matches [segment.ErrNotFound] and nothing is added.
func Invert(ctx context.Context, links Store, segs segment.Store, segments []string, o InvertOptions) (InvertReport, error) {
	o.MaxInlinks = cmp.Or(o.MaxInlinks, DefaultMaxInlinks)
	o.MaxAnchor = cmp.Or(o.MaxAnchor, 100)
	if o.NutchCompat {
		o.IgnoreInternal = !o.KeepInternal
	}
	if o.IgnoreInternal && o.IgnoreExternal {
		if o.NutchCompat {
			return InvertReport{}, nil
		}
		return InvertReport{}, errNoLinks
	}
	if o.SortMemory <= 0 {
		o.SortMemory = 64 << 20
	}
	v := inverter{o: o, from: sources{places.Places{Room: o.SortMemory / 4, AppendKey: crawldb.AppendKey}}, chunk: max(min(o.SortMemory/4, maxChunkBytes), minChunkBytes)}
	v.sorter = extsort.New(extsort.Options{MemoryBytes: max(o.SortMemory-v.from.Room-v.chunk, 1), Dir: o.TempDir})
	err := v.run(ctx, links, segs, segments)
	if cerr := v.sorter.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("linkdb: invert: %w", cerr)
	}
	return v.report, err
}

var errNoLinks = errors.New("linkdb: invert: IgnoreInternal and IgnoreExternal together leave no links")

type inverter struct {
	o      InvertOptions
	from   sources
	chunk  int // bytes of one Merge, about
	sorter *extsort.Sorter
	keys   crawldb.Keys
	report InvertReport
}

func (v *inverter) run(ctx context.Context, links Store, segs segment.Store, segments []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("linkdb: invert: %w", err)
	}
	for _, name := range segments {
		ok, err := segment.Has[segment.Data](ctx, segs, name)
		if err == nil && !ok {
			err = fmt.Errorf("no committed %s: %w", segment.ParseDataPart, segment.ErrNotFound)
		}
		if err != nil {
			return fmt.Errorf("linkdb: invert %s: %w", name, err)
		}
	}
	if err := v.sources(ctx, segs, segments); err != nil {
		return err
	}
	for _, name := range segments {
		for d, err := range segment.Records[segment.Data](ctx, segs, name) {
			if err == nil {
				err = v.page(&d)
			}
			if err != nil {
				return fmt.Errorf("linkdb: invert %s: %w", name, err)
			}
		}
	}
	if err := v.merge(ctx, links); err != nil {
		return fmt.Errorf("linkdb: invert: %w", err)
	}
	return nil
}

func (v *inverter) page(d *segment.Data) error {
	v.report.Pages++
	url, host := d.URL, crawldb.Host(d.URL)
	if v.o.Accept != nil {
		accepted, ok := v.o.Accept(url)
		if !ok {
			v.report.Links += len(d.Parsed.Outlinks)
			v.report.Rejected += len(d.Parsed.Outlinks)
			return nil
		}
		if url = accepted; !v.o.NutchCompat {
			host = crawldb.Host(url)
		}
	}
	from := v.from.appendTo(nil, url)
	var key, value []byte
	for _, l := range d.Parsed.Outlinks {
		v.report.Links++
		to, ok := v.accept(host, l, d.Parsed.NoFollow)
		if !ok {
			continue
		}
		anchor := v.cut(l.Anchor)
		if anchor != l.Anchor {
			v.report.AnchorsCut++
		}
		key = v.keys.AppendKey(key[:0], to)
		value = append(append(value[:0], from...), anchor...)
		if err := v.sorter.Add(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (v *inverter) accept(host string, l page.Outlink, noFollow bool) (to string, ok bool) {
	if l.NoFollow || noFollow {
		v.report.NoFollow++
		return "", false
	}
	if v.o.NutchCompat && !v.sameSide(host, l.URL) {
		return "", false
	}
	to = l.URL
	if v.o.Accept != nil {
		if to, ok = v.o.Accept(to); !ok {
			v.report.Rejected++
			return "", false
		}
	}
	return to, v.o.NutchCompat || v.sameSide(host, to)
}

// sameSide reports whether the target is on the side of the host's border that
// counts, and counts those that are not.
func (v *inverter) sameSide(host, target string) bool {
	if !v.o.IgnoreInternal && !v.o.IgnoreExternal {
		return true
	}
	to := crawldb.Host(target)
	internal, none := to == host, v.o.NutchCompat && to == ""
	switch {
	case v.o.IgnoreInternal && (internal || none):
		v.report.Internal++
		return false
	case v.o.IgnoreExternal && (!internal || none):
		v.report.External++
		return false
	}
	return true
}

// merge passes what was sorted to the store, in ascending chunks.
func (v *inverter) merge(ctx context.Context, links Store) error {
	var (
		chunk      []Entry
		ends       []int    // of the inlinks of each entry
		inlinks    []Inlink // of all entries
		where      []uint32 // the places of their pages
		size, kept int
		key, last  []byte
		url        []byte
		first      = true
	)
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		if !v.from.resolve(inlinks, where) {
			return errSorted
		}
		from := 0
		for i, end := range ends {
			chunk[i].Inlinks = inlinks[from:end:end]
			from = end
		}
		mine, err := v.divert(ctx, chunk)
		if err == nil && len(mine) > 0 {
			err = links.Merge(ctx, mine, v.o.MaxInlinks)
		}
		clear(chunk)
		clear(inlinks)
		chunk, ends, inlinks, where, size = chunk[:0], ends[:0], inlinks[:0], where[:0], 0
		return err
	}
	for p, err := range v.sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		fresh := first || !bytes.Equal(p.Key, key)
		first = false
		if fresh {
			key, kept = append(key[:0], p.Key...), 0
			v.report.Targets++
		} else if bytes.Equal(p.Value, last) {
			v.report.Repeated++
			continue
		} else if v.o.MaxInlinks > 0 && kept == v.o.MaxInlinks {
			v.report.OverLimit++
			continue
		}
		last = append(last[:0], p.Value...)
		kept++
		v.report.Inlinks++

		if size > v.chunk || fresh && size > v.chunk-v.chunk/8 {
			if err := flush(); err != nil {
				return err
			}
		}
		if fresh || len(chunk) == 0 {
			url = v.keys.AppendURL(url[:0], p.Key)
			chunk, ends = append(chunk, Entry{URL: string(url)}), append(ends, 0)
			size += len(url) + entryBytes
		}
		place, from, anchor, ok := v.from.cut(p.Value)
		if !ok {
			return errSorted
		}
		inlinks, where = append(inlinks, Inlink{From: from, Anchor: string(anchor)}), append(where, place)
		ends[len(ends)-1] = len(inlinks)
		size += len(p.Value) + inlinkBytes
	}
	return flush()
}

// divert returns the entries that are to be merged here. It reuses the slice.
func (v *inverter) divert(ctx context.Context, entries []Entry) ([]Entry, error) {
	if v.o.Divert == nil {
		return entries, nil
	}
	mine := entries[:0]
	for _, e := range entries {
		elsewhere, err := v.o.Divert(ctx, e)
		if err != nil {
			return nil, err
		}
		if !elsewhere {
			mine = append(mine, e)
		}
	}
	return mine, nil
}

var errSorted = errors.New("linkdb: sorted data is damaged")

// cut returns the first MaxAnchor characters of an anchor, or UTF-16 units.
func (v *inverter) cut(s string) string {
	n := v.o.MaxAnchor
	if n < 0 || len(s) <= n {
		return s
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		r, size := utf8.DecodeRuneInString(s[at:])
		if v.o.NutchCompat && r > 0xffff {
			if n--; n == 0 {
				return s[:at] + "?" // what Java writes for half a surrogate pair
			}
		}
		at += size
	}
	return s[:at]
}
