// Package generate selects the pages to fetch next: the due records of a crawl db, best priority
// first and within limits for each host. It leases them, so that no other round selects them, and
// writes them as the fetch list of a new segment. It fetches nothing and keeps no pauses: package
// fetch does. Start with [Run] and [Options]; [Gatherer] adds what is due soon, [Free] makes a list of
// given URLs, and [Recover] cleans up after a process that died.
//
// The selection is exact: the TopN best that pass every condition, those of equal
// priority in the order of their keys, whatever the number of lists the URLs are spread over. (With an
// indexed store, more than 65,536 + 2 TopN candidates whose priorities lie within an eighth of an octave may
// not be in exact order.) The exception: where parts of a registered domain look endless, as a calendar or a
// search does, these take turns with the rest of the domain, so that they cannot crowd it out. See
// Options.ExactTopN.
//
// A lease is written only after a note of it is safe in the segment, so a
// generate that died leaves nothing leased forever: [Recover] releases it.
package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say what to select. The zero value selects everything that is due.
type Options struct {
	// TopN is the maximum number of URLs to select for one segment, those with
	// the highest priority; zero or less means no limit. The list itself is in
	// an order that spreads the URLs of each host. (Nutch: -topN.)
	TopN int
	// MaxPerHost is the maximum number of URLs of one host, or whatever By
	// says, in one segment; zero means no limit. (Nutch: generate.max.count.)
	MaxPerHost int
	// By says what MaxPerHost counts. (Nutch: generate.count.mode.)
	By hostdb.By
	// MaxPerPart is the maximum number of URLs of one part of a host to select for each
	// of the Segments. A part is a first directory, or the URLs with a query in it.
	// Parts that differ only in numbers or session ids are one. Zero means no limit:
	// see Exact for what keeps the parts of a site in balance without one.
	MaxPerPart int
	// Exact selects the TopN best without regard to the parts of a site. By default a
	// registered domain gets as many URLs as it has among the TopN best, and these are
	// its best, too, as long as nothing in it looks endless. Parts that do take turns
	// with all the rest, the best of each first: URLs that differ in numbers, tokens or
	// parameters, a part where many pages repeated the content of others, a path in
	// which one name occurs twice, a host of which little was read. Each doubtful part
	// of a host takes its own turns, and the rest of the host has as many turns as its
	// parts would have. A part in which little is new gets a turn less often, down to a
	// sixteenth; so do parts of numbers or parameters, parts with much waiting, and
	// hosts that were found late.
	//
	// On a site whose URLs consist of names only, the selection is exact. On one
	// where half the pages are a blog by dates, and half documentation, between a tenth
	// and a third of the TopN best have to wait for a later round. Turns that are not
	// needed go to other parts, so this changes the order of a crawl but not what it
	// finds in the end. A domain that has had fewer than 32 visits is not divided.
	// The default looks at twice as many candidates as are selected. NutchCompat is
	// always exact.
	ExactTopN bool
	// Segments is how many segments may be made; what exceeds the limits of one
	// goes into the next. Zero means one. (Nutch: generate.max.num.segments.)
	Segments int
	// MinScore leaves out records with a lower priority; zero or NaN leaves out
	// none. (Nutch: generate.min.score.)
	MinScore float32
	// MaxInterval leaves out records with a longer interval; zero leaves out
	// none. (Nutch: generate.min.interval, in seconds, which despite its name is
	// the largest interval that is selected.)
	MaxInterval time.Duration
	// Status, if not zero, is the only status that is selected. (Nutch:
	// generate.restrict.status.)
	Status crawldb.Status
	// Where, if not nil, is the condition a record must meet; package expression
	// compiles them. A record for which it returns an error is not selected. It
	// must be pure and not use the store. (Nutch: generate.expr.)
	Where func(*crawldb.Datum) (bool, error)
	// Ahead also selects what becomes due within this time; less than zero means
	// zero. Leases are not affected. (Nutch: -adddays.)
	Ahead time.Duration
	// Lease is how long the selected URLs are kept from other rounds if their
	// segment is lost; zero means 7 days. (Nutch: crawl.gen.delay.)
	Lease time.Duration

	// Hosts has the records passed to HostLimit and HostDelay. Nil means that
	// these are not called. (Nutch: generate.hostdb.)
	Hosts hostdb.Store
	// HostLimit, if not nil, is MaxPerHost for a host that Hosts knows, rounded
	// half up: zero selects nothing of the host, a negative number has no limit.
	// On an error MaxPerHost applies. It is asked about the host even if By counts
	// domains. (Nutch: generate.max.count.expr.)
	HostLimit func(*hostdb.Host) (float64, error)
	// HostDelay, if not nil, is the pause between two visits to a host that Hosts
	// knows, in milliseconds, rounded half up. If it is zero or negative, or on
	// an error, the fetch uses its own. (Nutch: generate.fetch.delay.expr.)
	HostDelay func(*hostdb.Host) (float64, error)

	// Rules, if not nil, are applied again to each record, in the scope
	// urlfilter.Generate: they may have changed since it was made. A record whose
	// URL is not in normal form is left out too. (Nutch: generate.filter.) Their
	// normalizers give the spelling by which MaxPerHost counts and Partition
	// spreads URLs, in the scopes HostCount and Partition. (Nutch:
	// generate.normalise.)
	Rules *urlfilter.Rules
	// NoFilter does not ask the Rules whether a URL still belongs to the crawl.
	// (Nutch: -noFilter.)
	NoFilter bool
	// NoNormalize counts, spreads and filters URLs as they are spelled. (Nutch:
	// -noNorm.)
	NoNormalize bool

	// Lists says how the URLs of a segment are spread over fetch lists.
	Lists Lists

	// Taken, if not nil, reports whether a name must not be given to a new
	// segment although no segment has it: a removed segment may have left marks.
	Taken func(ctx context.Context, name string) (bool, error)
	// Schedule says what is due. Nil means schedule.Default with its defaults.
	Schedule schedule.FetchSchedule
	// Scoring gives URLs of Free that are not in Known the score of a seed; nil means
	// none. Run does not use it.
	Scoring scoring.Filter
	// Known, if not nil, is where Free looks up its URLs, so that the fetch list has
	// their records and readers of the segment can tell what has changed. Validators
	// are left out, so requests are unconditional. Run does not use it, and neither
	// does Free with NutchCompat.
	Known crawldb.Store
	// Now is the time to record; nil means time.Now.
	Now func() time.Time

	// NutchCompat selects as Nutch does where that differs: every record is looked
	// at, in the order of Nutch's tests, so that the counts of Report are Nutch's;
	// a MinScore of zero also leaves out negative priorities; leases are checked at
	// now plus Ahead; only the Filters of the Rules are applied; a URL whose scheme
	// java.net.URL does not know is left out; a host that moves to the next segment
	// because of TopN may get one URL too many there, and the last segment may
	// exceed TopN; a HostLimit of zero means no limit, a HostDelay of zero or less
	// no pause; a list is in the order of Nutch's hash of the URLs. What Nutch leaves to chance
	// is not imitated: the order of equal priorities, and which limits of one host
	// leak to another.
	NutchCompat bool

	chunk int // URLs in one Update
}

