package update_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

const (
	page = "http://a.example.test/p"
	seg  = "20260105080000-000"
	day  = 24 * time.Hour
)

// noon is the time of every visit.
var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// known is a record that was fetched thirty days before noon, when its content was
// ten days old, and is on its way in the segment.
func known(status crawldb.Status, retries int, sum string) crawldb.Datum {
	d := crawldb.Datum{
		URL: page, Status: status, FetchTime: noon.Add(-day), LastFetch: noon.Add(-30 * day),
		Interval: 30 * day, Modified: noon.Add(-40 * day), Retries: retries, Score: 2, Priority: 2,
		ETag: `"old"`, LastModified: "old",
		LeasedUntil: noon.Add(7 * day), LeasedBy: seg, Meta: crawldb.MetaOf("seed", "x"),
	}
	if sum != "" {
		d.Signature = []byte(sum)
	}
	return d
}

func visitAt(at time.Time, code protocol.Code) *segment.Visit {
	v := &segment.Visit{URL: page, Time: at, Outcome: protocol.Outcome{Code: code}}
	if code == protocol.Success {
		v.ETag, v.LastModified, v.ContentType = `"new"`, "new", "text/html"
	}
	return v
}

func parsed(sum string) *segment.Parse {
	return &segment.Parse{URL: page, Signature: []byte(sum)}
}

// event is what a segment may know of a page: a line of the golden table.
type event struct {
	name  string
	visit *segment.Visit
	parse *segment.Parse
	links []scoring.Link
}

func events() []event {
	all := []event{
		{name: "nothing"},
		{name: "links only", links: []scoring.Link{{From: "http://b.example.test/", URL: page, Score: 1}}},
	}
	for c := protocol.Success; c <= protocol.Skipped; c++ {
		if c == protocol.Success {
			all = append(all,
				event{name: "success", visit: visitAt(noon, c), parse: parsed("A")},
				event{name: "success, not parsable", visit: visitAt(noon, c), parse: &segment.Parse{URL: page, Error: "no"}},
				event{name: "success, not parsed", visit: visitAt(noon, c)})
			continue
		}
		e := event{name: c.String(), visit: visitAt(noon, c)}
		if c.Redirect() {
			e.parse = &segment.Parse{URL: page}
		}
		all = append(all, e)
	}
	return append(all, event{name: "stale success", visit: visitAt(noon.Add(-31*day), protocol.Success), parse: parsed("B")})
}

// cell is one thing to know of what became of a record.
type cell struct{ name, value string }

// cells describe what became of a record; the first is the status.
func cells(old, d, adaptive *crawldb.Datum) []cell {
	if d == nil {
		return []cell{{"", "no record"}}
	}
	var was crawldb.Datum
	if old != nil {
		was = *old
	}
	same := func(now, before any) string {
		if fmt.Sprint(now) == fmt.Sprint(before) {
			return "kept"
		}
		return fmt.Sprint(now)
	}
	sum := "new"
	switch {
	case d.Signature == nil:
		sum = "-"
	case bytes.Equal(was.Signature, d.Signature):
		sum = "same"
	}
	val := "???"
	switch d.ETag + d.LastModified {
	case "":
		val = "-"
	case `"old"old`:
		val = "kept"
	case `"new"new`:
		val = "new"
	case d.Modified.Format(http.TimeFormat):
		val = "mod"
	}
	lease := "kept"
	if d.LeasedBy == "" && d.LeasedUntil.IsZero() {
		lease = "ended"
	}
	return []cell{
		{"", d.Status.String()},
		{"sum ", sum}, {"val ", val}, {"retries ", fmt.Sprint(d.Retries)},
		{"mod ", same(since(d.Modified), since(was.Modified))}, {"visit ", same(since(d.LastFetch), since(was.LastFetch))},
		{"lease ", lease}, {"default: ", when(d)}, {"adaptive: ", when(adaptive)},
	}
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%+.5gd", t.Sub(noon).Hours()/24)
}

// when is the effect of the schedule.
func when(d *crawldb.Datum) string {
	return fmt.Sprintf("%.5gd %s", d.Interval.Hours()/24, since(d.FetchTime))
}

// row is a line of the golden file: the result for a record, and how Nutch's result differs.
func row(ours, nutch []cell) string {
	var b strings.Builder
	for i, c := range ours {
		fmt.Fprintf(&b, "%-*s", []int{16, 9, 9, 12, 10, 11, 12, 21, 20}[i], c.name+c.value)
	}
	var differs []string
	for i, c := range nutch {
		if i >= len(ours) || c.value != ours[i].value {
			differs = append(differs, c.name+c.value)
		}
	}
	if len(differs) == 0 {
		return strings.TrimRight(b.String(), " ")
	}
	return fmt.Sprintf("%-122s| %s", b.String(), strings.Join(differs, "; "))
}

