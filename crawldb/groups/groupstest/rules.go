package groupstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

func freeGroupIsAcquiredOnce(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 1)
	c.renew(w.other, "b")
	_, err := w.other.Acquire(c.Ctx, "b", 1)
	c.Is(err, groups.ErrTaken, "Acquire of a group with an owner")
	_, err = w.one.Acquire(c.Ctx, "a", 1)
	c.Is(err, groups.ErrTaken, "Acquire by the owner itself")
	for _, g := range c.state(w.other).Groups {
		want := groups.GroupState{Group: g.Group, Epoch: g.Epoch}
		if g.Group == 1 {
			want.Owner, want.Epoch = "a", l.Epoch
		}
		if g != want {
			c.Failf("State has %+v, want %+v", g, want)
		}
	}
}

func oneOfManyRivalsAcquires(c *check) {
	w := c.crawl()
	const rivals = 8
	var won atomic.Int32
	c.Together(rivals, func(i int) {
		e, owner := w.one, fmt.Sprint("worker", i)
		if i%2 == 1 {
			e = w.other
		}
		c.renew(e, owner)
		switch _, err := e.Acquire(c.Ctx, owner, 0); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, groups.ErrTaken):
			c.Failf("Acquire: %w", err)
		}
	})
	if n := won.Load(); n != 1 {
		c.Failf("%d of %d rivals acquired the group", n, rivals)
	}
}

func unknownWorkerAcquiresNothing(c *check) {
	w := c.crawl()
	_, err := w.one.Acquire(c.Ctx, "a", 0)
	c.Is(err, groups.ErrTaken, "Acquire before Renew")
	if g := c.state(w.one).Groups[0]; g.Owner != "" {
		c.Failf("the group has the owner %q", g.Owner)
	}
}

func noGroupBeyondTable(c *check) {
	w := c.crawl()
	c.renew(w.one, "a")
	_, err := w.one.Acquire(c.Ctx, "a", numGroups)
	c.Is(err, groups.ErrNoGroup, "Acquire of group %d of %d", numGroups, numGroups)
	c.Is(w.one.Post(c.Ctx, numGroups, "row"), groups.ErrNoGroup, "Post for group %d", numGroups)
}

func eachLeaseHasGreaterEpoch(c *check) {
	w := c.crawl()
	last := int64(0)
	for i := range 4 {
		owner := string(rune('a' + i))
		l := c.take(w.one, owner, 2)
		if l.Epoch <= last {
			c.Failf("a lease has the epoch %d after %d", l.Epoch, last)
		}
		if last = l.Epoch; i%2 == 0 {
			c.expel(w.other, owner)
		} else {
			c.Must(w.one.Release(c.Ctx, l), "Release")
		}
	}
}

func renewalReturnsHeldLeases(c *check) {
	w := c.crawl()
	if held := c.renew(w.one, "a"); len(held) != 0 {
		c.Failf("a new worker holds %v", held)
	}
	want := []groups.Lease{c.acquire(w.one, "a", 0), c.acquire(w.one, "a", 2)}
	c.take(w.other, "b", 1)
	if held := c.renew(w.one, "a"); !slices.Equal(held, want) {
		c.Failf("Renew returned %v, want %v", held, want)
	}
	got, _ := c.worker(w.other, "a")
	if want := (groups.WorkerState{Owner: "a", Counter: 2}); got != want {
		c.Failf("after two renewals State has %+v, want %+v", got, want)
	}
}

func renewalAfterRelease(c *check) {
	w := c.crawl()
	l, kept := c.take(w.one, "a", 0), c.acquire(w.one, "a", 1)
	c.Must(w.one.Release(c.Ctx, l), "Release")
	if held := c.renew(w.one, "a"); !slices.Equal(held, []groups.Lease{kept}) {
		c.Failf("Renew returned %v, want %v", held, kept)
	}
	c.take(w.other, "b", 0)
}

