package generate

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/frontier"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/urlfilter"
)

// check returns why a record is not selected, whatever its host; empty if it
// may be. It is pure except for Where.
func (j *job) check(d *crawldb.Datum) (Reason, error) {
	o := &j.o
	j.asked = d.URL
	leased, low := d.Leased(j.now), o.MinScore != 0 && !(d.Priority >= o.MinScore)
	if o.NutchCompat {
		leased, low = d.Leased(j.due), d.Priority < o.MinScore
		if o.Rules != nil && !o.NoFilter && !accepted(o.Rules, d.URL) {
			return URLFilters, nil
		}
	}
	switch {
	case !o.Schedule.Due(d, j.due):
		return Schedule, nil
	case leased:
		return WaitUpdate, nil
	}
	if o.Where != nil {
		if ok, err := o.Where(d); err != nil || !ok {
			return Expr, err
		}
	}
	interval := d.Interval
	if o.MaxInterval > 0 {
		interval = schedule.Selected(o.Schedule, *d, j.due).Interval
	}
	switch {
	case o.Status != 0 && d.Status != o.Status:
		return StatusOther, nil
	case low:
		return ScoreTooLow, nil
	case o.MaxInterval > 0 && interval > o.MaxInterval:
		return Interval, nil
	}
	return "", nil
}

// reject counts a record that is not selected.
func (j *job) reject(d *crawldb.Datum, why Reason, err error) {
	j.report.Rejected[why]++
	j.failed(err)
	if why == Schedule || why == WaitUpdate {
		j.seen(d)
	}
}

// failed keeps the first error of an expression.
func (j *job) failed(err error) {
	if err == nil {
		return
	}
	if j.report.ExprErrors++; j.report.ExprError == nil {
		j.report.ExprError = err
	}
}

// seen keeps the earliest time at which a record that is not due will be due.
func (j *job) seen(d *crawldb.Datum) {
	at := d.FetchTime
	if d.LeasedUntil.After(at) {
		at = d.LeasedUntil
	}
	if at.After(j.now) && (j.report.NextDue.IsZero() || at.Before(j.report.NextDue)) {
		j.report.NextDue = at
	}
}

// accepted applies the filters only.
func accepted(r *urlfilter.Rules, url string) bool {
	for _, f := range r.Filters {
		if !f.Accept(url) {
			return false
		}
	}
	return true
}

// allowed applies the rules to a candidate.
func (j *job) allowed(url string) bool {
	switch {
	case j.o.Rules == nil || j.o.NoFilter || j.o.NutchCompat:
		return true // under NutchCompat check has applied them
	case j.o.NoNormalize:
		return accepted(j.o.Rules, url)
	}
	u, err := j.o.Rules.Apply(urlfilter.Generate, url)
	return err == nil && u == url
}

// admits applies the rules to a candidate, which may be a sitemap.
func (j *job) admits(ctx context.Context, url string) (bool, error) {
	j.asked = url
	if j.allowed(url) {
		return true, nil
	}
	if !strings.HasSuffix(url, ".gz") {
		return false, nil
	}
	d, err := j.crawl.Get(ctx, url)
	if errors.Is(err, crawldb.ErrNotFound) {
		return false, nil
	}
	if _, marked := crawldb.SitemapOf(d.Meta); err != nil || !marked {
		return false, err
	}
	u, err := j.o.Rules.ApplySitemap(urlfilter.Generate, url)
	return err == nil && u == url, nil
}

// spelling returns how a URL counts in a scope; false if it does not count.
func (j *job) spelling(scope urlfilter.Scope, url string) (string, bool) {
	j.asked = url
	if j.o.Rules != nil && !j.o.NoNormalize {
		for _, n := range j.o.Rules.Normalizers {
			u, err := n.Normalize(scope, url)
			if err != nil {
				return "", false
			}
			url = u
		}
	}
	scheme, _, ok := strings.Cut(url, ":")
	if ok && j.o.NutchCompat {
		switch strings.ToLower(scheme) {
		case "http", "https", "file", "ftp", "jar":
		default:
			ok = false
		}
	}
	return url, ok && scheme != ""
}

// candidates yields the records that pass check, best first, equal ones by key.
func (j *job) candidates(ctx context.Context) iter.Seq2[crawldb.Candidate, error] {
	_, indexable := schedule.Horizon(j.o.Schedule)
	index, ok := crawldb.AsDueStore(j.crawl)
	if !ok || !indexable || j.o.NutchCompat {
		return j.scan(ctx)
	}
	j.indexed = true
	q := j.query()
	q.NotDue = j.seen
	return j.read(ctx, ordered(index.Due(ctx, q), j.windowSize()+levelExtra))
}

// query asks an index for what is due at j.due. What is leased now may no longer be then: the index
// yields it, and check rejects it.
func (j *job) query() crawldb.DueQuery {
	q := crawldb.DueQuery{Now: j.due, AheadOfClock: j.due.Sub(j.now), MinPriority: max(j.o.MinScore, 0), WantHost: j.want}
	if ahead, _ := schedule.Horizon(j.o.Schedule); ahead > 0 {
		q.DueBeyond = j.due.Add(ahead)
	}
	return q
}

