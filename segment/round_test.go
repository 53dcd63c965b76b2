package segment_test

import (
	"testing"

	"github.com/recrawl/recrawl/segment"
)

func TestRound(t *testing.T) {
	for _, r := range []segment.Round{{}, {Delivered: 1}, {Delivered: 4711}, {Done: true}, {Number: 3}, {Delivered: 2, Number: 17}, {Done: true, Number: 1}} {
		if got, err := segment.ParseRound(r.String()); err != nil || got != r {
			t.Errorf("%+v is read as %+v, %v", r, got, err)
		}
	}
	for _, mark := range []string{"pages", "pages ", "pages -1", "pages +1", "pages 01", "pages 1 ", "pages x", "Done", "nearly", "done #", "done #0", "done #-1", "done #01", "pages 1 #x", " #1"} {
		if got, err := segment.ParseRound(mark); err == nil {
			t.Errorf("%q is read as %+v", mark, got)
		}
	}
}