func renewedWorkerIsNotExpelled(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 0)
	seen, _ := c.worker(w.other, "a")
	c.renew(w.one, "a")
	c.Is(w.other.Expel(c.Ctx, seen), groups.ErrTaken, "Expel with the counter of before a renewal")
	if held := c.renew(w.one, "a"); !slices.Equal(held, []groups.Lease{l}) {
		c.Failf("Renew returned %v, want %v", held, l)
	}
	c.Must(c.open(w.one, l).Crawl.Update(c.Ctx, put(page, "m", "1")), "Update")
	c.Is(w.other.Expel(c.Ctx, groups.WorkerState{Owner: "nobody", Counter: 1}), groups.ErrTaken, "Expel of a worker that is not known")
}

func groupsOfExpelledWorkerAreFree(c *check) {
	w := c.crawl()
	c.take(w.one, "a", 0)
	c.acquire(w.one, "a", 2)
	kept := c.take(w.other, "b", 1)
	c.expel(w.other, "a")
	for _, g := range c.state(w.other).Groups {
		if want := map[int]string{1: "b"}[g.Group]; g.Owner != want {
			c.Failf("group %d has the owner %q, want %q", g.Group, g.Owner, want)
		}
	}
	if _, known := c.worker(w.one, "a"); known {
		c.Failf("State still has the worker")
	}
	c.acquire(w.other, "b", 0)
	c.acquire(w.other, "b", 2)
	c.Must(c.open(w.other, kept).Crawl.Update(c.Ctx, put(page, "m", "1")), "Update of a group of another worker")
}

func expelledWorkerHoldsNothing(c *check) {
	w := c.crawl()
	c.take(w.one, "a", 0)
	c.expel(w.other, "a")
	if held := c.renew(w.one, "a"); len(held) != 0 {
		c.Failf("Renew returned %v", held)
	}
	c.take(w.other, "b", 0)
	if held := c.renew(w.one, "a"); len(held) != 0 {
		c.Failf("Renew returned %v", held)
	}
}

func leaseIsReleasedOnce(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 0)
	c.Must(w.one.Release(c.Ctx, l), "Release")
	c.Is(w.one.Release(c.Ctx, l), crawldb.ErrFenced, "a second Release")
	next := c.take(w.other, "b", 0)
	c.Is(w.one.Release(c.Ctx, l), crawldb.ErrFenced, "Release of an old lease")
	if held := c.renew(w.other, "b"); !slices.Equal(held, []groups.Lease{next}) {
		c.Failf("after that the next owner holds %v, want %v", held, next)
	}
	again := c.take(w.one, "a", 1)
	c.Must(w.one.Release(c.Ctx, again), "Release")
	c.acquire(w.one, "a", 1)
	c.Is(w.one.Release(c.Ctx, again), crawldb.ErrFenced, "Release of an old lease of the same worker")
}

func renewalDoesNotWaitForUpdate(c *check) {
	w := c.crawl()
	s := c.open(w.one, c.take(w.one, "a", 0))
	b := put(page, "m", "1")
	next := b.Next
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		c.Within("Renew during an Update", func() { c.renew(w.other, "a") })
		c.Within("State during an Update", func() { c.state(w.other) })
		return next(i, old)
	}
	c.Must(s.Crawl.Update(c.Ctx, b), "Update")
}

func doneContextChangesNothing(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 0)
	before := c.state(w.one)
	done, cancel := context.WithCancel(c.Ctx)
	cancel()
	_, err := w.one.Renew(done, "a")
	c.Is(err, context.Canceled, "Renew")
	_, err = w.one.Acquire(done, "a", 1)
	c.Is(err, context.Canceled, "Acquire")
	c.Is(w.one.Release(done, l), context.Canceled, "Release")
	c.Is(w.one.Expel(done, before.Workers[0]), context.Canceled, "Expel")
	_, err = w.one.State(done)
	c.Is(err, context.Canceled, "State")
	next := c.table()
	next.Version = 2
	c.Is(w.one.SetTable(done, next), context.Canceled, "SetTable")
	c.Is(w.one.Post(done, 1, "row"), context.Canceled, "Post")
	if after := c.state(w.one); !slices.Equal(before.Groups, after.Groups) || !slices.Equal(before.Workers, after.Workers) {
		c.Failf("the state was %+v and is %+v", before, after)
	}
	if got := c.marks(w.one, groups.MarkName{Group: groups.Outside, Name: groups.OutboxMark(1)}); got[0] != "" {
		c.Failf("a row was posted: %q", got[0])
	}
}

