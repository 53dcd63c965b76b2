package pebblestore

import "strings"

const (
	// maxHostCache limits the memory, in bytes, of each of two generations of
	// hosts.
	maxHostCache = 2 << 20
	// maxCachedSide is the longest side value that is kept: that fits most
	// robots.txt files, and not the few that are as long as all others
	// together.
	maxCachedSide = 4 << 10
	// hostEntry is about what an entry takes besides its bytes.
	hostEntry = 160
)

// hostCache has the values of the hosts that took turns recently, as in the engine,
// so that a turn need not read them there. Whoever has the turn owns it. Entries
// that are used move to the younger generation, and when that is full the older one
// is dropped.
type hostCache struct {
	young, old map[string]hostValues
	size       int // of young
}

// hostValues are the two values of a host; side, which is never modified, is
// nil if unknown.
type hostValues struct{ value, side []byte }

func (v *hostValues) size(name string) int {
	return hostEntry + len(name) + cap(v.value) + cap(v.side)
}

// get returns the values of a host; none if they are unknown.
func (c *hostCache) get(name string) (v hostValues, ok bool) {
	if v, ok = c.young[name]; ok {
		return v, true
	}
	if v, ok = c.old[name]; ok {
		c.put(name, v)
	}
	return v, ok
}

// put keeps the values of a host: a copy of value, and side itself.
func (c *hostCache) put(name string, v hostValues) {
	if len(v.side) > maxCachedSide {
		v.side = nil
	}
	was, ok := c.young[name]
	if ok {
		c.size -= was.size(name)
	} else {
		delete(c.old, name)
		if c.young == nil || c.size > maxHostCache {
			c.young, c.old, c.size = map[string]hostValues{}, c.young, 0
		}
		name = strings.Clone(name) // it may be part of a large string
	}
	v.value = append(was.value[:0], v.value...)
	c.young[name] = v
	c.size += v.size(name)
}

func (c *hostCache) forget(name string) {
	if v, ok := c.young[name]; ok {
		c.size -= v.size(name)
		delete(c.young, name)
	}
	delete(c.old, name)
}
