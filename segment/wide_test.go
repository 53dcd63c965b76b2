package segment

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Of a block of several pieces the length of the rest is guessed from the first, which
// may be packed very well: that must hold where an int has 32 bits, too.
func TestSizeOfLongBlockIsEstimated(t *testing.T) {
	var e encoder
	noise := make([]byte, maxPiece+4096)
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for more := 0; more <= 4096; more += 512 {
		e.buf = append(make([]byte, maxPiece), noise[:maxPiece/2+more]...)
		e.packS2()
		d := decoder{max: maxBlock}
		if err := d.unpackS2(e.out[2:]); err != nil || !bytes.Equal(d.buf, e.buf) {
			t.Fatalf("%d bytes: %d came back, %v", len(e.buf), len(d.buf), err)
		}
	}
}
