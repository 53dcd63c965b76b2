package nutchtext_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

// read returns the records of a dump and its errors, as text.
func read(r io.Reader, zone *time.Location) (records []crawldb.Datum, errs []string) {
	for d, err := range nutchtext.ReadDump(r, zone) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		records = append(records, d)
	}
	return records, errs
}

// A round trip keeps everything that a dump has.
func TestReadDump(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	all := []crawldb.Datum{
		{URL: "http://a.example/", Status: crawldb.Unfetched, FetchTime: at, Interval: 30 * day, Score: 1},
		{URL: "http://a.example/?q=Version: 7", Status: crawldb.Fetched, FetchTime: at, LastFetch: at.Add(-day), Modified: at.Add(-9 * day), Retries: 1, Interval: day, Score: 1e-5, Signature: []byte{0, 0xab},
			Meta: crawldb.MetaOf("_pst_", "success(1), lastModified=0", "topic", "a=b", "schedule.fixed", "86400", "depth.depth", "2", "depth.max", "5", "orphan.seen", "1767600000")},
		{URL: "http://b.example/é", Status: crawldb.Gone, FetchTime: at, LastFetch: at.Add(-45 * day), Interval: 45 * day},
		{URL: "http://b.example/never", Status: crawldb.Orphan},
	}
	var dump []byte
	for i := range all {
		written := all[i]
		written.LeasedUntil, written.LeasedBy = at, "20260105080001-000"
		dump = nutchtext.AppendRecord(dump, &written)
	}
	for name, text := range map[string][]byte{"as it is": dump, "on Windows": append([]byte("\ufeff"), bytes.ReplaceAll(dump, []byte("\n"), []byte("\r\n"))...)} {
		got, errs := read(iotest.OneByteReader(bytes.NewReader(text)), nil)
		if fmt.Sprint(got) != fmt.Sprint(all) || len(errs) > 0 {
			t.Errorf("%s: %v, %q\nwant %v", name, got, errs, all)
		}
	}
}

func TestReadDumpInJSON(t *testing.T) {
	const dump = `{"url": "http://a.example/", "statusCode": 2, "statusName": "db_fetched", "fetchTime": "Wed Feb 04 12:00:00 CET 2026", "modifiedTime": "Thu Jan 01 01:00:00 CET 1970", "retriesSinceFetch": 0, "retryIntervalSeconds": 86400, "retryIntervalDays": 1, "score": 0.5, "signature": "00ab", "metadata": {"_rs_": 67, "fixedInterval": 3600.0, "_csh_": 0.25, "nutch.protocol.code": "200", "nothing": null}}
{"url": "http://b.example/", "statusCode": 1, "statusName": "db_unfetched", "fetchTime": "Sat Jul 04 12:00:00 CEST 2026", "modifiedTime": "Thu Jan 01 01:00:00 CET 1970", "retriesSinceFetch": 1, "retryIntervalSeconds": 60, "retryIntervalDays": 0, "score": 1.0E-5, "signature": "null", "metadata": {}}
`
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err) // the toolchain has its own zones
	}
	want := []crawldb.Datum{
		{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: time.Date(2026, 2, 4, 11, 0, 0, 0, time.UTC), LastFetch: time.Date(2026, 2, 3, 11, 0, 0, 0, time.UTC), Interval: 24 * time.Hour, Score: .5, Signature: []byte{0, 0xab},
			Meta: crawldb.MetaOf("_rs_", "67", "schedule.fixed", "3600", "nutch.protocol.code", "200")},
		{URL: "http://b.example/", Status: crawldb.Unfetched, FetchTime: time.Date(2026, 7, 4, 10, 0, 0, 0, time.UTC), Retries: 1, Interval: time.Minute, Score: 1e-5},
	}
	if got, errs := read(strings.NewReader(dump), berlin); fmt.Sprint(got) != fmt.Sprint(want) || len(errs) > 0 {
		t.Errorf("%v, %q\nwant %v", got, errs, want)
	}
	_, errs := read(strings.NewReader(dump), nil)
	if len(errs) != 2 || !strings.Contains(errs[1], "line 2: the time zone CEST of ") {
		t.Errorf("the zone of another machine: %q", errs)
	}
}

