package pebblestore

import (
	"context"
	"sync"
)

// gate lets changes pass, many at once, until somebody closes it: then the changes inside
// end, and others wait. Unlike with a sync.RWMutex, a context or the end of the store
// ends a wait.
type gate struct {
	mu   sync.Mutex
	in   int
	shut chan struct{} // closed when the gate opens again; nil while it is open
	idle chan struct{} // closed when no call is inside; nil unless the gate is closed and one is
}

// enter waits until the gate is open. If it returns nil, leave must follow. A change that
// is inside must not enter again.
func (g *gate) enter(ctx context.Context, closing <-chan struct{}, closed error) error {
	for {
		g.mu.Lock()
		open := g.shut
		if open == nil {
			g.in++
			g.mu.Unlock()
			return nil
		}
		g.mu.Unlock()
		select {
		case <-open:
		case <-ctx.Done():
			return ctx.Err()
		case <-closing:
			return closed
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.in--; g.in == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// close closes the gate and waits until no call is inside. If the context ends first, the
// gate is open again. Only one caller at a time may close it.
func (g *gate) close(ctx context.Context) error {
	idle := make(chan struct{})
	g.mu.Lock()
	g.shut = make(chan struct{})
	if g.in == 0 {
		close(idle)
	} else {
		g.idle = idle
	}
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		g.open()
		return context.Cause(ctx)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut, g.idle = nil, nil
}
