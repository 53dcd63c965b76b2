package update

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/internal/places"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// The kinds of values that the sorter holds under the key of a URL. They sort
// in this order.
const (
	kindListed = 'g'
	kindLink   = 'l'
	kindParse  = 'p'
	kindVisit  = 'v'
)

// A link is encoded as its score, a number, its metadata and the page it is on.
// The number is the length of the metadata and two bits: that the page gave
// cash away, and that the page is given by its index among those visited.
const (
	linkGave   = 1
	linkRanked = 2
)

// A segmentSorter sorts what a segment says about each URL under the key of that URL. The result
// is a pure function of the segment.
type segmentSorter struct {
	segments segment.Store
	name     string
	sorter   *extsort.Sorter
	from     *places.Places
	counted  *tally
	sites    *sites
	report   *Report

	keys       crawldb.Keys
	key, value []byte
}

// add puts value under a URL.
func (s *segmentSorter) add(url string) error {
	s.key = s.keys.AppendKey(s.key[:0], url)
	return s.sorter.Add(s.key, s.value)
}

// all sorts the whole segment. If whole is set it includes the records of the fetch
// list, otherwise only that they are listed. It returns each visit's part of the gifts
// that no link received.
func (s *segmentSorter) all(ctx context.Context, whole bool) (shared float64, err error) {
	if err := s.list(ctx, whole); err != nil {
		return 0, err
	}
	if s.report.Unparsed, err = s.visits(ctx); err != nil {
		return 0, err
	}
	if err := s.from.Sort(); err != nil {
		return 0, err
	}
	parsed, err := segment.Has[segment.Parse](ctx, s.segments, s.name)
	if err != nil || !parsed {
		return 0, err
	}
	var gifts undistributedScore
	for p, err := range segment.Records[segment.Parse](ctx, s.segments, s.name) {
		if err != nil {
			return 0, err
		}
		if p.Signature != nil || p.Error != "" {
			s.report.Unparsed--
		}
		gifts.add(&p)
		if err := s.parse(&p); err != nil {
			return 0, err
		}
	}
	return gifts.share(s.report.Visits), nil
}

// list sorts the fetch list.
func (s *segmentSorter) list(ctx context.Context, whole bool) error {
	for d, err := range segment.Records[crawldb.Datum](ctx, s.segments, s.name) {
		if err != nil {
			return err
		}
		s.counted.listed(&d)
		s.value = append(s.value[:0], kindListed)
		if whole {
			if _, err := segment.TakePlacement(&d); err != nil { // this Meta belongs to the list, not to the record
				return err
			}
			if s.value, err = segment.AppendRecord(s.value, &d); err != nil {
				return err
			}
		}
		if err := s.add(d.URL); err != nil {
			return err
		}
	}
	return nil
}

// visits sorts the visits, and returns how many brought content.
func (s *segmentSorter) visits(ctx context.Context) (success int, err error) {
	for v, err := range segment.Records[segment.Visit](ctx, s.segments, s.name) {
		if err != nil {
			return 0, err
		}
		s.report.Visits++
		s.counted.visited(&v)
		s.sites.visit(&v)
		s.from.Add(v.URL)
		if v.ContentType != "" && v.Outcome.Code == protocol.Success {
			success++
		}
		if s.value, err = segment.AppendRecord(append(s.value[:0], kindVisit), &v); err != nil {
			return 0, err
		}
		if err := s.add(v.URL); err != nil {
			return 0, err
		}
	}
	return success, nil
}

// parse sorts the results of parsing a page, with its links apart.
func (s *segmentSorter) parse(p *segment.Parse) (err error) {
	s.counted.parsed(p)
	links := p.Links
	p.Links = nil
	if s.value, err = segment.AppendRecord(append(s.value[:0], kindParse), p); err != nil {
		return err
	}
	if err := s.add(p.URL); err != nil {
		return err
	}
	s.report.Links += len(links)
	rank, ranked := s.from.Find(p.URL)
	for i := range links {
		l := &links[i]
		s.counted.linked(l)
		s.value = binary.BigEndian.AppendUint64(append(s.value[:0], kindLink), math.Float64bits(l.Score))
		meta := l.Meta.Encoded()
		head := uint64(len(meta)) << 2
		if p.Gave > 0 {
			head |= linkGave
		}
		if ranked {
			head |= linkRanked
		}
		s.value = append(binary.AppendUvarint(s.value, head), meta...)
		if ranked {
			s.value = binary.AppendUvarint(s.value, uint64(rank))
		} else {
			s.value = append(s.value, p.URL...)
		}
		if err := s.add(l.URL); err != nil {
			return err
		}
	}
	return nil
}

// unvisited counts the URLs of the list without a visit. There may be
// additional visits, to pages that a fetch was led to.
type unvisited struct {
	key  []byte
	open bool // key is listed, and no visit was seen
}

// add returns what the next pair changes.
func (u *unvisited) add(pair extsort.Pair) int {
	if len(pair.Value) == 0 {
		return 0
	}
	switch kind := pair.Value[0]; {
	case kind == kindListed && !(u.open && bytes.Equal(u.key, pair.Key)):
		u.key, u.open = append(u.key[:0], pair.Key...), true
		return 1
	case kind == kindVisit && u.open && bytes.Equal(u.key, pair.Key):
		u.open = false
		return -1
	}
	return 0
}

// grouper collects the sorted pairs of one URL.
type grouper struct {
	segment  string
	maxLinks int
	worst    bool    // if there are too many links, keep the worst
	shared   float64 // each visit's part of gifts that no link received
	from     *places.Places
	keys     crawldb.Keys
	key, url []byte
	in       Input
	links    []scoring.Link // of in, after those of the inputs before it
	first    int            // index of the first link of in
	some     bool
	size     int // approximate bytes collected for the batch
}