// A record that cannot be used is named by its line, and does the others no harm.
func TestReadDamagedDump(t *testing.T) {
	good := crawldb.Datum{URL: "http://good.example/", Status: crawldb.Unfetched, FetchTime: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), Interval: time.Minute, Score: 1}
	text := string(nutchtext.AppendRecord(nil, &good))
	change := func(old, to string) string { return strings.Replace(text, old, to, 1) }
	for _, test := range []struct{ dump, want string }{
		{change("Status: 1", "Status: 33"), "line 1: status 33 is not that of a page"},
		{change("Status: 1", "Status: one"), `line 1: "one" is not a number from 0 to 255`},
		{change("Mon Jan 05", "2026-01-05"), "is not a time as Java prints it"},
		{change("UTC", "PST"), "the time zone PST of "},
		{change("60 seconds", "-60 seconds"), `line 1: "-60" is not a number from 0 to 2147483647`},
		{change("Score: 1.0", "Score: NaN"), `line 1: score "NaN" is not a number`},
		{change("Signature: null", "Signature: 0x1"), `line 1: signature "0x1"`},
		{text[:strings.Index(text, "Score")], "line 1: the record is cut short"},
		{"http://a.example/\n", "line 1: not a record of a crawl db"},
		{"{\"key\": 1}\n", "line 1: not a record of a crawl db"},
		{"{\n", "line 1: unexpected EOF"},
		{change("since fetch: 0", "since fetch: 128"), `line 1: "128" is not a number from 0 to 127`},
		{change("since fetch: 0", "since fetch: -1"), `line 1: "-1" is not a number from 0 to 127`},
		{change("60 seconds", "2147483648 seconds"), `line 1: "2147483648" is not a number from 0 to 2147483647`},
		{change("Score: 1.0", "Score: Infinity"), `line 1: score "Infinity" is not a number`},
		{change("Score: 1.0", "Score: high"), `line 1: score "high" is not a number`},
		{change("Score: 1.0", "Score: "+strings.Repeat("9", 100)+"x"), `line 1: score "` + strings.Repeat("9", 80) + `" is not a number`},
		{"{\"url\": \"\", \"statusCode\": 1, \"fetchTime\": \"Thu Jan 01 00:00:00 UTC 1970\", \"modifiedTime\": \"Thu Jan 01 00:00:00 UTC 1970\", \"retriesSinceFetch\": 0, \"retryIntervalSeconds\": 0, \"score\": 0}\n", "line 1: a record without a URL"},
		{" a\tVersion: 7\n", "line 1: not a record of a crawl db"},
		{"\tVersion: 7\n", "line 1: not a record of a crawl db"},
		{"http://a.example/\tVersion: \n", "line 1: not a record of a crawl db"},
	} {
		got, errs := read(strings.NewReader(test.dump+text), nil)
		if len(got) != 1 || got[0].URL != good.URL || len(errs) != 1 || !strings.Contains(errs[0], test.want) {
			t.Errorf("%q: %v, %q; want one record, and %q", test.dump, got, errs, test.want)
		}
	}
	if got, errs := read(strings.NewReader("Url,Status code,Status name\n\"http://a.example/\",1\n"), nil); len(got) != 0 || len(errs) != 1 || !strings.Contains(errs[0], "CSV") {
		t.Errorf("CSV: %v, %q", got, errs)
	}
	broken := io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrClosedPipe))
	var last error
	for _, err := range nutchtext.ReadDump(broken, nil) {
		last = err
	}
	if !errors.Is(last, io.ErrClosedPipe) || errors.As(last, new(*nutchtext.RecordError)) {
		t.Errorf("a reader that fails: %v", last)
	}
	for range nutchtext.ReadDump(strings.NewReader(text+text), nil) {
		break // and nothing is said to a loop that has ended
	}
}

func TestLongLineSpoilsOneRecord(t *testing.T) {
	var b bytes.Buffer
	for _, url := range []string{"http://a.example/", "http://b.example/"} {
		d := crawldb.Datum{URL: url, Status: crawldb.Unfetched, FetchTime: time.Unix(1e9, 0).UTC()}
		b.Write(nutchtext.AppendRecord(nil, &d))
	}
	first, second, _ := strings.Cut(b.String(), "http://b.")
	second = "http://b." + second
	long := strings.Repeat("x", 17<<20)
	for name, test := range map[string]struct {
		dump string
		urls int
		line string
	}{
		"in metadata":       {first + second + "Metadata: \n \tlong=" + long + "\n" + second, 2, ""},
		"a URL":             {first + long + "\tVersion: 7\n" + second[strings.Index(second, "\n")+1:] + second, 2, ""},
		"in JSON":           {"{\"url\":\"" + long + "\"}\n" + first + second, 2, "line 1"},
		"at the end of all": {first + second + long, 2, ""},
	} {
		got, errs := read(strings.NewReader(test.dump), nil)
		if len(got) != test.urls || len(errs) != 1 || !strings.Contains(errs[0], "longer than") || !strings.Contains(errs[0], test.line) {
			t.Errorf("%s: %d records, %q", name, len(got), errs)
		}
	}
}

