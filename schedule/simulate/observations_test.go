package simulate_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
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
	if _, err := simulate.BySignature(pages, "textprofile", ""); err == nil || !strings.Contains(err.Error(), `"textprofile"; it has md5, textmd5`) {
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

// A history that was made by looking does not say when the pages appeared that were there, and
// looking takes a while: what was found before any was looked at again was there from the start.
func TestObservationsBeginTogether(t *testing.T) {
	var text strings.Builder
	text.WriteString("# url\ttimestamp\tbytes_changed\ttext_changed\n") // a header, comment or not
	for at := range 3 {
		for i := range 300 {
			if i == 299 && at < 2 {
				continue // it comes later
			}
			changed := 0
			if i == 7 && at == 1 {
				changed = 1
			}
			fmt.Fprintf(&text, "p%d\t%d\t%d\t%d\n", i, start.Add(time.Duration(at*86400+i*60)*time.Second).UnixMilli(), min(at, 1), changed)
		}
	}
	pages, err := simulate.ParseHistory(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pages {
		first, want, md5 := start, "A", "AMM"
		switch i {
		case 7:
			want = "AM"
		case 299:
			first, md5 = start.Add(2*day+299*time.Minute), "A"
		}
		if kinds(p.Events) != want || kinds(p.Signatures[simulate.MD5]) != md5 || !p.Events[0].Time.Equal(first) {
			t.Errorf("page %d: %v, want %s from %v on; bytes %v, want %s", i, p.Events, want, first, p.Signatures[simulate.MD5], md5)
		}
	}
}

// Bytes that were others each time that somebody looked are others whenever a crawler does.
func TestBytesThatAlwaysDiffer(t *testing.T) {
	var text strings.Builder
	text.WriteString("url\ttime\tmd5\ttextmd5\n")
	for at := range 30 {
		fmt.Fprintf(&text, "a\t%d\t%d\t%d\nb\t%[1]d\t%[2]d\t%[2]d\nc\t%[1]d\t%[4]d\t1\n", start.AddDate(0, 0, at).Unix(), at, at/20, at/2)
	}
	all, err := simulate.ParseHistory(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(signature string, i int) (n int) {
		pages, err := simulate.BySignature(all, signature, simulate.TextMD5)
		if err != nil {
			t.Fatal(err)
		}
		visits := simulated(t, pages[i:i+1], schedule.Default{DefaultInterval: 6 * time.Hour}, simulate.Options{Duration: 29 * day}).Pages[0].Visits
		for _, v := range visits {
			if v.Status == crawldb.Fetched {
				n++
			}
		}
		return n
	}
	// The first visit finds a page, each other one by the bytes of a another; what changes bytes
	// and text of b every day, and the bytes of c every second, are pages that change.
	for name, want := range map[string][3]int{simulate.MD5: {116, 30, 15}, simulate.TextMD5: {2, 30, 1}} {
		if got := [3]int{changed(name, 0), changed(name, 1), changed(name, 2)}; got != want {
			t.Errorf("%s: %v visits found a change, want %v", name, got, want)
		}
	}
}

// Where pages were looked at few times, all pages of a host tell that their bytes are others at
// every visit; those of a page that changes now and then are no less another then.
func TestHostsWhoseBytesAlwaysDiffer(t *testing.T) {
	for looks, want := range map[int]int{4: 0, 8: 19} { // 60 and 140 looks at the noisy host
		var text strings.Builder
		text.WriteString("url\ttime\tmd5\ttextmd5\n")
		for at := range looks {
			for i := range 40 {
				host, bytes, words := "noisy", at, 0
				switch {
				case i >= 38: // too few pages of a host to say so
					host = "few"
				case i >= 20:
					host, bytes = "quiet", at/4
				case i == 7: // its text has changed as often
					words = at
				}
				fmt.Fprintf(&text, "http://%s.example/%d\t%d\t%d\t%d\n", host, i, start.AddDate(0, at, 0).Unix(), bytes, words)
			}
		}
		pages, err := simulate.ParseHistory(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		differing := 0
		for _, p := range pages {
			if len(p.AlwaysDiffer) > 0 {
				differing++
				if p.AlwaysDiffer[0] != simulate.MD5 || !strings.Contains(p.URL, "noisy") {
					t.Errorf("%s: %q", p.URL, p.AlwaysDiffer)
				}
			}
		}
		if differing != want {
			t.Errorf("%d looks: the bytes of %d pages always differ, want %d", looks, differing, want)
		}
		sights := []simulate.SignatureStats{
			{Signature: simulate.MD5, Changes: 22*(looks-1) + 18*((looks-1)/4), ChangedPages: 22 + 18*min((looks-1)/4, 1), AlwaysDiffers: want},
			{Signature: simulate.TextMD5, Changes: looks - 1, ChangedPages: 1},
		}
		if got := simulate.StatsOfSignatures(pages); !reflect.DeepEqual(got, sights) {
			t.Errorf("%d looks: the signatures see %+v, want %+v", looks, got, sights)
		}
	}
}

func TestTimesOfHistories(t *testing.T) {
	want := time.Date(2024, 2, 29, 12, 30, 15, 0, time.UTC)
	for _, text := range []string{"1709209815.25", "2024-02-29T12:30:15Z", "2024-02-29T13:30:15+01:00", "2024-02-29T12:30:15", "20240229123015", "1709209815", "1709209815000"} {
		pages, err := simulate.ParseHistory(strings.NewReader("a " + text + ":A\n"))
		if err != nil || !pages[0].Events[0].Time.Equal(want) {
			t.Errorf("%s: %v, %v", text, pages, err)
		}
	}
	pages, err := simulate.ParseHistory(strings.NewReader("time\turl\tmd5\n2024-02-29 12:30:15\ta\tx\r\n20240229\tb\tx\r\n"))
	if err != nil || !pages[0].Events[0].Time.Equal(want) || !pages[1].Events[0].Time.Equal(want.Truncate(24*time.Hour)) {
		t.Errorf("in a column: %+v, %v", pages, err)
	}
	if _, err := simulate.ParseHistory(strings.NewReader("a " + strings.Repeat("1 ", 9<<20))); err == nil || err.Error() != "simulate: line 1: longer than 16 MiB" {
		t.Errorf("a long line: %v", err)
	}
}

// What people have: tables of a program of theirs, of a log or of a web archive, packed or not.
func TestFormatsOfHistories(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2024, 2, n, 12, 0, 0, 0, time.UTC) }
	for _, text := range []string{
		"url,time,event\nhttp://a.example/,2024-02-20 12:00:00,M\nhttp://a.example/,2024-02-10 12:00:00,A\n",
		"Date;Page;Event\r\n2024-02-10T12:00:00Z;http://a.example/;added\r\n2024-02-20T12:00:00Z;http://a.example/;modified\r\n",
		"# url,time,event\n\"http://a.example/\",\"Sat, 10 Feb 2024 12:00:00 GMT\",A\n\"http://a.example/\",\"Tue, 20 Feb 2024 12:00:00 GMT\",\n",
		"path\ttimestamp\tevent\nhttp://a.example/\t2024-02-10 13:00:00 +0100\tA\nhttp://a.example/\t1708430400.5\tupdated\n",
		"url time event\nhttp://a.example/ 20240210120000 a\nhttp://a.example/ 1708430400000 m\n",
	} {
		want := []simulate.Event{{Time: day(10), Kind: simulate.Appears}, {Time: day(20), Kind: simulate.Modified}}
		for _, in := range []string{text, packed(text)} {
			pages, err := simulate.ParseHistory(strings.NewReader(in))
			if err != nil || len(pages) != 1 || pages[0].URL != "http://a.example/" || !reflect.DeepEqual(pages[0].Events, want) {
				t.Errorf("%q: %+v, %v", text, pages, err)
			}
		}
	}
	for _, text := range []string{
		"example,a)/ 20240210120000 http://a.example/ text/html 200 AAAA 1200\nexample,a)/ 20240220120000 http://a.example/ text/html 200 BBBB 1300\n",
		"urlkey,timestamp,original,mimetype,statuscode,digest,length\n\"example,a)/\",20240210120000,http://a.example/,text/html,200,AAAA,1200\n\"example,a)/\",20240220120000,http://a.example/,text/html,200,BBBB,1300\n",
		"url,fetched,status_code,Content-Type,changed\nhttp://a.example/,2024-02-10T12:00:00Z,200,text/html,0\nhttp://a.example/,2024-02-20T12:00:00Z,200,text/html,1\n",
	} {
		pages, err := simulate.ParseHistory(strings.NewReader(text))
		if err != nil || len(pages) != 1 || pages[0].URL != "http://a.example/" || kinds(pages[0].Events) != "AM" || pages[0].ContentType != "text/html" || len(pages[0].Signatures) != 1 {
			t.Errorf("%q: %+v, %v", text, pages, err)
		}
	}
	// The error is that the file was cut off, not what is left of the last line.
	text := packed("url,time,event\n" + strings.Repeat("http://a.example/,2024-02-20 12:00:00,M\n", 1000))
	if _, err := simulate.ParseHistory(strings.NewReader(text[:len(text)-12])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that was cut: %v", err)
	}
}

func packed(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func TestObservationsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"url\ttime\nx\t1\n":                                    "line 1: the header has neither a column with a signature",
		"url\ttime\tevent\tmd5\na\t1\tA\tx\n":                  "line 1: the header has both events and the signature md5",
		"url,time,event\na,1,sold\n":                           `line 2: "sold" is not an event; want A`,
		"url,time,md5\n\"a,1,x\n":                              "line 2: parse error",
		"url\ttime\tmd5\tdigest\n":                             "line 1: the header has an empty or repeated name in column 4",
		"url\ttime\tmd5\na\t1\n":                               "line 2: 2 columns; the header has 3",
		"url\ttime\tmd5\na\tyesterday\tx\n":                    `line 2: "yesterday" is not a time`,
		"url\ttime\tmd5\na\t2026-01-01\tx\nb\t8026-01-01\tx\n": `line 3: 8026-01-01 is more than 146 years from 2026-01-01`,
		"url\ttime\tmd5\na\t1\t\n":                             "line 2: no signature",
		"url\ttime\tmd5\n\n\t1\tx\n":                           "line 3: no URL",
		"url\ttime\tmd5\na\t1\tx\na\t1\ty\n":                   "line 3: line 2 has another result for a at that time",
		"url time md5 status\na 1 x ok\n":                      `line 2: "ok" is not an HTTP status`,
		"url time md5 weight\na 1 x -1\n":                      `line 2: "-1" is not a weight above zero`,
		"url\ttime\tmd5\n":                                     "the history has no pages",
		"url,time,md5\na,1\n":                                  "line 2: 2 columns; the header has 3",
		"url time text_changed\na 1 yes\n":                     `line 2: "yes" is neither 0 nor 1`,
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
