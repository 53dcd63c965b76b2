package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

const linkedPage = "http://a.example/of/a/page"

func TestInlinkCodec(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, want := range [][]linkdb.Inlink{
		nil,
		{{}},
		{{From: "http://a.example/"}},
		{{From: linkedPage}, {From: linkedPage + "/1"}},
		{{From: "!", Anchor: long}, {From: "http://a.example/1", Anchor: "home"}, {From: "http://a.example/2", Anchor: "home"}, {From: "http://a.example/2", Anchor: "homes"}, {From: "http://b.example/"}, {From: long}},
	} {
		b := appendInlinks(nil, linkedPage, want, 0)
		got, err := DecodeInlinks(linkedPage, b)
		slices.SortFunc(want, linkdb.CompareInlinks)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, %v\nwant %v", got, err, want)
		}
	}
	old := []byte("\x01\x00\x09http://a/\x00\x01a\x09\x011\x01\x00")
	want := []linkdb.Inlink{{From: "http://a/", Anchor: "a"}, {From: "http://a/1", Anchor: "a"}}
	if got, err := DecodeInlinks(linkedPage, old); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, %v\nwant %v", got, err, want)
	}
}

// appendInlinks appends what a Merge of the links with that bound gives a page.
func appendInlinks(dst []byte, url string, links []linkdb.Inlink, limit int) []byte {
	return appendRun(append(dst, linkVersion), runOf(nil, url, links, limit))
}

// sumOf begins the sum of a page with its newest value.
func sumOf(sums *LinkSums, key, value []byte) (*LinkSum, error) {
	_, page, _ := SplitLinkKey(key)
	m := sums.Get(page, false)
	return m, m.MergeNewer(value)
}

// A link from a neighbouring page takes only the difference of the URLs.
func TestInlinkIsSmall(t *testing.T) {
	b := appendInlinks(nil, linkedPage+"/1", []linkdb.Inlink{{From: "http://0.example/", Anchor: "a"}, {From: linkedPage + "/2", Anchor: "a"}}, 10_000)
	if len(b) > 32 {
		t.Errorf("two links take %d bytes", len(b))
	}
}

func TestInlinksAreBounded(t *testing.T) {
	links := []linkdb.Inlink{{From: strings.Repeat("x", 1<<20)}}
	r := runOf(nil, linkedPage, links, 0)
	// Each of these bytes stands for the whole of the first link.
	for range maxInlinks >> 20 {
		r.body = append(r.body, 0x80, 0x80, 0x80, 1, 0, 0, 0)
		r.count++
	}
	if _, err := DecodeInlinks(linkedPage, appendRun([]byte{linkVersion}, r)); err == nil {
		t.Error("a value that unpacks to more than the bound was read")
	}
	for range 257 {
		links = append(links, links[0])
	}
	got, err := DecodeInlinks(linkedPage, appendInlinks(nil, linkedPage, links[:200], 0))
	if err != nil || len(got) != 1 {
		t.Errorf("%d links, %v", len(got), err) // they are all the same
	}
	if r := runOf(nil, linkedPage, links, 0); r.count != 256 {
		t.Errorf("%d links above the bound were encoded", r.count)
	}
}

