package recrawl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// The simulation runs real workers with the real coordinator, exchange and rounds, over stores in
// memory and a virtual clock. They are killed, stopped for longer than a lease, cut off from the
// engine, lose the answers of writes that were done, have their clocks set, join and leave. At
// every step the invariants are checked; in the end the contents are those of one process.

var (
	simulationSeed    = flag.Uint64("simulation.seed", 1, "the first seed of the simulations")
	simulationSeeds   = flag.Int("simulation.seeds", testlevel.Pick(1, 4), "how many seeds are simulated")
	simulationWorkers = flag.Int("simulation.workers", testlevel.Pick(5, 200), "how many workers take part")
	simulationFaults  = flag.Int("simulation.faults", testlevel.Pick(40, 400), "how many faults there are")
)

const simulationLease = 15 * time.Second

// simulation is one run.
type simulation struct {
	t      *testing.T
	rnd    *rand.Rand // of the injector alone
	web    *webtest.Web
	engine *groups.Local
	dbs    map[int]*memstore.DB
	hosts  *memstore.Hosts

	mu       sync.Mutex
	broken   []string // invariants
	asked    map[string]*askedHost
	inbox    map[string]int64 // by target and source
	events   map[string]bool
	stops    int // requests that were stopped between check and write: no lease can fence them
	overlaps int // requests beside another, or too soon
	workers  []*simulatedWorker
	started  int
	running  sync.WaitGroup
	counts   map[string]int // of faults
}

// askedHost is what a host has seen.
type askedHost struct {
	under int
	ended time.Time
}

func (s *simulation) breakf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.broken) < 10 {
		s.broken = append(s.broken, fmt.Sprintf(format, args...))
	}
}

// simulatedWorker is a process.
type simulatedWorker struct {
	s    *simulation
	name string
	stop context.CancelFunc

	mu      sync.Mutex
	rnd     *rand.Rand
	killed  bool
	cut     bool          // from the engine
	stopped chan struct{} // is closed when it goes on; nil if it runs
	lossy   bool          // answers may be lost
	skew    time.Duration // of its clock
}

var (
	errKilled = errors.New("the process was killed")
	errCut    = errors.New("the engine cannot be reached")
	errLost   = errors.New("the connection was lost; nobody knows whether it was done")
)

// pass waits while the process is stopped. It fails if it is killed.
func (w *simulatedWorker) pass() error {
	for {
		w.mu.Lock()
		wait, killed := w.stopped, w.killed
		w.mu.Unlock()
		switch {
		case killed:
			return errKilled
		case wait == nil:
			return nil
		}
		<-wait
	}
}

// reach does what pass does, and fails if the engine cannot be reached.
func (w *simulatedWorker) reach() error {
	if err := w.pass(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errCut
	}
	return nil
}

