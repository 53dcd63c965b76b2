package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/prefixed"
)

// A group that finds something about URLs of another group sends it there in rows. They are marks of
// the source, written in the same step as the other results of the same update:
//
//	outbox/T      in the source: the numbers of the first row for group T that is kept and of the next one
//	outbox/T/N    in the source: the row for group T with that number, from 1
//	inbox/S       in the target: the number of the next row from group S, written in the step that folds the rows before it
//
// So each row is written once and folded once, whichever process dies. The source removes rows
// that the target has folded.

// OutboxMark is the name of the mark with the bounds of the rows for a group.
func OutboxMark(target int) string { return "outbox/" + strconv.Itoa(target) }

// RowMark is the name of the mark of one row.
func RowMark(target int, number int64) string {
	return OutboxMark(target) + "/" + strconv.FormatInt(number, 10)
}

// InboxMark is the name of the mark that counts the rows folded from a source.
func InboxMark(source int) string { return "inbox/" + strconv.Itoa(source) }

// Bounds are the numbers of the first row that is kept and of the next one to be written.
type Bounds struct{ First, Next int64 }

// String returns the mark.
func (b Bounds) String() string { return fmt.Sprintf("%d %d", b.First, b.Next) }

// ParseBounds reads an outbox mark; an empty one is that of no rows.
func ParseBounds(mark string) (Bounds, error) {
	b := Bounds{1, 1}
	if mark == "" {
		return b, nil
	}
	if n, err := fmt.Sscanf(mark, "%d %d", &b.First, &b.Next); err != nil || n != 2 || b.String() != mark || b.First < 1 || b.Next < b.First {
		return Bounds{1, 1}, fmt.Errorf("groups: bad bounds of an outbox: %q", mark)
	}
	return b, nil
}

// ParseInbox reads an inbox mark; an empty one says that row 1 is the next.
func ParseInbox(mark string) (next int64, err error) {
	if mark == "" {
		return 1, nil
	}
	if next, err = strconv.ParseInt(mark, 10, 64); err != nil || next < 1 {
		return 1, fmt.Errorf("groups: bad count of an inbox: %q", mark)
	}
	return next, nil
}

// CutFolded moves the first number up to next, as far as there are rows: those before it are folded by
// the target. It returns the names of their marks, which are to be removed.
func (b *Bounds) CutFolded(target int, next int64) (rows []string) {
	for ; b.First < min(next, b.Next); b.First++ {
		rows = append(rows, RowMark(target, b.First))
	}
	return rows
}

// exchangeMarks are the names of the marks about the rows of a source for a target.
func exchangeMarks(source, target int) []MarkName {
	return []MarkName{{source, OutboxMark(target)}, {target, InboxMark(source)}}
}

// parseExchange reads the values of exchangeMarks: the rows that are kept, and the next one to be folded.
func parseExchange(marks []string) (b Bounds, next int64, err error) {
	if b, err = ParseBounds(marks[0]); err == nil {
		next, err = ParseInbox(marks[1])
	}
	return b, next, err
}

// An Item is one thing that a row says of a URL. The first byte of its value is its kind; the
// rest belongs to the package that knows that kind.
type Item struct {
	URL   string
	Value string
}

// AppendItem appends an item to a row.
func AppendItem(row []byte, url string, value []byte) []byte {
	return prefixed.Append(prefixed.Append(row, url), value)
}

var errRow = errors.New("groups: a row is damaged")

// Items yields the items of a row. An error ends the sequence.
func Items(row string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for len(row) > 0 {
			var it Item
			var ok bool
			if it.URL, row, ok = prefixed.Cut(row); ok {
				it.Value, row, ok = prefixed.Cut(row)
			}
			if !ok || it.Value == "" {
				yield(Item{}, errRow)
				return
			}
			if !yield(it, nil) {
				return
			}
		}
	}
}

// maxRow is about how many bytes a row has at most.
const maxRow = 256 << 10

// An Outbox collects what a group has for others, and makes rows of it. The owner of a group uses
// one at a time; it is not for concurrent use.
type Outbox struct {
	member *Member
	crawl  crawldb.Store
	open   map[int][]byte   // the row being filled, by target
	full   map[int][]string // rows that are full
	bounds map[int]Bounds   // after the rows of earlier calls of Cut
	size   int
}

// NewOutbox returns an empty outbox of a group, whose crawl db is crawl.
func NewOutbox(m *Member, crawl crawldb.Store) *Outbox {
	return &Outbox{member: m, crawl: crawl, open: map[int][]byte{}, full: map[int][]string{}, bounds: map[int]Bounds{}}
}

// Add adds an item for the group that the URL belongs to.
func (o *Outbox) Add(url string, value []byte) { o.AddFor(o.member.Of(url), url, value) }

// AddFor adds an item for a group, whatever the URL belongs to.
func (o *Outbox) AddFor(to int, url string, value []byte) {
	row := o.open[to]
	n := len(row)
	row = AppendItem(row, url, value)
	o.size += len(row) - n
	if len(row) >= maxRow {
		o.full[to] = append(o.full[to], string(row))
		row = row[:0]
	}
	o.open[to] = row
}

// Size returns about how many bytes the next Cut has.
func (o *Outbox) Size() int { return o.size }

