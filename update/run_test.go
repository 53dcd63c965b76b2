package update_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// world is a crawl db and some segments.
type world struct {
	t        *testing.T
	crawl    *memstore.Crawl
	segments *memstore.Segments
}

func newWorld(t *testing.T) *world {
	return &world{t, new(memstore.Crawl), new(memstore.Segments)}
}

func (w *world) put(data ...crawldb.Datum) {
	w.t.Helper()
	slices.SortFunc(data, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	urls := make([]string, len(data))
	for i := range data {
		urls[i] = data[i].URL
	}
	err := w.crawl.Update(w.t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }})
	if err != nil {
		w.t.Fatal(err)
	}
}

// write makes a part, blocks of three records.
func write[T segment.Record](w *world, name string, records []T) {
	w.t.Helper()
	part, err := segment.NewWriter[T](w.t.Context(), w.segments, name, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for block := range slices.Chunk(records, 3) {
		if err := part.Append(w.t.Context(), block); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := part.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dump() string {
	w.t.Helper()
	var b strings.Builder
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		raw, err := d.AppendBinary(nil)
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v score %g %x\n", d.URL, d.Status, d.Score, raw)
	}
	return b.String()
}

func (w *world) get(url string) crawldb.Datum {
	w.t.Helper()
	d, err := w.crawl.Get(w.t.Context(), url)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func url(i int) string { return fmt.Sprintf("http://h%d.example.test/%d", i%7, i) }

// round fills a crawl db with n pages, and a segment with a visit of every third
// and links from each of those to anywhere.
func (w *world) round(name string, n int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var list []crawldb.Datum
	var visits []segment.Visit
	var parses []segment.Parse
	opic := scoring.OPIC{}
	for i := range n {
		d := crawldb.Datum{URL: url(i), Status: crawldb.Unfetched, FetchTime: noon.Add(-day), Interval: 30 * day, Score: float32(i%5) + 1}
		opic.Injected(&d)
		if i%3 == 0 {
			list = append(list, d)
			d.LeasedBy, d.LeasedUntil = name, noon.Add(7*day)
		}
		w.put(d)
	}
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, d := range list {
		code := []protocol.Code{protocol.Success, protocol.Success, protocol.NotFound, protocol.Failed, protocol.MovedTemp}[rnd.IntN(5)]
		v := visitAt(noon, code)
		v.URL = d.URL
		visits = append(visits, *v)
		if code != protocol.Success && code != protocol.MovedTemp {
			continue
		}
		p := segment.Parse{URL: d.URL}
		if code == protocol.Success {
			p.Signature = []byte(d.URL)
		}
		var links []scoring.Link
		for range rnd.IntN(12) {
			links = append(links, scoring.Link{From: d.URL, URL: url(rnd.IntN(2 * n))})
		}
		slices.SortFunc(links, func(a, b scoring.Link) int { return cmp.Compare(a.URL, b.URL) })
		links = slices.CompactFunc(links, func(a, b scoring.Link) bool { return a.URL == b.URL })
		p.Gave = opic.Distribute(scoring.Page{Datum: &d}, links)
		for _, l := range links {
			p.Links = append(p.Links, segment.Link{URL: l.URL, Score: l.Score})
		}
		parses = append(parses, p)
	}
	write(w, name, list)
	write(w, name, visits)
	write(w, name, parses)
}

func options() update.Options {
	return update.Options{Scoring: scoring.OPIC{}, Now: func() time.Time { return noon.Add(time.Hour) }}.WithChunk(16)
}

var errDied = errors.New("died")

// dying is a store that is dead from its n-th write on, which it applies before
// it dies, or does not.
type dying struct {
	crawldb.Store
	n       int
	applies bool
}

func (s *dying) Update(ctx context.Context, b crawldb.Batch) error {
	if s.n--; s.n > 0 {
		return s.Store.Update(ctx, b)
	}
	if s.n == 0 && s.applies {
		if err := s.Store.Update(ctx, b); err != nil {
			return err
		}
	}
	return errDied
}

func (s *dying) Sync(ctx context.Context) error {
	if s.n--; s.n > 0 {
		return s.Store.Sync(ctx)
	}
	return errDied
}

func TestSegmentIsAppliedOnceAcrossKills(t *testing.T) {
	const pages = 60
	calm := newWorld(t)
	calm.round(seg, pages, 1)
	before := calm.dump()
	report, err := update.Run(t.Context(), calm.crawl, calm.segments, seg, options())
	if err != nil {
		t.Fatal(err)
	}
	if report.Resumed || report.Already || report.Unvisited != 0 || report.Visits != (pages+2)/3 || report.Links == 0 || report.Targets == 0 || report.Unparsed != 0 {
		t.Errorf("report: %+v", report)
	}
	want := calm.dump()
	if want == before {
		t.Fatal("nothing happened")
	}
	for _, applies := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.round(seg, pages, 1)
			_, err := update.Run(t.Context(), &dying{w.crawl, n, applies}, w.segments, seg, options())
			if err == nil {
				if n < 6 {
					t.Fatalf("only %d steps: the test does not test anything", n)
				}
				break
			}
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			r, err := update.Run(t.Context(), w.crawl, w.segments, seg, options())
			if err != nil {
				t.Fatal(err)
			}
			if died := n > 1 || applies; r.Resumed != died && !r.Already {
				t.Errorf("died at step %d: %+v", n, r)
			}
			if got := w.dump(); got != want {
				t.Fatalf("died at step %d (applied: %v): the crawl db differs", n, applies)
			}
		}
	}
	// And at every step of one run.
	w := newWorld(t)
	w.round(seg, pages, 1)
	for {
		_, err := update.Run(t.Context(), &dying{w.crawl, 1, true}, w.segments, seg, options())
		if done, _ := update.Done(t.Context(), w.crawl, seg); done {
			break
		}
		if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
	}
	if w.dump() != want {
		t.Error("died at every step: the crawl db differs")
	}
}

// tardy is an engine that applies what it is given in UpdateAll late: the marks of
// three batches are seen at one go, and what they are about is.
type tardy struct{ crawldb.Store }

func (s tardy) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	var marks map[string]string
	n := 0
	apply := func() error {
		b := crawldb.Batch{Marks: func() map[string]string { return marks }}
		err := s.Update(ctx, b)
		marks = nil
		return err
	}
	for b, err := range batches {
		if err != nil {
			return err
		}
		later := b.Marks
		b.Marks = nil
		if err := s.Update(ctx, b); err != nil {
			return err
		}
		if marks == nil {
			marks = map[string]string{}
		}
		if later != nil {
			maps.Copy(marks, later())
		}
		if n++; n%3 == 0 {
			if err := apply(); err != nil {
				return err
			}
		}
	}
	if err := apply(); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// The effect of a batch on the account of a domain counts in the next batch, even before the
// crawl db has it.
func TestSegmentIsAppliedOnceIfMarksComeLate(t *testing.T) {
	const second = "20260106080000-000"
	for _, o := range []update.Options{growing(10, 200), growing(10, 20), growing(10, 5)} {
		var want string
		for _, late := range []bool{false, true} {
			w := newWorld(t)
			w.trapped(seg, 0, 3, 20)
			w.trapped(second, 3, 3, 20)
			overgrown := 0
			for _, name := range []string{seg, second} {
				var crawl crawldb.Store = w.crawl
				if late {
					crawl = tardy{w.crawl}
				}
				r, err := update.Run(t.Context(), crawl, w.segments, name, o)
				if err != nil {
					t.Fatal(err)
				}
				overgrown += r.Overgrown
			}
			got := fmt.Sprint(overgrown, w.account("example.org"), w.account("example.com"), w.dump())
			if !late {
				want = got
			} else if got != want {
				t.Errorf("late marks make a difference:\n%s\nwant:\n%s", got, want)
			}
		}
	}
}

func TestSegmentUpdatedTwiceIsAppliedOnce(t *testing.T) {
	w := newWorld(t)
	w.round(seg, 60, 2)
	if done, err := update.Done(t.Context(), w.crawl, seg); done || err != nil {
		t.Errorf("done before it began: %v, %v", done, err)
	}
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, options()); err != nil {
		t.Fatal(err)
	}
	want := w.dump()
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, options())
	if err != nil || !r.Already {
		t.Errorf("%+v, %v", r, err)
	}
	if w.dump() != want {
		t.Error("the second run changed something")
	}
	if done, err := update.Done(t.Context(), w.crawl, seg); !done || err != nil {
		t.Errorf("done: %v, %v", done, err)
	}
}