// answer loses the answer of what was done, now and then.
func (w *simulatedWorker) answer(err error) error {
	if err != nil {
		return err
	}
	if err := w.pass(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lossy && w.rnd.IntN(20) == 0 {
		return errLost
	}
	return nil
}

func (w *simulatedWorker) call(f func() error) error {
	if err := w.reach(); err != nil {
		return err
	}
	return w.answer(f())
}

// simulatedEngine is the engine as one worker reaches it.
type simulatedEngine struct {
	*groups.Local
	w *simulatedWorker
}

func called[T any](w *simulatedWorker, f func() (T, error)) (v T, err error) {
	err = w.call(func() (err error) {
		v, err = f()
		return err
	})
	return v, err
}

func (e simulatedEngine) State(ctx context.Context) (groups.State, error) {
	return called(e.w, func() (groups.State, error) { return e.Local.State(ctx) })
}

func (e simulatedEngine) Renew(ctx context.Context, owner string) ([]groups.Lease, error) {
	return called(e.w, func() ([]groups.Lease, error) { return e.Local.Renew(ctx, owner) })
}

func (e simulatedEngine) Acquire(ctx context.Context, owner string, g int) (groups.Lease, error) {
	return called(e.w, func() (groups.Lease, error) { return e.Local.Acquire(ctx, owner, g) })
}

func (e simulatedEngine) Release(ctx context.Context, l groups.Lease) error {
	return e.w.call(func() error { return e.Local.Release(ctx, l) })
}

func (e simulatedEngine) Expel(ctx context.Context, other groups.WorkerState) error {
	return e.w.call(func() error { return e.Local.Expel(ctx, other) })
}

func (e simulatedEngine) Marks(ctx context.Context, names []groups.MarkName) ([]string, error) {
	return called(e.w, func() ([]string, error) { return e.Local.Marks(ctx, names) })
}

func (e simulatedEngine) Open(ctx context.Context, l groups.Lease) (groups.Stores, error) {
	s, err := called(e.w, func() (groups.Stores, error) { return e.Local.Open(ctx, l) })
	if err != nil {
		return s, err
	}
	return groups.Stores{
		Crawl:    simulatedCrawl{s.Crawl, e.w, l},
		Hosts:    simulatedHosts{s.Hosts, e.w},
		Links:    simulatedLinks{s.Links, e.w},
		Segments: simulatedSegments{s.Segments, e.w},
	}, nil
}

type leaseKey struct{}

// simulatedCrawl passes on with what lease something is written.
type simulatedCrawl struct {
	crawldb.Store
	w     *simulatedWorker
	lease groups.Lease
}

func (c simulatedCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	return c.w.call(func() error { return c.Store.Update(context.WithValue(ctx, leaseKey{}, c.lease), b) })
}

func (c simulatedCrawl) UpdateAll(ctx context.Context, all iter.Seq2[crawldb.Batch, error]) error {
	return c.w.call(func() error {
		return crawldb.UpdateAll(context.WithValue(ctx, leaseKey{}, c.lease), c.Store, func(yield func(crawldb.Batch, error) bool) {
			for b, err := range all {
				if err == nil {
					err = c.w.reach() // it may be killed between two batches
				}
				if !yield(b, err) {
					return
				}
			}
		})
	})
}

func (c simulatedCrawl) Mark(ctx context.Context, name string) (string, error) {
	if err := c.w.reach(); err != nil {
		return "", err
	}
	return c.Store.Mark(ctx, name)
}

type simulatedHosts struct {
	hostdb.Store
	w *simulatedWorker
}

func (h simulatedHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	return h.w.call(func() error { return h.Store.Update(ctx, name, next) })
}

type simulatedLinks struct {
	linkdb.Store
	w *simulatedWorker
}

func (l simulatedLinks) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	return l.w.call(func() error { return l.Store.Merge(ctx, entries, limit) })
}

type simulatedSegments struct {
	segment.Store
	w *simulatedWorker
}

func (s simulatedSegments) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	w, err := called(s.w, func() (segment.BlockWriter, error) { return s.Store.Append(ctx, seg, part, keep) })
	if err != nil {
		return nil, err
	}
	return simulatedWriter{w, s.w}, nil
}

func (s simulatedSegments) Remove(ctx context.Context, seg string) error {
	return s.w.call(func() error { return s.Store.Remove(ctx, seg) })
}

type simulatedWriter struct {
	segment.BlockWriter
	w *simulatedWorker
}

func (b simulatedWriter) Append(ctx context.Context, block []byte) error {
	if err := b.w.reach(); err != nil {
		return err
	}
	return b.BlockWriter.Append(ctx, block)
}

func (b simulatedWriter) Commit(ctx context.Context) error {
	return b.w.call(func() error { return b.BlockWriter.Commit(ctx) })
}

// watchedCrawl is the crawl db of a group beneath the fence: what is written there was let in.
type watchedCrawl struct {
	*memstore.Crawl
	s     *simulation
	group int
}