func storesOfLeaseCanBeWritten(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 1)
	s := c.open(w.one, l)
	c.Must(s.Crawl.Update(c.Ctx, put(page, "m", "1")), "Update")
	c.Must(crawldb.UpdateAll(c.Ctx, s.Crawl, batches(put("http://www.example.com/2", "m2", "1"))), "UpdateAll")
	c.Must(s.Links.Merge(c.Ctx, entries(), 0), "Merge")
	c.Must(s.Hosts.Update(c.Ctx, "www.example.com", putHost), "Update of a host")
	c.Must(writePart(c.Ctx, s.Segments), "write a part")
	c.Must(s.Crawl.Close(), "Close")
	c.Must(s.Crawl.Update(c.Ctx, put("http://www.example.com/3", "m", "2")), "Update after Close, which does nothing")
	for _, url := range []string{page, "http://www.example.com/2", "http://www.example.com/3"} {
		_, err := s.Crawl.Get(c.Ctx, url)
		c.Must(err, "Get(%s)", url)
	}
}

func batches(all ...crawldb.Batch) func(func(crawldb.Batch, error) bool) {
	return func(yield func(crawldb.Batch, error) bool) {
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func entries() []linkdb.Entry {
	return []linkdb.Entry{{URL: page, Inlinks: []linkdb.Inlink{{From: "http://example.org/", Anchor: "a"}}}}
}

func putHost(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil }

const segmentName = "20240601000000-000"

func writePart(ctx context.Context, s segment.Store) error {
	w, err := s.Append(ctx, segmentName, segment.FetchPart, -1)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Append(ctx, []byte("block")); err != nil {
		return err
	}
	return w.Commit(ctx)
}

func fencedUpdateChangesNothing(c *check) {
	stale, next := c.takenOver(c.crawl())
	c.Is(stale.Crawl.Update(c.Ctx, put(page, "m", "1")), crawldb.ErrFenced, "Update with an old lease")
	c.Is(stale.Crawl.Update(c.Ctx, crawldb.Batch{Marks: crawldb.Mark("m", "1")}), crawldb.ErrFenced, "Update of a mark with an old lease")
	c.hasNot(next.Crawl, page, "m")
	c.Must(next.Crawl.Update(c.Ctx, put(page, "m", "2")), "Update by the next owner")
}

func fencedUpdateAllChangesNothing(c *check) {
	stale, next := c.takenOver(c.crawl())
	err := crawldb.UpdateAll(c.Ctx, stale.Crawl, batches(put(page, "m", "1"), put("http://www.example.com/2", "m", "2")))
	c.Is(err, crawldb.ErrFenced, "UpdateAll with an old lease")
	c.hasNot(next.Crawl, page, "m")
	c.hasNot(next.Crawl, "http://www.example.com/2", "m")
}

func fencedMergeChangesNothing(c *check) {
	stale, next := c.takenOver(c.crawl())
	c.Is(stale.Links.Merge(c.Ctx, entries(), 0), crawldb.ErrFenced, "Merge with an old lease")
	in, err := next.Links.Get(c.Ctx, page)
	c.Must(err, "Get")
	if len(in) > 0 {
		c.Failf("the page has the inlinks %v", in)
	}
}

func fencedHostUpdateChangesNothing(c *check) {
	stale, next := c.takenOver(c.crawl())
	c.Is(stale.Hosts.Update(c.Ctx, "www.example.com", putHost), crawldb.ErrFenced, "Update with an old lease")
	_, err := next.Hosts.Get(c.Ctx, "www.example.com")
	c.Is(err, hostdb.ErrNotFound, "Get of the host")
}

func fencedSegmentsChangeNothing(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 1)
	stale := c.open(w.one, l)
	c.Must(writePart(c.Ctx, stale.Segments), "write a part")
	open, err := stale.Segments.Append(c.Ctx, segmentName, segment.ContentPart, -1)
	c.Must(err, "Append")
	c.Must(open.Append(c.Ctx, []byte("first")), "Append of a block")
	c.expel(w.other, "a")
	next := c.open(w.other, c.take(w.other, "b", 1))
	c.Is(open.Append(c.Ctx, []byte("second")), crawldb.ErrFenced, "Append of a block with an old lease")
	c.Is(open.Commit(c.Ctx), crawldb.ErrFenced, "Commit with an old lease")
	c.Must(open.Close(), "Close of a writer with an old lease")
	_, err = stale.Segments.Append(c.Ctx, segmentName, segment.ParsePart, -1)
	c.Is(err, crawldb.ErrFenced, "Append with an old lease")
	c.Is(stale.Segments.Remove(c.Ctx, segmentName), crawldb.ErrFenced, "Remove with an old lease")
	info, err := next.Segments.Stat(c.Ctx, segmentName, segment.ContentPart)
	c.Must(err, "Stat")
	if info.Blocks > 1 || info.Committed {
		c.Failf("the part is %+v", info)
	}
	info, err = next.Segments.Stat(c.Ctx, segmentName, segment.FetchPart)
	c.Must(err, "Stat")
	if !info.Committed {
		c.Failf("the part that was committed before is %+v", info)
	}
	_, err = next.Segments.Stat(c.Ctx, segmentName, segment.ParsePart)
	c.Is(err, segment.ErrNotFound, "Stat of a part of the old lease")
}

func nextOwnerWritesPart(c *check) {
	w := c.crawl()
	stale := c.open(w.one, c.take(w.one, "a", 1))
	open, err := stale.Segments.Append(c.Ctx, segmentName, segment.FetchPart, -1)
	c.Must(err, "Append")
	c.Must(open.Append(c.Ctx, []byte("first")), "Append of a block")
	c.Must(open.Sync(c.Ctx), "Sync")
	c.expel(w.other, "a")
	next := c.open(w.other, c.take(w.other, "b", 1))
	c.Must(writePart(c.Ctx, next.Segments), "write the part that the last owner has left")
	c.Must(open.Close(), "Close of the old writer")
	n := 0
	for block, err := range next.Segments.Read(c.Ctx, segmentName, segment.FetchPart, 0) {
		c.Must(err, "Read")
		if want := []string{"first", "block"}[min(n, 1)]; string(block) != want || n > 1 {
			c.Failf("block %d is %q", n, block)
		}
		n++
	}
	if n != 2 {
		c.Failf("the part has %d blocks, want 2", n)
	}
}

func oldLeaseOfSameWorkerIsFenced(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 1)
	stale := c.open(w.one, l)
	c.Must(w.one.Release(c.Ctx, l), "Release")
	next := c.open(w.other, c.acquire(w.other, "a", 1))
	c.Is(stale.Crawl.Update(c.Ctx, put(page, "m", "1")), crawldb.ErrFenced, "Update with an old lease")
	c.hasNot(next.Crawl, page, "m")
}