func TestCancelledUpdateIsContinued(t *testing.T) {
	calm := newWorld(t)
	calm.round(seg, 60, 2)
	if _, err := update.Run(t.Context(), calm.crawl, calm.segments, seg, options()); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.round(seg, 60, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := update.Run(ctx, w.crawl, w.segments, seg, options()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, options()); err != nil {
		t.Fatal(err)
	}
	if w.dump() != calm.dump() {
		t.Error("the crawl db differs")
	}
}

func TestSameSegmentSameRecords(t *testing.T) {
	want := ""
	for i, o := range []update.Options{options(), options().WithChunk(1), options().WithChunk(10_000), options(), options()} {
		if i >= 3 { // nearly everything goes through files, and some pages are identified by their places
			o.SortMemory, o.TempDir = []int{1, 4000}[i-3], t.TempDir()
		}
		w := newWorld(t)
		w.round(seg, 120, 3)
		if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
			t.Fatal(err)
		}
		if got := w.dump(); want == "" {
			want = got
		} else if got != want {
			t.Errorf("run %d: the crawl db differs", i)
		}
	}
}

func TestBestLinksCount(t *testing.T) {
	w := newWorld(t)
	var parses []segment.Parse
	for i := range 5000 {
		parses = append(parses, segment.Parse{URL: url(i), Links: []segment.Link{{URL: page, Score: float64(i % 100)}}})
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(parses), func(i, j int) { parses[i], parses[j] = parses[j], parses[i] })
	write(w, seg, []crawldb.Datum{})
	write(w, seg, []segment.Visit{})
	write(w, seg, parses)
	var flows []scoring.Flow
	o := options()
	o.Scoring, o.MaxInlinks = spy{flows: &flows}, 60
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
		t.Fatal(err)
	}
	if len(flows) != 1 || len(flows[0].In) != 60 {
		t.Fatalf("%d pages, %d links", len(flows), len(flows[0].In))
	}
	for i, l := range flows[0].In { // 50 links have the best score, 10 the next
		if want := float64(99 - i/50); l.Score != want || l.URL != page {
			t.Errorf("link %d: %+v, want score %g", i, l, want)
		}
		if i > 0 && i != 50 && crawldb.Compare(flows[0].In[i-1].From, l.From) >= 0 {
			t.Errorf("link %d from %s after %s", i, l.From, flows[0].In[i-1].From)
		}
	}
}