// scan examines every record.
func (j *job) scan(ctx context.Context) iter.Seq2[crawldb.Candidate, error] {
	// A crawl db with more due records than fit into memory is scanned more
	// than once, and counting is done the first time.
	first, begun, again := "", false, false
	due := func(d *crawldb.Datum) bool {
		if !begun {
			first, begun = d.URL, true
		} else if d.URL == first {
			again = true
		}
		why, err := j.check(d)
		if why != "" && !again {
			j.reject(d, why, err)
		}
		return why == ""
	}
	// The first time, yield everything that may count as beyond a limit.
	want := func(host string) bool { return !again || j.want(host) }
	return crawldb.DueByScan(ctx, j.crawl, crawldb.DueQuery{Now: j.due, WantHost: want}, due)
}

// byIndex reports whether a due candidate passes check, whatever else its
// record says: if so it is not read before it is leased.
func (j *job) byIndex() bool {
	o := &j.o
	return o.Where == nil && o.Status == 0 && o.MaxInterval <= 0 && o.Ahead == 0 && o.MinScore >= 0
}

// readBatch is how many records are read in one step.
const readBatch = 1000

// read yields those candidates whose records pass check.
func (j *job) read(ctx context.Context, hints iter.Seq2[crawldb.Candidate, error]) iter.Seq2[crawldb.Candidate, error] {
	sure := j.byIndex()
	return func(yield func(crawldb.Candidate, error) bool) {
		var some []crawldb.Candidate
		for c, err := range hints {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			if sure && c.Due && len(some) == 0 {
				if !j.placed[c.URL] && !yield(c, nil) {
					return
				}
				continue
			}
			if some = append(some, c); len(some) < readBatch {
				continue
			}
			if !j.passing(ctx, some, yield) {
				return
			}
			some = some[:0]
		}
		if len(some) > 0 {
			j.passing(ctx, some, yield)
		}
	}
}

// passing yields those of some candidates whose records pass check, and reports whether more
// are wanted.
func (j *job) passing(ctx context.Context, some []crawldb.Candidate, yield func(crawldb.Candidate, error) bool) (more bool) {
	records, err := j.records(ctx, some)
	if err != nil {
		yield(crawldb.Candidate{}, err)
		return false
	}
	for _, c := range some {
		d := records[c.URL]
		if d == nil { // gone, or yielded before
			continue
		}
		records[c.URL] = nil
		if why, err := j.check(d); why != "" {
			j.reject(d, why, err)
			continue
		}
		if !yield(c, nil) {
			return false
		}
	}
	return true
}

// records reads the records of some candidates in one step, by URL; without those that were
// placed before.
func (j *job) records(ctx context.Context, some []crawldb.Candidate) (map[string]*crawldb.Datum, error) {
	urls := make([]string, 0, len(some))
	for _, c := range some {
		urls = append(urls, c.URL)
	}
	slices.SortFunc(urls, crawldb.Compare)
	urls = slices.Compact(urls)
	records, err := crawldb.GetAll(ctx, j.crawl, urls)
	byURL := make(map[string]*crawldb.Datum, len(urls))
	for i, u := range urls {
		if d := records[i]; d != nil && !j.placed[u] && !j.ours(d) {
			byURL[u] = d
		}
	}
	return byURL, err
}

// ours reports whether a record is leased by a segment being made.
func (j *job) ours(d *crawldb.Datum) bool {
	return d.LeasedBy != "" && slices.ContainsFunc(j.makes, func(m *making) bool { return m.name == d.LeasedBy })
}

// placed is a candidate with its segment.
type placed struct {
	candidate
	counted *counted
	order   string // crawldb.Key: many are compared
	part    string // empty if parts have no limit
	segment int
}

