// Package move copies a whole crawl into the stores of another engine, such as from a directory into
// a database and back: records, marks, hosts, inlinks and segments, to the bit. It does not
// divide a crawl or merge two. Start with [Run].
package move

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// Mark is the name of the mark of the target while a move into it is not complete. A crawl
// with this mark must not be used.
const Mark = "move"

var (
	// ErrNotEmpty says that the target has a crawl, or part of the copy of another one.
	ErrNotEmpty = errors.New("move: the target is not empty")
	// ErrDiffers says that the verification has found a difference: the source has
	// changed during the move, or between two attempts. Begin again with an empty target.
	ErrDiffers = errors.New("move: the copy differs")
)

// Stores are the stores of a crawl. The crawl dbs must be able to list their marks: see
// [crawldb.MarkStore].
type Stores struct {
	Crawl    crawldb.Store
	Hosts    hostdb.Store
	Links    linkdb.Store
	Segments segment.Store // nil in both leaves the segments where they are
}

// Options say what is moved. The zero value of each but Source is useful.
type Options struct {
	// Source names the source. A move is resumed only by one with the same name.
	Source string
	// Change returns the value that a mark of the source is to have in the target; nil
	// leaves all as they are.
	Change func(name, value string) string
	// Progress, if not nil, is called now and then with what was copied and compared so far.
	Progress func(Report)
}

// Report counts what was copied by this run, and compared.
type Report struct {
	Records, Marks, Hosts, Targets, Segments, Blocks int64
	// Compared counts the records, marks, hosts, pages with inlinks and blocks that were read
	// again from both sides and are equal.
	Compared int64
	// Resumed says that an earlier run had copied a part.
	Resumed bool
}

// progress is the value of Mark.
type progress struct {
	Source string `json:"source"`
	// Step is records, rest or verify; After is the last record that was copied.
	Step  string `json:"step"`
	After string `json:"after,omitempty"`
}

const (
	stepRecords = "records"
	stepRest    = "rest"
	stepVerify  = "verify"
)

// Run copies a crawl into an empty target and then compares both. Neither may be changed
// meanwhile. If it is interrupted, run it again: it goes on where it was. The source is not changed.
func Run(ctx context.Context, from, to Stores, o Options) (Report, error) {
	m := mover{from: from, to: to, o: o}
	err := m.run(ctx)
	if err != nil && !errors.Is(err, ErrNotEmpty) && !errors.Is(err, ErrDiffers) {
		err = fmt.Errorf("move: %w", err)
	}
	return m.report, err
}

type mover struct {
	from, to Stores
	o        Options
	report   Report
	at       progress
}

func (m *mover) run(ctx context.Context) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	if m.at.Step == stepRecords {
		if err := m.records(ctx); err != nil {
			return err
		}
		if err := m.reach(ctx, stepRest); err != nil {
			return err
		}
	}
	if m.at.Step == stepRest {
		for _, copy := range []func(context.Context) error{m.hosts, m.links, m.segments, m.marks} {
			if err := copy(ctx); err != nil {
				return err
			}
		}
		if err := m.reach(ctx, stepVerify); err != nil {
			return err
		}
	}
	for _, compare := range []func(context.Context) error{m.sameRecords, m.sameMarks, m.sameHosts, m.sameLinks, m.sameSegments} {
		if err := compare(ctx); err != nil {
			return err
		}
	}
	if err := m.to.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(Mark, "")}); err != nil {
		return err
	}
	return m.to.Crawl.Sync(ctx)
}

func (m *mover) tell() {
	if m.o.Progress != nil {
		m.o.Progress(m.report)
	}
}

// begin reads how far an earlier run came, or makes sure that the target is empty.
func (m *mover) begin(ctx context.Context) error {
	if value, err := m.from.Crawl.Mark(ctx, Mark); err != nil || value != "" {
		return errors.Join(err, notIf(value != "", "the source is itself the target of a move that is not complete"))
	}
	value, err := m.to.Crawl.Mark(ctx, Mark)
	if err != nil {
		return err
	}
	if value != "" {
		if err := json.Unmarshal([]byte(value), &m.at); err != nil {
			return fmt.Errorf("mark %s: %w", Mark, err)
		}
		if m.at.Source != m.o.Source {
			return fmt.Errorf("%w: it has a part of %s", ErrNotEmpty, m.at.Source)
		}
		m.report.Resumed = true
		return nil
	}
	if err := m.empty(ctx); err != nil {
		return err
	}
	m.at.Source = m.o.Source
	return m.reach(ctx, stepRecords)
}

func notIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// empty returns an error that is ErrNotEmpty if the target has something.
func (m *mover) empty(ctx context.Context) error {
	err := cmp.Or(
		none("records", m.to.Crawl.Scan(ctx, crawldb.Range{})),
		none("marks", crawldb.Marks(ctx, m.to.Crawl)),
		none("hosts", m.to.Hosts.Scan(ctx)),
	)
	if err == nil && m.to.Segments != nil {
		err = none("segments", m.to.Segments.List(ctx))
	}
	return err
}

