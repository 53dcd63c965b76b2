package kit

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Harness opens, closes, reopens and crashes stores. Open is required. Without Close
// there is nothing to do at the end of a store; rules that need another nil field are
// skipped.
type Harness[S any] struct {
	Open          func() (S, error)
	Close         func(S) error
	Reopen, Crash func(S) (S, error)
	Patience      time.Duration // as in Check
}

// Stores is a [Check] with stores, which are closed at its end.
type Stores[S any] struct {
	*Check
	harness Harness[S]
	open    []S
}

// NewStores returns the stores of a run.
func NewStores[S any](c *Check, h Harness[S]) *Stores[S] {
	if h.Open == nil {
		c.Failf("Harness.Open is nil")
	}
	c.Patience = h.Patience
	s := &Stores[S]{Check: c, harness: h}
	c.Cleanup(func() (err error) {
		for _, open := range s.open {
			if e := s.end(open); e != nil && err == nil {
				err = fmt.Errorf("Close: %w", e)
			}
		}
		return err
	})
	return s
}

// Store returns a new store.
func (c *Stores[S]) Store() S {
	s, err := c.harness.Open()
	c.Must(err, "Open")
	if any(s) == nil {
		c.Failf("Open returned nil")
	}
	c.open = append(c.open, s)
	return s
}

// forget removes the store from those that are closed at the end.
func (c *Stores[S]) forget(s S) {
	c.open = slices.DeleteFunc(c.open, func(o S) bool {
		return reflect.ValueOf(o).Comparable() && reflect.ValueOf(s).Comparable() && any(o) == any(s)
	})
}

func (c *Stores[S]) end(s S) error {
	if c.harness.Close == nil {
		return nil
	}
	return c.harness.Close(s)
}

// Close closes a store.
func (c *Stores[S]) Close(s S) {
	c.forget(s)
	c.Must(c.end(s), "Close")
}

// CanReopen reports whether stores can be opened again.
func (c *Stores[S]) CanReopen() bool { return c.harness.Reopen != nil }

// Reopen returns a store with the contents of s.
func (c *Stores[S]) Reopen(s S) S {
	c.Need(c.CanReopen(), "Harness.Reopen is nil")
	c.Close(s)
	s, err := c.harness.Reopen(s)
	c.Must(err, "Reopen")
	c.open = append(c.open, s)
	return s
}

// CanCrash reports whether the use of stores can be ended without closing them.
func (c *Stores[S]) CanCrash() bool { return c.harness.Crash != nil }

// Crash returns a store with what is left of s without a Close.
func (c *Stores[S]) Crash(s S) S {
	c.Need(c.CanCrash(), "Harness.Crash is nil")
	c.forget(s)
	s, err := c.harness.Crash(s)
	c.Must(err, "Crash")
	c.open = append(c.open, s)
	return s
}

// Twice runs f on the store and, if the harness can reopen it, once more after that: bad
// writes often show only when they are read back. It returns the open store.
func (c *Stores[S]) Twice(s S, f func(S)) S {
	f(s)
	if !c.CanReopen() {
		return s
	}
	s = c.Reopen(s)
	prefix := c.Prefix
	c.Prefix += "after Reopen: "
	f(s)
	c.Prefix = prefix
	return s
}
