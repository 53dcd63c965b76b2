package changeset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// The tables of a step do not overlap, and each is in order.
func TestTablesDoNotOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, full := range []int{1, 3, 10, 1 << 30} {
		var st Changes
		n := 0
		for i := range 300 {
			key := fmt.Appendf(nil, "c%04d", i)
			if r.IntN(5) > 0 {
				_ = st.Set(key, key, nil)
				n++
			}
			level := uint16(r.IntN(20))
			if r.IntN(2) == 0 {
				_ = st.Set(append(binary.BigEndian.AppendUint16([]byte{byte(codec.ReadyTable)}, level), key[1:]...), []byte("entry"), nil)
			} else {
				_ = st.Set(append(binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, uint32(level)), key[1:]...), []byte("entry"), nil)
			}
			n++
			if r.IntN(3) == 0 {
				_ = st.Delete(append(binary.BigEndian.AppendUint16([]byte{byte(codec.ReadyTable)}, level+20), key[1:]...), nil)
				n++
			}
		}
		_ = st.Set(codec.MarkTable.Key("a"), nil, nil)
		_ = st.Set(codec.MarkTable.Key("b"), []byte("b"), nil)
		_ = st.Delete(codec.MarkTable.Key("c"), nil)
		_ = st.Set(codec.MarkTable.Key("site/a"), []byte("b"), nil)
		_ = st.Set(codec.MarkTable.Key("site/z"), []byte("b"), nil)
		_ = st.Set(codec.MarkTable.Key("update/1"), []byte("b"), nil)
		_ = st.Set(codec.StateTable.Key("due"), []byte("state"), nil)
		n += 7
		bounds := map[string]string{}
		for _, table := range st.Tables(full) {
			var first, last []byte
			for key, value := range table {
				if last != nil && bytes.Compare(last, key) >= 0 {
					t.Fatalf("full %d: %q after %q", full, key, last)
				}
				if key[0] == byte(codec.CrawlTable) && !bytes.Equal(key, value) {
					t.Fatalf("%q has %q", key, value)
				}
				if first == nil {
					first = bytes.Clone(key)
				}
				last = append(last[:0], key...)
				n--
			}
			if bytes.HasPrefix(first, codec.MarkTable.Key("site/")) != bytes.HasPrefix(last, codec.MarkTable.Key("site/")) {
				t.Errorf("full %d: the marks of domains share a table with others, from %q to %q", full, first, last)
			}
			for f, l := range bounds {
				if f <= string(last) && string(first) <= l {
					t.Errorf("full %d: the table from %q to %q overlaps that from %q to %q", full, first, last, f, l)
				}
			}
			bounds[string(first)] = string(last)
		}
		if n != 0 {
			t.Errorf("full %d: %d changes are not in the tables", full, n)
		}
	}
}