// A link says which page it is on, whether the segment has a visit of that page or not.
func TestWhereLinksComeFrom(t *testing.T) {
	w := newWorld(t)
	var visits []segment.Visit
	var parses []segment.Parse
	for i := range 60 {
		if i%3 > 0 {
			v := visitAt(noon, protocol.Success)
			v.URL = url(i)
			visits = append(visits, *v)
		}
		parses = append(parses, segment.Parse{URL: url(i), Signature: []byte("s"), Links: []segment.Link{{URL: page, Score: float64(i)}}})
	}
	write(w, seg, []crawldb.Datum{})
	write(w, seg, visits)
	write(w, seg, parses)
	var flows []scoring.Flow
	o := options()
	o.Scoring = spy{flows: &flows}
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range flows {
		for _, l := range f.In {
			if n++; l.From != url(int(l.Score)) {
				t.Errorf("the link of %s comes from %s", url(int(l.Score)), l.From)
			}
		}
	}
	if n != 60 {
		t.Errorf("%d links", n)
	}
}

// spy keeps its arguments.
type spy struct {
	scoring.Base
	flows *[]scoring.Flow
}

func (s spy) Updated(_, _ *crawldb.Datum, f scoring.Flow) { *s.flows = append(*s.flows, f) }

func TestUnparsedSegment(t *testing.T) {
	w := newWorld(t)
	d := known(crawldb.Fetched, 0, "A")
	w.put(d)
	write(w, seg, []crawldb.Datum{d, {URL: url(1)}})
	write(w, seg, []segment.Visit{*visitAt(noon, protocol.Success)})
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, options())
	if err != nil {
		t.Fatal(err)
	}
	if r.Unparsed != 1 || r.Visits != 1 || r.Unvisited != 1 || r.Links != 0 {
		t.Errorf("%+v", r)
	}
	if got := w.get(page); got.Status != crawldb.Fetched || got.Signature != nil || got.LeasedBy != "" {
		t.Errorf("%+v", got)
	}
	// What was listed but has no record stays without one.
	if _, err := w.crawl.Get(t.Context(), url(1)); !errors.Is(err, crawldb.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestSegmentThatWasNotFetched(t *testing.T) {
	w := newWorld(t)
	d := known(crawldb.Fetched, 0, "A")
	w.put(d)
	write(w, seg, []crawldb.Datum{d})
	before := w.dump()
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, options()); !errors.Is(err, segment.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if done, _ := update.Done(t.Context(), w.crawl, seg); done || w.dump() != before {
		t.Error("it counts as applied")
	}
}

func TestUnvisitedPagesAreNotLeased(t *testing.T) {
	w := newWorld(t)
	d := known(crawldb.Fetched, 1, "A")
	w.put(d)
	write(w, seg, []crawldb.Datum{d})
	write(w, seg, []segment.Visit{})
	if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, options()); err != nil {
		t.Fatal(err)
	}
	d.LeasedBy, d.LeasedUntil = "", time.Time{}
	if got := w.get(page); !sameRecord(got, d) {
		t.Errorf("got %+v\nwant %+v", got, d)
	}
}