func (c watchedCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	lease, _ := ctx.Value(leaseKey{}).(groups.Lease)
	state, err := c.s.engine.State(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if g := state.Groups[c.group]; g.Owner != lease.Owner || g.Epoch != lease.Epoch {
		c.s.breakf("%s wrote to group %d with epoch %d; the owner is %q with %d", lease.Owner, c.group, lease.Epoch, g.Owner, g.Epoch)
	}
	var marks map[string]string
	if b.Marks != nil {
		all := b.Marks
		b.Marks = func() map[string]string {
			marks = all()
			return marks
		}
	}
	if err := c.Crawl.Update(ctx, b); err != nil {
		return err
	}
	for name, value := range marks {
		if source, ok := strings.CutPrefix(name, "inbox/"); ok {
			c.s.folded(fmt.Sprint(c.group, " from ", source), value)
		}
	}
	return nil
}

// folded checks that rows are folded in order and none twice.
func (s *simulation) folded(which, value string) {
	next, err := strconv.ParseInt(value, 10, 64)
	s.mu.Lock()
	last := s.inbox[which]
	s.inbox[which] = next
	s.mu.Unlock()
	if err != nil || next <= max(last, 1) {
		s.breakf("the inbox of %s went from %d to %q", which, last, value)
	}
}

// simulatedProtocol is the wire: it knows which worker makes a request.
type simulatedProtocol struct {
	protocol.Protocol
	w *simulatedWorker
}

func (p simulatedProtocol) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	began := time.Now()
	if err := p.w.pass(); err != nil {
		return protocol.Response{}, err
	}
	if time.Since(began) > 0 { // it was stopped between the check of its deadline and the write
		p.w.s.mu.Lock()
		p.w.s.stops++
		p.w.s.mu.Unlock()
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return protocol.Response{}, err
	}
	p.w.mu.Lock()
	latency := time.Duration(10+p.w.rnd.IntN(400)) * time.Millisecond
	p.w.mu.Unlock()
	done := p.w.s.request(p.w.name, u.Host)
	select {
	case <-time.After(latency):
	case <-ctx.Done():
	}
	done()
	if err := p.w.pass(); err != nil {
		return protocol.Response{}, err
	}
	return p.Protocol.Fetch(ctx, r)
}

// request checks that a host is not asked by two at a time, nor sooner than its pause.
func (s *simulation) request(worker, host string) (done func()) {
	s.mu.Lock()
	h := s.asked[host]
	if h == nil {
		h = &askedHost{}
		s.asked[host] = h
	}
	problem := ""
	switch gap := time.Since(h.ended); {
	case h.under > 0:
		problem = "while another request is under way"
	case !h.ended.IsZero() && gap < 5*time.Second-time.Millisecond:
		problem = fmt.Sprintf("%v after the last request", gap)
	}
	h.under++
	if problem != "" {
		s.overlaps++
	}
	tooMany := s.overlaps > s.stops
	s.mu.Unlock()
	if problem != "" && tooMany {
		s.breakf("%s asked %s %s", worker, host, problem)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.under--
		h.ended = time.Now()
	}
}

// start starts a worker, which runs again when its Run fails, as a service does.
func (s *simulation) start() *simulatedWorker {
	s.started++
	w := &simulatedWorker{s: s, name: fmt.Sprint("worker", s.started), rnd: rand.New(rand.NewPCG(uint64(s.started), s.rnd.Uint64()))}
	ctx, cancel := context.WithCancel(s.t.Context())
	w.stop = cancel
	s.workers = append(s.workers, w)
	s.running.Go(func() {
		for life := 1; ctx.Err() == nil && !w.isKilled(); life++ {
			w.run(ctx, fmt.Sprint(w.name, ".", life), true)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	})
	return w
}

func (w *simulatedWorker) isKilled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killed
}

func (w *simulatedWorker) run(ctx context.Context, name string, wait bool) {
	o := simulationOptions(simulatedProtocol{w.s.web.Protocol(), w})
	o.Run.Wait = wait
	o.Now = func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Now().Add(w.skew)
	}
	o.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
		if err := w.pass(); err != nil {
			return err
		}
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.events[e.URL] = true
		return nil
	}
	k, err := recrawl.NewWorker(simulatedEngine{w.s.engine, w}, o, recrawl.WorkerOptions{Name: name, Lease: simulationLease})
	if err != nil {
		w.s.breakf("NewWorker: %v", err)
		return
	}
	defer k.Close()
	_, err = k.Run(ctx)
	for _, expected := range []error{nil, context.Canceled, errKilled, errCut, errLost, crawldb.ErrFenced, groups.ErrTaken} {
		if errors.Is(err, expected) {
			return
		}
	}
	w.s.breakf("%s: Run: %v", name, err)
}

func simulationOptions(p protocol.Protocol) recrawl.Options {
	o := recrawl.Options{Agent: "recrawl-test", Protocol: p, Update: update.Options{MaxGrowth: -1}}
	o.Generate.TopN = 200 // so that there are several rounds
	return o
}

