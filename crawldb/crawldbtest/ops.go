package crawldbtest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func anySequenceOfStepsAgreesWithMap(c *check, due dueFunc) {
	n := c.h.Sequences
	if n <= 0 {
		n = defaultSequences
	}
	for seed := c.h.Seed; seed < c.h.Seed+uint64(n); seed++ {
		c.sequence(seed, due)
	}
}

// Each sequence runs on a store of its own.
const (
	defaultSequences = 4
	sequenceSteps    = 40
	shrinkRuns       = 200
)

// A step is one or more calls of a store. What it does depends on its kind, its seed,
// and the state of the model at its turn, so a sequence remains valid when steps are
// removed from it.
type step struct {
	kind stepKind
	seed uint64
}

type stepKind int

const (
	stepUpdate stepKind = iota
	stepFail
	stepCancel
	stepDisorder
	stepGet
	stepScan
	stepScanWrites
	stepDue
	stepMarks
	stepSync
	stepReopen
	stepCrash
)

// sequence takes random steps. If one fails, it looks for a shorter sequence that fails,
// and prints that.
func (c *check) sequence(seed uint64, due dueFunc) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	likely := []stepKind{
		stepUpdate, stepUpdate, stepUpdate, stepUpdate, stepFail, stepCancel, stepDisorder, stepGet, stepScan, stepScan,
		stepScanWrites, stepDue, stepDue, stepDue, stepDue, stepMarks, stepSync, stepReopen, stepCrash,
	}
	var steps []step
	for range sequenceSteps {
		kind := likely[rnd.IntN(len(likely))]
		if kind == stepReopen && c.h.Reopen == nil || kind == stepCrash && c.h.Crash == nil {
			continue
		}
		steps = append(steps, step{kind, rnd.Uint64()})
	}
	_, err := c.try(seed, steps, due)
	if err == nil {
		return
	}
	// Remove a half, a quarter and so on, as long as the rest fails.
	runs := 0
	for size := len(steps) / 2; size > 0 && runs < shrinkRuns; size /= 2 {
		for at := 0; at+size <= len(steps) && runs < shrinkRuns; {
			fewer := slices.Delete(slices.Clone(steps), at, at+size)
			runs++
			if _, e := c.try(seed, fewer, due); e != nil {
				steps, err = fewer, e
			} else {
				at += size
			}
		}
	}
	log, again := c.try(seed, steps, due)
	if again != nil {
		err = again
	}
	c.Failf("seed %d: %w\nafter these of %d steps:\n\t%s", seed, err, sequenceSteps, strings.Join(log, "\n\t"))
}

// try takes the steps on a new store, and returns a log of them.
func (c *check) try(seed uint64, steps []step, due dueFunc) (log []string, err error) {
	m := &machine{check: c, due: due, now: state{map[string]crawldb.Datum{}, map[string]string{}}}
	defer func() { log = m.log }()
	defer c.Recover(&err)
	for i := range 24 {
		m.urls = append(m.urls, fmt.Sprintf("http://h%d.example.com/%d", i%5, i))
	}
	hostile := hostileURLs()
	rnd := rand.New(rand.NewPCG(seed, 3))
	for range 8 {
		m.urls = append(m.urls, hostile[rnd.IntN(len(hostile))])
	}
	slices.SortFunc(m.urls, crawldb.Compare)
	m.urls = slices.Compact(m.urls)
	m.s = c.Store()
	m.left = []state{m.now}
	for _, s := range steps {
		m.do(s.kind, rand.New(rand.NewPCG(s.seed, 0)))
	}
	m.agrees("at the end")
	c.Close(m.s)
	return nil, nil
}

// state is what a store holds.
type state struct {
	data  map[string]crawldb.Datum
	marks map[string]string
}

// machine is a store and the model of it.
type machine struct {
	*check
	due  dueFunc
	s    crawldb.Store
	urls []string
	now  state
	left []state // what a crash may leave, from the last synced state on
	log  []string
}

