package pebblestore

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

// A Merge of links writes what it was given and reads nothing: it is merged into
// what the page has by the engine, when tables are compacted, and by who reads it.
// There, too, runs are mostly laid one behind the other, which is a copy of bytes. They
// are put together when there are many of them, the smaller ones with their like, so
// that a link is taken in hand once for each doubling of those of its page.
const (
	manyRuns = 8
	runRatio = 2
)

// merger is the one of all tables that have sums. The name is in every table that was
// ever written, so it is the one of the engine's own merger, of which nothing was ever
// asked.
func merger() *pebble.Merger {
	return &pebble.Merger{
		Name: pebble.DefaultMerger.Name,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			var m pebble.ValueMerger = new(tallySum)
			if len(key) > 0 && table(key[0]) == linkTable {
				m = &linkSum{key: bytes.Clone(key[1:])}
			}
			return m, m.MergeNewer(value)
		},
	}
}

// linkSum is the runs that are known of a page. An error would stop the compaction of
// all tables for good: a value that is damaged makes one that nobody can read.
type linkSum struct {
	key  []byte
	runs []linkRun
	bad  bool
}

func (m *linkSum) MergeNewer(value []byte) error {
	m.runs = append(m.runs, m.read(value)...)
	return nil
}

func (m *linkSum) MergeOlder(value []byte) error {
	m.runs = slices.Insert(m.runs, 0, m.read(value)...)
	return nil
}

// read returns the runs of a value, of which it keeps a copy.
func (m *linkSum) read(value []byte) []linkRun {
	if len(value) > 0 && value[0] == oldLinkVersion {
		links, err := decodeInlinks(m.url(), value)
		m.bad = m.bad || err != nil
		return []linkRun{runOf(nil, m.url(), links, 0)}
	}
	runs, ok := appendRuns(nil, bytes.Clone(value))
	m.bad = m.bad || !ok
	return runs
}

func (m *linkSum) url() string { return crawldb.URLOf(string(m.key)) }

// badLinks is the version of what nobody can read.
const badLinks = 0xff

func (m *linkSum) Finish(includesBase bool) ([]byte, io.Closer, error) {
	if m.bad {
		return []byte{badLinks}, nil, nil
	}
	m.join(includesBase)
	size := 1
	for _, r := range m.runs {
		size += len(r.body) + 16
	}
	out := append(make([]byte, 0, size), linkVersion)
	for _, r := range m.runs {
		out = appendRun(out, r)
	}
	return out, nil, nil
}

// join puts runs together if that is worth while.
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
		return // who reads it is told
	}
	m.runs = m.runs[:from]
	for _, l := range joinRuns(list, base && from == 0) {
		m.runs = append(m.runs, runOf(nil, url, l.links, l.limit))
	}
}

// worth returns from where on runs are to be put together.
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
