package segmenttest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// forgetful loses the last byte of every block.
type forgetful struct{ segment.Store }

func (s forgetful) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	w, err := s.Store.Append(ctx, seg, part, keep)
	if err != nil {
		return nil, err
	}
	return cutter{w}, nil
}

type cutter struct{ segment.BlockWriter }

func (w cutter) Append(ctx context.Context, block []byte) error {
	return w.BlockWriter.Append(ctx, block[:max(len(block)-1, 0)])
}

// Check tells a program which rules an engine breaks.
func ExampleCheck() {
	err := segmenttest.Check(context.Background(), segmenttest.Harness{
		Open: func() (segment.Store, error) { return forgetful{new(memstore.Segments)}, nil },
	})
	first, _, _ := strings.Cut(err.Error(), "\n")
	fmt.Println(first)
	// Output:
	// rule "blocks are read as they were appended" is broken: Read seg/open: block 1 is "", want "\x00"
}
