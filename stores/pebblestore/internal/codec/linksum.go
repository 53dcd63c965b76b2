package codec

import (
	"cmp"
	"io"
	"slices"
	"sync"

	"github.com/recrawl/recrawl/crawldb"
)

// A Merge of links only writes its own and reads nothing: the engine merges them with the
// existing links of the page when it compacts tables, and so do reads. Even then runs are
// mostly just appended, which copies bytes. When there are many, smaller ones are combined
// with others of their size, so that a link is processed once for each doubling of the
// links of its page.
const (
	manyRuns = 8
	runRatio = 2
)

// LinkSum holds the known runs of a page. An error would stop the compaction of all
// tables for good, so a damaged value results in one that cannot be read.
type LinkSum struct {
	key  []byte
	runs []linkRun
	bad  bool
	// above says that older layers may have links of the page, too.
	above bool
	// A compaction makes one for each page, so its memory is reused: text has
	// copies of the values, out is the result.
	text, out []byte
	older     []linkRun
	pool      *sync.Pool // or nil
}

// keptSum limits the memory of a linkSum that is kept for the next page.
const keptSum = 64 << 10

// Close releases what Finish returned.
func (m *LinkSum) Close() error {
	if m.pool != nil && cap(m.text)+cap(m.out) <= keptSum {
		m.Reset(nil, false)
		m.pool.Put(m)
	}
	return nil
}

// Reset begins the sum of a page, in the memory of the last. The page is given as its key
// without what precedes that in the tables of links; above says that older layers may have
// links of it, too.
func (m *LinkSum) Reset(page []byte, above bool) {
	clear(m.runs) // release those outside of text
	m.key, m.runs, m.bad, m.above, m.text, m.out = append(m.key[:0], page...), m.runs[:0], false, above, m.text[:0], m.out[:0]
}

// LinkSums makes sums that reuse their memory once they are closed. The zero value is ready,
// and it may be used from many goroutines.
type LinkSums struct{ pool sync.Pool }

// Get begins the sum of a page; see [linkSum.Reset].
func (s *LinkSums) Get(page []byte, above bool) *LinkSum {
	m, _ := s.pool.Get().(*LinkSum)
	if m == nil {
		m = &LinkSum{pool: &s.pool}
	}
	m.Reset(page, above)
	return m
}

func (m *LinkSum) MergeNewer(value []byte) error {
	m.runs = m.read(m.runs, value)
	return nil
}

func (m *LinkSum) MergeOlder(value []byte) error {
	m.older = m.read(m.older[:0], value)
	m.runs = slices.Insert(m.runs, 0, m.older...)
	clear(m.older)
	return nil
}

// read appends the runs of a value, which it copies.
func (m *LinkSum) read(runs []linkRun, value []byte) []linkRun {
	if len(value) > 0 && value[0] == oldLinkVersion {
		links, err := DecodeInlinks(m.URL(), value)
		m.bad = m.bad || err != nil
		return append(runs, runOf(nil, m.URL(), links, 0))
	}
	at := len(m.text)
	m.text = append(m.text, value...)
	runs, ok := appendRuns(runs, m.text[at:])
	m.bad = m.bad || !ok
	return runs
}

func (m *LinkSum) URL() string { return crawldb.URLOf(string(m.key)) }

// BadLinks is the version byte of an unreadable value.
const BadLinks = 0xff

func (m *LinkSum) Finish(includesBase bool) ([]byte, io.Closer, error) {
	if m.bad {
		m.out = append(m.out, BadLinks)
		return m.out, m, nil
	}
	m.join(includesBase && !m.above)
	size := 1
	for _, r := range m.runs {
		size += len(r.body) + 16
	}
	m.out = append(slices.Grow(m.out, size), linkVersion)
	for _, r := range m.runs {
		m.out = appendRun(m.out, r)
	}
	return m.out, m, nil
}

// join combines runs if that is worthwhile.
func (m *LinkSum) join(base bool) {
	if len(m.runs) < 2 {
		return
	}
	from := m.worth(base)
	if len(m.runs)-from < 2 {
		return
	}
	url := m.URL()
	list, err := decodeRuns(url, m.runs[from:])
	if err != nil {
		return // reads report it
	}
	m.runs = m.runs[:from]
	for _, l := range joinRuns(list, base && from == 0) {
		m.runs = append(m.runs, runOf(nil, url, l.links, l.limit))
	}
}

// worth returns the index from which runs should be combined.
func (m *LinkSum) worth(base bool) int {
	last := len(m.runs) - 1
	all := 0
	for _, r := range m.runs {
		all += r.count
	}
	if limit := m.runs[last].limit; base && limit > 0 && (all-1)/runRatio >= limit {
		return 0
	}
	if len(m.runs) <= manyRuns {
		return last
	}
	from, n := last, cmp.Or(m.runs[last].count, 1)
	for from > 0 && m.runs[from-1].count <= runRatio*n {
		from--
		n += m.runs[from].count
	}
	return from
}

// Bad reports whether a value of the sum could not be read.
func (m *LinkSum) Bad() bool { return m.bad }
