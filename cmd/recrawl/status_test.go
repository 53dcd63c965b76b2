package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// learnedCrawl makes a crawl that has learned how often its pages change: those of one
// host do at each visit, those of another seldom, and a third has pages that were never
// visited.
func learnedCrawl(t *testing.T) (dir string) {
	t.Helper()
	now := parsed(frozen)
	const day = 24 * time.Hour
	s := schedule.Learned{}
	var records []crawldb.Datum
	for i := range 200 {
		host, every := "slow.example", 20
		if i%4 == 0 {
			host, every = "fast.example", 1
		}
		at := now.Add(-time.Duration(100+i%7) * day)
		d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://%s/%d", host, i), Status: crawldb.Fetched, Score: float32(1 + i%3), Signature: []byte{1}}, at)
		for n := range 10 {
			v := schedule.Visit{Time: at, ContentType: "text/html"}
			if n > 0 {
				v.PrevFetch = d.LastFetch
				if v.Change = schedule.Unchanged; (n+i)%every == 0 {
					v.Change = schedule.Changed
				}
			}
			d = s.Fetched(d, v)
			d.LastFetch = at
			at = at.Add(10 * day)
		}
		records = append(records, d)
	}
	for i := range 20 {
		records = append(records, s.Init(crawldb.Datum{URL: fmt.Sprintf("http://new.example/%d", i), Status: crawldb.Unfetched, Score: 0.5}, now))
	}
	return crawlOf(t, records, 8, schedule.PlanOptions{})
}

// crawlOf makes a crawl of records, with a plan for a budget of visits a day.
func crawlOf(t *testing.T, records []crawldb.Datum, budget float64, how schedule.PlanOptions) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(records, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	var urls []string
	for _, d := range records {
		urls = append(urls, d.URL)
	}
	err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }})
	if err != nil {
		t.Fatal(err)
	}
	sample := schedule.Learned{Budget: budget}.NewSample(parsed(frozen))
	for i := range records {
		sample.Add(&records[i])
	}
	how.Outlook = true
	plan := sample.Plan(how)
	text, err := plan.Encode()
	if err == nil {
		err = db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("schedule/plan", text)})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a crawl that learns says of itself is in testdata/readers, a file for each command line.
func TestStatus(t *testing.T) {
	t.Parallel()
	dir := learnedCrawl(t)
	for name, line := range map[string]string{
		"status":            "status -schedule learned -budget 8",
		"status-json":       "status -json -want 0.95 -schedule learned -budget 8",
		"status-plan":       "status -want 0.9 -want 0.5 -want 0.9 -hosts 1",
		"stats-learned":     "readdb -stats -schedule learned -budget 8",
		"explain-learned":   "explain -schedule learned -budget 8 http://fast.example/0",
		"explain-unvisited": "explain -schedule learned -budget 8 http://new.example/0",
	} {
		reads(t, dir, name, line)
	}
	for _, bad := range []string{"-want 95", "-want 0", "-hosts -1", "too much"} {
		args := append([]string{"status", "-d", dir}, strings.Fields(bad)...)
		if r := recrawl(t, args...); r.code != 2 || !strings.Contains(r.err, strings.Fields(bad)[0]) {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// Status shows a host where each visit finds a change, and a budget that is not enough for
// the greatest intervals.
func TestStatusShowsNoiseAndStretch(t *testing.T) {
	t.Parallel()
	now := parsed(frozen)
	s := schedule.Learned{}
	var records []crawldb.Datum
	for i := range 40 {
		host, change := "noisy.example", schedule.Changed
		if i%2 == 0 {
			host, change = "quiet.example", schedule.Unchanged
		}
		at := now.AddDate(0, 0, -9)
		d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://%s/%d", host, i), Status: crawldb.Fetched, Score: 1, Signature: []byte{1}}, at)
		d = s.Fetched(d, schedule.Visit{Time: at})
		for range 3 {
			d.LastFetch, at = at, at.AddDate(0, 0, 3)
			d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: change})
		}
		d.LastFetch = at
		records = append(records, d)
	}
	dir := crawlOf(t, records, 0.1, schedule.PlanOptions{})
	const noise, alone = "noisy.example: visits to 20 of 20 pages always find a change, however soon", "at most 800d instead of the 90d set: the budget is too small for that"
	for line, want := range map[string][]string{
		"status":                               {noise, alone},
		"readdb -stats":                        {noise, alone},
		"status -json":                         {`"noisy":[{"host":"noisy.example","checked":20,"changed":20}]`, `"greatest_interval_seconds":7776000`, `"greatest_interval_in_force_seconds":6912`},
		"explain http://noisy.example/1":       {"noise        " + noise, "greatest     the budget is too small for 90d: the next visit comes within 800d"},
		"explain -json http://noisy.example/1": {`"noisy":{"host":"noisy.example"`, `"stretch":8.88`},
	} {
		verb, rest, _ := strings.Cut(line, " ")
		r := recrawl(t, append([]string{verb, "-d", dir, "-schedule", "learned", "-budget", "0.1"}, strings.Fields(rest)...)...)
		got := strings.Join(strings.Fields(r.out), "")
		for _, w := range want {
			if r.code != 0 || !strings.Contains(got, strings.Join(strings.Fields(w), "")) {
				t.Errorf("%s: exit %d %s: want %q in\n%s", line, r.code, r.err, w, r.out)
			}
		}
	}
	if r := recrawl(t, "explain", "-d", dir, "-schedule", "learned", "-budget", "0.1", "http://quiet.example/0"); r.code != 0 || strings.Contains(r.out, "noise ") {
		t.Errorf("a quiet host: %+v", r)
	}
}

// Explain shows what signs of changes are worth: without that, its arithmetic would not come out.
func TestSignsAreExplained(t *testing.T) {
	t.Parallel()
	at := parsed(frozen).AddDate(0, 0, -30)
	s := schedule.Learned{}
	var records []crawldb.Datum
	for i := range 40 {
		d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://a.example/%d", i), Status: crawldb.Fetched, Score: 1, Signature: []byte{1}}, at)
		d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: at.AddDate(0, 0, -10), Change: schedule.Change(1 + i%2)})
		d.LastFetch = at
		(&crawldb.SitemapEntry{Modified: at.AddDate(0, 0, -20)}).Set(&d.Meta) // a sign, but none since the visit
		records = append(records, d)
	}
	for signs, want := range map[schedule.SignalQuality][]string{
		{}:                            nil,
		{Precision: 0.9, Recall: 0.8}: {"signs        0.9 of them are true, and they tell of 0.8 of the changes", `"signals":{"counts_as":`, `"precision":0.9,"recall":0.8,"since_last_visit":0}`},
	} {
		dir := crawlOf(t, records, 1, schedule.PlanOptions{Signals: func(string) (schedule.SignalQuality, bool) { return signs, signs != schedule.SignalQuality{} }})
		var out string
		for _, form := range []string{"-json", "-json=false"} {
			out += ok(t, "explain", "-d", dir, "-now", frozen, "-schedule", "learned", "-budget", "1", form, "http://a.example/0")
		}
		got := strings.Join(strings.Fields(out), "")
		for _, w := range want {
			if !strings.Contains(got, strings.Join(strings.Fields(w), "")) {
				t.Errorf("want %q in\n%s", w, out)
			}
		}
		if want == nil && (strings.Contains(out, "signs  ") || strings.Contains(out, "signals")) {
			t.Errorf("there are no signs:\n%s", out)
		}
	}
}
