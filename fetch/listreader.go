package fetch

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

const (
	// shortQueue is the maximum length of a host's queue once half of the room in
	// memory is taken.
	shortQueue = 16
	// blocksPerStep is how many blocks of the list are read in one step of the loop.
	blocksPerStep = 4
)

// listReader reads the fetch list, as far as there is room for it in memory.
//
// A list need not be well mixed. So that a host at its head does not keep the
// others waiting, the second half of the room is for hosts whose queues are
// short. Records that are passed over are read in a later pass over the list;
// one begins whenever a queue has run empty for which the list has more.
type listReader struct {
	// blocks reads the list from one of its blocks on.
	blocks func(block int) iter.Seq2[[]crawldb.Datum, error]
	next   func() ([]crawldb.Datum, error, bool)
	stop   func()

	block []crawldb.Datum // read but not queued yet
	// record is the number of the first record of block, nextBlock that of the next
	// block to read.
	record, nextBlock int
	done              bool // this pass is

	// rereading says that this is not the first pass. passed marks the records that
	// were passed over; left counts them.
	rereading bool
	passed    bits
	left      int
	// A pass begins with the block in which the one before first passed
	// something over, and that block's first record; -1 for none.
	firstBlock, firstRecord int
	// began is the number of the first record of the block read last.
	began int
	// ended is when the last pass was over, took how long reading it took.
	ended time.Time
	took  time.Duration
}

func newListReader(ctx context.Context, segments segment.Store, name string) *listReader {
	f := &listReader{stop: func() {}, blocks: func(block int) iter.Seq2[[]crawldb.Datum, error] {
		return segment.Blocks[crawldb.Datum](ctx, segments, name, block)
	}}
	f.pass(0, 0)
	return f
}

// pass begins a pass at a block, given the number of its first record.
func (f *listReader) pass(block, record int) {
	f.stop()
	f.next, f.stop = iter.Pull2(f.blocks(block))
	f.block, f.record, f.nextBlock, f.done = nil, record, block, false
	f.firstBlock, f.took = -1, 0
}

// read reads the next block; false at the end of the list.
func (f *listReader) read() (bool, error) {
	block, err, ok := f.next()
	if err != nil {
		return false, err
	}
	if !ok {
		f.done, f.ended = true, time.Now()
		return false, nil
	}
	f.block, f.began = block, f.record
	f.nextBlock++
	return true, nil
}

// passOver leaves a record to another pass.
func (f *listReader) passOver(record int) {
	if f.firstBlock < 0 {
		f.firstBlock, f.firstRecord = f.nextBlock-1, f.began
	}
	if !f.passed.has(record) {
		f.passed.set(record)
		f.left++
	}
}

// over reports whether all of the list was taken.
func (f *listReader) over() bool { return f.done && f.left == 0 }

// readList reads the list until enough is queued to keep the workers busy. Once a
// limit is hit it only counts what is left. It returns when to continue, zero
// if not before a visit is over.
func (l *loop) readList() (again time.Time, err error) {
	f := l.list
	depth := max(l.opts.Threads*50, 10_000)
	if l.opts.Limits.QueueDepth > 0 {
		depth = l.opts.Threads * min(l.opts.Limits.QueueDepth, math.MaxInt/l.opts.Threads)
	}
	now := time.Now()
	if f.done && f.left > 0 && (l.queues.starved || l.queues.items == 0) {
		// At most a tenth of the time is spent on reading again.
		if at := f.ended.Add(9 * f.took); l.queues.items > 0 && at.After(now) {
			return at, nil
		}
		f.rereading, l.queues.starved = true, false
		f.pass(f.firstBlock, f.firstRecord)
	}
	if f.done {
		return time.Time{}, nil
	}
	defer func() { f.took += time.Since(now) }()
	for blocks := 0; l.queues.items < depth; {
		if len(f.block) == 0 {
			if blocks == blocksPerStep {
				return now, nil
			}
			blocks++
			if ok, err := f.read(); !ok {
				return time.Time{}, err
			}
			continue
		}
		d, record := f.block[0], f.record
		f.block = f.block[1:]
		f.record++
		if f.rereading && !f.passed.has(record) {
			continue
		}
		turn, err := segment.TakePlacement(&d)
		if err != nil {
			return time.Time{}, err
		}
		it := item{Datum: d, list: turn.List, delay: turn.Delay}
		if f.rereading || l.firstRead(it) {
			l.queueListed(record, it, depth)
		}
	}
	return time.Time{}, nil
}

// firstRead counts an item that is read for the first time, and reports whether it is to be
// visited.
func (l *loop) firstRead(it item) bool {
	if l.lists != nil && !l.lists.requested[it.list] {
		return false
	}
	l.report.Listed++
	l.recordDelay(it.URL, it.delay)
	seen := l.visitedBefore.has(it.URL)
	if seen {
		l.report.Resumed++
	}
	if l.limits.left != nil {
		if !seen {
			*l.limits.left++
		}
		return false
	}
	return l.acceptListed(it, seen)
}

// queueListed puts an item into its queue, or leaves it to a later pass if the queue
// is too long.
func (l *loop) queueListed(record int, it item, depth int) {
	f, name := l.list, l.queueOf(it.URL)
	h := l.queues.hosts[name]
	if h != nil && h.givenUp == nil && l.queues.items >= depth/2 && h.items.len() >= min(shortQueue, max(depth/64, 1)) {
		if !f.passed.has(record) {
			h.unread++
		}
		f.passOver(record)
		return
	}
	if f.rereading {
		f.passed.clear(record)
		f.left--
		if h != nil && h.unread > 0 {
			h.unread--
		}
	}
	if h != nil && h.givenUp != nil {
		l.finish(l.skipped(it, h.givenUp, 0))
		l.queues.enqueue(h) // it may be forgotten now
		return
	}
	l.queues.add(name, it)
}

// abandon gives up what was passed over, and returns how many records that was.
func (f *listReader) abandon() int {
	n := f.left
	f.left, f.passed = 0, nil
	if f.rereading {
		f.block, f.done = nil, true
	}
	return n
}