func releasedLeaseIsFenced(c *check) {
	w := c.crawl()
	l := c.take(w.one, "a", 1)
	stale := c.open(w.one, l)
	c.Must(w.one.Release(c.Ctx, l), "Release")
	c.Is(stale.Crawl.Update(c.Ctx, put(page, "m", "1")), crawldb.ErrFenced, "Update with a released lease")
	if got := c.marks(w.other, groups.MarkName{Group: 1, Name: "m"}); got[0] != "" {
		c.Failf("the mark is %q", got[0])
	}
}

func updateMeetsTakeover(c *check) {
	w := c.crawl()
	s := c.open(w.one, c.take(w.one, "a", 1))
	seen, _ := c.worker(w.other, "a")
	began, expelled := make(chan struct{}), make(chan error, 1)
	var once atomic.Bool
	b := put(page, "m", "1")
	next := b.Next
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		if once.CompareAndSwap(false, true) {
			close(began)
		}
		return next(i, old)
	}
	go func() {
		<-began
		expelled <- w.other.Expel(c.Ctx, seen)
	}()
	err := s.Crawl.Update(c.Ctx, b)
	c.Within("Expel", func() { c.Must(<-expelled, "Expel") })
	after := c.open(w.other, c.take(w.other, "b", 1))
	if err == nil {
		_, err := after.Crawl.Get(c.Ctx, page)
		c.Must(err, "Get of what the old owner has written")
		return
	}
	c.Is(err, crawldb.ErrFenced, "Update while the lease ends")
	c.hasNot(after.Crawl, page, "m")
}

