// Package inject puts seeds into a crawl db: the URLs a crawl starts from.
package inject

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// Seed is one URL to start from.
type Seed struct {
	URL string
	// Meta are pairs "name=value". Three names are not kept as metadata but mean
	// something: nutch.score, the score; nutch.fetchInterval, the seconds between
	// fetches; nutch.fetchInterval.fixed, the same and never to be adapted.
	Meta []string
	// Line is where the seed stands in its file, from 1; zero if it is from none.
	Line int
}

// Options say how seeds become records. The zero value takes every seed as it
// is and makes it due at once.
type Options struct {
	// Rules normalize and filter the seeds, in the scope urlfilter.Inject. Nil
	// takes them as they are.
	Rules *urlfilter.Rules
	// Schedule sets the first interval. Nil means schedule.Default with its
	// defaults.
	Schedule schedule.FetchSchedule
	// Scoring sees every new record. Nil means none.
	Scoring scoring.Filter
	// Score is the score of a seed that names none; zero means 1. (Nutch:
	// db.score.injected.)
	Score float32
	// Overwrite replaces records that exist and forgets all that is known of
	// them. (Nutch: inject -overwrite.)
	Overwrite bool
	// Update gives records that exist the metadata of the seed, and the score and
	// interval it names. (Nutch: inject -update.) Overwrite goes first.
	Update bool
	// Now is the time to record; nil means time.Now.
	Now func() time.Time
}

// Report says what became of the seeds.
type Report struct {
	// Seeds counts all; New, Merged and Known those that made a record, changed
	// one, or had one already; Duplicate those that named the same URL as another.
	Seeds, New, Merged, Known, Duplicate int
	// Filtered and Invalid count those that the rules rejected, and those that
	// are not URLs to crawl or have metadata that cannot be read. Bad names the
	// first hundred of both.
	Filtered, Invalid int
	Bad               []Bad
}

// Bad is a seed that was left out, and why.
type Bad struct {
	Seed Seed
	Err  error
}

// Error returns line, URL and reason.
func (b Bad) Error() string {
	if b.Seed.Line > 0 {
		return fmt.Sprintf("inject: line %d: %q: %v", b.Seed.Line, clip(b.Seed.URL), b.Err)
	}
	return fmt.Sprintf("inject: %q: %v", clip(b.Seed.URL), b.Err)
}

// Unwrap returns the reason.
func (b Bad) Unwrap() error { return b.Err }

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

const (
	chunk  = 20_000
	maxBad = 100
)

// Run puts the seeds into the store and syncs it. Seeds that cannot be used are
// counted and named in the report and do no harm to the others; an error of the
// sequence or the store ends the run, and what was put in before stays.
func Run(ctx context.Context, store crawldb.Store, seeds iter.Seq2[Seed, error], o Options) (Report, error) {
	j := job{store: store, o: o, now: time.Now()}
	if o.Now != nil {
		j.now = o.Now()
	}
	if j.o.Schedule == nil {
		j.o.Schedule = &schedule.Default{}
	}
	if j.o.Scoring == nil {
		j.o.Scoring = scoring.Base{}
	}
	if j.o.Score == 0 {
		j.o.Score = 1
	}
	for s, err := range seeds {
		if err != nil {
			return j.report, fmt.Errorf("inject: read seeds: %w", err)
		}
		j.add(s)
		if len(j.chunk) == chunk {
			if err := j.flush(ctx); err != nil {
				return j.report, err
			}
		}
	}
	if err := j.flush(ctx); err != nil {
		return j.report, err
	}
	if err := store.Sync(ctx); err != nil {
		return j.report, fmt.Errorf("inject: %w", err)
	}
	return j.report, nil
}

type job struct {
	store  crawldb.Store
	o      Options
	now    time.Time
	report Report
	chunk  []entry
}

// entry is a seed as a record, and what of it the seed itself asked for.
type entry struct {
	d                     crawldb.Datum
	meta                  crawldb.Meta
	scoreGiven, timeGiven bool
}

func (j *job) add(s Seed) {
	j.report.Seeds++
	e, err := j.entry(s)
	switch {
	case err == nil:
		j.chunk = append(j.chunk, e)
		return
	case errors.Is(err, urlfilter.ErrRejected):
		j.report.Filtered++
	default:
		j.report.Invalid++
	}
	if len(j.report.Bad) < maxBad {
		j.report.Bad = append(j.report.Bad, Bad{s, err})
	}
}

