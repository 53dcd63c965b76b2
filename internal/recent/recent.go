// Package recent has a map of bounded size that keeps the entries in use. It holds no lock and
// promises nothing about an entry: what is looked up and not found is made again by the caller.
// Start with [Map].
package recent

// A Map has at least the last Max/2 entries that were put or looked up, and at most Max. It keeps
// two generations: entries in use move to the young one, and when that is full the old one is
// dropped. Max must be at least 2; otherwise the zero value is an empty map.
type Map[V any] struct {
	Max        int
	young, old map[string]V
}

// Get returns the value of a key, and whether there is one.
func (m *Map[V]) Get(key string) (V, bool) {
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	if ok {
		m.Put(key, v)
	}
	return v, ok
}

// Put adds an entry, or replaces its value.
func (m *Map[V]) Put(key string, v V) {
	delete(m.old, key)
	if _, ok := m.young[key]; !ok && len(m.young) >= m.Max/2 || m.young == nil {
		m.young, m.old = map[string]V{}, m.young
	}
	m.young[key] = v
}

// Delete removes an entry.
func (m *Map[V]) Delete(key string) {
	delete(m.young, key)
	delete(m.old, key)
}

// Len returns the number of entries.
func (m *Map[V]) Len() int { return len(m.young) + len(m.old) }
