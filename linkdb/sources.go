package linkdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/places"
	"github.com/recrawl/recrawl/segment"
)

// sources are pages with links, as far as there is room for them.
type sources struct{ places.Places }

// sources reads which pages were visited. A page that is missing, or respelled
// by Accept, is written out with each of its links.
func (v *inverter) sources(ctx context.Context, segs segment.Store, segments []string) error {
	s := &v.from
	for _, name := range segments {
		ok, err := segment.Has[segment.Visit](ctx, segs, name)
		if err != nil {
			return fmt.Errorf("linkdb: invert %s: %w", name, err)
		}
		if !ok {
			continue
		}
		for visit, err := range segment.Records[segment.Visit](ctx, segs, name) {
			if err != nil {
				return fmt.Errorf("linkdb: invert %s: %w", name, err)
			}
			s.Add(visit.URL)
		}
	}
	if err := s.Sort(); err != nil {
		return fmt.Errorf("linkdb: invert: %w", err)
	}
	return nil
}

// A page is identified by its place, or the place that it would have and its
// key.
const (
	spelled = 0
	placed  = 1
)

// appendTo appends the name of a page. Names compare like the keys of their
// pages, and none is a prefix of another.
func (s *sources) appendTo(dst []byte, url string) []byte {
	place, ok := s.Find(url)
	dst = binary.BigEndian.AppendUint32(dst, uint32(place))
	if ok {
		return append(dst, placed)
	}
	return extsort.AppendPart(append(dst, spelled), crawldb.AppendKey(nil, url))
}

// unplaced is no place.
const unplaced = math.MaxUint32

// cut reads the page from bytes that begin with its name: its place, or its URL.
func (s *sources) cut(b []byte) (place uint32, url string, rest []byte, ok bool) {
	if len(b) < 5 {
		return 0, "", nil, false
	}
	if b[4] == placed {
		return binary.BigEndian.Uint32(b), "", b[5:], true
	}
	key, rest := extsort.CutPart(b[5:])
	return unplaced, crawldb.URLOf(string(key)), rest, true
}

// resolve sets the pages of links that have places. It does so for many at a time: what is
// scattered in memory is then fetched together.
func (s *sources) resolve(links []Inlink, where []uint32) (ok bool) {
	for i, place := range where {
		if place == unplaced {
			continue
		}
		if links[i].From, ok = s.At(uint64(place)); !ok {
			return false
		}
	}
	return true
}
