package segment

import "testing"

func TestBuffersAreUsedAgainUnlessTheyAreLarge(t *testing.T) {
	var b Buffers
	take := func() *encoder {
		e, err := b.take()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := take()
	b.give(first)
	if take() != first {
		t.Error("what was given back is not used again")
	}
	large := take()
	large.buf = make([]byte, freeBytes+1)
	b.give(large)
	if take() == large {
		t.Error("large buffers are kept")
	}
	for range freeEncoders + 1 {
		e, err := newEncoder()
		if err != nil {
			t.Fatal(err)
		}
		b.give(e)
	}
	if len(b.free) != freeEncoders {
		t.Errorf("%d are kept, not %d", len(b.free), freeEncoders)
	}
}
