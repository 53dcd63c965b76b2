package simulate_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
	"github.com/recrawl/recrawl/update"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

const day = 24 * time.Hour

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", file, got)
	}
}

func sample(t *testing.T) []simulate.Page {
	t.Helper()
	f, err := os.Open("testdata/golang-website.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pages, err := simulate.ParseHistory(f)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func TestMeasures(t *testing.T) {
	at := func(days float64) time.Time { return start.Add(time.Duration(days * float64(day))) }
	event := func(days float64, k simulate.Kind) simulate.Event { return simulate.Event{Time: at(days), Kind: k} }
	// Visits on days 0, 10, 20 and 30, and the end on day 40.
	p := simulate.Page{URL: "http://example.org/", Events: []simulate.Event{
		event(-1, simulate.Appears), event(5, simulate.Modified), event(6, simulate.Modified), event(20, simulate.Modified), event(38, simulate.Deleted),
	}}
	r := simulated(t, []simulate.Page{p}, schedule.Default{DefaultInterval: 10 * day}, simulate.Options{Start: start, Duration: 40 * day})
	c := r.Pages[0]
	if len(c.Visits) != 4 {
		t.Fatalf("%+v", c.Visits)
	}
	for i, want := range []simulate.Visit{
		{Time: at(0), Status: crawldb.Fetched, Changed: true, Interval: 10 * day, Next: at(10)},
		{Time: at(10), Status: crawldb.Fetched, Changed: true, Events: 2, Late: 5 * day, Interval: 10 * day, Next: at(20)},
		{Time: at(20), Status: crawldb.Fetched, Changed: true, Events: 1, Interval: 10 * day, Next: at(30)},
		{Time: at(30), Status: crawldb.NotModified, Interval: 10 * day, Next: at(40)},
	} {
		if c.Visits[i] != want {
			t.Errorf("visit %d: %+v, want %+v", i, c.Visits[i], want)
		}
	}
	// Stale for 5 and 2 of 40 days: the age adds up to 25/2 and 4/2 squared days.
	want := simulate.Totals{Visits: 4, News: 3, Changes: 4, Missed: 1, Pending: 1, Freshness: 1 - 7.0/40, Age: time.Duration(14.5 / 40 * float64(day)).Round(time.Second)}
	if math.Abs(c.Total.Freshness-want.Freshness) < 1e-12 {
		c.Total.Freshness = want.Freshness
	}
	if c.Total != want {
		t.Errorf("%+v, want %+v", c.Total, want)
	}
}

// A page that appears after the end is not stale for that.
func TestPageThatWasNotVisited(t *testing.T) {
	late := simulate.Never("http://b.example/", start.Add(400*day))
	r := simulated(t, []simulate.Page{simulate.Never("http://a.example/", start), late}, schedule.Default{}, simulate.Options{Duration: 365 * day})
	if r.Total.Freshness != 1 || r.Total.Age != 0 || r.Pages[1].Total != (simulate.Totals{}) {
		t.Errorf("%+v", r.Total)
	}
}

func TestPageThatComesAndGoes(t *testing.T) {
	pages, err := simulate.ParseHistory(strings.NewReader("http://x/ 2026-01-03T00:00:00Z:A 2026-02-01T00:00:00Z:D 2026-06-01T00:00:00Z:A"))
	if err != nil {
		t.Fatal(err)
	}
	for _, conditional := range []bool{false, true} {
		r := simulated(t, pages, schedule.Adaptive{}, simulate.Options{Start: start, Duration: 365 * day, Conditional: conditional})
		var got []string
		for _, v := range r.Pages[0].Visits {
			if n := len(got); n == 0 || got[n-1] != v.Status.String() {
				got = append(got, v.Status.String())
			}
		}
		if want := "[db_gone db_fetched db_notmodified]"; fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// hidden hides that a schedule has a horizon, so that it is asked at every step.
type hidden struct{ schedule.FetchSchedule }

func TestStepsThatAreSkippedDoNotMatter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, nutch := range []bool{false, true} {
		for range 20 {
			s := schedule.Adaptive{Default: schedule.Default{NutchCompat: nutch, MaxInterval: 40 * day}, IncRate: rnd.Float64(), SyncRate: rnd.Float64()}
			p := simulate.Poisson("http://example.org/", start, 300*day, time.Duration(1+rnd.IntN(30))*day, rnd.Uint64())
			o := simulate.Options{Step: time.Duration(1+rnd.IntN(60)) * time.Hour, LastModified: rnd.IntN(2) == 0, Conditional: rnd.IntN(2) == 0}
			o.Update = update.Options{NutchCompat: nutch, MaxInterval: 40 * day}
			a, b := simulated(t, []simulate.Page{p}, s, o), simulated(t, []simulate.Page{p}, hidden{s}, o)
			if nutch { // what is selected is corrected by a method, which is hidden too
				continue
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%v\n%v", a.Total, b.Total)
			}
		}
	}
}

// The crawls of Nutch's TestCrawlDbStates: 25, 238 and 424 visits.
func TestNutchCrawls(t *testing.T) {
	for _, c := range []struct {
		name         string
		s            schedule.FetchSchedule
		step         time.Duration
		fetched      int
		same, forced int
	}{
		{"default", schedule.Default{NutchCompat: true}, day, 13, 12, 0},
		{"adaptive", schedule.Adaptive{Default: schedule.Default{NutchCompat: true}}, day, 228, 8, 2},
		{"sync delta", schedule.Adaptive{Default: schedule.Default{NutchCompat: true, DefaultInterval: 2 * day, MaxInterval: 7 * day}, MinInterval: day, AdaptiveMax: 7 * day}, 8 * time.Hour, 363, 61, 0},
	} {
		at := time.UnixMilli(1e12).UTC()
		o := simulate.Options{Start: at, Duration: 730 * day, Step: c.step, Update: update.Options{NutchCompat: true}}
		// Another content at every visit of the first year: when they are is found
		// with one that changes all the time.
		p := simulate.Every("http://example.org/", at, 365*day, time.Hour)
		changes := simulate.Page{URL: p.URL}
		for _, v := range simulated(t, []simulate.Page{p}, c.s, o).Pages[0].Visits {
			if v.Time.Before(at.Add(365 * day)) {
				changes.Events = append(changes.Events, simulate.Event{Time: v.Time, Kind: simulate.Modified})
			}
		}
		r := simulated(t, []simulate.Page{changes}, c.s, o)
		n := map[crawldb.Status]int{}
		for _, v := range r.Pages[0].Visits {
			n[v.Status]++
		}
		if n[crawldb.Fetched] != c.fetched || n[crawldb.NotModified] != c.same || n[crawldb.Unfetched] != c.forced {
			t.Errorf("%s: %v, want %d, %d and %d", c.name, n, c.fetched, c.same, c.forced)
		}
	}
}

func TestPrinted(t *testing.T) {
	var b bytes.Buffer
	one := simulated(t, []simulate.Page{simulate.Poisson("http://example.org/<&>", start, 365*day, 7*day, 1)}, schedule.Adaptive{}, simulate.Options{})
	many := simulated(t, sample(t), schedule.Adaptive{}, simulate.Options{LastModified: true})
	fmt.Fprintln(&b, "One page:")
	one.Pages[0].WriteTable(&b, 20)
	one.WritePlot(&b, 0)
	fmt.Fprintln(&b, "\nSome pages:")
	many.WriteTable(&b, 10)
	many.WritePlot(&b, 100)
	fmt.Fprintln(&b, "\nNo pages:")
	none := simulated(t, nil, schedule.Adaptive{}, simulate.Options{})
	none.WriteTable(&b, 0)
	none.WritePlot(&b, 5)
	golden(t, "printed.txt", b.String())

	for i, r := range []*simulate.Result{&one, &many, &none} {
		b.Reset()
		if err := r.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		circles := 0
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("picture %d: %v", i, err)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
				circles++
			}
		}
		if circles != r.Total.Visits {
			t.Errorf("picture %d: %d points for %d visits", i, circles, r.Total.Visits)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWritersReturnErrors(t *testing.T) {
	r := simulated(t, sample(t), schedule.Adaptive{}, simulate.Options{})
	for name, err := range map[string]error{
		"WriteTable": r.WriteTable(full{}, 0), "a page's WriteTable": r.Pages[0].WriteTable(full{}, 0), "WritePlot": r.WritePlot(full{}, 0), "WriteSVG": r.WriteSVG(full{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// simulated runs to the end.
func simulated(t testing.TB, history []simulate.Page, s schedule.FetchSchedule, o simulate.Options) simulate.Result {
	t.Helper()
	r, err := simulate.Run(t.Context(), history, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The end of the context ends a run in the midst of a page.
func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := cancels{schedule.Default{DefaultInterval: day}, cancel}
	r, err := simulate.Run(ctx, []simulate.Page{simulate.Never("http://a.example/", start), simulate.Never("http://b.example/", start)}, s, simulate.Options{})
	if !errors.Is(err, context.Canceled) || len(r.Pages) != 0 {
		t.Errorf("%d pages, %v", len(r.Pages), err)
	}
}

// cancels is a schedule that cancels a run at its first visit.
type cancels struct {
	schedule.Default
	cancel func()
}

func (s cancels) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	s.cancel()
	return s.Default.Fetched(d, v)
}

func TestOnlyOnePage(t *testing.T) {
	r := simulated(t, sample(t), schedule.Adaptive{}, simulate.Options{})
	want := r.Pages[2]
	if one, ok := r.Only(want.Page.URL); !ok || len(one.Pages) != 1 || one.Total != want.Total {
		t.Errorf("%+v", one)
	}
	if _, ok := r.Only("http://nowhere/"); ok {
		t.Error("it is there")
	}
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second / 2: "1s", 59 * time.Second: "59s", time.Hour: "1h", 90 * time.Minute: "1h 30m", day + time.Second: "1d",
		400*day + 5*time.Hour: "400d 5h", -time.Minute: "-1m", math.MinInt64: "-106751d 23h",
	} {
		if got := simulate.ShortDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A date is its first moment in UTC.
func TestDates(t *testing.T) {
	pages, err := simulate.ParseHistory(strings.NewReader("http://x/ 2026-01-01:A 2026-03-01 2026-03-01T00:00:01Z 1772409600:D"))
	if err != nil {
		t.Fatal(err)
	}
	want := []simulate.Event{
		{Time: start, Kind: simulate.Appears},
		{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Kind: simulate.Modified},
		{Time: time.Date(2026, 3, 1, 0, 0, 1, 0, time.UTC), Kind: simulate.Modified},
		{Time: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Kind: simulate.Deleted},
	}
	if !reflect.DeepEqual(pages[0].Events, want) {
		t.Errorf("%v, want %v", pages[0].Events, want)
	}
}

// Editors of some systems begin a file with a byte order mark and end its lines with two
// characters.
func TestParseHistoryOfAnotherSystem(t *testing.T) {
	for _, text := range []string{
		"\ufeffhttp://x/ 2026-01-01:A 2026-02-01\r\n",
		"\ufeffhttp://x/\t2026-01-01:A 2026-02-01\r\n",
		"\ufeffurl\ttime\ttextmd5\r\nhttp://x/\t2026-01-01\ta\r\nhttp://x/\t2026-02-01\tb\r\n",
	} {
		pages, err := simulate.ParseHistory(strings.NewReader(text))
		if err != nil || len(pages) != 1 || pages[0].URL != "http://x/" || len(pages[0].Events) != 2 {
			t.Errorf("%q: %+v, %v", text, pages, err)
		}
	}
}

// A history of one moment says nothing of how long to crawl.
func TestCrawlOfOneMoment(t *testing.T) {
	history, err := simulate.ParseHistory(strings.NewReader("http://x/ 2026-01-01:A\nhttp://y/ 2026-01-01:A\n"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := simulate.Histories(history, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := simulate.Crawl(t.Context(), pages, simulate.Policy{Name: "x", Schedule: schedule.Default{}}, simulate.CrawlOptions{PerDay: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.Timeline[len(out.Timeline)-1].To.Sub(out.Timeline[0].From); d != 1080*24*time.Hour {
		t.Errorf("it was crawled for %v", d)
	}
}

func TestParseHistoryErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "simulate: the history has no pages",
		"\n# x\nhttp://x/ soon":             `simulate: line 3: "soon" is not an event; want a time (RFC 3339, a date, 20060102150405, or seconds or thousandths since 1970) and :A, :M, :D, :B or :T`,
		"http://x/ 5:X":                     `simulate: line 1: "5:X" is not an event; want a time (RFC 3339, a date, 20060102150405, or seconds or thousandths since 1970) and :A, :M, :D, :B or :T`,
		"http://x/ 999999999999999":         `simulate: line 1: "999999999999999" is not an event; want a time (RFC 3339, a date, 20060102150405, or seconds or thousandths since 1970) and :A, :M, :D, :B or :T`,
		"http://x/ 5:A 4":                   "simulate: line 1: 4 comes after a later event; the earliest must be first",
		"http://x/\nhttp://x/ 5":            "simulate: line 2: an earlier line is for http://x/",
		"http://x/ 0026-01-01:A 2026-03-01": "simulate: line 1: 2026-03-01 is more than 146 years from 0026-01-01: is a date misspelled?",
		"http://x/ 2026-03-01\nhttp://y/ 1881-01-01:A 1890-01-01": "",
		"http://x/ 2026-03-01\nhttp://y/ 1879-01-01:A 1890-01-01": "simulate: line 2: 1879-01-01:A is more than 146 years from 2026-03-01: is a date misspelled?",
	} {
		if _, err := simulate.ParseHistory(strings.NewReader(text)); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	empty, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if _, err := simulate.ParseHistory(empty); err == nil || err.Error() != "simulate: "+os.DevNull+": the history has no pages" {
		t.Errorf("of a file: %v", err)
	}
	f, err := os.Open("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := simulate.ParseHistory(f); err == nil || !strings.HasPrefix(err.Error(), "simulate: testdata/README.md:3: ") {
		t.Errorf("%v", err)
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add("http://x/ 1:A 2 3:D\n")
	f.Add("http://x/ 2026-01-01:A 2026-02-30")
	f.Add("http://x/ 2026-01-01T00:00:00Z:A 2026-01-01T00:00:00+01:00")
	f.Add("url\ttime\tstatus\tmd5\ttextmd5\na\t20260103120000\t200\tx\t-\na\t2026-01-01\t404\t\t\na\t5\t304\t\t\n")
	f.Add("url time md5\na 1 x\na 9 y")
	f.Add("a 1:A 2:B 3:T 4:M 5:D")
	f.Fuzz(func(t *testing.T, text string) {
		pages, err := simulate.ParseHistory(strings.NewReader(text))
		if err != nil {
			return
		}
		r := simulated(t, pages, schedule.Adaptive{}, simulate.Options{Duration: 100 * day, Step: day})
		for _, c := range r.Pages {
			if tot := c.Total; !(tot.Freshness >= -1e-9 && tot.Freshness <= 1+1e-9) || tot.Missed > tot.Changes || tot.Age < 0 {
				t.Errorf("%q: %+v", text, tot)
			}
		}
		if err := r.WritePlot(io.Discard, 0); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkYear(b *testing.B) {
	pages := []simulate.Page{simulate.Poisson("http://example.org/", start, 365*day, day, 1)}
	visits := 0
	for b.Loop() {
		r := simulated(b, pages, schedule.Adaptive{}, simulate.Options{})
		visits = r.Total.Visits
	}
	b.ReportMetric(float64(visits), "visits")
}