// none returns an error that is ErrNotEmpty unless a sequence has no element.
func none[T any](what string, all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err == nil {
			err = fmt.Errorf("%w: it has %s", ErrNotEmpty, what)
		}
		return err
	}
	return nil
}

// mark returns the mark of a progress.
func (p progress) mark() string {
	b, _ := json.Marshal(p) // of strings
	return string(b)
}

func (m *mover) reach(ctx context.Context, step string) error {
	m.at.Step, m.at.After = step, ""
	if err := m.to.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(Mark, m.at.mark())}); err != nil {
		return err
	}
	return m.to.Crawl.Sync(ctx)
}

// chunk is the number of records in a batch, and of entries in a merge of links.
const chunk = 5000

// records copies the records in batches; each has the progress as its mark.
func (m *mover) records(ctx context.Context) error {
	return crawldb.UpdateAll(ctx, m.to.Crawl, func(yield func(crawldb.Batch, error) bool) {
		r := crawldb.Range{}
		if m.at.After != "" {
			r.From = crawldb.Key(m.at.After)
		}
		var data []crawldb.Datum
		flush := func() bool {
			if len(data) == 0 {
				return true
			}
			full := data
			data = nil
			urls := make([]string, len(full))
			for i := range full {
				urls[i] = full[i].URL
			}
			at := m.at
			at.After = urls[len(urls)-1]
			m.report.Records += int64(len(full))
			m.tell()
			return yield(crawldb.Batch{URLs: urls, Marks: crawldb.Mark(Mark, at.mark()), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &full[i], nil }}, nil)
		}
		for d, err := range m.from.Crawl.Scan(ctx, r) {
			if err != nil {
				yield(crawldb.Batch{}, err)
				return
			}
			if d.URL == m.at.After && m.at.After != "" {
				continue
			}
			if data = append(data, d); len(data) == chunk && !flush() {
				return
			}
		}
		flush()
	})
}

// valueOf returns the value that a mark of the source has in the target.
func (m *mover) valueOf(k crawldb.NamedMark) string {
	if m.o.Change == nil {
		return k.Value
	}
	return m.o.Change(k.Name, k.Value)
}