func (m *machine) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *machine) do(kind stepKind, rnd *rand.Rand) {
	switch kind {
	case stepUpdate, stepFail, stepCancel:
		m.update(kind, rnd)
	case stepDisorder:
		urls := m.some(rnd, 2)
		if len(urls) < 2 {
			return
		}
		i := rnd.IntN(len(urls) - 1)
		urls[i], urls[i+1] = urls[i+1], urls[i]
		m.note("Update of %q, out of order", urls)
		m.Is(m.s.Update(m.Ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("job", "never"), Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			return nil, nil
		}}), crawldb.ErrOrder, "Update out of order")
		m.agrees("after an Update out of order")
	case stepGet:
		url := m.urls[rnd.IntN(len(m.urls))]
		m.note("Get %s", short(url))
		if want, ok := m.now.data[url]; !ok {
			m.missing(m.s, url)
		} else if err := same(m.get(m.s, url), want); err != nil {
			m.Failf("Get: %w", err)
		}
	case stepScan:
		r := m.rangeOf(rnd)
		m.note("Scan %+q", r)
		m.holds(m.s, r, m.in(r))
	case stepScanWrites:
		m.scanAndWrite(rnd)
	case stepDue:
		m.ask(rnd)
	case stepMarks:
		m.note("Mark of all")
		for _, job := range markNames() {
			m.marked(m.s, job, m.now.marks[job])
		}
	case stepSync:
		m.note("Sync")
		m.Must(m.s.Sync(m.Ctx), "Sync")
		m.left = []state{m.now}
	case stepReopen:
		m.note("Close and Reopen")
		m.s = m.Reopen(m.s)
		m.left = []state{m.now}
		m.agrees("after Reopen")
	case stepCrash:
		m.note("Crash")
		m.s = m.Crash(m.s)
		m.survived()
	}
}

func markNames() []string { return []string{"job", "other", "\x00", "http://h0.example.com/0"} }

// some returns a random choice of URLs in order, at least n if there are that many.
func (m *machine) some(rnd *rand.Rand, n int) []string {
	density := 1 + rnd.IntN(12)
	var urls []string
	for i, url := range m.urls {
		if rnd.IntN(density) == 0 || len(urls)+len(m.urls)-i <= n {
			urls = append(urls, url)
		}
	}
	return urls
}

func (m *machine) rangeOf(rnd *rand.Rand) (r crawldb.Range) {
	if rnd.IntN(3) > 0 {
		r.From = crawldb.Key(m.urls[rnd.IntN(len(m.urls))])
	}
	if rnd.IntN(3) > 0 {
		r.To = crawldb.Key(m.urls[rnd.IntN(len(m.urls))])
	}
	if rnd.IntN(4) == 0 {
		r.From += "\x00"
	}
	return r
}

func (m *machine) in(r crawldb.Range) []crawldb.Datum {
	return slices.DeleteFunc(inOrder(m.now.data), func(d crawldb.Datum) bool { return !r.Contains(crawldb.Key(d.URL)) })
}

// agrees demands that the store holds exactly what the model does.
func (m *machine) agrees(when string) {
	defer func(was string) { m.Prefix = was }(m.Prefix)
	m.Prefix += when + ": "
	m.holds(m.s, crawldb.Range{}, inOrder(m.now.data))
	for _, job := range markNames() {
		m.marked(m.s, job, m.now.marks[job])
	}
}

// survived looks for the state that a crash has left.
func (m *machine) survived() {
	got := m.scan(m.s, crawldb.Range{})
	var why error
	for i := len(m.left) - 1; i >= 0; i-- {
		if why = m.equal(got, m.left[i]); why == nil {
			m.now, m.left = m.left[i], []state{m.left[i]}
			m.agrees("after a crash")
			return
		}
	}
	m.Failf("after a crash the store holds none of the %d states since the last Sync; it differs from the synced one: %w", len(m.left), why)
}

func (m *machine) equal(got []crawldb.Datum, want state) error {
	if len(got) != len(want.data) {
		return fmt.Errorf("got %d records, want %d", len(got), len(want.data))
	}
	for _, d := range got {
		if err := same(d, want.data[d.URL]); err != nil {
			return err
		}
	}
	for _, job := range markNames() {
		cursor, err := m.s.Mark(m.Ctx, job)
		m.Must(err, "Mark")
		if cursor != want.marks[job] {
			return fmt.Errorf("the mark of %s is %s, want %s", short(job), short(cursor), short(want.marks[job]))
		}
	}
	return nil
}

