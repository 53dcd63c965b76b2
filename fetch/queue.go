package fetch

import (
	"container/heap"
	"time"
)

// host is a queue: what waits for one host. It is owned by the loop, but for
// the time a worker visits it, when the loop does not touch it.
type host struct {
	name  string
	items []item
	// at is the earliest time of the next visit, as far as is known here.
	at time.Time
	// delay is the pause that the fetch list asks for; zero for that of the
	// options, negative for none.
	delay time.Duration
	// index is the place in the heap, -1 outside.
	index int
	busy  bool
}

// queues orders the hosts by when they may be visited next. A step costs
// O(log hosts).
type queues struct {
	hosts map[string]*host
	ready readyHeap
	// items counts what waits in all queues.
	items int
}

func (q *queues) add(name string, it item) {
	h := q.hosts[name]
	if h == nil {
		h = &host{name: name, index: -1}
		q.hosts[name] = h
	}
	if h.delay == 0 {
		h.delay = it.delay
	}
	h.items = append(h.items, it)
	q.items++
	q.enqueue(h)
}

// enqueue puts a host in line if it has something to wait for.
func (q *queues) enqueue(h *host) {
	switch {
	case h.busy || h.index >= 0:
	case len(h.items) > 0:
		heap.Push(&q.ready, h)
	default:
		// What politeness needs to know of it is in the hostdb.
		delete(q.hosts, h.name)
	}
}

// next returns a host that may be visited at now, with its first item; nil if
// there is none, and then the time at which there will be one, zero for never.
func (q *queues) next(now time.Time) (*host, item, time.Time) {
	if len(q.ready) == 0 {
		return nil, item{}, time.Time{}
	}
	if h := q.ready[0]; h.at.After(now) {
		return nil, item{}, h.at
	}
	h := heap.Pop(&q.ready).(*host)
	it := h.items[0]
	h.items[0] = item{}
	h.items = h.items[1:]
	q.items--
	h.busy = true
	return h, it, time.Time{}
}

// back puts an item at the front again.
func (q *queues) back(h *host, it item) {
	h.items = append([]item{it}, h.items...)
	q.items++
}

// done ends the visit to a host, which may be visited again at that time.
func (q *queues) done(h *host, at time.Time) {
	h.busy = false
	h.at = at
	q.enqueue(h)
}

// drop empties the queue of a host and returns what was in it.
func (q *queues) drop(h *host) []item {
	items := h.items
	h.items = nil
	q.items -= len(items)
	return items
}

// drain empties all queues and returns how many items were in them.
func (q *queues) drain() int {
	for _, h := range q.ready {
		h.index = -1
		delete(q.hosts, h.name)
	}
	q.ready = nil
	for _, h := range q.hosts { // those that are visited now
		h.items = nil
	}
	n := q.items
	q.items = 0
	return n
}

type readyHeap []*host

func (r readyHeap) Len() int           { return len(r) }
func (r readyHeap) Less(i, j int) bool { return r[i].at.Before(r[j].at) }
func (r readyHeap) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].index, r[j].index = i, j
}
func (r *readyHeap) Push(x any) {
	h := x.(*host)
	h.index = len(*r)
	*r = append(*r, h)
}
func (r *readyHeap) Pop() any {
	old := *r
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*r = old[:len(old)-1]
	h.index = -1
	return h
}