// selectAll leases candidates, in the given order, as long as there is room.
func (j *job) selectAll(ctx context.Context, candidates iter.Seq2[candidate, error]) error {
	var batch []placed
	for c, err := range candidates {
		if err != nil {
			return err
		}
		ok, err := j.admits(ctx, c.url)
		if err != nil {
			return err
		}
		if !ok {
			if err := j.rejectByRules(ctx, c.url); err != nil {
				return err
			}
			continue
		}
		p, ok, err := j.placeOne(ctx, c)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		batch = append(batch, p)
		j.placed[c.url] = true
		if len(batch) < j.o.chunk && !j.place.full() {
			continue
		}
		if err := j.lease(ctx, batch); err != nil {
			return err
		}
		clear(batch)
		if batch = batch[:0]; j.place.full() { // nothing fell through
			return nil
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return j.lease(ctx, batch)
}

const (
	maxRejectedSeeds = 100
	maxSeedLookups   = 1000
)

// rejectByRules counts a candidate that the rules reject, and names it if it is a seed.
func (j *job) rejectByRules(ctx context.Context, url string) error {
	if j.gathering() {
		return nil // once it is due
	}
	n := j.report.Rejected[URLFilters]
	j.report.Rejected[URLFilters]++
	if n >= maxSeedLookups || len(j.report.RejectedSeeds) >= maxRejectedSeeds {
		return nil
	}
	d, err := j.crawl.Get(ctx, url)
	if err == nil && d.IsSeed() {
		j.report.RejectedSeeds = append(j.report.RejectedSeeds, url)
	}
	if errors.Is(err, crawldb.ErrNotFound) {
		return nil
	}
	return err
}

// placeOne finds a segment for a candidate, if there is room for it.
func (j *job) placeOne(ctx context.Context, c candidate) (placed, bool, error) {
	spelled, ok := j.spelling(urlfilter.HostCount, c.url)
	if !ok {
		j.report.Rejected[Malformed]++
		return placed{}, false, nil
	}
	h, err := j.host(ctx, c.url)
	if err != nil {
		return placed{}, false, err
	}
	j.order = j.keys.AppendKey(j.order[:0], c.url)
	p := placed{candidate: c, counted: j.countedOf(c.host, c.url, spelled), order: string(j.order)}
	if j.o.MaxPerPart > 0 && !j.o.NutchCompat {
		p.part = frontier.PartOf(spelled)
		if j.parts[p.part]/j.o.Segments >= j.o.MaxPerPart {
			j.report.Rejected[PartFull]++
			return placed{}, false, nil
		}
	}
	if p.segment = j.place.place(p.counted, h.limit); p.segment < 0 {
		j.report.Rejected[HostFull]++
		if !p.counted.affected {
			p.counted.affected = true
			j.report.HostsAffected++
		}
		return placed{}, false, nil
	}
	if p.part != "" {
		j.parts[p.part]++
	}
	return p, true, j.open(ctx, p.segment)
}

// lease notes the URLs of the batch, leases those that still pass check, and
// puts them on the lists of their segments.
func (j *job) lease(ctx context.Context, batch []placed) error {
	batch = byOrder(batch)
	if err := j.note(ctx, batch); err != nil {
		return err
	}
	urls, tokens := make([]string, len(batch)), make([]string, len(batch))
	for i := range batch {
		urls[i], tokens[i] = batch[i].url, batch[i].token
	}
	type slot struct {
		gone  bool
		why   Reason
		err   error
		until time.Time // of the record's previous lease, which may have ended
		by    string
	}
	slots, records := make([]slot, len(batch)), make([]crawldb.Datum, len(batch))
	until := j.now.Add(j.o.Lease)
	// All at once: what is selected together lies far apart, so the more there
	// is the nearer are the neighbours.
	err := crawldb.UpdateAll(ctx, j.crawl, one(crawldb.Batch{URLs: urls, Tokens: tokens, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		slots[i] = slot{gone: old == nil}
		if old == nil {
			return nil, nil
		}
		records[i] = *old
		if slots[i].why, slots[i].err = j.check(old); slots[i].why != "" {
			return old, nil
		}
		d := &records[i]
		slots[i].until, slots[i].by = d.LeasedUntil, d.LeasedBy
		d.LeasedUntil, d.LeasedBy = until, j.makes[batch[i].segment].name
		return d, nil
	}}))
	if err != nil {
		return err
	}
	for i := range slots {
		s, d, p := &slots[i], &records[i], &batch[i]
		switch {
		case s.gone:
			j.report.Rejected[Schedule]++
		case s.why != "":
			j.reject(d, s.why, s.err)
		default:
			d.LeasedUntil, d.LeasedBy = s.until, s.by // which the list does not include
			*d = schedule.Selected(j.o.Schedule, *d, j.due)
			continue
		}
		j.place.giveBack(p.counted, p.segment)
		if p.part != "" {
			j.parts[p.part]--
		}
		p.segment = -1
	}
	j.list(batch, records)
	return nil
}

// note makes durable in each segment which URLs are about to be leased for it.
func (j *job) note(ctx context.Context, batch []placed) error {
	for i, m := range j.makes {
		size := 0
		for k := range batch {
			if batch[k].segment == i {
				size += binary.MaxVarintLen16 + len(batch[k].url)
			}
		}
		if size == 0 {
			continue
		}
		block := make([]byte, 0, size)
		for k := range batch {
			if url := batch[k].url; batch[k].segment == i {
				block = append(binary.AppendUvarint(block, uint64(len(url))), url...)
			}
		}
		if err := m.leases.Append(ctx, block); err != nil {
			return err
		}
		if err := m.leases.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// list puts the records of a batch on the lists of their segments, except those that
// fell through.
func (j *job) list(batch []placed, records []crawldb.Datum) {
	for i, m := range j.makes {
		n := 0
		for k := range batch {
			if batch[k].segment == i {
				n++
			}
		}
		if n == len(batch) && m.list == nil {
			m.list = records
			break
		}
		m.list = slices.Grow(m.list, n)
		for k := range batch {
			if batch[k].segment == i {
				m.list = append(m.list, records[k])
			}
		}
	}
}

// one is a sequence of one batch.
func one(b crawldb.Batch) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }
}

// byOrder sorts a batch.
func byOrder(batch []placed) []placed {
	slices.SortFunc(batch, func(a, b placed) int { return strings.Compare(a.order, b.order) })
	return batch
}
