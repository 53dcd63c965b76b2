package update_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

// show describes what became of a record, but for its status.
func show(old, d *crawldb.Datum) string {
	var b strings.Builder
	same := func(name string, now, before any) {
		if fmt.Sprint(now) == fmt.Sprint(before) {
			now = "kept"
		}
		fmt.Fprintf(&b, " %-13s", fmt.Sprintf("%s %v", name, now))
	}
	var was crawldb.Datum
	if old != nil {
		was = *old
	}
	sum := string(d.Signature)
	switch {
	case sum == "":
		sum = "-"
	case old != nil && bytes.Equal(was.Signature, d.Signature):
		sum = "same"
	default:
		sum = "new"
	}
	fmt.Fprintf(&b, " sum %-4s", sum)
	switch d.ETag + d.LastModified {
	case "":
		b.WriteString("  val -   ")
	case `"old"old`:
		b.WriteString("  val kept")
	case `"new"new`:
		b.WriteString("  val new ")
	default:
		b.WriteString("  val ??? ")
	}
	fmt.Fprintf(&b, "  retries %d ", d.Retries)
	same("mod", since(d.Modified), since(was.Modified))
	same("visit", since(d.LastFetch), since(was.LastFetch))
	lease := "kept"
	if d.LeasedBy == "" && d.LeasedUntil.IsZero() {
		lease = "ended"
	}
	fmt.Fprintf(&b, " lease %s", lease)
	return b.String()
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%+gd", t.Sub(noon).Hours()/24)
}

// when is the effect of the schedule.
func when(d *crawldb.Datum) string {
	return fmt.Sprintf("%gd %s", d.Interval.Hours()/24, since(d.FetchTime))
}

// TestNext compares every transition with testdata/next.txt, which is to be read
// beside the table in the comment of Next. Where all nine statuses lead to the
// same, they make one line.
func TestNext(t *testing.T) {
	plain := update.Options{Schedule: schedule.Default{}, Now: func() time.Time { return noon }}
	adaptive := plain
	adaptive.Schedule = schedule.Adaptive{}

	step := func(e event, old *crawldb.Datum) (status, rest string) {
		in := update.Input{URL: page, Segment: seg, Visit: e.visit, Parse: e.parse, Links: e.links}
		var before crawldb.Datum
		if old != nil {
			before = *old
		}
		d, a := update.Next(old, in, plain), update.Next(old, in, adaptive)
		if old != nil && !sameRecord(before, *old) {
			t.Errorf("%s: the old record was changed", e.name)
		}
		if d == nil {
			return "no record", ""
		}
		if a.Status != d.Status || show(old, a) != show(old, d) {
			t.Errorf("%s: the schedules differ in more than time:%s\n%s", e.name, show(old, d), show(old, a))
		}
		if d.URL != page || old != nil && (d.Score != old.Score || d.Priority != old.Priority) {
			t.Errorf("%s: URL or score changed: %+v", e.name, d)
		}
		if v, _ := d.Meta.Get("seed"); old != nil && v != "x" {
			t.Errorf("%s: metadata were lost", e.name)
		}
		return d.Status.String(), fmt.Sprintf("%s   default: %-13s adaptive: %s", show(old, d), when(d), when(a))
	}

	var got strings.Builder
	fmt.Fprintf(&got, "# old record, event, old signature, old retries: what becomes of it.\n"+
		"# Content that is new has signature A. Intervals and times in days; times count from the visit.\n"+
		"# The old record has an interval of 30d, was visited at -30d and modified at -40d.\n\n")
	line := func(old string, e event, sum string, retries int, status, rest string) {
		fmt.Fprintf(&got, "%-16s %-22s %-5s %d : %-16s%s\n", old, e.name, sum, retries, status, strings.TrimRight(rest, " "))
	}
	for _, e := range events() {
		if e.name == "stale success" {
			continue // nothing to be older than
		}
		status, rest := step(e, nil)
		line("none", e, "none", 0, status, rest)
	}
	got.WriteString("\n")
	for _, e := range events() {
		sums := []string{"", "A"}
		if e.name == "success" {
			sums = []string{"", "A", "B"}
		}
		for _, sum := range sums {
			name := map[string]string{"": "none", "A": "A", "B": "B"}[sum]
			for _, retries := range []int{0, 2} {
				type result struct{ status, rest string }
				var all []result
				constant, kept, rests := true, true, true
				for _, s := range crawldb.Statuses() {
					old := known(s, retries, sum)
					status, rest := step(e, &old)
					all = append(all, result{status, rest})
					constant = constant && status == all[0].status
					kept = kept && status == s.String()
					rests = rests && rest == all[0].rest
				}
				switch {
				case rests && constant:
					line("any", e, name, retries, all[0].status, all[0].rest)
				case rests && kept:
					line("any", e, name, retries, "as before", all[0].rest)
				default:
					for i, s := range crawldb.Statuses() {
						line(s.String(), e, name, retries, all[i].status, all[i].rest)
					}
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