func contentsBelongToGroup(c *check) {
	w := c.crawl()
	s := c.open(w.one, c.take(w.one, "a", 0))
	t := c.open(w.other, c.take(w.other, "b", 1))
	c.Must(s.Crawl.Update(c.Ctx, put(page, "m", "0")), "Update")
	c.Must(s.Links.Merge(c.Ctx, entries(), 0), "Merge")
	c.Must(writePart(c.Ctx, s.Segments), "write a part")
	c.hasNot(t.Crawl, page, "m")
	in, err := t.Links.Get(c.Ctx, page)
	c.Must(err, "Get")
	if len(in) > 0 {
		c.Failf("the other group has the inlinks %v", in)
	}
	for name, err := range t.Segments.List(c.Ctx) {
		c.Must(err, "List")
		c.Failf("the other group has the segment %s", name)
	}
	for d, err := range t.Crawl.Scan(c.Ctx, crawldb.Range{}) {
		c.Must(err, "Scan")
		c.Failf("the other group has the record %s", d.URL)
	}
	c.Must(t.Crawl.Update(c.Ctx, put(page, "m", "1")), "Update")
	if got := c.marks(w.one, groups.MarkName{Group: 0, Name: "m"}, groups.MarkName{Group: 1, Name: "m"}); got[0] != "0" || got[1] != "1" {
		c.Failf("the marks of the groups are %q", got)
	}
}

func hostsBelongToAllGroups(c *check) {
	w := c.crawl()
	s := c.open(w.one, c.take(w.one, "a", 0))
	t := c.open(w.other, c.take(w.other, "b", 1))
	c.Must(s.Hosts.Update(c.Ctx, "www.example.com", putHost), "Update")
	_, err := t.Hosts.Get(c.Ctx, "www.example.com")
	c.Must(err, "Get by another group")
}

func marksReadsAllGroups(c *check) {
	w := c.crawl()
	for g := range numGroups - 1 {
		s := c.open(w.one, c.take(w.one, "a", g))
		c.Must(s.Crawl.Update(c.Ctx, crawldb.Batch{Marks: crawldb.Mark("m", fmt.Sprint("of ", g))}), "Update")
	}
	name := func(g int) groups.MarkName { return groups.MarkName{Group: g, Name: "m"} }
	got := c.marks(w.other, name(1), name(2), name(0), name(1), groups.MarkName{Group: 0, Name: "other"}, name(groups.Outside))
	if want := []string{"of 1", "", "of 0", "of 1", "", ""}; !slices.Equal(got, want) {
		c.Failf("Marks returned %q, want %q", got, want)
	}
	if got := c.marks(w.other); len(got) != 0 {
		c.Failf("Marks of nothing returned %q", got)
	}
}

// posted returns the rows that are there for a group.
func (c *check) posted(e groups.Engine, group int) (first int64, rows []string) {
	b, err := groups.ParseBounds(c.marks(e, groups.MarkName{Group: groups.Outside, Name: groups.OutboxMark(group)})[0])
	c.Must(err, "ParseBounds")
	for n := b.First; n < b.Next; n++ {
		rows = append(rows, c.marks(e, groups.MarkName{Group: groups.Outside, Name: groups.RowMark(group, n)})[0])
	}
	return b.First, rows
}

func postedRowsAreNumbered(c *check) {
	w := c.crawl()
	long := strings.Repeat("\x00\xffrow", 100_000)
	for _, row := range []string{"first", long, "third"} {
		c.Must(w.one.Post(c.Ctx, 2, row), "Post")
	}
	c.Must(w.other.Post(c.Ctx, 0, "for another group"), "Post")
	if first, rows := c.posted(w.other, 2); first != 1 || !slices.Equal(rows, []string{"first", long, "third"}) {
		c.Failf("there are %d rows from %d on", len(rows), first)
	}
	if _, rows := c.posted(w.one, 0); !slices.Equal(rows, []string{"for another group"}) {
		c.Failf("the other group has the rows %q", rows)
	}
	if _, rows := c.posted(w.one, 1); len(rows) > 0 {
		c.Failf("a group has rows that were not posted: %q", rows)
	}
}

