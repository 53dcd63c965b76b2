package pebblestore

import (
	"context"
	"sync"
)

// gate lets changes pass, many at once, until somebody shuts it: then those that have
// begun come to their end, and others wait. Unlike a sync.RWMutex a wait at it ends with
// a context or with the store.
type gate struct {
	mu   sync.Mutex
	in   int
	shut chan struct{} // closed when the gate is opened again; nil while it is open
	idle chan struct{} // closed when nobody is in; nil unless it is shut and somebody is
}

// enter waits until the gate is open. If it returns nil, leave must follow; who is in
// must not enter again.
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

// close shuts the gate and waits until nobody is in. After an error, which is that of
// the context, it is open again. One at a time may close it.
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