// update changes some records, or fails to.
func (m *machine) update(kind stepKind, rnd *rand.Rand) {
	urls := m.some(rnd, 0)
	next := make([]*crawldb.Datum, len(urls))
	stay := make([]bool, len(urls))
	for i, url := range urls {
		old, ok := m.now.data[url]
		old.Signature = slices.Clone(old.Signature)
		switch n := rnd.IntN(10); {
		case n == 0:
			continue
		case n == 1:
			stay[i] = true
			continue
		case n == 2 && ok: // a lease begins, or ends
			if old.LeasedBy, old.LeasedUntil = "", (time.Time{}); rnd.IntN(2) == 0 {
				old.LeasedBy, old.LeasedUntil = "20240601000000-000", dueEpoch.Add(time.Duration(rnd.IntN(4)-1)*time.Hour)
			}
		case n == 3 && ok: // less
			old.Priority /= 3
		case n == 4 && ok: // by a part of a level
			old.Priority *= 1.02
		case n == 5 && ok:
			old.FetchTime = dueEpoch.Add(time.Duration(rnd.IntN(400)-200) * time.Hour)
		case n == 6 && ok:
			old.Retries++
			old.ETag = strings.Repeat("e", rnd.IntN(2000))
		default:
			old = randomDatum(rnd, url)
		}
		next[i] = &old
	}
	b := crawldb.Batch{URLs: urls}
	marks := randomMarks(rnd)
	if len(marks) > 0 || rnd.IntN(2) == 0 {
		b.Marks = func() map[string]string { return marks }
	}
	ctx, cancel := context.WithCancel(m.Ctx)
	defer cancel()
	at := -1
	if kind != stepUpdate && len(urls) > 0 {
		at = rnd.IntN(len(urls))
	}
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		want, ok := m.now.data[urls[i]]
		if ok != (old != nil) {
			return nil, fmt.Errorf("Next for %s got a record: %v, want %v", short(urls[i]), old != nil, ok)
		}
		if ok {
			if err := same(*old, want); err != nil {
				return nil, fmt.Errorf("Next got a wrong record: %w", err)
			}
		}
		switch {
		case i == at && kind == stepFail:
			return nil, errStop
		case i == at:
			cancel()
		}
		if stay[i] {
			return old, nil
		}
		return next[i], nil
	}
	if kind == stepCancel && at < 0 {
		cancel()
	}
	m.note("%s of %q, marks %q", map[stepKind]string{stepUpdate: "Update", stepFail: "Update that fails", stepCancel: "Update that is cancelled"}[kind], urls, marks)
	err := m.s.Update(ctx, b)
	switch {
	case kind == stepFail && at >= 0:
		m.Is(err, errStop, "Update whose Next fails")
		m.agrees("after an Update that failed")
		return
	case kind == stepCancel && err != nil:
		m.Is(err, context.Canceled, "Update that is cancelled")
		m.agrees("after an Update that was cancelled")
		return
	}
	m.Must(err, "Update")
	after := state{maps.Clone(m.now.data), maps.Clone(m.now.marks)}
	for i, url := range urls {
		switch {
		case stay[i]:
		case next[i] == nil:
			delete(after.data, url)
		default:
			d := *next[i]
			d.URL = url
			after.data[url] = d
		}
	}
	maps.Copy(after.marks, marks)
	m.now, m.left = after, append(m.left, after)
}

// randomMarks returns the marks of an update: often one, sometimes many, or none.
func randomMarks(rnd *rand.Rand) map[string]string {
	marks := map[string]string{}
	if rnd.IntN(3) == 0 {
		for _, name := range markNames() {
			if rnd.IntN(2) == 0 {
				marks[name] = []string{"", "further"}[rnd.IntN(2)]
			}
		}
	}
	if rnd.IntN(2) == 0 {
		marks[markNames()[rnd.IntN(len(markNames()))]] = []string{"", "x", "y\x00\xff"}[rnd.IntN(3)]
	}
	return marks
}

