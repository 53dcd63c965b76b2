package ordering

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule/simulate/internal/input"
)

// Web is a link graph: pages, and the links of each, in the order in which they were given.
// It has each link once, and none from a page to itself.
type Web struct {
	urls  []string
	first []uint64 // where the links of each page begin, and the end of the last
	to    []uint32
}

// Pages returns the number of pages.
func (w *Web) Pages() int { return len(w.urls) }

// Links returns the number of links.
func (w *Web) Links() int { return len(w.to) }

// URL returns the URL of a page, numbered from zero.
func (w *Web) URL(page int) string { return w.urls[page] }

// Out returns the pages that a page links to, not to be changed.
func (w *Web) Out(page int) []uint32 { return w.to[w.first[page]:w.first[page+1]] }

// Read reads a graph: a link on each line, the page that it is on and the page that it
// leads to, separated by a tab or other white space. A page has any name without white
// space: a URL, or a name that becomes a URL on one common host. Empty lines and those that
// begin with "#" or "%" are skipped, and so is a byte order mark.
//
// If the first line is only a number, it is the number of pages, and a line for each of
// them follows: the numbers, from 0, of the pages that it links to; an empty line for none.
// That is the ASCII form of WebGraph. Either may be compressed by gzip.
//
// It takes about 100 bytes and the length of its name for a page, and 12 bytes for a link.
// An error names the line, and the file if r has a name.
func Read(r io.Reader) (*Web, error) {
	b := builder{number: map[string]uint32{}}
	n := 0
	text, err := input.New(r)
	if err != nil {
		return nil, fmt.Errorf("ordering: %w", err)
	}
	fail := func(err error) (*Web, error) { return nil, fmt.Errorf("ordering: %w", text.At(n, err)) }
	lines := bufio.NewScanner(text)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	lists := false // a line for each page
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		line = bytes.TrimSpace(line)
		if lists {
			if err := b.list(line); err != nil {
				return fail(err)
			}
			continue
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		at := bytes.IndexAny(line, "\t ")
		if pages, err := strconv.ParseUint(string(line), 10, 31); at < 0 && err == nil && len(b.names) == 0 {
			lists, b.pages = true, uint32(pages)
			continue
		}
		if at < 0 {
			return fail(errors.New("want two pages, separated by a tab"))
		}
		from, to := line[:at], bytes.TrimSpace(line[at:])
		if bytes.ContainsAny(to, "\t ") {
			return fail(errors.New("text after the second page; a line has one link, unless the first line is the number of pages"))
		}
		f, ok := b.page(from)
		t, ok2 := b.page(to)
		if !ok || !ok2 {
			return fail(errors.New("too many pages"))
		}
		b.link(f, t)
	}
	if err := lines.Err(); err != nil {
		n++
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("the line is longer than a mebibyte")
		}
		return fail(err)
	}
	if lists && b.listed != b.pages {
		return fail(fmt.Errorf("lines for only %d of %d pages", b.listed, b.pages))
	}
	if len(b.links) == 0 {
		return nil, fmt.Errorf("ordering: %w", text.Whole(errors.New("the graph has no links")))
	}
	return b.web(), nil
}

// builder collects links in any order.
type builder struct {
	number map[string]uint32
	names  []string
	links  [][2]uint32

	pages, listed uint32 // of a graph with a line for each page
}

// list takes the line of the next page.
func (b *builder) list(line []byte) error {
	if b.listed == b.pages {
		if len(line) == 0 {
			return nil
		}
		return fmt.Errorf("more than %d pages", b.pages)
	}
	from, _ := b.page(strconv.AppendUint(nil, uint64(b.listed), 10))
	b.listed++
	for to := range bytes.FieldsSeq(line) {
		n, err := strconv.ParseUint(string(to), 10, 31)
		if err != nil || uint32(n) >= b.pages {
			return fmt.Errorf("%q is not the number of a page; there are %d", to, b.pages)
		}
		t, _ := b.page(strconv.AppendUint(nil, n, 10)) // in its usual spelling
		b.link(from, t)
	}
	return nil
}

func (b *builder) page(name []byte) (n uint32, ok bool) {
	if n, ok := b.number[string(name)]; ok {
		return n, true
	}
	if len(b.names) == math.MaxInt32 {
		return 0, false
	}
	n = uint32(len(b.names))
	s := string(name)
	b.names = append(b.names, s)
	b.number[s] = n
	return n, true
}

func (b *builder) link(from, to uint32) { b.links = append(b.links, [2]uint32{from, to}) }

// web sorts the links by the page that they are on, and drops duplicates.
func (b *builder) web() *Web {
	b.number = nil
	w := &Web{urls: b.names, first: make([]uint64, len(b.names)+1)}
	for i, name := range w.urls {
		if !strings.Contains(name, "://") {
			w.urls[i] = "http://graph.example/" + name
		}
	}
	at := make([]uint64, len(w.urls)+1) // where the next link of each page goes
	for _, l := range b.links {
		at[l[0]+1]++
	}
	for i := range w.urls {
		at[i+1] += at[i]
	}
	to := make([]uint32, len(b.links))
	for _, l := range b.links {
		to[at[l[0]]] = l[1]
		at[l[0]]++
	}
	b.links = nil
	seen := make([]uint32, len(w.urls)) // the last page seen to link there, from 1
	w.to = to[:0]
	begin := uint64(0)
	for page := range w.urls {
		for _, t := range to[begin:at[page]] {
			if int(t) != page && seen[t] != uint32(page)+1 {
				seen[t] = uint32(page) + 1
				w.to = append(w.to, t)
			}
		}
		begin = at[page]
		w.first[page+1] = uint64(len(w.to))
	}
	return w
}

// keyOrder returns for each page its place in the order of crawldb.Key.
func (w *Web) keyOrder() []uint32 {
	keys := make([]string, len(w.urls))
	order := make([]uint32, len(w.urls))
	for i, u := range w.urls {
		keys[i], order[i] = crawldb.Key(u), uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(keys[a], keys[b]) })
	place := make([]uint32, len(order))
	for i, page := range order {
		place[page] = uint32(i)
	}
	return place
}

// PageRank returns the PageRank of each page in the whole graph; the sum is 1. With
// probability damping a reader follows one of the links of a page; otherwise, or if there
// are none, he goes to any page. It is computed until it changes by less than a millionth.
func (w *Web) PageRank(damping float64) []float64 {
	n := len(w.urls)
	rank, next := make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	for range 200 {
		lost := 0.0
		clear(next)
		for page := range n {
			out := w.Out(page)
			if len(out) == 0 {
				lost += rank[page]
				continue
			}
			share := rank[page] / float64(len(out))
			for _, t := range out {
				next[t] += share
			}
		}
		base, moved := (1-damping+damping*lost)/float64(n), 0.0
		for i := range next {
			next[i] = base + damping*next[i]
			moved += math.Abs(next[i] - rank[i])
		}
		rank, next = next, rank
		if moved < 1e-6 {
			break
		}
	}
	return rank
}
