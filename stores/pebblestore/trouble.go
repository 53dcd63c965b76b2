package pebblestore

import "sync"

// trouble passes failures of the background work of the engine to the calls that wait for it.
type trouble struct {
	mu        sync.Mutex
	listeners map[chan error]struct{}
}

// listen returns a channel for the next failure.
func (t *trouble) listen() (failures <-chan error, ignore func()) {
	c := make(chan error, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listeners == nil {
		t.listeners = map[chan error]struct{}{}
	}
	t.listeners[c] = struct{}{}
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.listeners, c)
	}
}

func (t *trouble) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.listeners {
		select {
		case c <- err:
		default: // it has another failure already
		}
	}
}