// scanAndWrite writes within the loop of a scan: records that are not written are seen
// once, in order.
func (m *machine) scanAndWrite(rnd *rand.Rand) {
	r, before, written := m.rangeOf(rnd), m.in(crawldb.Range{}), map[string]bool{}
	m.note("Scan %+q that writes", r)
	var seen []string
	for d, err := range m.s.Scan(m.Ctx, r) {
		m.Must(err, "Scan")
		if len(seen) > 0 && crawldb.Compare(seen[len(seen)-1], d.URL) >= 0 {
			m.Failf("Scan: %s came after %s", short(d.URL), short(seen[len(seen)-1]))
		}
		if seen = append(seen, d.URL); rnd.IntN(6) == 0 {
			old := maps.Clone(m.now.data)
			m.update(stepUpdate, rnd)
			for _, url := range m.urls {
				was, had := old[url]
				is, has := m.now.data[url]
				if had != has || had && same(is, was) != nil {
					written[url] = true
				}
			}
		}
	}
	for _, d := range before {
		if r.Contains(crawldb.Key(d.URL)) && !written[d.URL] && !slices.Contains(seen, d.URL) {
			m.Failf("Scan %+q that writes: %s was neither written nor seen", r, short(d.URL))
		}
	}
}

// ask asks for due records. Candidates are the best, within the resolution of an index.
func (m *machine) ask(rnd *rand.Rand) {
	q := moments()[rnd.IntN(len(moments()))]
	if rnd.IntN(3) == 0 {
		q.Now = dueEpoch.Add(time.Duration(rnd.IntN(400)-200) * time.Hour)
	}
	if rnd.IntN(2) == 0 {
		q.Limit = 1 + rnd.IntN(20)
	}
	if rnd.IntN(3) == 0 {
		q.MinPriority = []float32{1e-30, 0.3, 1, 5}[rnd.IntN(4)]
	}
	unwanted := ""
	if rnd.IntN(3) == 0 {
		unwanted = fmt.Sprintf("h%d.example.com", rnd.IntN(5))
		q.WantHost = func(host string) bool { return host != unwanted }
	}
	m.note("Due at %v, ahead %v, beyond %v, limit %d, MinPriority %v, unwanted %q", q.Now, q.AheadOfClock, q.DueBeyond, q.Limit, q.MinPriority, unwanted)
	got := map[string]bool{}
	n, least := 0, float32(math.Inf(1))
	for _, cand := range m.candidates(m.s, m.due, q) {
		d, ok := m.now.data[cand.URL]
		if n++; cand.Due && (!ok || !isDue(d, q)) {
			m.Failf("Due: %s is called due, but is not; FetchTime %v, LeasedUntil %v, Priority %v", short(cand.URL), d.FetchTime, d.LeasedUntil, d.Priority)
		}
		if got[cand.URL] {
			m.Failf("Due: %s was yielded twice", short(cand.URL))
		}
		if got[cand.URL] = true; !ok || !isDue(d, q) {
			continue
		}
		if above(d.Priority, least) {
			m.Failf("Due: %s with priority %v came after priority %v", short(cand.URL), d.Priority, least)
		}
		if d.Priority < least {
			least = d.Priority
		}
	}
	full := q.Limit > 0 && n >= q.Limit
	if q.Limit > 0 && n > q.Limit {
		m.Failf("Due: got %d candidates; the limit is %d", n, q.Limit)
	}
	for url, d := range m.now.data {
		if isDue(d, q) && !got[url] && (!full || above(d.Priority, least)) {
			m.Failf("Due: %s is due and was omitted; FetchTime %v, LeasedUntil %v, Priority %v; the least of the %d yielded is %v", short(url), d.FetchTime, d.LeasedUntil, d.Priority, n, least)
		}
	}
}

// above reports whether a priority is more than a level, an eighth of an octave, above
// another. Below 1e-37 floats are too coarse for levels.
func above(p, least float32) bool {
	const width = 1.0905078 * 1.0001
	return p > 0 && p >= 1e-37 && float64(p) > float64(max(least, math.SmallestNonzeroFloat32))*width
}