// Lists say how the URLs of a segment are spread over fetch lists, so that several fetches can
// share it: see fetch.Options.Lists.
type Lists struct {
	// Count is the number of lists; zero means one, and the maximum is 10,000. (Nutch:
	// -numFetchers.)
	Count int
	// By says which URLs must be on the same list. Those that share a queue in the fetch
	// always are. (Nutch: partition.url.mode.)
	By hostdb.By
	// Seed varies how the URLs are spread over the lists. (Nutch: partition.url.seed.)
	Seed int32
	// Lookup finds the addresses of a host if By is ByIP; nil means the system's resolver. It
	// is called only for hosts that were selected, once each, and from several goroutines. All
	// hosts without an address share a list.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Reason is why a record was not selected, in Nutch's words.
type Reason string

// The reasons, in the order in which they are tested under NutchCompat.
const (
	URLFilters  Reason = "url_filters_rejected" // Rules
	Schedule    Reason = "schedule_rejected"    // not due
	WaitUpdate  Reason = "wait_for_update"      // leased by another segment
	Expr        Reason = "expr_rejected"        // Where
	StatusOther Reason = "status_rejected"      // Status
	ScoreTooLow Reason = "score_too_low"        // MinScore
	Interval    Reason = "interval_rejected"    // MaxInterval
	Malformed   Reason = "malformed_urls"       // no host to count by
	HostFull    Reason = "urls_skipped_per_host_overflow"
	PartFull    Reason = "urls_skipped_per_part_overflow" // MaxPerPart
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{URLFilters, Schedule, WaitUpdate, Expr, StatusOther, ScoreTooLow, Interval, Malformed, HostFull, PartFull}
}

// Report says what was selected and why the rest was not.
type Report struct {
	// Segments names the segments that were made, none if nothing was selected.
	Segments []string
	// Selected counts the URLs in them.
	Selected int
	// Rejected counts the records that were looked at and not selected, each under the
	// first reason found. It is incomplete: a store with an index of due records shows
	// no others, nor all those of a host that is full; the rules are applied in order of
	// priority only until the segments are full; and beyond a million due records those
	// of a full host are no longer counted. With NutchCompat all are counted.
	Rejected map[Reason]int
	// RejectedSeeds are seeds that the rules reject: the first hundred found among the first
	// thousand records that they reject.
	RejectedSeeds []string
	// HostsAffected counts the hosts, or whatever By says, with more URLs looked
	// at than their limit. (Nutch: hosts_affected_per_host_overflow.)
	HostsAffected int
	// ExprErrors counts the errors of Where, HostLimit and HostDelay, and ExprError
	// is the first.
	ExprErrors int
	ExprError  error
	// NextDue is the earliest time at which a record that was not due becomes
	// due; zero if there is none, or if the store has an index and was not read
	// to the end.
	NextDue time.Time
}

const (
	leasePart = "leases" // URLs that are about to be leased, chunk by chunk
	chunk     = 100_000
	listBlock = 1_000
	mostLists = 10_000 // each of which a fetch looks for
)

type job struct {
	crawl    crawldb.Store
	segments segment.Store
	o        Options
	now, due time.Time
	report   Report
	asked    string // the last URL passed to policies

	makes    []*making
	place    placer
	placed   map[string]bool // URLs that have been placed
	known    map[string]hostInfo
	parts    map[string]int // how many of each part were placed
	hosts    map[string]*hostState
	counts   map[string]*counted
	domains  map[string]*domain
	keys     crawldb.Keys
	order    []byte     // scratch, for a key
	windowed []*counted // those that a window holds
	indexed  bool       // candidates come from an index
	soon     *Gatherer  // nil if only what is due is selected
}

// making is a segment in the making.
type making struct {
	name   string
	leases segment.BlockWriter
	list   []crawldb.Datum
}

// Run selects URLs, leases them and writes segments. If nothing is due it makes
// none, which is not an error. When it fails or is cancelled it releases what
// it leased; if it cannot, Recover does.
func Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, o Options) (Report, error) {
	return newJob(crawl, segments, o).run(ctx)
}

