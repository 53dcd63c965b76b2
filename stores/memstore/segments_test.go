package memstore_test

import (
	"errors"
	"testing"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestSegments(t *testing.T) {
	segmenttest.Run(t, segmenttest.Harness{
		Open:  func() (segment.Store, error) { return new(memstore.Segments), nil },
		Close: func(s segment.Store) error { return s.(*memstore.Segments).Close() },
	})
}

func TestClosedSegments(t *testing.T) {
	var s memstore.Segments
	w, err := s.Append(t.Context(), "20240601000000-000", segment.FetchPart, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(t.Context(), nil); !errors.Is(err, segment.ErrClosed) {
		t.Errorf("append to a closed store: %v", err)
	}
	if _, err := s.Stat(t.Context(), "20240601000000-000", segment.FetchPart); !errors.Is(err, segment.ErrClosed) {
		t.Errorf("stat of a closed store: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
