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
	// robots are robots.txt files that have moved here: they come first, but for
	// every other turn.
	robots []item
	lately bool // that the last turn was one of robots
	// waits says that the items wait for a robots.txt that has moved elsewhere.
	waits bool
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

// first puts a robots.txt that has moved into the queue of a host.
func (q *queues) first(name string, it item) {
	h := q.hosts[name]
	if h == nil {
		h = &host{name: name, index: -1}
		q.hosts[name] = h
	}
	h.robots = append(h.robots, it)
	q.items++
	q.enqueue(h)
}

// enqueue puts a host in line if it has something to wait for.
func (q *queues) enqueue(h *host) {
	switch {
	case h.busy || h.index >= 0:
	case len(h.robots) > 0 || len(h.items) > 0 && !h.waits:
		heap.Push(&q.ready, h)
	case len(h.items) == 0 && q.hosts[h.name] == h:
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
	from := &h.items
	h.lately = len(h.robots) > 0 && (!h.lately || h.waits || len(h.items) == 0)
	if h.lately {
		from = &h.robots
	}
	it := (*from)[0]
	(*from)[0] = item{}
	*from = (*from)[1:]
	q.items--
	h.busy = true
	return h, it, time.Time{}
}

// back puts an item at the front again.
func (q *queues) back(h *host, it item) {
	to := &h.items
	if it.robots != nil {
		to = &h.robots
		h.lately = false
	}
	*to = append([]item{it}, *to...)
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
	items := append(h.items, h.robots...)
	h.items, h.robots = nil, nil
	q.items -= len(items)
	return items
}

// drain empties all queues and returns how many pages were in them.
func (q *queues) drain() (pages int) {
	for name, h := range q.hosts {
		pages += len(h.items)
		h.items, h.robots, h.index = nil, nil, -1
		if !h.busy {
			delete(q.hosts, name)
		}
	}
	q.ready, q.items = nil, 0
	return pages
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
