package groups

import (
	"context"
	"fmt"
	"strconv"
)

// A Move is a change of the table that is under way: the slots from First up to, not including, End
// go from one group to another. Until it is complete the slots belong to From; both groups make no
// rounds meanwhile, and From folds nothing.
type Move struct{ From, To, First, End int }

// MovedMark is the name of the mark that says how far a move, of the table with that version, is: in
// the source that all is in its outbox, in the target that all of it is folded.
func MovedMark(version int64) string { return "moved/" + strconv.FormatInt(version, 10) }

// Split begins to move the second half of the slots of a group to a new group, and returns its
// number. The workers do the rest. If another move is under way, the error is ErrTaken.
func Split(ctx context.Context, e Engine, group int) (int, error) {
	t, err := settled(ctx, e)
	if err != nil {
		return 0, err
	}
	g, ok := t.Group(group)
	if !ok {
		return 0, fmt.Errorf("%w: %d", ErrNoGroup, group)
	}
	if g.To-g.From < 2 {
		return 0, fmt.Errorf("groups: split: group %d has %d slots", group, g.To-g.From)
	}
	to := t.Groups[len(t.Groups)-1].ID + 1
	t.Groups = append(t.Groups, Group{ID: to})
	return to, begin(ctx, e, t, Move{group, to, (g.From + g.To) / 2, g.To})
}

// Merge begins to move all slots of a group to another one, whose slots are next to them or which
// has none. The group stays, without slots. If another move is under way, the error is ErrTaken.
func Merge(ctx context.Context, e Engine, from, to int) error {
	t, err := settled(ctx, e)
	if err != nil {
		return err
	}
	a, known := t.Group(from)
	b, also := t.Group(to)
	if !known || !also {
		return fmt.Errorf("%w: %d or %d", ErrNoGroup, from, to)
	}
	if from == to || a.From == a.To || b.From != b.To && a.To != b.From && b.To != a.From {
		return fmt.Errorf("groups: merge: the slots of groups %d and %d are not neighbours", from, to)
	}
	return begin(ctx, e, t, Move{from, to, a.From, a.To})
}

// settled returns the table if no move is under way.
func settled(ctx context.Context, e Engine) (Table, error) {
	t, err := e.Table(ctx)
	if err == nil && t.Moving != nil {
		err = fmt.Errorf("groups: slots of group %d are being moved: %w", t.Moving.From, ErrTaken)
	}
	return t, err
}

func begin(ctx context.Context, e Engine, t Table, m Move) error {
	t.Moving = &m
	t.Version++
	return e.SetTable(ctx, t)
}

// Moved returns the table that follows one with a move.
func (t *Table) Moved() Table {
	next := *t
	m := *t.Moving
	next.Moving = nil
	next.Version++
	next.Groups = append([]Group(nil), t.Groups...)
	for i := range next.Groups {
		switch g := &next.Groups[i]; {
		case g.ID == m.From && m.First == g.From:
			g.From = m.End
		case g.ID == m.From:
			g.To = m.First
		case g.ID == m.To && g.From == g.To:
			g.From, g.To = m.First, m.End
		case g.ID == m.To:
			g.From, g.To = min(g.From, m.First), max(g.To, m.End)
		}
	}
	return next
}

// Has reports whether a URL is moved.
func (m *Move) Has(url string, r *Router) bool {
	s := r.Slot(url)
	return m.First <= s && s < m.End
}
