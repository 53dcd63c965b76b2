package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// A page may have been visited for several segments, and Accept may make several pages
// one document. Which visit decides about a document is settled before anything is
// written, by sorting the visits: a set of the pages decided so far would grow with the
// crawl.

// choice is the visits that decide, in the order in which they are read.
type choice struct {
	decidesAll bool // visits decide
	next       func() (extsort.Pair, error, bool)
	close      func()

	place []byte // of the next of them; empty if there are no more
	url   string // of its document; empty if it is that of the page
}

// choose settles which visits of the segments decide.
func (j *job) choose(ctx context.Context, names []string) (*choice, error) {
	if len(names) < 2 && j.o.Accept == nil {
		return &choice{decidesAll: true, close: func() {}}, nil // a segment visits a page once
	}
	memory := j.o.SortMemory
	if memory <= 0 {
		memory = 64 << 20
	}
	byDocument := extsort.New(extsort.Options{MemoryBytes: max(memory/2, 1), Dir: j.o.TempDir})
	defer byDocument.Close()
	for n, name := range names {
		if err := j.candidates(ctx, name, n, byDocument); err != nil {
			return nil, err
		}
	}
	byPlace := extsort.New(extsort.Options{MemoryBytes: max(memory/2, 1), Dir: j.o.TempDir})
	if err := j.best(ctx, byDocument, byPlace); err != nil {
		byPlace.Close()
		return nil, err
	}
	next, stop := iter.Pull2(byPlace.Sorted(ctx))
	c := &choice{next: next, close: func() { stop(); byPlace.Close() }}
	if err := c.advance(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// A candidate is sorted under the URL of its document, so that the best comes first:
//
//	0 if it says what the page is, 1 if it only says that it could not be seen or is unchanged
//	the number of the segment, from the newest, in four bytes
//	the URL of the page, unless it is that of the document
//	the number of the visit in the segment, in eight bytes

// candidates adds the visits of a segment.
func (j *job) candidates(ctx context.Context, name string, n int, to *extsort.Sorter) error {
	var key, value []byte
	i := -1
	for v, err := range segment.Records[segment.Visit](ctx, j.segments, name) {
		if err != nil {
			return err
		}
		i++
		url := v.URL
		if j.o.Accept != nil {
			var ok bool
			if url, ok = j.o.Accept(url); !ok {
				j.report.Rejected++
				continue
			}
		}
		value = append(value[:0], 0)
		if j.o.older(v.Outcome.Code) {
			value[0] = 1
		}
		value = binary.BigEndian.AppendUint32(value, uint32(n))
		if url != v.URL {
			value = append(value, v.URL...)
		}
		key = append(key[:0], url...)
		if err := to.Add(key, binary.BigEndian.AppendUint64(value, uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// older reports whether a visit leaves it to an older one to say what the page is.
func (o *Options) older(code protocol.Code) bool {
	return code == protocol.NotModified || code.Transient() && !o.NutchCompat
}

// best passes on the best candidate for each document: its place as key, and the URL
// of the document, unless it is that of the page. Of several pages one that is there
// is better than those that are not, whichever was visited last.
func (j *job) best(ctx context.Context, candidates, to *extsort.Sorter) error {
	var document, value, key []byte
	const head, place = 1 + 4, 8
	page := func(value []byte) []byte { return value[head : len(value)-place] }
	end := func() error {
		if value == nil {
			return nil
		}
		key = append(append(key[:0], value[1:head]...), value[len(value)-place:]...)
		if len(page(value)) == 0 {
			return to.Add(key, nil)
		}
		return to.Add(key, document)
	}
	known, there := false, false // of the page of value
	for p, err := range candidates.Sorted(ctx) {
		if err != nil {
			return err
		}
		if len(p.Value) < head+place {
			return errSorted
		}
		if value == nil || !bytes.Equal(p.Key, document) {
			if err := end(); err != nil {
				return err
			}
			document, value = append(document[:0], p.Key...), append(value[:0], p.Value...)
			known = false
			continue
		}
		if there && known || j.o.NutchCompat || bytes.Equal(page(p.Value), page(value)) {
			continue
		}
		if !known {
			if there, err = j.there(ctx, document, page(value)); err != nil {
				return err
			}
			known = true
		}
		if there {
			continue
		}
		if there, err = j.there(ctx, document, page(p.Value)); err != nil {
			return err
		}
		if there {
			value = append(value[:0], p.Value...)
		}
	}
	return end()
}

var errSorted = errors.New("sorted data is damaged")

// there reports whether the record says that a page is there.
func (j *job) there(ctx context.Context, document, page []byte) (bool, error) {
	if len(page) == 0 {
		page = document
	}
	rec, err := j.crawl.Get(ctx, string(page))
	if errors.Is(err, crawldb.ErrNotFound) {
		return false, nil
	}
	return err == nil && !rec.IsSitemap() && decideByRecord(&rec) == add, err
}

// advance goes on to the next visit that decides.
func (c *choice) advance() error {
	p, err, ok := c.next()
	if !ok {
		c.place = nil
		return nil
	}
	c.place, c.url = append(c.place[:0], p.Key...), string(p.Value)
	return err
}

// takes reports whether a visit decides, and about which document.
func (c *choice) takes(n, i int, page string) (url string, ok bool, err error) {
	if c.decidesAll {
		return page, true, nil
	}
	var place [4 + 8]byte
	binary.BigEndian.PutUint32(place[:], uint32(n))
	binary.BigEndian.PutUint64(place[4:], uint64(i))
	if !bytes.Equal(place[:], c.place) {
		return "", false, nil
	}
	if url = c.url; url == "" {
		url = page
	}
	return url, true, c.advance()
}