// What is at the edge of what a record may be is read.
func TestReadDumpAtItsEdges(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const record = "http://a.example/\tVersion: 7\nStatus: 1 (db_unfetched)\nFetch time: Mon Jan 05 08:00:00 %s 2026\nModified time: Thu Jan 01 00:00:00 UTC 1970\n" +
		"Retries since fetch: 127\nRetry interval: 2147483647 seconds (24855 days)\nScore: -1.5\nSignature: null\nMetadata: \n%s\n"
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		zone, meta, want string
		hour             int
	}{
		{"UTC", "", "", 8},
		{"GMT", "", "", 8},
		{"CET", "", "", 7},
		{"UTC", " \ta=b\n\n \tc=d=e\nmore of it\n \tnone\n \t=f", "=f a=b c=d=e", 8},
		{"UTC", " \tlong=" + long, "long=" + long, 8},
		{"UTC", " \tfixedInterval=2147483647\n \t_depth_=3\n \t_maxdepth_=4\n \t_orphan_=5\n \t_ngt_=6\n \t_csh_=7", "depth.depth=3 depth.max=4 orphan.seen=5 schedule.fixed=2147483647", 8},
		{"UTC", " \tfixedInterval=0", "", 8},
		{"UTC", " \tfixedInterval=-1", "", 8},
		{"UTC", " \tfixedInterval=NaN", "", 8},
		{"UTC", " \tfixedInterval=2147483648", "", 8},
		{"UTC", " \tfixedInterval=soon", "", 8},
	} {
		dump := fmt.Sprintf(record, c.zone, c.meta)
		got, errs := read(strings.NewReader("\n"+dump+dump), berlin)
		if len(got) != 2 || len(errs) > 0 {
			t.Errorf("%.100q: %d records, %q", c.meta, len(got), errs)
			continue
		}
		for _, d := range got {
			var meta []string
			for k, v := range d.Meta.All() {
				meta = append(meta, k+"="+v)
			}
			if strings.Join(meta, " ") != c.want || d.FetchTime.Hour() != c.hour || d.Retries != 127 || d.Interval != 2147483647*time.Second || d.Score != -1.5 || d.Signature != nil || !d.Modified.IsZero() || !d.LastFetch.IsZero() {
				t.Errorf("%.100q: %.500s", c.meta, fmt.Sprint(d))
			}
		}
	}
	// CSV is recognized by the first line alone. If two names are the same here, the last counts.
	const header = "Url,Status code,"
	if got, errs := read(strings.NewReader("x\n"+header+"\n"+fmt.Sprintf(record, "UTC", "")), nil); len(got) != 1 || len(errs) != 2 || strings.Contains(errs[1], "CSV") {
		t.Errorf("%v, %q", got, errs)
	}
	const object = `{"url": "http://a.example/", "statusCode": 1, "fetchTime": "Mon Jan 05 08:00:00 UTC 2026", "modifiedTime": "Thu Jan 01 00:00:00 UTC 1970", "retriesSinceFetch": 0, "retryIntervalSeconds": 9, "score": 1, "metadata": {"depth.depth": 12345678901, "_depth_": 4}}`
	for range 20 {
		got, errs := read(strings.NewReader(object), nil)
		if len(errs) > 0 || fmt.Sprint(got[0].Meta) != fmt.Sprint(crawldb.MetaOf("depth.depth", "12345678901")) {
			t.Fatalf("%v, %q", got, errs)
		}
	}
}

// A record read from any bytes can be stored.
func FuzzReadDump(f *testing.F) {
	d := crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), Signature: []byte{1}, Meta: crawldb.MetaOf("a", "b", "schedule.fixed", "60")}
	f.Add(string(nutchtext.AppendRecord(nil, &d)))
	f.Add(`{"url": "http://a.example/", "statusCode": 2, "fetchTime": "Wed Feb 04 12:00:00 GMT+14 2026", "retryIntervalSeconds": 1, "score": 1e-5, "metadata": {"a": [1, {"b": 2}]}}`)
	f.Add("http://a.example/\tVersion: 7\nMetadata: \n \ta=b\n")
	f.Fuzz(func(t *testing.T, dump string) {
		for d, err := range nutchtext.ReadDump(strings.NewReader(dump), time.UTC) {
			if err != nil {
				continue
			}
			b, err := d.AppendBinary(nil)
			if err != nil {
				t.Fatalf("%+v: %v", d, err)
			}
			back := crawldb.Datum{URL: d.URL}
			if err := back.UnmarshalBinary(b); err != nil {
				t.Fatalf("%+v: %v", d, err)
			}
		}
	})
}