func rowsThatManyPostAreThere(c *check) {
	w := c.crawl()
	const workers, each = 6, 10
	c.Together(workers, func(i int) {
		e := w.one
		if i%2 == 1 {
			e = w.other
		}
		for n := range each {
			c.Must(e.Post(c.Ctx, 1, fmt.Sprint(i, " ", n)), "Post")
		}
	})
	_, rows := c.posted(w.one, 1)
	last := map[int]int{}
	for _, row := range rows {
		var i, n int
		if _, err := fmt.Sscan(row, &i, &n); err != nil || n != last[i] {
			c.Failf("the rows are %q", rows)
		}
		last[i]++
	}
	if len(rows) != workers*each {
		c.Failf("%d rows are there of %d", len(rows), workers*each)
	}
}

func unfoldedRowsAreKept(c *check) {
	w := c.crawl()
	for n := range 4 {
		c.Must(w.one.Post(c.Ctx, 1, fmt.Sprint("row ", n+1)), "Post")
	}
	s := c.open(w.one, c.take(w.one, "a", 1))
	c.Must(s.Crawl.Update(c.Ctx, crawldb.Batch{Marks: crawldb.Mark(groups.InboxMark(groups.Outside), "3")}), "Update")
	c.Must(w.other.Post(c.Ctx, 1, "row 5"), "Post")
	first, rows := c.posted(w.other, 1)
	if first > 3 || !slices.Equal(rows[min(int(3-first), len(rows)):], []string{"row 3", "row 4", "row 5"}) {
		c.Failf("from row %d on there is %q", first, rows)
	}
}

// split returns a table in which group 0 has given half of its slots to a new group.
func (c *check) split() groups.Table {
	t := c.table()
	t.Version = 2
	from := t.Groups[0]
	t.Groups[0].To = from.To / 2
	t.Groups = append(t.Groups, groups.Group{ID: numGroups, From: from.To / 2, To: from.To})
	return t
}

func tableIsLastSet(c *check) {
	w := c.crawl()
	got, err := w.other.Table(c.Ctx)
	c.Must(err, "Table")
	want := c.table()
	if got.Encode() != want.Encode() {
		c.Failf("the table is %s, want %s", got.Encode(), want.Encode())
	}
	old := c.take(w.one, "a", 0)
	want = c.split()
	c.Must(w.one.SetTable(c.Ctx, want), "SetTable")
	got, err = w.other.Table(c.Ctx)
	c.Must(err, "Table")
	if got.Encode() != want.Encode() {
		c.Failf("the table is %s, want %s", got.Encode(), want.Encode())
	}
	c.Must(c.open(w.one, old).Crawl.Update(c.Ctx, put(page, "m", "1")), "Update with the lease of before")
	s := c.open(w.other, c.take(w.other, "b", numGroups))
	c.hasNot(s.Crawl, page, "m")
	c.Must(w.one.Post(c.Ctx, numGroups, "row"), "Post for a new group")
}

func tableOfOtherVersionIsRefused(c *check) {
	w := c.crawl()
	for _, version := range []int64{0, 1, 3} {
		t := c.split()
		t.Version = version
		c.Is(w.one.SetTable(c.Ctx, t), groups.ErrTaken, "SetTable of version %d after 1", version)
	}
	c.Must(w.one.SetTable(c.Ctx, c.split()), "SetTable")
	c.Is(w.other.SetTable(c.Ctx, c.split()), groups.ErrTaken, "SetTable of version 2 after 2")
}

func badTableIsRefused(c *check) {
	w := c.crawl()
	t := c.split()
	t.Groups[1].To--
	if err := w.one.SetTable(c.Ctx, t); err == nil {
		c.Failf("SetTable accepts a table with a slot that belongs to no group")
	}
	got, err := w.one.Table(c.Ctx)
	c.Must(err, "Table")
	if got.Version != 1 {
		c.Failf("the table has the version %d", got.Version)
	}
}

func closeMayBeRepeated(c *check) {
	e, err := c.h.Open(c.table())
	c.Must(err, "Open")
	c.Must(e.Close(), "Close")
	c.Must(e.Close(), "a second Close")
	if _, err := e.State(c.Ctx); err == nil {
		c.Failf("State works after Close")
	}
}
