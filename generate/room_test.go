package generate

import (
	"math"
	"testing"
)

// However many segments and URLs of a host there may be, room is what is left of
// them, and memory is for what there is.
func TestRoomOfAnyNumberOfSegments(t *testing.T) {
	for _, c := range []struct{ segments, limit, had, left int }{
		{2, 3, 4, 2},
		{2, math.MaxInt, 4, math.MaxInt - 4},
		{math.MaxInt, 2, 5, math.MaxInt - 5},
		{math.MaxInt, math.MaxInt, 1, math.MaxInt - 1},
	} {
		e, host := exactPlacer{segments: c.segments, limits: true}, &counted{}
		for range c.had {
			if e.place(host, c.limit) < 0 {
				t.Fatalf("%+v: no place", c)
			}
		}
		if left, room := e.left(host, c.limit), e.room(host, c.limit); left != c.left || !room {
			t.Errorf("%+v: left %d, room %v", c, left, room)
		}
		if len(host.placed) > c.had || len(e.counts) > c.had {
			t.Errorf("%+v: memory for %d and %d segments", c, len(host.placed), len(e.counts))
		}
	}
	full, host := exactPlacer{segments: 2, limits: true}, &counted{}
	for want := range 3 {
		if at := full.place(host, 1); at != want && want < 2 || want == 2 && at != -1 {
			t.Errorf("place %d is %d", want, at)
		}
	}
	if full.room(host, 1) || full.left(host, 1) != 0 {
		t.Error("there is room where there is none")
	}
	if none := new(counted); full.place(none, 0) != -1 || full.room(none, 0) {
		t.Error("a limit of zero has room")
	}
}
