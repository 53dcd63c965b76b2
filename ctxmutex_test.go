package recrawl

import (
	"context"
	"errors"
	"testing"
)

func TestCtxMutexStopsWaitingWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m := newCtxMutex()
	for range 64 { // or chance would decide
		if err := m.lock(ended); err != nil {
			t.Fatalf("a free m: %v", err)
		}
		if err := m.lock(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("locked a locked mutex: %v", err)
		}
		m.unlock()
	}
}
