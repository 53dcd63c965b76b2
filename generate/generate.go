// Package generate selects the pages to fetch next: the due records of a crawl
// db, best priority first and within limits for each host. It leases them, so
// that no other round selects them, and writes them as the fetch list of a new
// segment.
//
// A lease is written only after a note of it is safe in the segment, so a
// generate that died leaves nothing leased for ever: [Recover] releases it.
package generate

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say what to select. The zero value selects all that is due.
type Options struct {
	// TopN is the most URLs to select for one segment, those with the highest
	// priority; zero means no limit. The list itself is in an order that spreads
	// the URLs of each host. (Nutch: -topN.)
	TopN int
	// MaxPerHost is the most URLs of one host, or whatever By says, in one
	// segment; zero means no limit. (Nutch: generate.max.count.)
	MaxPerHost int
	// By says what MaxPerHost counts. (Nutch: generate.count.mode.)
	By hostdb.By
	// Segments is how many segments may be made; what exceeds the limits of one
	// goes into the next. Zero means one. (Nutch: generate.max.num.segments.)
	Segments int
	// MinScore leaves out records with a lower priority; zero leaves out none.
	// (Nutch: generate.min.score.)
	MinScore float32
	// Ahead selects what is due this much later. Leases are not affected.
	// (Nutch: -adddays.)
	Ahead time.Duration
	// Lease is how long the selected URLs are kept from other rounds, should
	// their segment be lost; zero means 7 days. (Nutch: crawl.gen.delay.)
	Lease time.Duration
	// Rules, if not nil, are asked once more about each record, in the scope
	// urlfilter.Generate: they may have changed since it was made. A record
	// whose normal form is another URL is left out too. (Nutch: generate.filter.)
	Rules *urlfilter.Rules
	// Taken, if not nil, reports whether a name must not be given to a new
	// segment, although no segment has it: one that is gone may have left marks.
	Taken func(ctx context.Context, name string) (bool, error)
	// Schedule says what is due. Nil means schedule.Default with its defaults.
	Schedule schedule.FetchSchedule
	// Now is the time to record; nil means time.Now.
	Now func() time.Time

	chunk int // URLs in one Update
}

// Report says what was selected and why the rest was not.
type Report struct {
	// Segments are the names of the segments that were made, none if nothing was
	// selected.
	Segments []string
	// Selected counts the URLs in them.
	Selected int
	// Candidates counts the records that were looked at as due. Of them NotDue
	// and Leased were not after all, Filtered were rejected by the rules, and
	// OverLimit exceeded the limit of their host. Once a host is full, a store may
	// pass over its other records, which are counted nowhere.
	Candidates, NotDue, Leased, Filtered, OverLimit int
	// NextDue is the earliest time at which a record that was not due becomes
	// due; zero if there is none, or if the store has an index and was not read
	// to the end.
	NextDue time.Time
}

const (
	leasePart = "leases" // URLs that are about to be leased, chunk by chunk
	chunk     = 10_000
	listBlock = 1_000
)

type job struct {
	crawl    crawldb.Store
	segments segment.Store
	o        Options
	now, due time.Time
	report   Report

	makes []*making
	hosts map[string]*hostCount
}

// making is a segment in the making.
type making struct {
	name   string
	leases segment.BlockWriter
	list   []crawldb.Datum
	taken  int // len(list), and what is about to be leased
}

// hostCount says how many URLs of a host are in each segment.
type hostCount []int

// Run selects, leases and writes segments. If nothing is due it makes none, and
// that is no error. When it fails or is cancelled it releases what it leased;
// if it cannot, Recover does.
func Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, o Options) (Report, error) {
	o.Segments = max(o.Segments, 1)
	if o.chunk <= 0 {
		o.chunk = chunk
	}
	if o.Lease <= 0 {
		o.Lease = 7 * 24 * time.Hour
	}
	if o.Schedule == nil {
		o.Schedule = &schedule.Default{}
	}
	j := &job{crawl: crawl, segments: segments, o: o, now: time.Now(), hosts: map[string]*hostCount{}}
	if o.Now != nil {
		j.now = o.Now()
	}
	j.due = j.now.Add(o.Ahead)

	err := j.selectAll(ctx)
	if err == nil {
		err = j.commit(ctx)
	}
	if err != nil {
		// Cleaning up must not be cut short by what cut the run short.
		clean := context.WithoutCancel(ctx)
		for _, m := range j.makes {
			m.leases.Close()
			if e := release(clean, crawl, segments, m.name); e != nil {
				err = errors.Join(err, e)
			}
		}
		j.report.Segments, j.report.Selected = nil, 0
		return j.report, fmt.Errorf("generate: %w", err)
	}
	return j.report, nil
}