// Whatever the bounds, and wherever and in which order runs are combined, a page has the
// result of one Merge after another.
func TestLinkSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	key := LinkTable.Key(crawldb.Key(linkedPage))
	var sums LinkSums // whose memory serves one page after the other
	for range 2000 {
		limits := []int{r.IntN(6)}
		if r.IntN(4) == 0 {
			limits = []int{0, 1, 2, 3, 5, 8, 13}
		}
		var want []linkdb.Inlink
		var values [][]byte
		for i := range 1 + r.IntN(20) {
			var links []linkdb.Inlink
			for range r.IntN(6) {
				links = append(links, linkdb.Inlink{From: fmt.Sprint("http://a.example/", r.IntN(20)), Anchor: "xyz"[:r.IntN(3)]})
			}
			limit := limits[r.IntN(len(limits))]
			links = linkdb.Union(nil, links, limit)
			want = linkdb.Union(want, links, limit)
			if r.IntN(2) == 0 && len(links) > 0 { // as others than Invert give them
				if limit == 0 || len(links) < limit {
					links = append(links, links[r.IntN(len(links))])
				}
				r.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
			}
			value := appendInlinks(nil, linkedPage, links, limit)
			if i == 0 && r.IntN(2) == 0 { // of an older store
				value = []byte{oldLinkVersion}
				for _, l := range linkdb.Union(nil, links, 0) {
					value = append(appendText(append(value, 0), l.From), 0)
					value = appendText(value, l.Anchor)
				}
			}
			values = append(values, value)
		}
		for len(values) > 1 { // some that lie together
			from := r.IntN(len(values) - 1)
			to := from + 2 + r.IntN(len(values)-from-1)
			at := from + r.IntN(to-from)
			m, err := sumOf(&sums, key, values[at])
			for i, j := at-1, at+1; err == nil && (i >= from || j < to); {
				if j < to && (i < from || r.IntN(2) == 0) {
					err = m.MergeNewer(values[j])
					j++
				} else {
					err = m.MergeOlder(values[i])
					i--
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			value, use, err := m.Finish(from == 0 && r.IntN(2) == 0)
			if err != nil {
				t.Fatal(err)
			}
			values = slices.Replace(values, from, to, bytes.Clone(value))
			clear(value)
			if err := use.Close(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := DecodeInlinks(linkedPage, values[0])
		if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, %v\nwant %v", got, err, want)
		}
	}
}

// What many merges have left is put together now and then, and what is above the
// bound goes.
func TestLinkSumsAreSmall(t *testing.T) {
	key := LinkTable.Key(crawldb.Key(linkedPage))
	for _, limit := range []int{0, 100} {
		var value []byte
		for i := range 1000 {
			m, err := sumOf(new(LinkSums), key, appendInlinks(nil, linkedPage, []linkdb.Inlink{{From: fmt.Sprintf("http://a.example/%04d", i)}}, limit))
			if i > 0 {
				err = errors.Join(err, m.MergeOlder(value))
			}
			if err != nil {
				t.Fatal(err)
			}
			if value, _, err = m.Finish(limit > 0); err != nil {
				t.Fatal(err)
			}
		}
		runs, ok := appendRuns(nil, value)
		if !ok || len(runs) > 16 {
			t.Errorf("bound %d: %d runs", limit, len(runs))
		}
		if limit > 0 && len(value) > 2*limit*20 {
			t.Errorf("bound %d: %d bytes", limit, len(value))
		}
	}
}

// A bound that is beyond all that there is makes no work.
func TestLinkSumsWithoutABound(t *testing.T) {
	for _, limit := range []int{1 << 20, math.MaxInt/2 + 1, math.MaxInt} {
		m := LinkSum{key: crawldb.AppendKey(nil, linkedPage)}
		for i := range manyRuns {
			link := linkdb.Inlink{From: fmt.Sprintf("http://a.example/%04d", i)}
			if err := m.MergeNewer(appendInlinks(nil, linkedPage, []linkdb.Inlink{link}, limit)); err != nil {
				t.Fatal(err)
			}
		}
		if m.join(true); len(m.runs) != manyRuns {
			t.Errorf("bound %d: %d runs became %d", limit, manyRuns, len(m.runs))
		}
	}
}

// A compaction takes each page in hand, and most of them have nothing to be put
// together.
func TestLinkSumsOfManyPagesShareMemory(t *testing.T) {
	key := LinkTable.Key(crawldb.Key(linkedPage))
	links := []linkdb.Inlink{{From: "http://a.example/", Anchor: "a"}, {From: "http://b.example/", Anchor: "b"}}
	value := appendInlinks(nil, linkedPage, links, 0)
	var sums LinkSums
	allocs := testing.AllocsPerRun(1000, func() {
		m, err := sumOf(&sums, key, value)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.MergeOlder(value); err != nil {
			t.Fatal(err)
		}
		_, use, err := m.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		if err := use.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 { // a collection takes some from the pool, and so does the race detector
		t.Errorf("%v allocations a page", allocs)
	}
}

// Unreadable values stay as they are, and stop no compaction.
func TestDamagedLinkSum(t *testing.T) {
	key := LinkTable.Key(crawldb.Key(linkedPage))
	good := appendInlinks(nil, linkedPage, []linkdb.Inlink{{From: "http://a.example/"}}, 0)
	for _, bad := range [][]byte{nil, {3}, {linkVersion, 0, 1, 200}, {linkVersion, 0, 1, 2, 0, 0}, {oldLinkVersion, 9}, {linkVersion, 0, 2, 8, 0, 0, 0, 0, 1, 200, 0, 0}} {
		if _, err := DecodeInlinks(linkedPage, bad); err == nil {
			t.Errorf("%x was read", bad)
		}
		m, err := sumOf(new(LinkSums), key, good)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := m.MergeOlder(bad); err != nil {
				t.Fatal(err)
			}
		}
		value, _, err := m.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		if links, err := DecodeInlinks(linkedPage, value); err == nil {
			t.Errorf("%x became %v", bad, links)
		}
	}
}

func FuzzInlinkCodec(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{oldLinkVersion, 0, 1, 'a', 0, 0, 1, 0, 0, 1, 'b'})
	f.Add([]byte{linkVersion, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	one := appendInlinks(nil, linkedPage, []linkdb.Inlink{{From: linkedPage, Anchor: "a"}, {From: linkedPage + "1"}}, 2)
	f.Add(one)
	f.Add(append(slices.Clone(one), one[1:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		links, err := DecodeInlinks(linkedPage, b)
		key := LinkTable.Key(crawldb.Key(linkedPage))
		m, merr := sumOf(new(LinkSums), key, b)
		if merr != nil {
			t.Fatal(merr)
		}
		sum, _, merr := m.Finish(true)
		if merr != nil {
			t.Fatal(merr)
		}
		again, serr := DecodeInlinks(linkedPage, sum)
		if err != nil {
			if serr == nil {
				t.Errorf("%x cannot be read, and is merged to %v", b, again)
			}
			return
		}
		if links = linkdb.Union(nil, links, 0); serr != nil || len(links)+len(again) > 0 && !reflect.DeepEqual(links, again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, links, again, serr)
		}
		enc := appendInlinks(nil, linkedPage, links, 0)
		if again, err := DecodeInlinks(linkedPage, enc); err != nil || len(links)+len(again) > 0 && !reflect.DeepEqual(links, again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, links, again, err)
		}
	})
}