func (j *job) entry(s Seed) (entry, error) {
	url := strings.TrimSpace(s.URL)
	if url == "" {
		return entry{}, errNoURL
	}
	if j.o.Rules != nil {
		u, err := j.o.Rules.Apply(urlfilter.Inject, url)
		if err != nil {
			return entry{}, err
		}
		url = u
	}
	e := entry{d: crawldb.Datum{URL: url, Status: crawldb.Unfetched, Score: j.o.Score}}
	for _, pair := range s.Meta {
		name, value, ok := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return e, fmt.Errorf("%w: metadata %q is not name=value", errMeta, clip(pair))
		}
		switch name {
		case "nutch.score":
			v, err := strconv.ParseFloat(value, 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return e, fmt.Errorf("%w: %s is not a number: %q", errMeta, name, clip(value))
			}
			e.d.Score, e.scoreGiven = float32(v), true
		case "nutch.fetchInterval", "nutch.fetchInterval.fixed":
			v, err := strconv.Atoi(value)
			if err != nil || v <= 0 || v > math.MaxInt32 {
				return e, fmt.Errorf("%w: %s is not a number of seconds: %q", errMeta, name, clip(value))
			}
			e.d.Interval, e.timeGiven = time.Duration(v)*time.Second, true
			if name == "nutch.fetchInterval.fixed" {
				e.meta.Set(schedule.FixedKey, strconv.Itoa(v))
			}
		default:
			e.meta.Set(name, value)
		}
	}
	e.d.Meta = e.meta
	e.d = j.o.Schedule.Init(e.d, j.now)
	j.o.Scoring.Injected(&e.d)
	e.d.Priority = j.o.Scoring.Priority(&e.d, e.d.Score)
	return e, nil
}

var (
	errMeta  = errors.New("inject: bad metadata")
	errNoURL = errors.New("inject: no URL")
)

func (j *job) flush(ctx context.Context) error {
	if len(j.chunk) == 0 {
		return nil
	}
	// Stable, so that equal URLs are applied in the order they came in, each as if
	// it were a run of its own.
	slices.SortStableFunc(j.chunk, func(a, b entry) int { return crawldb.Compare(a.d.URL, b.d.URL) })
	var urls []string
	var first []int // where the seeds of each URL begin
	for i := range j.chunk {
		u := j.chunk[i].d.URL
		if n := len(urls); n > 0 && urls[n-1] == u {
			j.report.Duplicate++
			continue
		}
		urls, first = append(urls, u), append(first, i)
	}
	first = append(first, len(j.chunk))
	const (
		isNew = iota
		isMerged
		isKnown
	)
	outcome := make([]int, len(urls))
	err := j.store.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		switch {
		case old == nil:
			outcome[i] = isNew
		case j.o.Overwrite || j.o.Update:
			outcome[i] = isMerged
		default:
			outcome[i] = isKnown
		}
		d := old
		for k := first[i]; k < first[i+1]; k++ {
			d = j.merge(d, &j.chunk[k])
		}
		return d, nil
	}})
	if err != nil {
		return fmt.Errorf("inject: %w", err)
	}
	for _, o := range outcome {
		switch o {
		case isNew:
			j.report.New++
		case isMerged:
			j.report.Merged++
		case isKnown:
			j.report.Known++
		}
	}
	j.chunk = j.chunk[:0]
	return nil
}

// merge returns what a seed makes of a record. What policies keep in the record
// is theirs: a seed replaces it only by an overwrite.
func (j *job) merge(old *crawldb.Datum, e *entry) *crawldb.Datum {
	switch {
	case old == nil || j.o.Overwrite:
		return &e.d
	case !j.o.Update:
		return old
	}
	d := *old
	for name, value := range e.meta.All() {
		d.Meta.Set(name, value)
	}
	if e.scoreGiven {
		d.Score = e.d.Score
	}
	if e.timeGiven {
		d.Interval = e.d.Interval
	}
	d.Priority = j.o.Scoring.Priority(&d, d.Score)
	return &d
}

// URLs makes seeds of URLs.
func URLs(urls ...string) iter.Seq2[Seed, error] {
	return func(yield func(Seed, error) bool) {
		for _, u := range urls {
			if !yield(Seed{URL: u}, nil) {
				return
			}
		}
	}
}

// maxLine is the longest line of a seed file; what is longer is no URL and no
// text file.
const maxLine = 1 << 20

// Read reads seeds in Nutch's form: a line each, the URL and then, behind tabs,
// pairs name=value. White space around each is ignored, and so are empty lines
// and lines that begin with #.
func Read(r io.Reader) iter.Seq2[Seed, error] {
	return func(yield func(Seed, error) bool) {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxLine)
		n := 1
		for ; sc.Scan(); n++ {
			line := sc.Text()
			if n == 1 {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			if text := strings.TrimSpace(line); text == "" || text[0] == '#' {
				continue
			}
			fields := strings.Split(line, "\t")
			s := Seed{URL: strings.TrimSpace(fields[0]), Line: n}
			for _, f := range fields[1:] {
				if f = strings.TrimSpace(f); f != "" {
					s.Meta = append(s.Meta, f)
				}
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(Seed{}, fmt.Errorf("line %d: %w", n, err))
		}
	}
}