func (j *job) run(ctx context.Context) (Report, error) {
	err := j.make(ctx)
	if err != nil {
		// Cleaning up must not be cut short by what cut the run short, unless that
		// takes long.
		clean, done := grace.Context(ctx)
		defer done()
		for _, m := range j.makes {
			m.leases.Close()
			if e := release(clean, j.crawl, j.segments, m.name); e != nil {
				err = errors.Join(err, e)
			}
		}
		j.report.Segments, j.report.Selected = nil, 0
		return j.report, fmt.Errorf("generate: %w", err)
	}
	return j.report, nil
}

// make makes the segments. A policy that panics ends that with an error, so that
// what was leased is released.
func (j *job) make(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%q: a rule, the schedule or another policy panicked: %v", j.asked, p)
		}
	}()
	if err := j.selectAll(ctx, j.inTurns(ctx, j.candidates(ctx))); err != nil {
		return err
	}
	if j.soon != nil {
		if err := j.gather(ctx); err != nil {
			return err
		}
	}
	return j.commit(ctx)
}

func newJob(crawl crawldb.Store, segments segment.Store, o Options) *job {
	o.Segments, o.Lists.Count = max(o.Segments, 1), max(1, min(o.Lists.Count, mostLists))
	if o.chunk <= 0 {
		o.chunk = chunk
	}
	o.Ahead = max(o.Ahead, 0) // else all would be due that lies too far ahead for any schedule
	if o.MinScore != o.MinScore {
		o.MinScore = float32(math.Inf(-1))
	}
	if o.Lease <= 0 {
		o.Lease = 7 * 24 * time.Hour
	}
	if o.Schedule == nil {
		o.Schedule = &schedule.Default{}
	}
	j := &job{crawl: crawl, segments: segments, o: o, now: time.Now(), placed: map[string]bool{},
		report: Report{Rejected: map[Reason]int{}},
		known:  map[string]hostInfo{}, parts: map[string]int{},
		hosts: map[string]*hostState{}, counts: map[string]*counted{}, domains: map[string]*domain{}}
	if o.Now != nil {
		j.now = o.Now()
	}
	j.due = j.now.Add(o.Ahead)
	exact := &exactPlacer{topN: o.TopN, segments: o.Segments}
	if o.MaxPerHost > 0 || o.Hosts != nil && o.HostLimit != nil {
		exact.limits = true
	}
	j.place = exact
	if o.NutchCompat {
		j.place = &nutchPlacer{topN: o.TopN, segments: o.Segments, current: 1}
	}
	return j
}

// open begins segments up to number i.
func (j *job) open(ctx context.Context, i int) error {
	for len(j.makes) <= i {
		m, err := j.begin(ctx)
		if err != nil {
			return err
		}
		j.makes = append(j.makes, m)
		// A segment without a block may not be listed; the next name needs it.
		if err := m.leases.Append(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a segment under a name that no other segment has, not even that of a generate
// that runs at the same time.
func (j *job) begin(ctx context.Context) (*making, error) {
	last := ""
	for {
		name, err := segment.NewName(ctx, j.segments, j.now)
		if err != nil {
			return nil, err
		}
		if name <= last { // it may not be listed yet
			name = segment.NameAfter(last)
		}
		for taken := true; taken && j.o.Taken != nil; {
			if taken, err = j.o.Taken(ctx, name); err != nil {
				return nil, err
			}
			if taken {
				name = segment.NameAfter(name)
			}
		}
		last = name
		w, err := j.segments.Append(ctx, name, leasePart, 0)
		switch {
		case errors.Is(err, segment.ErrBusy):
			continue
		case err != nil:
			return nil, err
		}
		// Another may have begun and finished it since the name was found.
		made, err := segment.Has[crawldb.Datum](ctx, j.segments, name)
		if err == nil && !made {
			return &making{name: name, leases: w}, nil
		}
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
	}
}

// commit makes the leases durable and writes the fetch lists. From then on the
// segments exist.
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
			// Not earlier: as long as the note is open, Recover knows that we
			// are alive.
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
