package fetch

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// pace is how quickly a host answers, as far as is known.
type pace uint8

const (
	unknown pace = iota
	slow
	fair  // its robots.txt came quickly; nothing is known of its pages
	quick // so do its pages
	paces
)

// host is the queue of a host. It belongs to the loop; a worker that visits it
// reads only its name.
type host struct {
	name  string
	items deque
	// robots are robots.txt files that have moved here: they come first, in
	// every other visit.
	robots     deque
	robotsLast bool // the last visit was one of robots
	// awaitsRobots says that the items wait for a robots.txt that has moved elsewhere.
	awaitsRobots bool
	// robotsWaits is how often the fetch waited for the host's robots.txt.
	robotsWaits int
	// sitemapRefusals counts the sitemaps in a row for which there was no memory.
	sitemapRefusals int
	// nextVisit is the earliest time of the next visit, as far as is known here; before the
	// first visit, the time from which there was something to visit. Of hosts with
	// equal times the first to come is the first to be visited.
	nextVisit time.Time
	created   uint64
	// workLeft is about how long visiting everything that waits will take, counting only
	// pauses, in seconds: that may exceed a time.Duration.
	workLeft float64
	// delay is the pause that the fetch list requests; zero for that of the
	// options, negative for none.
	delay time.Duration
	// running counts the visits under way; limit is how many are allowed.
	running, limit int
	pace           pace
	// unread counts the URLs of the list that have to be read again, because
	// the queue was long enough.
	unread int
	// givenUp says why the host was given up for this round.
	givenUp *verdict
	// in is the one that contains the host, nil if none, ready says which
	// part of it, and index the host's places in the heaps.
	in    *paceHosts
	ready bool
	index [heaps]int
}

// queues orders the hosts by when they may be visited next. A step costs O(log hosts).
//
// Of those that may be visited now, every other visit goes to the one that was ready
// first, and those between to the one with the most left to do: otherwise a list of
// many small hosts would be over before a large one, for which the end has to wait,
// had its second visit. This at most doubles the wait of a host.
type queues struct {
	hosts map[string]*host
	lines [paces]paceHosts
	// now is the time of the last step, workNext says that the next visit is for the host
	// with the most left to do.
	now      time.Time
	workNext bool
	// limit is how many visits to a host may be under way, unless it is known
	// to allow fewer, and pause the time between them, unless the list requests
	// another.
	limit int
	pause time.Duration
	// created counts the queues created so far.
	created uint64
	// items counts what waits in all queues.
	items int
	// starved says that a queue has run empty although the list has more for it.
	starved bool
}

func newQueues(limit int, pause time.Duration, now time.Time) *queues {
	q := &queues{hosts: map[string]*host{}, limit: max(limit, 1), pause: pause, now: now}
	for p := range q.lines {
		q.lines[p].byWork.order = byWorkLeft
	}
	return q
}

// queueOf returns the queue with that name.
func (q *queues) queueOf(name string) *host {
	h := q.hosts[name]
	if h == nil {
		q.created++
		name = strings.Clone(name) // part of a URL, which is part of a block of the list
		h = &host{name: name, limit: q.limit, created: q.created, nextVisit: q.now}
		q.hosts[name] = h
	}
	return h
}

func (q *queues) add(name string, it item) {
	h := q.queueOf(name)
	if h.delay == 0 {
		h.delay = it.delay
	}
	h.items.push(it)
	h.sitemapRefusals = 0
	q.items++
	q.enqueue(h)
}

// addRobots puts a robots.txt that has moved into the queue of a host.
func (q *queues) addRobots(name string, it item) {
	h := q.queueOf(name)
	h.robots.push(it)
	q.items++
	q.enqueue(h)
}

// enqueue puts a host in line if it has items.
func (q *queues) enqueue(h *host) {
	wanted := (h.robots.len() > 0 || h.items.len() > 0 && !h.awaitsRobots) && h.running < h.limit
	ready := !h.nextVisit.After(q.now)
	if pause := max(cmp.Or(h.delay, q.pause), 0); ready {
		h.workLeft = pause.Seconds() * float64(h.items.len()+h.robots.len()+h.unread)
	}
	if wanted && h.in == &q.lines[h.pace] && h.ready == ready {
		h.in.fix(h)
		return
	}
	if h.in != nil {
		h.in.leave(h)
	}
	switch {
	case wanted:
		q.lines[h.pace].join(h, ready)
	case h.items.len() > 0 || h.robots.len() > 0 || h.running > 0:
	case h.unread > 0:
		q.starved = q.starved || h.givenUp == nil
	default:
		// What politeness needs to know about it is in the hostdb.
		if q.hosts[h.name] == h {
			delete(q.hosts, h.name)
		}
	}
}

