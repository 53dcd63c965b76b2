package robots

import (
	"container/list"
	"time"
)

// An lru keeps the most recently used entries, by origin. The zero value is
// empty.
type lru struct {
	byOrigin map[string]*list.Element
	order    list.List // of entry, most recently used first
	size     int
}

type entry struct {
	origin           string
	rules            *Rules
	fetched, expires time.Time
	size             int
}

func (l *lru) get(origin string) (entry, bool) {
	e, ok := l.byOrigin[origin]
	if !ok {
		return entry{}, false
	}
	l.order.MoveToFront(e)
	return e.Value.(entry), true
}

// put adds an entry and keeps, of the others, the most recently used, at most n
// entries and size bytes in all. An entry too large for that is not kept.
func (l *lru) put(e entry, n, size int) {
	if old, ok := l.byOrigin[e.origin]; ok {
		l.remove(old)
	}
	if l.byOrigin == nil {
		l.byOrigin = make(map[string]*list.Element)
	}
	l.byOrigin[e.origin] = l.order.PushFront(e)
	l.size += e.size
	for len(l.byOrigin) > n || l.size > size {
		l.remove(l.order.Back())
	}
}

func (l *lru) remove(e *list.Element) {
	old := l.order.Remove(e).(entry)
	delete(l.byOrigin, old.origin)
	l.size -= old.size
}
