package pgstore

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/linkdb"
)

// Keys are indexed in their order, but for long ones that share their first bytes, and no two
// are indexed alike.
func TestIndexKeepsOrder(t *testing.T) {
	long := bytes.Repeat([]byte("x"), mostIndexed)
	keys := [][]byte{
		{}, {0}, []byte("a"), long[:mostIndexed-1], long, slices.Concat(long, []byte{0}), slices.Concat(long, []byte("b")), slices.Concat(long, long, long),
		slices.Concat(long[:mostIndexed-1], []byte("y")), {0xff, 0xff},
	}
	for i, key := range keys {
		index, tail := indexed(key)
		if got := whole(index, tail); !bytes.Equal(got, key) {
			t.Errorf("key %d is read as %d bytes", i, len(got))
		}
		for j, before := range keys[:i] {
			other, _ := indexed(before)
			c := bytes.Compare(other, index)
			if isLong(index) && isLong(other) && bytes.Equal(index[:mostIndexed], other[:mostIndexed]) {
				if c == 0 {
					t.Errorf("keys %d and %d are indexed alike", j, i)
				}
			} else if c >= 0 {
				t.Errorf("key %d is indexed behind key %d", j, i)
			}
		}
	}
	for prefix, want := range map[string]string{"a": "b", "a\xff\xff": "b", "a\x00": "a\x01"} {
		if got := after([]byte(prefix)); string(got) != want {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
	if got := after([]byte("\xff\xff")); got != nil {
		t.Errorf("after the last prefix comes %q", got)
	}
}

// A level is an eighth of an octave, and levels ascend with priorities.
func TestLevelsAscendByEighthsOfOctave(t *testing.T) {
	last := int16(math.MinInt16)
	for _, p := range []float32{float32(math.NaN()), 0, math.SmallestNonzeroFloat32, 1e-30, 0.5, 1, 2, math.MaxFloat32, float32(math.Inf(1))} {
		l := levelOf(p)
		if l < last {
			t.Errorf("the level of %v is %d, below %d", p, l, last)
		}
		last = l
	}
	if a, b := levelOf(1), levelOf(2); b-a != 8 {
		t.Errorf("an octave has %d levels", b-a)
	}
	if levelOf(-1) != 0 || levelOf(float32(math.Inf(-1))) != 0 {
		t.Error("a negative priority has a level of its own")
	}
}

func sampleInlinks() [][]linkdb.Inlink {
	long := strings.Repeat("x", 3000)
	return [][]linkdb.Inlink{
		nil,
		{{}},
		{{From: "http://a.example/"}, {From: "http://a.example/1", Anchor: "an anchor"}, {From: "http://a.example/2", Anchor: "an anchor"}},
		{{From: long, Anchor: long}, {From: long + "\x00\xff", Anchor: "\xff"}},
	}
}

func TestEncodedInlinksAreReadAsTheyWere(t *testing.T) {
	for _, want := range sampleInlinks() {
		if got, ok := decodeInlinks(appendInlinks(nil, want)); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	if _, ok := decodeInlinks(nil); ok {
		t.Error("no bytes were read as inlinks")
	}
}

// What is decoded, encodes to something that decodes to the same.
func FuzzInlinks(f *testing.F) {
	for _, links := range sampleInlinks() {
		f.Add(appendInlinks(nil, links))
	}
	f.Add([]byte{inlinksVersion, 0, 1, 'a', 0, 0, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		links, ok := decodeInlinks(b)
		if !ok {
			return
		}
		if again, ok := decodeInlinks(appendInlinks(nil, links)); !ok || !reflect.DeepEqual(links, again) {
			t.Errorf("%x reads as %v and then as %v", b, links, again)
		}
	})
}

// The connection string names the crawl; what is wrong with it is said without the password.
func TestConnectionStringNamesCrawl(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u@h/d":                    DefaultCrawl,
		"postgres://u@h/d?crawl=news":         "news",
		"host=h user=u dbname=d crawl=news_2": "news_2",
	} {
		config, name, err := parse(dsn)
		if err != nil || name != want || config.MaxConns != 8 {
			t.Errorf("%s: crawl %q, %v", dsn, name, err)
		} else if got := config.ConnConfig.RuntimeParams["search_path"]; got != `"`+want+`"` {
			t.Errorf("%s: search_path is %s", dsn, got)
		}
	}
	for _, dsn := range []string{"postgres://u:secret@h/d?crawl=News", "postgres://u:secret@h:port/d", "postgres://u:secret@h/d?crawl=a;b"} {
		if _, _, err := parse(dsn); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error is %v", dsn, err)
		}
	}
}
