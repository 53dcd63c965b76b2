// Package groups divides a crawl among groups of slots, so that several rounds can be made at
// the same time, in one process or in many. It owns the division ([Table]), the leases by which
// one worker at a time writes to a group ([Coordinator]), the stores of a divided crawl
// ([Engine]) and the format in which groups exchange what they find ([Outbox], [Inbox]). It makes
// no rounds, and does not decide when a crawl is done: package recrawl does both.
//
// A slot is one of [Slots] parts of all URLs, and a URL never changes its slot ([Router]). A
// group is a run of slots with a crawl db, a link db and segments of its own: an ordinary
// crawl. Start with [Engine]; [Local] is one over any stores of one process, and groupstest has
// the kit for others.
package groups

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Slots is the number of slots of every divided crawl.
const Slots = 1024

var (
	// ErrTaken says that a call changed nothing, because the state is not, or no longer, the one
	// that the caller has seen: a group has an owner, a worker has renewed, a table has another
	// version.
	ErrTaken = errors.New("groups: changed by another worker")
	// ErrNoGroup says that there is no group with that number.
	ErrNoGroup = errors.New("groups: no such group")
)

// Outside stands for a group where a process that holds no lease posts rows for a group: see
// [Engine].Post. It is no group of a table.
const Outside = -1

// A Table is the division of a crawl. It is stored with the crawl.
type Table struct {
	// Version is 1 for the first table of a crawl, and one more for each that replaces it.
	Version int64
	// Routing gives each URL its slot. It is the same in all versions.
	Routing Routing
	// Groups are the groups by ascending number. Each slot belongs to one of them.
	Groups []Group
	// Moving is the change that is under way; nil if there is none.
	Moving *Move `json:",omitempty"`
}

// A Group is a run of slots.
type Group struct {
	// ID is the number of the group, from 0. A number is never used again.
	ID int
	// From is the first slot, To the one after the last. A group without slots passes on what
	// still arrives for it.
	From, To int
}

// Divide returns the first table of a crawl of n groups with equal shares of the slots; n is from
// 1 to [Slots].
func Divide(n int, r Routing) (Table, error) {
	if n < 1 || n > Slots {
		return Table{}, fmt.Errorf("groups: %d groups; want 1 to %d", n, Slots)
	}
	t := Table{Version: 1, Routing: r}
	for i := range n {
		t.Groups = append(t.Groups, Group{ID: i, From: i * Slots / n, To: (i + 1) * Slots / n})
	}
	return t, nil
}

// Check returns an error unless each slot belongs to one group.
func (t *Table) Check() error {
	var owned [Slots]bool
	last := -1
	for _, g := range t.Groups {
		if g.ID <= last || g.From < 0 || g.To > Slots || g.From > g.To {
			return fmt.Errorf("groups: bad table: group %d with the slots %d to %d", g.ID, g.From, g.To)
		}
		last = g.ID
		for s := g.From; s < g.To; s++ {
			if owned[s] {
				return fmt.Errorf("groups: bad table: slot %d belongs to two groups", s)
			}
			owned[s] = true
		}
	}
	if s := slices.Index(owned[:], false); s >= 0 {
		return fmt.Errorf("groups: bad table: slot %d belongs to no group", s)
	}
	return nil
}

// OfSlot returns the number of the group that has a slot.
func (t *Table) OfSlot(slot int) int {
	for _, g := range t.Groups {
		if g.From <= slot && slot < g.To {
			return g.ID
		}
	}
	return 0
}

// Group returns the group with a number, and whether there is one.
func (t *Table) Group(id int) (Group, bool) {
	for _, g := range t.Groups {
		if g.ID == id {
			return g, true
		}
	}
	return Group{}, false
}

// Encode returns the table as text, for engines to store.
func (t *Table) Encode() string {
	b, _ := json.Marshal(t) // its types can be encoded
	return string(b)
}

// DecodeTable reads what Encode returned, and checks it.
func DecodeTable(text string) (Table, error) {
	var t Table
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, fmt.Errorf("groups: the stored table is damaged: %w", err)
	}
	return t, t.Check()
}