// candidates yields what may be due, best first.
func (j *job) candidates(ctx context.Context) iter.Seq2[crawldb.Candidate, error] {
	q := crawldb.DueQuery{Now: j.due, MinPriority: j.o.MinScore, Want: j.want, Seen: j.seen}
	ahead, indexable := schedule.Horizon(j.o.Schedule)
	if !indexable {
		return crawldb.DueByScan(ctx, j.crawl, q, func(d *crawldb.Datum) bool {
			ok := j.o.Schedule.Due(d, j.due) && !d.Leased(j.now) && (j.o.MinScore <= 0 || d.Priority >= j.o.MinScore)
			if !ok {
				j.seen(d)
			}
			return ok
		})
	}
	if ahead > 0 {
		q.Beyond = j.due.Add(ahead)
	}
	return crawldb.Due(ctx, j.crawl, q)
}

// seen keeps the earliest time at which a record that is not due will be.
func (j *job) seen(d *crawldb.Datum) {
	at := d.FetchTime
	if d.LeasedUntil.After(at) {
		at = d.LeasedUntil
	}
	if at.After(j.now) && (j.report.NextDue.IsZero() || at.Before(j.report.NextDue)) {
		j.report.NextDue = at
	}
}

// want says whether a host has room left in any segment.
func (j *job) want(host string) bool {
	if j.o.MaxPerHost <= 0 {
		return true
	}
	if j.o.By == hostdb.ByDomain {
		host = hostdb.Domain(host)
	}
	c := j.hosts[host]
	return c == nil || len(*c) < j.o.Segments || slices.Min(*c) < j.o.MaxPerHost
}

// place finds the first segment with room for a URL of a host and counts it
// there; -1 if there is none.
func (j *job) place(host string) int {
	c := j.hosts[host]
	if c == nil && j.o.MaxPerHost > 0 {
		c = &hostCount{}
		j.hosts[host] = c
	}
	for i := range j.o.Segments {
		if j.o.TopN > 0 && i < len(j.makes) && j.makes[i].taken >= j.o.TopN {
			continue
		}
		if j.o.MaxPerHost > 0 {
			for len(*c) <= i {
				*c = append(*c, 0)
			}
			if (*c)[i] >= j.o.MaxPerHost {
				continue
			}
			(*c)[i]++
		}
		return i
	}
	return -1
}

func (j *job) full() bool {
	if j.o.TopN <= 0 {
		return false
	}
	total := 0
	for _, m := range j.makes {
		total += m.taken
	}
	return total >= j.o.TopN*j.o.Segments
}

// placed is a candidate with its segment.
type placed struct {
	url, host string
	segment   int
}