// marks copies the marks. Some are large, so a batch has few.
func (m *mover) marks(ctx context.Context) error {
	const most = 1 << 20
	marks, size := map[string]string{}, 0
	flush := func() error {
		if len(marks) == 0 {
			return nil
		}
		full := marks
		marks, size = map[string]string{}, 0
		m.report.Marks += int64(len(full))
		m.tell()
		return m.to.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return full }})
	}
	for k, err := range crawldb.Marks(ctx, m.from.Crawl) {
		if err != nil {
			return err
		}
		marks[k.Name] = m.valueOf(k)
		if size += len(k.Name) + len(k.Value); size > most {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (m *mover) hosts(ctx context.Context) error {
	for h, err := range m.from.Hosts.Scan(ctx) {
		if err == nil {
			err = m.to.Hosts.Update(ctx, h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil })
		}
		if err != nil {
			return err
		}
		if m.report.Hosts++; m.report.Hosts%chunk == 0 {
			m.tell()
		}
	}
	return m.to.Hosts.Sync(ctx)
}

// links copies the inlinks; merging the same ones again changes nothing.
func (m *mover) links(ctx context.Context) error {
	var entries []linkdb.Entry
	flush := func() error {
		err := m.to.Links.Merge(ctx, entries, 0)
		m.report.Targets += int64(len(entries))
		m.tell()
		entries = nil
		return err
	}
	for e, err := range m.from.Links.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if entries = append(entries, e); len(entries) == chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return flush()
}

// parts yields the names of the parts that a segment has, those of its lists included.
func parts(ctx context.Context, s segment.Store, name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		exists := func(part string) (bool, error) {
			_, err := s.Stat(ctx, name, part)
			if errors.Is(err, segment.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		}
		for _, part := range append(segment.Parts(), segment.EventPart) {
			there, err := exists(part)
			if (err != nil || there) && !yield(part, err) || err != nil {
				return
			}
			const inRow = 4 // a list may be complete, and its parts gone
			for list, missing := 0, 0; missing < inRow; list++ {
				of := segment.ListPart(part, list)
				there, err := exists(of)
				if missing++; there {
					missing = 0
				}
				if (err != nil || there) && !yield(of, err) || err != nil {
					return
				}
			}
		}
	}
}

func (m *mover) segments(ctx context.Context) error {
	if m.from.Segments == nil {
		return nil
	}
	for name, err := range m.from.Segments.List(ctx) {
		if err != nil {
			return err
		}
		for part, err := range parts(ctx, m.from.Segments, name) {
			if err == nil {
				err = m.part(ctx, name, part)
			}
			if err != nil {
				return err
			}
		}
		m.report.Segments++
		m.tell()
	}
	return nil
}

// part copies the blocks of a part that the target does not have yet.
func (m *mover) part(ctx context.Context, name, part string) error {
	source, err := m.from.Segments.Stat(ctx, name, part)
	if err != nil {
		return err
	}
	w, err := m.to.Segments.Append(ctx, name, part, -1)
	if errors.Is(err, segment.ErrCommitted) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	have, err := m.to.Segments.Stat(ctx, name, part)
	if err != nil {
		return err
	}
	for block, err := range m.from.Segments.Read(ctx, name, part, have.Blocks) {
		if err == nil {
			err = w.Append(ctx, block)
		}
		if err != nil {
			return err
		}
		m.report.Blocks++
	}
	if source.Committed {
		return w.Commit(ctx)
	}
	if err := w.Sync(ctx); err != nil {
		return err
	}
	return w.Close()
}

// same compares two sequences, each element by its name and its encoding.
func same[T any](m *mover, what string, from, to iter.Seq2[T, error], encode func(T) (string, []byte, error)) error {
	next, stop := iter.Pull2(to)
	defer stop()
	read := func(v T, err error) (string, []byte, error) {
		if err != nil {
			return "", nil, err
		}
		return encode(v)
	}
	for v, err := range from {
		name, want, err := read(v, err)
		if err != nil {
			return err
		}
		v, err, ok := next()
		if !ok {
			return fmt.Errorf("%w: %s %q is missing", ErrDiffers, what, name)
		}
		copied, got, err := read(v, err)
		if err != nil {
			return err
		}
		if copied != name || !bytes.Equal(got, want) {
			return fmt.Errorf("%w: %s %q", ErrDiffers, what, name)
		}
		if m.report.Compared++; m.report.Compared%chunk == 0 {
			m.tell()
		}
	}
	if v, err, ok := next(); ok {
		name, _, err := read(v, err)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: the source has no %s %q", ErrDiffers, what, name)
	}
	return nil
}

func (m *mover) sameRecords(ctx context.Context) error {
	return same(m, "record", m.from.Crawl.Scan(ctx, crawldb.Range{}), m.to.Crawl.Scan(ctx, crawldb.Range{}), func(d crawldb.Datum) (string, []byte, error) {
		b, err := d.AppendBinary(nil)
		return d.URL, b, err
	})
}

func (m *mover) sameMarks(ctx context.Context) error {
	withoutMove := func(all iter.Seq2[crawldb.NamedMark, error], change func(crawldb.NamedMark) string) iter.Seq2[crawldb.NamedMark, error] {
		return func(yield func(crawldb.NamedMark, error) bool) {
			for k, err := range all {
				if err == nil {
					k.Value = change(k)
				}
				if k.Name != Mark && !yield(k, err) {
					return
				}
			}
		}
	}
	asItIs := func(k crawldb.NamedMark) string { return k.Value }
	return same(m, "mark", withoutMove(crawldb.Marks(ctx, m.from.Crawl), m.valueOf), withoutMove(crawldb.Marks(ctx, m.to.Crawl), asItIs),
		func(k crawldb.NamedMark) (string, []byte, error) { return k.Name, []byte(k.Value), nil })
}

func (m *mover) sameHosts(ctx context.Context) error {
	return same(m, "host", m.from.Hosts.Scan(ctx), m.to.Hosts.Scan(ctx), func(h hostdb.Host) (string, []byte, error) {
		return h.Name, hostdb.AppendDetail(hostdb.AppendHost(nil, &h), &h), nil
	})
}

func (m *mover) sameLinks(ctx context.Context) error {
	return same(m, "inlinks of", m.from.Links.Scan(ctx, crawldb.Range{}), m.to.Links.Scan(ctx, crawldb.Range{}), func(e linkdb.Entry) (string, []byte, error) {
		b, err := json.Marshal(e.Inlinks)
		return e.URL, b, err
	})
}

func (m *mover) sameSegments(ctx context.Context) error {
	if m.from.Segments == nil {
		return nil
	}
	named := func(name string) (string, []byte, error) { return name, nil, nil }
	if err := same(m, "segment", m.from.Segments.List(ctx), m.to.Segments.List(ctx), named); err != nil {
		return err
	}
	for name, err := range m.from.Segments.List(ctx) {
		if err != nil {
			return err
		}
		if err := same(m, "part of segment "+name, parts(ctx, m.from.Segments, name), parts(ctx, m.to.Segments, name), named); err != nil {
			return err
		}
		for part, err := range parts(ctx, m.from.Segments, name) {
			if err != nil {
				return err
			}
			if err := m.samePart(ctx, name, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mover) samePart(ctx context.Context, name, part string) error {
	source, err := m.from.Segments.Stat(ctx, name, part)
	if err != nil {
		return err
	}
	copied, err := m.to.Segments.Stat(ctx, name, part)
	if err != nil {
		return err
	}
	at := name + "/" + part
	if source.Committed != copied.Committed || source.Blocks != copied.Blocks {
		return fmt.Errorf("%w: part %s", ErrDiffers, at)
	}
	return same(m, "block of", m.from.Segments.Read(ctx, name, part, 0), m.to.Segments.Read(ctx, name, part, 0), func(b []byte) (string, []byte, error) { return at, b, nil })
}
