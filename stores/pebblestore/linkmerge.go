package pebblestore

import (
	"cmp"
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

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

// merger is the merger of all tables that have sums. Its name is in every table that
// was ever written, so it is that of the engine's own merger, which was never used.
func merger() *pebble.Merger {
	var sums, tallies sync.Pool
	return &pebble.Merger{
		Name: pebble.DefaultMerger.Name,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			var m pebble.ValueMerger
			if isLink(key) {
				sum, _ := sums.Get().(*linkSum)
				if sum == nil {
					sum = &linkSum{pool: &sums}
				}
				l, page, _ := layerOf(key)
				sum.key, sum.above = append(sum.key, page...), l.from > 0
				m = sum
			} else {
				sum, _ := tallies.Get().(*tallySum)
				if sum == nil {
					sum = &tallySum{pool: &tallies}
				}
				m = sum
			}
			return m, m.MergeNewer(value)
		},
	}
}

// linkSum holds the known runs of a page. An error would stop the compaction of all
// tables for good, so a damaged value results in one that nobody can read.
type linkSum struct {
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
func (m *linkSum) Close() error {
	if m.pool != nil && cap(m.text)+cap(m.out) <= keptSum {
		m.reset()
		m.pool.Put(m)
	}
	return nil
}

// reset begins another sum in the memory of this one.
func (m *linkSum) reset() {
	clear(m.runs) // release those outside of text
	m.key, m.runs, m.bad, m.above, m.text, m.out = m.key[:0], m.runs[:0], false, false, m.text[:0], m.out[:0]
}

func (m *linkSum) MergeNewer(value []byte) error {
	m.runs = m.read(m.runs, value)
	return nil
}

func (m *linkSum) MergeOlder(value []byte) error {
	m.older = m.read(m.older[:0], value)
	m.runs = slices.Insert(m.runs, 0, m.older...)
	clear(m.older)
	return nil
}

// read appends the runs of a value, which it copies.
func (m *linkSum) read(runs []linkRun, value []byte) []linkRun {
	if len(value) > 0 && value[0] == oldLinkVersion {
		links, err := decodeInlinks(m.url(), value)
		m.bad = m.bad || err != nil
		return append(runs, runOf(nil, m.url(), links, 0))
	}
	at := len(m.text)
	m.text = append(m.text, value...)
	runs, ok := appendRuns(runs, m.text[at:])
	m.bad = m.bad || !ok
	return runs
}

func (m *linkSum) url() string { return crawldb.URLOf(string(m.key)) }

// badLinks is the version byte of an unreadable value.
const badLinks = 0xff

func (m *linkSum) Finish(includesBase bool) ([]byte, io.Closer, error) {
	if m.bad {
		m.out = append(m.out, badLinks)
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
func (m *linkSum) join(base bool) {
	if len(m.runs) < 2 {
		return
	}
	from := m.worth(base)
	if len(m.runs)-from < 2 {
		return
	}
	url := m.url()
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
func (m *linkSum) worth(base bool) int {
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
