package fetch

import (
	"iter"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// deque is a list of items that grows and shrinks at both ends.
type deque struct {
	items []waitingItem
	head  int // those before it are empty
}

// waitingItem is an item in a queue. A page of the list to which nothing has happened
// yet, as is true of most, is kept as encoded in a segment: that is a quarter of its
// size, and retains nothing else of the list.
type waitingItem struct {
	record string // empty if there is an item
	list   int
	delay  time.Duration
	item   *item
}

func encodeItem(it item) waitingItem {
	if !it.unlisted && it.rules == nil && it.hop == nil && it.robots == nil {
		if b, err := segment.AppendRecord(nil, &it.Datum); err == nil {
			return waitingItem{record: string(b), list: it.list, delay: it.delay}
		}
	}
	return waitingItem{item: &it}
}

func (w *waitingItem) get() item {
	if w.item != nil {
		return *w.item
	}
	d, _ := segment.DecodeRecord[crawldb.Datum]([]byte(w.record)) // it was encoded here
	return item{Datum: d, list: w.list, delay: w.delay}
}

func (d *deque) len() int { return len(d.items) - d.head }

func (d *deque) all() iter.Seq[item] {
	return func(yield func(item) bool) {
		for i := range d.items[d.head:] {
			if !yield(d.items[d.head+i].get()) {
				return
			}
		}
	}
}

func (d *deque) push(it item) {
	if d.head > 16 && d.head > len(d.items)/2 && len(d.items) == cap(d.items) {
		n := copy(d.items, d.items[d.head:])
		clear(d.items[n:])
		d.items, d.head = d.items[:n], 0
	}
	d.items = append(d.items, encodeItem(it))
}

func (d *deque) pop() item {
	it := d.items[d.head].get()
	d.items[d.head] = waitingItem{}
	if d.head++; d.head == len(d.items) {
		*d = deque{}
	}
	return it
}

// pushFront usually undoes a pop, and reuses its place.
func (d *deque) pushFront(it item) {
	if d.head == 0 {
		room := len(d.items)/8 + 1
		d.items = append(make([]waitingItem, room, room+len(d.items)+1), d.items...)
		d.head = room
	}
	d.head--
	d.items[d.head] = encodeItem(it)
}
