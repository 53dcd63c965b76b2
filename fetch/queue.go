package fetch

import (
	"container/heap"
	"slices"
	"strings"
	"time"
)

// pace is how quickly a host answers, as far as that is known.
type pace uint8

const (
	unknown pace = iota
	slow
	fair  // its robots.txt came quickly, of its pages nothing is known
	quick // so do its pages
	paces
)

// host is a queue: what waits for one host. It is owned by the loop; a worker
// that visits it reads its name and nothing else.
type host struct {
	name  string
	items deque
	// robots are robots.txt files that have moved here: they come first, but for
	// every other turn.
	robots deque
	lately bool // that the last turn was one of robots
	// waits says that the items wait for a robots.txt that has moved elsewhere.
	waits bool
	// waited is how often the host was waited for to show its robots.txt.
	waited int
	// refused counts the sitemaps in a row that there was no place for.
	refused int
	// at is the earliest time of the next visit, as far as is known here. Of hosts
	// with the same the first to come is the first to be visited.
	at    time.Time
	since uint64
	// delay is the pause that the fetch list asks for; zero for that of the
	// options, negative for none.
	delay time.Duration
	// busy counts the visits under way, of which there may be limit.
	busy, limit int
	pace        pace
	// unread counts the URLs of the list that are to be read again, because the
	// queue was long enough.
	unread int
	// over says why the host was given up for this round.
	over *verdict
	// index is the place in the heap of line, -1 outside.
	index int
	line  pace
}

// queues orders the hosts by when they may be visited next. A step costs
// O(log hosts).
type queues struct {
	hosts map[string]*host
	ready [paces]readyHeap
	// limit is how many visits to a host may be under way, unless it is known to
	// want fewer.
	limit int
	// came counts the queues that there were.
	came uint64
	// items counts what waits in all queues.
	items int
	// hungry says that a queue has run empty although the list has more for it.
	hungry bool
}

func newQueues(limit int) queues { return queues{hosts: map[string]*host{}, limit: max(limit, 1)} }

// of returns the queue of that name.
func (q *queues) of(name string) *host {
	h := q.hosts[name]
	if h == nil {
		q.came++
		name = strings.Clone(name) // which is part of a URL, and that of a block of the list
		h = &host{name: name, index: -1, limit: q.limit, since: q.came}
		q.hosts[name] = h
	}
	return h
}

func (q *queues) add(name string, it item) {
	h := q.of(name)
	if h.delay == 0 {
		h.delay = it.delay
	}
	h.items.push(it)
	h.refused = 0
	q.items++
	q.enqueue(h)
}

// first puts a robots.txt that has moved into the queue of a host.
func (q *queues) first(name string, it item) {
	h := q.of(name)
	h.robots.push(it)
	q.items++
	q.enqueue(h)
}

// enqueue puts a host in line if it has something to wait for.
func (q *queues) enqueue(h *host) {
	wanted := (h.robots.len() > 0 || h.items.len() > 0 && !h.waits) && h.busy < h.limit
	switch {
	case h.index >= 0 && wanted && h.line == h.pace:
		heap.Fix(&q.ready[h.line], h.index)
		return
	case h.index >= 0:
		heap.Remove(&q.ready[h.line], h.index)
	}
	switch {
	case wanted:
		h.line = h.pace
		heap.Push(&q.ready[h.line], h)
	case h.items.len() > 0 || h.robots.len() > 0 || h.busy > 0:
	case h.unread > 0:
		q.hungry = q.hungry || h.over == nil
	default:
		// What politeness needs to know of it is in the hostdb.
		if q.hosts[h.name] == h {
			delete(q.hosts, h.name)
		}
	}
}

// next returns a host that may be visited at now, of the paces that are wanted,
// with its first item; nil if there is none, and then the time at which there will
// be one, zero for never.
func (q *queues) next(now time.Time, wanted [paces]bool) (*host, item, time.Time) {
	var first *host
	for p := range q.ready {
		if r := q.ready[p]; wanted[p] && len(r) > 0 && (first == nil || r[0].before(first)) {
			first = r[0]
		}
	}
	if first == nil {
		return nil, item{}, time.Time{}
	}
	if first.at.After(now) {
		return nil, item{}, first.at
	}
	from := &first.items
	first.lately = first.robots.len() > 0 && (!first.lately || first.waits || first.items.len() == 0)
	if first.lately {
		from = &first.robots
	}
	it := from.pop()
	q.items--
	first.busy++
	q.enqueue(first)
	return first, it, time.Time{}
}

// back puts an item at the front again.
func (q *queues) back(h *host, it item) {
	if q.items++; it.robots != nil {
		h.robots.back(it)
		h.lately = false
		return
	}
	h.items.back(it)
}

// behind puts an item at the end of its queue, and returns how often all that is
// in it was put there.
func (q *queues) behind(h *host, it item) (rounds int) {
	h.items.push(it)
	q.items++
	h.refused++
	return (h.refused - 1) / h.items.len()
}

// done ends a visit to a host, which may be visited again at that time. From here on
// the wait is counted by the monotonic clock, which a time out of a store does not
// have: else all hosts would be left alone for as much as the clock is set back.
func (q *queues) done(h *host, at time.Time) {
	h.busy--
	now := time.Now()
	h.at = now.Add(at.Sub(now))
	q.enqueue(h)
}

// drop empties the queue of a host and returns what was in it.
func (q *queues) drop(h *host) []item {
	items := slices.AppendSeq(slices.Collect(h.items.all()), h.robots.all())
	h.items, h.robots = deque{}, deque{}
	q.items -= len(items)
	q.enqueue(h)
	return items
}

// move puts all that waits for a host behind what waits for another.
func (q *queues) move(h *host, name string) {
	if h.name == name {
		return
	}
	to := q.of(name)
	if to.delay == 0 {
		to.delay = h.delay
	}
	for it := range h.items.all() {
		to.items.push(it)
	}
	for it := range h.robots.all() {
		to.robots.push(it)
	}
	to.refused = 0
	to.unread += h.unread
	h.items, h.robots, h.unread = deque{}, deque{}, 0
	q.enqueue(h)
	q.enqueue(to)
}

// drain empties all queues and returns how many pages of the list were in them.
func (q *queues) drain() (pages int) {
	for _, h := range q.hosts {
		for it := range h.items.all() {
			if !it.unlisted {
				pages++
			}
		}
		h.items, h.robots, h.unread = deque{}, deque{}, 0
		q.enqueue(h)
	}
	q.items, q.hungry = 0, false
	return pages
}

func (h *host) before(o *host) bool {
	if c := h.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return h.since < o.since
}

type readyHeap []*host

func (r readyHeap) Len() int           { return len(r) }
func (r readyHeap) Less(i, j int) bool { return r[i].before(r[j]) }
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
