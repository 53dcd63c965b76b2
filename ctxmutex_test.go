package recrawl

import (
	"context"
	"errors"
	"testing"
)

func TestTurn(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	turn := newTurn()
	for range 64 { // or chance would decide
		if err := turn.take(ended); err != nil {
			t.Fatalf("a free turn: %v", err)
		}
		if err := turn.take(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("a turn of another: %v", err)
		}
		turn.give()
	}
}