// asBefore calls the status that the record had so.
func asBefore(cells []cell, s crawldb.Status) []cell {
	cells = slices.Clone(cells)
	if cells[0].value == s.String() {
		cells[0].value = "as before"
	}
	return cells
}

// What a page no longer says of itself is not kept, and what others have put there is.
func TestPropertiesOfAPage(t *testing.T) {
	o := update.Options{Now: func() time.Time { return noon }}
	visit := func(old *crawldb.Datum, p *segment.Parse) *crawldb.Datum {
		return update.Next(old, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success), Parse: p}, o)
	}
	said := func(pairs ...string) *segment.Parse {
		p := parsed("B")
		p.Meta = crawldb.MetaOf(pairs...)
		return p
	}
	old := known(crawldb.Fetched, 0, "A")
	d := visit(&old, said("author", "Ann", "lang", "en"))
	if want := crawldb.MetaOf("page.author", "Ann", "page.lang", "en", "seed", "x"); d.Meta != want {
		t.Errorf("said two things: %q", d.Meta.Encoded())
	}
	if next := visit(d, nil); next.Meta != d.Meta {
		t.Errorf("not read: %q", next.Meta.Encoded())
	}
	d = visit(d, said("lang", "de"))
	if want := crawldb.MetaOf("page.lang", "de", "seed", "x"); d.Meta != want {
		t.Errorf("said one of them anew: %q", d.Meta.Encoded())
	}
	if d = visit(d, said()); d.Meta != old.Meta {
		t.Errorf("said nothing: %q", d.Meta.Encoded())
	}
}

// A page that was away for some visits, or could not be parsed, is fetched as often as
// before when it is back, or as any other.
func TestPageThatIsBack(t *testing.T) {
	for name, s := range map[string]schedule.FetchSchedule{"default": schedule.Default{}, "adaptive": schedule.Adaptive{}} {
		for _, away := range []update.Input{
			{Visit: visitAt(noon, protocol.NotFound)},
			{Visit: visitAt(noon, protocol.Success), Parse: &segment.Parse{URL: page, Error: "no"}},
		} {
			for first, most := range map[time.Duration]time.Duration{30 * day: 30 * day, time.Hour: 6 * time.Hour, 80 * day: 30 * day} {
				d := crawldb.Datum{URL: page, Status: crawldb.Fetched, Interval: first, LastFetch: noon.Add(-first), Signature: []byte("A")}
				at := noon
				see := func(in update.Input, sum string) {
					visit := *away.Visit
					if sum != "" {
						visit, in.Parse = *visitAt(at, protocol.Success), parsed(sum)
					}
					visit.Time = at
					in.URL, in.Segment, in.Visit = page, seg, &visit
					d = *update.Next(&d, in, update.Options{Schedule: s, Now: func() time.Time { return at }})
					at = d.FetchTime
				}
				for range 4 {
					see(away, "")
				}
				if d.Interval < first {
					t.Errorf("%s: while it is away it is fetched every %v", name, d.Interval)
				}
				see(update.Input{}, "B")
				if d.Status != crawldb.Fetched || d.Interval > most {
					t.Errorf("%s: %v, every %v before, is every %v when it is back", name, d.Status, first, d.Interval)
				}
			}
		}
	}
}