// fault makes one fault.
func (s *simulation) fault(most int) {
	if len(s.workers) == 0 {
		s.start()
		return
	}
	i := s.rnd.IntN(len(s.workers))
	w := s.workers[i]
	remove := func() { s.workers = slices.Delete(s.workers, i, i+1) }
	after := func(d time.Duration, f func()) {
		time.AfterFunc(d, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			f()
		})
	}
	long := time.Duration(s.rnd.Int64N(int64(3 * simulationLease)))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := s.rnd.IntN(12); {
	case n >= 10:
		if err := s.move(); err == nil {
			s.counts["move"]++
		} else if !errors.Is(err, groups.ErrTaken) {
			s.breakf("%v", err)
		}
	case n < 2:
		s.counts["kill"]++
		w.killed = true
		if w.stopped != nil {
			close(w.stopped)
			w.stopped = nil
		}
		w.stop()
		remove()
	case n < 4 && w.stopped == nil:
		s.counts["stop"]++
		goOn := make(chan struct{})
		w.stopped = goOn
		after(long, func() {
			if w.stopped == goOn {
				close(goOn)
				w.stopped = nil
			}
		})
	case n < 5:
		s.counts["cut"]++
		w.cut = true
		after(long, func() { w.cut = false })
	case n < 6:
		s.counts["lossy"]++
		w.lossy = true
		after(long, func() { w.lossy = false })
	case n < 7:
		s.counts["clock"]++
		w.skew = time.Duration(s.rnd.IntN(10)-5) * time.Second
	case n < 8:
		s.counts["leave"]++
		w.stop()
		remove()
	default:
		if len(s.workers) < most {
			s.counts["join"]++
			s.start()
		}
	}
}

// visitPutOff visits what was put off to the next day: pages of hosts whose owners changed so often
// that a round could not wait for them.
func (s *simulation) visitPutOff() {
	all, putOff := 0, 0
	for _, db := range s.dbs {
		for d, err := range db.Crawl().Scan(s.t.Context(), crawldb.Range{}) {
			if err != nil {
				s.t.Fatal(err)
			}
			if all++; d.Status == crawldb.Unfetched {
				putOff++
			}
		}
	}
	if putOff == 0 {
		return
	}
	s.t.Logf("%d of %d pages were put off to the next day", putOff, all)
	if putOff > all/20 {
		s.t.Errorf("%d of %d pages were put off to the next day", putOff, all)
	}
	w := &simulatedWorker{s: s, name: "the next day", rnd: rand.New(rand.NewPCG(1, 1)), skew: 25 * time.Hour}
	w.run(s.t.Context(), w.name, false)
}

// lastVisit says where a page was visited last, and how that ended.
func (s *simulation) lastVisit(u string) (last string) {
	for id, db := range s.dbs {
		for name := range db.Segments().List(s.t.Context()) {
			for v, err := range segment.Records[segment.Visit](s.t.Context(), db.Segments(), name) {
				if err == nil && v.URL == u {
					last = fmt.Sprintf("group %d, %s: %+v", id, name, v.Outcome)
				}
			}
		}
	}
	return last
}

// move begins to split a group, or to merge two.
func (s *simulation) move() error {
	ctx := s.t.Context()
	t, err := s.engine.Table(ctx)
	if err != nil {
		return err
	}
	i := s.rnd.IntN(len(t.Groups))
	g := t.Groups[i]
	if s.rnd.IntN(2) == 0 && g.To-g.From > 1 && len(t.Groups) < 4**simulationWorkers {
		_, err := groups.Split(ctx, s.engine, g.ID)
		return err
	}
	for _, to := range t.Groups {
		if to.ID != g.ID && g.From < g.To && (to.From == to.To || to.To == g.From || to.From == g.To) {
			return groups.Merge(ctx, s.engine, g.ID, to.ID)
		}
	}
	return nil
}