// Cut returns the marks of the rows collected since the last Cut; nil if there are none. They must
// be written in one step, and before those of the next Cut. If that fails, the outbox is of no
// more use.
func (o *Outbox) Cut(ctx context.Context) (map[string]string, error) {
	if o.size == 0 {
		return nil, nil
	}
	marks := map[string]string{}
	for to, row := range o.open {
		rows := o.full[to]
		if len(row) > 0 {
			rows = append(rows, string(row))
		}
		if len(rows) == 0 {
			continue
		}
		b, ok := o.bounds[to]
		if !ok {
			mark, err := o.crawl.Mark(ctx, OutboxMark(to))
			if err == nil {
				b, err = ParseBounds(mark)
			}
			if err != nil {
				return nil, err
			}
		}
		for _, r := range rows {
			marks[RowMark(to, b.Next)] = r
			b.Next++
		}
		marks[OutboxMark(to)] = b.String()
		o.bounds[to] = b
		o.open[to], o.full[to] = row[:0], nil
	}
	o.size = 0
	return marks, nil
}

// A Row is a row on its way to a group.
type Row struct {
	Source int
	Number int64
	Text   string
}

// An Inbox has the rows that wait for one group, as a poll has found them.
type Inbox struct {
	// Group is the target.
	Group   int
	sources []waiting
}

// waiting are the rows of one source, from next up to end.
type waiting struct {
	source    int
	next, end int64
}

// Poll returns the inbox of each of the targets, with one call of Marks. Sources are all groups of
// the table, and Outside.
func Poll(ctx context.Context, e Engine, t *Table, targets []int) ([]Inbox, error) {
	sources := []int{Outside}
	for _, g := range t.Groups {
		sources = append(sources, g.ID)
	}
	var names []MarkName
	for _, to := range targets {
		for _, from := range sources {
			names = append(names, exchangeMarks(from, to)...)
		}
	}
	marks, err := e.Marks(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("groups: poll: %w", err)
	}
	var all []Inbox
	for _, to := range targets {
		in := Inbox{Group: to}
		for _, from := range sources {
			b, next, err := parseExchange(marks)
			if err != nil {
				return nil, err
			}
			marks = marks[2:]
			if next < b.Next {
				in.sources = append(in.sources, waiting{from, next, b.Next})
			}
		}
		all = append(all, in)
	}
	return all, nil
}

// Empty reports whether nothing waits.
func (in *Inbox) Empty() bool { return len(in.sources) == 0 }

// Take reads the next rows, up to about maxBytes, source by source, and removes them from the
// inbox. They are for one step, which also writes the marks that Take returns.
func (in *Inbox) Take(ctx context.Context, e Engine, maxBytes int) (rows []Row, marks map[string]string, err error) {
	marks = map[string]string{}
	size := 0
	for size < maxBytes && len(in.sources) > 0 {
		w := &in.sources[0]
		n := min(w.end-w.next, int64(max((maxBytes-size)/maxRow, 1)))
		var names []MarkName
		for i := range n {
			names = append(names, MarkName{w.source, RowMark(in.Group, w.next+i)})
		}
		texts, err := e.Marks(ctx, names)
		if err != nil {
			return nil, nil, fmt.Errorf("groups: read the outbox of group %d: %w", w.source, err)
		}
		for i, text := range texts {
			if text == "" {
				// If it was folded since the poll, another worker has the group.
				now, err := e.Marks(ctx, []MarkName{{in.Group, InboxMark(w.source)}})
				if err != nil {
					return nil, nil, fmt.Errorf("groups: read the inbox of group %d: %w", in.Group, err)
				}
				if next, err := ParseInbox(now[0]); err == nil && next > w.next {
					return nil, nil, fmt.Errorf("groups: rows of group %d for group %d were folded by another worker: %w", w.source, in.Group, crawldb.ErrFenced)
				}
				return nil, nil, fmt.Errorf("groups: row %d of group %d for group %d is missing", w.next+int64(i), w.source, in.Group)
			}
			rows = append(rows, Row{w.source, w.next + int64(i), text})
			size += len(text)
		}
		w.next += n
		marks[InboxMark(w.source)] = strconv.FormatInt(w.next, 10)
		if w.next == w.end {
			in.sources = slices.Delete(in.sources, 0, 1)
		}
	}
	return rows, marks, nil
}

// Folded returns the marks that remove, from the outboxes of a group, the rows that their targets
// have folded. Its owner writes them, while it writes to no outbox.
func Folded(ctx context.Context, e Engine, t *Table, source int) (map[string]string, error) {
	var names []MarkName
	for _, g := range t.Groups {
		names = append(names, exchangeMarks(source, g.ID)...)
	}
	found, err := e.Marks(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("groups: folded rows: %w", err)
	}
	marks := map[string]string{}
	for i, g := range t.Groups {
		b, next, err := parseExchange(found[2*i:])
		if err != nil {
			return nil, err
		}
		rows := b.CutFolded(g.ID, next)
		if len(rows) == 0 {
			continue
		}
		for _, row := range rows {
			marks[row] = ""
		}
		marks[OutboxMark(g.ID)] = b.String()
	}
	return marks, nil
}
