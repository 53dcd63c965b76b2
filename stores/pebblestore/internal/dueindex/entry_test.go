package dueindex

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

func TestLevels(t *testing.T) {
	inf := float32(math.Inf(1))
	last := -1
	// Downwards over all magnitudes; a level is an eighth of an octave, exactly.
	for i := 127 * 8; i > -126*8; i-- {
		p := float32(math.Exp2(float64(i) / 8))
		below := math.Nextafter32(p, 0)
		if a, b := levelOf(p), levelOf(below); int(b) != int(a)+1 {
			t.Fatalf("2^(%d/8): level %d, and %d just below", i, a, b)
		}
		if n := int(levelOf(p)); n <= last {
			t.Fatalf("2^(%d/8) has level %d after %d", i, n, last)
		} else {
			last = n
		}
	}
	order := []float32{inf, math.MaxFloat32, 1, math.SmallestNonzeroFloat32 * (1 << 21), 0, -math.SmallestNonzeroFloat32 * (1 << 21), -1, -math.MaxFloat32, -inf, float32(math.NaN())}
	for i := 1; i < len(order); i++ {
		if levelOf(order[i-1]) >= levelOf(order[i]) {
			t.Errorf("%v has level %d, %v has %d", order[i-1], levelOf(order[i-1]), order[i], levelOf(order[i]))
		}
	}
	if levelOf(0) != levelOf(float32(math.Copysign(0, -1))) || levelOf(order[len(order)-1]) != lastLevel {
		t.Error("zeros or NaN")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		a, b := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		if a < b && levelOf(a) < levelOf(b) {
			t.Fatalf("%v has level %d, %v has %d", a, levelOf(a), b, levelOf(b))
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte{})
	f.Add(entry{dueFrom: always, priority: 1}.appendHead(nil))
	f.Add(entry{dueFrom: 1717243200000, priority: -2}.appendHead(nil))
	f.Add(entry{dueFrom: 1717243200000}.appendTime(nil))
	page := crawldb.Datum{FetchTime: time.UnixMilli(1717243200000), Priority: 2, Signature: make([]byte, 16), ETag: `"an entity tag that is long"`}
	f.Add(entryOf(&page).appendReady(nil, &page, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again entry
		if e.decode(b) != nil {
			return
		}
		if err := again.decode(append(e.appendHead(nil), e.rest...)); err != nil || again.dueFrom != e.dueFrom || math.Float32bits(again.priority) != math.Float32bits(e.priority) || !bytes.Equal(again.rest, e.rest) {
			t.Errorf("%+v, %+v, %v", e, again, err)
		}
	})
}

// An entry is in the wheel unless its key there comes before the mark, wherever that is.
func TestEntryIsInWheelUnlessBeforeMark(t *testing.T) {
	key := crawldb.AppendKey(nil, "http://www.example.org/b")
	e := entry{dueFrom: 7 * hourMillis, priority: 1}
	inWheel := append([]byte{byte(codec.WheelTable), 0, 0, 0, 7}, key...)
	for _, mark := range []string{"", "\x00", "\x00\x00\x00\x07", "\x00\x00\x00\x08", "\x00\x00\x00\x06" + string(key), "\x00\x00\x00\x08" + string(key),
		"\x00\x00\x00\x07" + string(key), "\x00\x00\x00\x07" + string(key[:5]), "\x00\x00\x00\x07" + string(key) + "x", "\x00\x00\x01", "\x00\x00\x00"} {
		want := inWheel
		if string(inWheel[1:]) < mark {
			want = e.appendReadyKey(nil, key)
		}
		if got := e.appendKey(nil, []byte(mark), key); !bytes.Equal(got, want) {
			t.Errorf("mark %q: %q, want %q", mark, got, want)
		}
	}
}