// quiet reports whether nothing is due, under way or on its way; otherwise it says what is.
func (s *simulation) quiet(ctx context.Context) string {
	table, err := s.engine.Table(ctx)
	if err != nil {
		return err.Error()
	}
	if table.Moving != nil {
		return fmt.Sprintf("slots are being moved: %+v", *table.Moving)
	}
	for _, g := range table.Groups {
		db := s.dbs[g.ID]
		if db == nil {
			return fmt.Sprintf("group %d was never opened", g.ID)
		}
		for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
			if err != nil {
				return err.Error()
			}
			if !d.FetchTime.After(time.Now()) || d.Leased(time.Now()) {
				return fmt.Sprintf("%s is due at %v, leased until %v", d.URL, d.FetchTime, d.LeasedUntil)
			}
		}
		for name, err := range db.Segments().List(ctx) {
			if err != nil {
				return err.Error()
			}
			mark, err := db.Crawl().Mark(ctx, segment.RoundMark(name))
			if r, e := segment.ParseRound(mark); err != nil || e != nil || !r.Done {
				return fmt.Sprintf("the round of %s is not done: %q", name, mark)
			}
		}
	}
	var ids []int
	for _, g := range table.Groups {
		ids = append(ids, g.ID)
	}
	inboxes, err := groups.Poll(ctx, s.engine, &table, ids)
	if err != nil {
		return err.Error()
	}
	for _, in := range inboxes {
		if !in.Empty() {
			return fmt.Sprintf("rows wait for group %d", in.Group)
		}
	}
	return ""
}

func simulationWeb() *webtest.Web {
	return &webtest.Web{Seed: 7, Hosts: max(8, *simulationWorkers/2), PagesPerHost: 60, WordsPerPage: 20, Calm: true}
}

// TestSimulatedWorkersEqualOneProcess is the simulation: see above.
func TestSimulatedWorkersEqualOneProcess(t *testing.T) {
	const seed = "http://news.example.test/"
	var want contents
	var cash float64
	events := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		web := simulationWeb()
		o := simulationOptions(web.Protocol())
		o.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			events[e.URL] = true
			return nil
		}
		want, cash = undividedContents(t, web, o, false, seed)
	})
	for n := range *simulationSeeds {
		number := *simulationSeed + uint64(n)
		t.Run(fmt.Sprint("seed", number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, number, seed, want, cash, events) })
		})
	}
}

func simulate(t *testing.T, number uint64, seed string, want contents, cash float64, events map[string]bool) {
	s := &simulation{
		t: t, rnd: rand.New(rand.NewPCG(number, 35)), web: simulationWeb(), dbs: map[int]*memstore.DB{}, hosts: new(memstore.Hosts),
		asked: map[string]*askedHost{}, inbox: map[string]int64{}, events: map[string]bool{}, counts: map[string]int{},
	}
	table, err := groups.Divide(max(4, *simulationWorkers/3), groups.Routing{Hot: []string{"example.test"}})
	if err != nil {
		t.Fatal(err)
	}
	s.engine, err = groups.OpenLocal(t.Context(), new(memstore.Crawl), table, func(id int) (groups.Stores, func() error, error) {
		db := new(memstore.DB)
		s.dbs[id] = db
		return groups.Stores{Crawl: watchedCrawl{db.Crawl(), s, id}, Links: db.Links(), Segments: db.Segments(), Hosts: s.hosts}, db.Close, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.engine.Close()
	most := *simulationWorkers
	for range max(most/2, 1) {
		s.start()
	}
	k, err := recrawl.NewWorker(s.engine, simulationOptions(s.web.Protocol()), recrawl.WorkerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Inject(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	for range *simulationFaults {
		time.Sleep(time.Duration(s.rnd.Int64N(int64(max(20/max(most/5, 1), 1)))+1) * time.Second)
		s.fault(most)
	}
	time.Sleep(3 * simulationLease) // the last fault ends
	for len(s.workers) < 2 {
		s.start()
	}
	last := time.Now()
	why := s.quiet(t.Context())
	for ; why != "" && time.Since(last) < time.Hour; why = s.quiet(t.Context()) {
		time.Sleep(10 * time.Second)
	}
	if why != "" {
		t.Errorf("not quiet an hour after the last fault: %s", why)
	}
	t.Logf("%v; %d workers; %d requests, %d of them beside another; quiet %v after the last fault", s.counts, s.started, s.web.Requests(), s.overlaps, time.Since(last))
	for _, w := range s.workers {
		w.stop()
	}
	s.running.Wait()
	s.visitPutOff()
	for _, b := range s.broken {
		t.Error(b)
	}
	d := &dividedCrawl{Local: s.engine, dbs: s.dbs}
	got, gotCash := d.contents(t, false)
	got.compare(t, want)
	if math.Abs(gotCash-cash) > 1e-9 {
		t.Errorf("the cash is %v, want %v", gotCash, cash)
	}
	for _, u := range slices.Sorted(maps.Keys(events)) {
		if !s.events[u] {
			t.Errorf("OnPage was not called for %s; %s", u, s.lastVisit(u))
		}
	}
}
