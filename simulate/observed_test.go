package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/simulate"
)

func kinds(events []simulate.Event) (s string) {
	for _, e := range events {
		s += string(e.Kind)
	}
	return s
}

func TestObservations(t *testing.T) {
	const text = "# found\n" +
		"url\ttime\tstatus\tdigest\ttext\tweight\n" +
		"http://a.example/\t2026-01-11\t200\ty\t1\t2\n" + // in no order
		"http://a.example/\t20260101000000\t200\tx\t1\t\n" +
		"http://a.example/\t2026-01-21\t304\t\t\t\n" +
		"http://a.example/\t2026-02-01\t503\t\t\t\n" +
		"http://a.example/\t2026-02-11\t404\t\t\t\n" +
		"http://a.example/\t2026-02-21\t200\tz\t2\t\n" +
		"http://a.example/\t2026-03-01\t200\tz\t-\t\n" +
		"http://b.example/\t2026-01-01\t200\tx\t1\t\n"
	pages, err := simulate.ParseHistory(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	a := pages[0]
	date := func(month time.Month, d int) time.Time { return time.Date(2026, month, d, 0, 0, 0, 0, time.UTC) }
	if len(pages) != 2 || a.Weight != 2 || !a.Until.Equal(date(3, 1)) || kinds(a.Events) != "ADA" || kinds(pages[1].Events) != "A" {
		t.Fatalf("%+v", pages)
	}
	for i, within := range [][2]time.Time{{date(1, 1).Add(-time.Second), date(1, 1)}, {date(1, 21), date(2, 11)}, {date(2, 11), date(2, 21)}} {
		if at := a.Events[i].Time; at.Before(within[0]) || at.After(within[1]) {
			t.Errorf("event %d at %v, want it from %v to %v", i, at, within[0], within[1])
		}
	}
	bytes, err := simulate.BySignature(pages, "MD5", "textmd5")
	if err != nil || kinds(bytes[0].Seen) != "AMDA" || kinds(bytes[0].Events) != "ADA" {
		t.Errorf("%+v, %v", bytes, err)
	}
	// The gone and back are of the same moments for all signatures.
	if !bytes[0].Seen[2].Time.Equal(a.Events[1].Time) {
		t.Errorf("%v and %v", bytes[0].Seen, a.Events)
	}
	if _, err := simulate.BySignature(pages, "textprofile", ""); err == nil || !strings.Contains(err.Error(), `"textprofile", but of md5, textmd5`) {
		t.Error(err)
	}

	kindsOf, err := simulate.ParseHistory(strings.NewReader("a 1:A 2:B 3:T 4:M 5:D\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{simulate.MD5: "AMMMD", simulate.TextMD5: "AMMD", simulate.TextProfile: "AMD", "": "AMMD"} {
		p, err := simulate.BySignature(kindsOf, name, "")
		if err != nil || kinds(p[0].Seen) != want {
			t.Errorf("%s sees %s, want %s, %v", name, kinds(p[0].Seen), want, err)
		}
	}
}

func TestObservationsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"url\ttime\nx\t1\n":                                    "line 1: the header has no column with a signature",
		"url\ttime\tmd5\tdigest\n":                             "line 1: the header has no name, or the same twice, in column 4",
		"url\ttime\tmd5\na\t1\n":                               "line 2: 2 columns, where the header has 3",
		"url\ttime\tmd5\na\tyesterday\tx\n":                    `line 2: "yesterday" is no time`,
		"url\ttime\tmd5\na\t2026-01-01\tx\nb\t8026-01-01\tx\n": `line 3: 8026-01-01 is more than 146 years from 2026-01-01`,
		"url\ttime\tmd5\na\t1\t\n":                             "line 2: there is no signature",
		"url\ttime\tmd5\n\n\t1\tx\n":                           "line 3: there is no URL",
		"url\ttime\tmd5\na\t1\tx\na\t1\ty\n":                   "line 3: a is another page at that time in line 2",
		"url time md5 status\na 1 x ok\n":                      `line 2: "ok" is no status of HTTP`,
		"url time md5 weight\na 1 x -1\n":                      `line 2: "-1" is no weight above zero`,
		"url\ttime\tmd5\n":                                     "a history without pages",
	} {
		if _, err := simulate.ParseHistory(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Pages whose bytes are others at every visit, and whose text seldom is: a crawl that compares
// bytes keeps less of the text fresh, but no less than at a constant interval.
func TestSignatureCosts(t *testing.T) {
	var text strings.Builder
	for i := range 120 {
		fmt.Fprintf(&text, "http://a.example/%d %d:A", i, start.Unix())
		slow := simulate.Poisson("", start, 360*day, []time.Duration{2 * day, 30 * day, 300 * day, 300 * day}[i%4], uint64(i)).Events[1:]
		for at := range 720 {
			now := start.Add(time.Duration(at+1) * 12 * time.Hour)
			for len(slow) > 0 && slow[0].Time.Before(now) {
				fmt.Fprintf(&text, " %d", slow[0].Time.Unix())
				slow = slow[1:]
			}
			fmt.Fprintf(&text, " %d:B", now.Unix())
		}
		text.WriteByte('\n')
	}
	all, err := simulate.ParseHistory(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	fresh := map[string]float64{}
	for _, name := range []string{simulate.MD5, simulate.TextMD5} {
		seen, err := simulate.BySignature(all, name, simulate.TextMD5)
		if err != nil {
			t.Fatal(err)
		}
		pages, err := simulate.Histories(seen, simulate.Zipf, 1)
		if err != nil {
			t.Fatal(err)
		}
		for every, perDay := range map[string]float64{"": 12, " at 1/4d": 30} {
			stock := simulate.Stock(len(pages), perDay)
			out, err := simulate.Compare(t.Context(), pages, []simulate.Policy{stock[0], stock[2]}, simulate.CrawlOptions{PerDay: perDay, Cycle: day})
			if err != nil {
				t.Fatal(err)
			}
			fresh[name+every], fresh[name+every+", constant"] = out[0].Weighted, out[1].Weighted
			if out[0].Weighted < out[1].Weighted {
				t.Errorf("%s%s: learned %.3f, at a constant interval %.3f", name, every, out[0].Weighted, out[1].Weighted)
			}
		}
	}
	if t.Log(fresh); fresh[simulate.TextMD5] < fresh[simulate.MD5]+.02 {
		t.Errorf("%v", fresh)
	}
}
