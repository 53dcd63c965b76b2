package robots

import (
	"container/list"
	"time"
)

// An lru keeps entries by origin, those used last. The zero value is empty.
type lru struct {
	byOrigin map[string]*list.Element
	order    list.List // of entry, the last used in front
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

// put keeps an entry, and of the others the last used, in all at most n of at
// most size bytes. An entry that is too large for that is not kept.
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