// The approximate memory of an input and a link.
const (
	inputSize = 1000
	linkSize  = 64
)

var errSorted = errors.New("update: sorted data is damaged")

// starts reports whether a pair is the first of another URL.
func (g *grouper) starts(pair extsort.Pair) bool { return !g.some || !bytes.Equal(pair.Key, g.key) }

// begin begins a batch: what was collected for the one before is no longer used.
func (g *grouper) begin() { g.links, g.first, g.size = g.links[:0], 0, 0 }

// add takes the next pair.
func (g *grouper) add(pair extsort.Pair) error {
	if g.starts(pair) {
		g.key = append(g.key[:0], pair.Key...)
		g.url = g.keys.AppendURL(g.url[:0], g.key)
		g.in, g.some = Input{}, true
		g.in.URL, g.in.Segment = string(g.url), g.segment
		g.first = len(g.links)
		g.size += inputSize + len(pair.Key)
	}
	g.size += len(pair.Value)
	if len(pair.Value) == 0 {
		return errSorted
	}
	kind, value := pair.Value[0], pair.Value[1:]
	switch kind {
	case kindListed:
		if len(value) == 0 {
			break
		}
		d, err := segment.DecodeRecord[crawldb.Datum](value)
		if err != nil {
			return err
		}
		g.in.Listed = &d
	case kindVisit:
		v, err := segment.DecodeRecord[segment.Visit](value)
		if err != nil {
			return err
		}
		// If a segment has several visits to a URL the latest counts.
		if g.in.Visit == nil || !v.Time.Before(g.in.Visit.Time) {
			g.in.Visit = &v
		}
		g.in.Shared += g.shared
	case kindParse:
		p, err := segment.DecodeRecord[segment.Parse](value)
		if err != nil {
			return err
		}
		g.in.Parse = &p
	case kindLink:
		return g.addLink(value)
	default:
		return errSorted
	}
	return nil
}

// forward passes a pair on to the group that the URL belongs to. There the places of pages are
// unknown, so a link has the URL of its page.
func (g *grouper) forward(out *groups.Outbox, url string, value []byte) error {
	if len(value) == 0 {
		return errSorted
	}
	switch value[0] {
	case kindListed: // the list is of this segment
		return nil
	case kindLink:
		l, err := g.cutLink(value[1:])
		if err != nil {
			return err
		}
		head := l.head &^ linkRanked
		value = binary.BigEndian.AppendUint64([]byte{kindLink}, math.Float64bits(l.score))
		value = append(append(binary.AppendUvarint(value, head), l.meta...), l.from...)
	}
	out.Add(url, value)
	return nil
}

// sortedLink is the link of a pair: see linkGave for its encoding.
type sortedLink struct {
	score float64
	head  uint64
	meta  []byte
	from  string
}

func (g *grouper) cutLink(value []byte) (l sortedLink, err error) {
	if len(value) < 8 {
		return l, errSorted
	}
	l.score = math.Float64frombits(binary.BigEndian.Uint64(value))
	value = value[8:]
	head, size := binary.Uvarint(value)
	if size <= 0 || head>>2 > uint64(len(value)-size) {
		return l, errSorted
	}
	l.head = head
	var from []byte
	l.meta, from = value[size:size+int(head>>2)], value[size+int(head>>2):]
	if head&linkRanked == 0 {
		l.from = string(from)
		return l, nil
	}
	if g.from == nil {
		return l, errSorted
	}
	place, size := binary.Uvarint(from)
	url, ok := g.from.At(place)
	if size != len(from) || !ok {
		return l, errSorted
	}
	l.from = url
	return l, nil
}

// addLink takes the link of a pair.
func (g *grouper) addLink(value []byte) error {
	l, err := g.cutLink(value)
	if err != nil {
		return err
	}
	link := scoring.Link{From: l.from, URL: g.in.URL, Score: l.score}
	if len(l.meta) > 0 {
		if link.Meta, err = crawldb.DecodeMeta(string(l.meta)); err != nil {
			return errSorted
		}
		if g.in.addSitemapMeta(link.Meta) && link.Score == 0 {
			return nil // nothing more is needed
		}
	}
	g.in.gave = g.in.gave || l.head&linkGave != 0
	g.links = append(g.links, link)
	g.size += linkSize
	if (len(g.links)-g.first-1000)/2 >= g.maxLinks { // which may be the largest int
		g.best()
	}
	return nil
}

// best orders the links, best first, and drops the excess: of the worst, or in
// Nutch's way of the best. Among equal ones Nutch meets those in the larger of
// its files first. Usually that is the file of its parser, not the redirects of
// its fetcher, which have metadata of the visit.
func (g *grouper) best() {
	links := g.links[g.first:]
	if len(links) > 1 {
		slices.SortFunc(links, g.compare)
	}
	if over := len(links) - g.maxLinks; over > 0 {
		if g.worst {
			copy(links, links[over:])
		}
		g.links = g.links[:g.first+g.maxLinks]
	}
}

func (g *grouper) compare(a, b scoring.Link) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	if g.worst {
		if x, y := nutchvisit.Noted(a.Meta), nutchvisit.Noted(b.Meta); x != y {
			if y {
				return -1
			}
			return 1
		}
	}
	return crawldb.Compare(a.From, b.From) // expensive, and rarely needed
}

// last returns what was collected about the URL.
func (g *grouper) last() (Input, bool) {
	if !g.some {
		return Input{}, false
	}
	g.best()
	if n := len(g.links); n > g.first {
		g.in.Links = g.links[g.first:n:n]
	}
	g.some = false
	return g.in, true
}