func (j *job) selectAll(ctx context.Context) error {
	next, stop := iter.Pull2(j.candidates(ctx))
	defer stop()
	for more := true; more; {
		var batch []placed
		for len(batch) < j.o.chunk && !j.full() {
			c, err, ok := next()
			if !ok {
				more = false
				break
			}
			if err != nil {
				return err
			}
			j.report.Candidates++
			if j.o.Rules != nil {
				if u, err := j.o.Rules.Apply(urlfilter.Generate, c.URL); err != nil || u != c.URL {
					j.report.Filtered++
					continue
				}
			}
			host := j.o.By.Key(c.URL)
			i := j.place(host)
			if i < 0 {
				j.report.OverLimit++
				continue
			}
			if err := j.open(ctx, i); err != nil {
				return err
			}
			j.makes[i].taken++
			batch = append(batch, placed{c.URL, host, i})
		}
		if len(batch) == 0 {
			return nil
		}
		if err := j.lease(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// open begins segments up to number i.
func (j *job) open(ctx context.Context, i int) error {
	for len(j.makes) <= i {
		name, err := segment.NewName(ctx, j.segments, j.now)
		if err != nil {
			return err
		}
		for taken := true; taken && j.o.Taken != nil; {
			if taken, err = j.o.Taken(ctx, name); err != nil {
				return err
			}
			if taken {
				name = segment.NameAfter(name)
			}
		}
		w, err := j.segments.Append(ctx, name, leasePart, 0)
		if err != nil {
			return err
		}
		j.makes = append(j.makes, &making{name: name, leases: w})
		// A segment without a block may not be listed; the next name needs it.
		if err := w.Append(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// lease notes the URLs of the batch, leases those that are still due, and puts
// them on the list of their segment.
func (j *job) lease(ctx context.Context, batch []placed) error {
	slices.SortStableFunc(batch, func(a, b placed) int { return crawldb.Compare(a.url, b.url) })
	once := batch[:0]
	for _, p := range batch { // a weak Due may yield a URL twice
		if n := len(once); n > 0 && once[n-1].url == p.url {
			j.giveBack(p)
			continue
		}
		once = append(once, p)
	}
	batch = once
	for i, m := range j.makes {
		var block []byte
		for _, p := range batch {
			if p.segment == i {
				block = append(binary.AppendUvarint(block, uint64(len(p.url))), p.url...)
			}
		}
		if block == nil {
			continue
		}
		if err := m.leases.Append(ctx, block); err != nil {
			return err
		}
		if err := m.leases.Sync(ctx); err != nil {
			return err
		}
	}
	urls := make([]string, len(batch))
	for i, p := range batch {
		urls[i] = p.url
	}
	type slot struct {
		d      crawldb.Datum
		result uint8
	}
	const (
		gone = iota
		leased
		notDue
		selected
	)
	slots := make([]slot, len(batch))
	until := j.now.Add(j.o.Lease)
	err := j.crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		slots[i] = slot{}
		switch {
		case old == nil:
			return nil, nil
		case old.Leased(j.now):
			slots[i].result = leased
			return old, nil
		case !j.o.Schedule.Due(old, j.due):
			slots[i].result = notDue
			return old, nil
		}
		slots[i] = slot{*old, selected}
		d := *old
		d.LeasedUntil, d.LeasedBy = until, j.makes[batch[i].segment].name
		return &d, nil
	}})
	if err != nil {
		return err
	}
	for i := range slots {
		switch slots[i].result {
		case selected:
			m := j.makes[batch[i].segment]
			m.list = append(m.list, slots[i].d)
			continue
		case leased:
			j.report.Leased++
		default:
			j.report.NotDue++
		}
		j.giveBack(batch[i])
	}
	return nil
}

// giveBack undoes what place and selectAll counted for a candidate.
func (j *job) giveBack(p placed) {
	j.makes[p.segment].taken--
	if c := j.hosts[p.host]; c != nil {
		(*c)[p.segment]--
	}
}

// commit makes the leases durable and writes the fetch lists. From then on the
// segments are there.
func (j *job) commit(ctx context.Context) error {
	if len(j.makes) == 0 {
		return nil
	}
	if err := j.crawl.Sync(ctx); err != nil {
		return err
	}
	for len(j.makes) > 0 {
		m := j.makes[0]
		if len(m.list) == 0 { // all of its candidates fell through
			if err := m.leases.Close(); err != nil {
				return err
			}
			if err := j.segments.Remove(ctx, m.name); err != nil {
				return err
			}
		} else {
			if err := j.write(ctx, m); err != nil {
				return err
			}
			// Not before: as long as the note is open, Recover knows that we live.
			if err := m.leases.Close(); err != nil {
				return err
			}
			j.report.Segments = append(j.report.Segments, m.name)
			j.report.Selected += len(m.list)
		}
		j.makes = j.makes[1:]
	}
	return nil
}

func (j *job) write(ctx context.Context, m *making) error {
	spread(m.list, j.o.By)
	w, err := segment.NewWriter[crawldb.Datum](ctx, j.segments, m.name, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for block := range slices.Chunk(m.list, listBlock) {
		if err := w.Append(ctx, block); err != nil {
			return err
		}
	}
	return w.Commit(ctx)
}

// spread orders a fetch list so that a fetcher which reads it from the front
// finds many hosts at once: the best URL of every host, then the second best of
// every host, and so on, in each turn in the order of a hash.
func spread(list []crawldb.Datum, by hostdb.By) {
	type ranked struct {
		d    crawldb.Datum
		turn int
		hash uint64
	}
	slices.SortFunc(list, func(a, b crawldb.Datum) int {
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
			return c
		}
		return crawldb.Compare(a.URL, b.URL) // dear, and seldom needed
	})
	turns := map[string]int{}
	all := make([]ranked, len(list))
	for i, d := range list {
		host := by.Key(d.URL)
		all[i] = ranked{d, turns[host], xxhash.Sum64String(d.URL)}
		turns[host]++
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.hash, b.hash), cmp.Compare(a.d.URL, b.d.URL))
	})
	for i := range all {
		list[i] = all[i].d
	}
}