// next returns a host that may be visited at now and has one of the wanted
// paces, with its first item; nil if there is none, and then the time at which
// there will be one, zero for never.
func (q *queues) next(now time.Time, wanted [paces]bool) (*host, item, time.Time) {
	q.now = now
	order := byTime
	if q.workNext {
		order = byWorkLeft
	}
	var first *host
	var at time.Time
	for p := range q.lines {
		l := &q.lines[p]
		for len(l.waiting.hosts) > 0 && !l.waiting.hosts[0].nextVisit.After(now) {
			q.enqueue(l.waiting.hosts[0])
		}
		if !wanted[p] {
			continue
		}
		if len(l.waiting.hosts) > 0 {
			sooner(&at, l.waiting.hosts[0].nextVisit)
		}
		if len(l.ready.hosts) > 0 {
			h := l.ready.hosts[0]
			if q.workNext {
				h = l.byWork.hosts[0]
			}
			if first == nil || order.less(h, first) {
				first = h
			}
		}
	}
	if first == nil {
		return nil, item{}, at
	}
	q.workNext = !q.workNext
	from := &first.items
	first.robotsLast = first.robots.len() > 0 && (!first.robotsLast || first.awaitsRobots || first.items.len() == 0)
	if first.robotsLast {
		from = &first.robots
	}
	it := from.pop()
	q.items--
	first.running++
	q.enqueue(first)
	return first, it, time.Time{}
}

// putFront returns an item to the front of its queue.
func (q *queues) putFront(h *host, it item) {
	if q.items++; it.robots != nil {
		h.robots.pushFront(it)
		h.robotsLast = false
		return
	}
	h.items.pushFront(it)
}

// putBack puts an item at the end of its queue, and returns how often everything
// in the queue has been put there.
func (q *queues) putBack(h *host, it item) (rounds int) {
	h.items.push(it)
	q.items++
	h.sitemapRefusals++
	return (h.sitemapRefusals - 1) / h.items.len()
}

// visitEnded ends a visit to a host, which may be visited again at that time. From here on
// the wait is measured by the monotonic clock, which a time from a store does not
// have: otherwise setting the clock back would prolong every wait.
func (q *queues) visitEnded(h *host, at time.Time) {
	h.running--
	now := time.Now()
	h.nextVisit = now.Add(at.Sub(now))
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

// move appends everything that waits for a host to the queue of another.
func (q *queues) move(h *host, name string) {
	if h.name == name {
		return
	}
	to := q.queueOf(name)
	if to.delay == 0 {
		to.delay = h.delay
	}
	for it := range h.items.all() {
		to.items.push(it)
	}
	for it := range h.robots.all() {
		to.robots.push(it)
	}
	to.sitemapRefusals = 0
	to.unread += h.unread
	h.items, h.robots, h.unread = deque{}, deque{}, 0
	q.enqueue(h)
	q.enqueue(to)
}

// drain empties all queues and returns how many pages of the list they
// contained.
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
	q.items, q.starved = 0, false
	return pages
}

// paceHosts holds the hosts of one pace that wait for a visit: in waiting until
// they may be visited, and then in ready and in byWork.
type paceHosts struct{ waiting, ready, byWork hostHeap }

func (l *paceHosts) join(h *host, ready bool) {
	h.in, h.ready = l, ready
	if !ready {
		heap.Push(&l.waiting, h)
		return
	}
	heap.Push(&l.ready, h)
	heap.Push(&l.byWork, h)
}

// fix restores the order after a host has changed.
func (l *paceHosts) fix(h *host) {
	if !h.ready {
		heap.Fix(&l.waiting, h.index[byTime])
		return
	}
	heap.Fix(&l.ready, h.index[byTime])
	heap.Fix(&l.byWork, h.index[byWorkLeft])
}

func (l *paceHosts) leave(h *host) {
	h.in = nil
	if !h.ready {
		heap.Remove(&l.waiting, h.index[byTime])
		return
	}
	heap.Remove(&l.ready, h.index[byTime])
	heap.Remove(&l.byWork, h.index[byWorkLeft])
}

// hostOrder is what a heap of hosts is ordered by.
type hostOrder uint8

const (
	byTime     hostOrder = iota // by when they may be visited
	byWorkLeft                  // most left to do first
	heaps                       // the number of heaps a host may be in
)

func (o hostOrder) less(a, b *host) bool {
	if o == byWorkLeft && a.workLeft != b.workLeft {
		return a.workLeft > b.workLeft
	}
	if c := a.nextVisit.Compare(b.nextVisit); c != 0 {
		return c < 0
	}
	return a.created < b.created
}

type hostHeap struct {
	hosts []*host
	order hostOrder
}

func (r *hostHeap) Len() int           { return len(r.hosts) }
func (r *hostHeap) Less(i, j int) bool { return r.order.less(r.hosts[i], r.hosts[j]) }
func (r *hostHeap) Swap(i, j int) {
	r.hosts[i], r.hosts[j] = r.hosts[j], r.hosts[i]
	r.hosts[i].index[r.order], r.hosts[j].index[r.order] = i, j
}
func (r *hostHeap) Push(x any) {
	h := x.(*host)
	h.index[r.order] = len(r.hosts)
	r.hosts = append(r.hosts, h)
}
func (r *hostHeap) Pop() any {
	last := len(r.hosts) - 1
	h := r.hosts[last]
	r.hosts[last] = nil
	r.hosts = r.hosts[:last]
	return h
}
