package logcheck

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// What a crash leaves at the end of a log differs from what was altered: the end may be cut
// off, and sectors may be empty, from any place on; but no bit has changed.
func TestDamageOfALogIsNoTail(t *testing.T) {
	body := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i) | 1
		}
		return b
	}
	for _, sizes := range [][]int{{300}, {100, 1500}, {recordBlock - 100, 40}, {recordBlock - recordHeadMost - 5, 900}, {700, 1, 3}} {
		var log []byte
		last := 0
		for i, n := range sizes {
			if room := recordBlock - len(log)%recordBlock; room < recordHeadMost {
				log = append(log, make([]byte, room)...)
			}
			if i == len(sizes)-1 {
				last = len(log)
			}
			log = append(log, logChunk(1, 0, body(n))...)
		}
		read := func(b []byte) Records {
			r, err := Read(bytes.NewReader(b), int64(len(b)), 7)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for _, behind := range []int{0, 5000} { // with room ahead, and without
			whole := append(bytes.Clone(log), make([]byte, behind)...)
			if r := read(whole); r.Broken() || r.Chunks != len(sizes) || r.Tail != 0 {
				t.Fatalf("%d and %d bytes: %+v", sizes, behind, r)
			}
			for bit := last * 8; bit < len(log)*8; bit++ {
				bad := bytes.Clone(whole)
				bad[bit/8] ^= 1 << (bit % 8)
				if r := read(bad); !r.Broken() || r.End != int64(last) {
					t.Fatalf("%d and %d bytes: bit %d of byte %d of the last: %+v", sizes, behind, bit%8, bit/8-last, r)
				}
			}
			for at := last; at < len(log); at++ {
				if r := read(whole[:at]); r.Broken() {
					t.Fatalf("%d bytes, cut at %d of the last: %+v", sizes, at-last, r)
				}
				if at%512 == 0 || at == last {
					bad := bytes.Clone(whole)
					clear(bad[at:min((at/512+1)*512, len(bad))])
					if r := read(bad); r.Broken() || r.Chunks == len(sizes) {
						t.Fatalf("%d bytes, nothing in the sector at %d: %+v", sizes, at, r)
					}
				}
			}
		}
	}
	// One that belongs to another log.
	other := logChunk(1, 0, body(40))
	if r, err := Read(bytes.NewReader(other), int64(len(other)), 8); err != nil || !r.Broken() {
		t.Errorf("%+v, %v", r, err)
	}
	// What the engine ends a log with.
	mark := make([]byte, recordHead+4)
	mark[6] = recordsPerSet + 1
	binary.LittleEndian.PutUint32(mark[recordHead:], 8)
	ended := append(logChunk(1, 0, body(40)), mark...)
	if r, err := Read(bytes.NewReader(ended), int64(len(ended)), 7); err != nil || r.Broken() || r.Tail != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