// TestNext compares every transition with testdata/next.txt; read it together with the table in
// the comment of Next. If all nine statuses lead to the same result, they share one line.
func TestNext(t *testing.T) {
	clock := func() time.Time { return noon }
	plain := update.Options{Schedule: schedule.Default{}, Now: clock}
	adaptive := update.Options{Schedule: schedule.Adaptive{}, Now: clock}
	nutch := update.Options{Schedule: schedule.Default{NutchCompat: true}, Now: clock, NutchCompat: true, ParseFailed: true}
	nutchAdaptive := nutch
	nutchAdaptive.Schedule = schedule.Adaptive{Default: schedule.Default{NutchCompat: true}}

	both := func(e event, old *crawldb.Datum, plain, adaptive update.Options) []cell {
		in := update.Input{URL: page, Segment: seg, Listed: old, Visit: e.visit, Parse: e.parse, Links: e.links}
		var before crawldb.Datum
		if old != nil {
			before = *old
		}
		d, a := update.Next(old, in, plain), update.Next(old, in, adaptive)
		if old != nil && !sameRecord(before, *old) {
			t.Errorf("%s: the old record was changed", e.name)
		}
		if d == nil {
			return cells(old, nil, nil)
		}
		x, y := cells(old, d, a), cells(old, a, a)
		if !slices.Equal(x[:len(x)-2], y[:len(y)-2]) {
			t.Errorf("%s: the schedules differ in more than time: %v\n%v", e.name, x, y)
		}
		if d.URL != page || old != nil && (d.Score != old.Score || d.Priority != old.Priority) {
			t.Errorf("%s: URL or score changed: %+v", e.name, d)
		}
		if v, _ := d.Meta.Get("seed"); old != nil && v != "x" {
			t.Errorf("%s: metadata were lost", e.name)
		}
		return x
	}
	step := func(e event, old *crawldb.Datum) (ours, nutchs []cell) {
		return both(e, old, plain, adaptive), both(e, old, nutch, nutchAdaptive)
	}

	var got strings.Builder
	fmt.Fprintf(&got, "# old record, event, old signature, old retries: what becomes of it. Behind the bar: in what NutchCompat\n"+
		"# (with ParseFailed) differs. val mod: the validator is the time of the modification.\n"+
		"# Content that is new has signature A. Intervals and times in days; times count from the visit.\n"+
		"# The old record has an interval of 30d, was visited at -30d and modified at -40d.\n\n")
	line := func(old string, e event, sum string, retries int, row string) {
		fmt.Fprintf(&got, "%-16s %-22s %-5s %-3d : %s\n", old, e.name, sum, retries, row)
	}
	for _, e := range events() {
		if e.name == "stale success" {
			continue // nothing to be older than
		}
		ours, nutch := step(e, nil)
		line("none", e, "none", 0, row(ours, nutch))
	}
	got.WriteString("\n")
	for _, e := range events() {
		sums := []string{"", "A"}
		if e.name == "success" {
			sums = []string{"", "A", "B"}
		}
		counts := []int{0, 2}
		if e.name == "failed" || e.name == "gone" {
			counts = []int{0, 1, 2, 127}
		}
		for _, sum := range sums {
			name := map[string]string{"": "none", "A": "A", "B": "B"}[sum]
			for _, retries := range counts {
				var rows [3][]string // of all statuses, the last for when they lead to the same
				for _, s := range crawldb.Statuses() {
					old := known(s, retries, sum)
					ours, nutch := step(e, &old)
					rows[0] = append(rows[0], row(asBefore(ours, s), asBefore(nutch, s)))
					rows[1] = append(rows[1], row(asBefore(ours, s), nutch))
					rows[2] = append(rows[2], row(ours, nutch))
				}
				same := func(rows []string) bool { return len(slices.Compact(slices.Clone(rows))) == 1 }
				if i := slices.IndexFunc(rows[:], same); i >= 0 {
					line("any", e, name, retries, rows[i][0])
					continue
				}
				for i, s := range crawldb.Statuses() {
					line(s.String(), e, name, retries, rows[2][i])
				}
			}
		}
	}
	golden(t, "next.txt", got.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(raw); got != want {
		g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s, line %d:\ngot  %s\nwant %s", file, i+1, g[i], w[i])
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: %d lines, want %d", file, len(g), len(w))
		}
	}
}

func sameRecord(a, b crawldb.Datum) bool {
	x, err := a.AppendBinary(nil)
	y, err2 := b.AppendBinary(nil)
	return err == nil && err2 == nil && a.URL == b.URL && bytes.Equal(x, y)
}

// An answer without content may bring new validators, and only what it brings is new.
func TestValidatorsOfNotModified(t *testing.T) {
	for _, c := range []struct{ tag, modified, want string }{
		{"", "", `"old" old`},
		{`"new"`, "", `"new" old`},
		{"", "new", `"old" new`},
		{`"new"`, "new", `"new" new`},
	} {
		old := known(crawldb.Fetched, 0, "A")
		v := visitAt(noon, protocol.NotModified)
		v.ETag, v.LastModified = c.tag, c.modified
		d := update.Next(&old, update.Input{URL: page, Segment: seg, Visit: v}, update.Options{})
		if got := d.ETag + " " + d.LastModified; got != c.want || string(d.Signature) != "A" {
			t.Errorf("%q and %q came: %s, want %s", c.tag, c.modified, got, c.want)
		}
	}
}
