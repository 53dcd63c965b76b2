package groupstest

import (
	"errors"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
)

// crawl is an engine with three groups, and the same crawl as another process sees it.
type crawl struct{ one, other groups.Engine }

const numGroups = 3

func (c *check) table() groups.Table {
	t, err := groups.Divide(numGroups, groups.Routing{Suffixes: "co.uk\n", Hot: []string{"hot.com"}})
	c.Must(err, "Divide")
	return t
}

func (c *check) crawl() crawl {
	e, err := c.h.Open(c.table())
	c.Must(err, "Open")
	c.Cleanup(e.Close)
	if c.h.Again == nil {
		return crawl{e, e}
	}
	other, err := c.h.Again(e)
	c.Must(err, "Again")
	c.Cleanup(other.Close)
	return crawl{e, other}
}

func (c *check) renew(e groups.Engine, owner string) []groups.Lease {
	held, err := e.Renew(c.Ctx, owner)
	c.Must(err, "Renew(%q)", owner)
	return held
}

func (c *check) acquire(e groups.Engine, owner string, group int) groups.Lease {
	l, err := e.Acquire(c.Ctx, owner, group)
	c.Must(err, "Acquire(%q, %d)", owner, group)
	if l.Group != group || l.Owner != owner {
		c.Failf("Acquire(%q, %d) returned %+v", owner, group, l)
	}
	return l
}

// take renews and acquires.
func (c *check) take(e groups.Engine, owner string, group int) groups.Lease {
	c.renew(e, owner)
	return c.acquire(e, owner, group)
}

func (c *check) open(e groups.Engine, l groups.Lease) groups.Stores {
	s, err := e.Open(c.Ctx, l)
	c.Must(err, "Open(%+v)", l)
	return s
}

func (c *check) state(e groups.Engine) groups.State {
	s, err := e.State(c.Ctx)
	c.Must(err, "State")
	if len(s.Groups) != numGroups {
		c.Failf("State has %d groups, want %d", len(s.Groups), numGroups)
	}
	for i, g := range s.Groups {
		if g.Group != i {
			c.Failf("group %d of State is %d", i, g.Group)
		}
	}
	return s
}

// worker returns what State says of a worker.
func (c *check) worker(e groups.Engine, owner string) (groups.WorkerState, bool) {
	for _, w := range c.state(e).Workers {
		if w.Owner == owner {
			return w, true
		}
	}
	return groups.WorkerState{}, false
}

// expel expels a worker as another one would.
func (c *check) expel(e groups.Engine, owner string) {
	w, ok := c.worker(e, owner)
	if !ok {
		c.Failf("State does not have the worker %q", owner)
	}
	c.Must(e.Expel(c.Ctx, w), "Expel(%+v)", w)
}

func (c *check) marks(e groups.Engine, names ...groups.MarkName) []string {
	values, err := e.Marks(c.Ctx, names)
	c.Must(err, "Marks")
	if len(values) != len(names) {
		c.Failf("Marks returned %d values for %d names", len(values), len(names))
	}
	return values
}

const page = "http://www.example.com/"

// put returns a batch that adds a record and a mark.
func put(url, mark, value string) crawldb.Batch {
	return crawldb.Batch{
		URLs: []string{url},
		Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{URL: url, Status: crawldb.Fetched}, nil
		},
		Marks: crawldb.Mark(mark, value),
	}
}

func (c *check) hasNot(s crawldb.Store, url, mark string) {
	if _, err := s.Get(c.Ctx, url); !errors.Is(err, crawldb.ErrNotFound) {
		c.Failf("there is a record of %s (error %v)", url, err)
	}
	value, err := s.Mark(c.Ctx, mark)
	c.Must(err, "Mark(%q)", mark)
	if value != "" {
		c.Failf("mark %q is %q", mark, value)
	}
}

// takenOver returns the stores of a worker that has lost a group, and those of its next owner.
func (c *check) takenOver(w crawl) (stale, next groups.Stores) {
	stale = c.open(w.one, c.take(w.one, "a", 1))
	c.expel(w.other, "a")
	return stale, c.open(w.other, c.take(w.other, "b", 1))
}