func TestOlderSegmentAppliedLast(t *testing.T) {
	const newer = "20260105200000-000"
	w := newWorld(t)
	d := known(crawldb.Unfetched, 0, "")
	d.LeasedBy, d.LeasedUntil = "", time.Time{}
	w.put(d)
	// Its lease has run out, so another segment has the page too.
	for i, name := range []string{seg, newer} {
		v := visitAt(noon.Add(time.Duration(i)*time.Hour), protocol.Success)
		write(w, name, []crawldb.Datum{d})
		write(w, name, []segment.Visit{*v})
		write(w, name, []segment.Parse{{URL: page, Signature: []byte(name), Links: []segment.Link{{URL: url(i), Score: 1}}}})
	}
	for _, name := range []string{newer, seg} {
		if _, err := update.Run(t.Context(), w.crawl, w.segments, name, options()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.get(page); string(got.Signature) != newer || got.Status != crawldb.Fetched || !got.LastFetch.Equal(noon.Add(time.Hour)) {
		t.Errorf("the older visit was applied: %+v", got)
	}
	for i := range 2 {
		if got := w.get(url(i)); got.Status != crawldb.Unfetched {
			t.Errorf("%s: %v", url(i), got.Status)
		}
	}
}

func TestSegmentsInAnyOrder(t *testing.T) {
	// Two segments of the same pages, visited at different times.
	names := []string{"20260105080000-000", "20260105080000-001"}
	var want []crawldb.Status
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		w := newWorld(t)
		for i, name := range names {
			var list []crawldb.Datum
			var visits []segment.Visit
			for p := range 20 {
				d := crawldb.Datum{URL: url(p), Status: crawldb.Unfetched, Interval: day}
				v := visitAt(noon.Add(time.Duration(i*(p%3-1))*time.Hour), []protocol.Code{protocol.Success, protocol.NotFound}[(p+i)%2])
				if v.URL = d.URL; i == 1 && p%3 == 1 {
					v.Time = v.Time.Add(time.Minute)
				}
				list, visits = append(list, d), append(visits, *v)
			}
			write(w, name, list)
			write(w, name, visits)
			write(w, name, []segment.Parse{})
			w.put(list...)
		}
		for _, i := range order {
			if _, err := update.Run(t.Context(), w.crawl, w.segments, names[i], options()); err != nil {
				t.Fatal(err)
			}
		}
		var got []crawldb.Status
		for p := range 20 {
			got = append(got, w.get(url(p)).Status)
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("in the other order: %v, want %v", got, want)
		}
	}
}
