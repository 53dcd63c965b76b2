package crawldb_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func TestStatus(t *testing.T) {
	// Stored numbers and Nutch's names: neither may ever change.
	want := []string{
		1: "db_unfetched", 2: "db_fetched", 3: "db_gone", 4: "db_redir_temp", 5: "db_redir_perm",
		6: "db_notmodified", 7: "db_duplicate", 8: "db_orphan", 9: "db_parse_failed",
	}
	all := crawldb.Statuses()
	if len(all) != len(want)-1 {
		t.Fatalf("there are %d statuses, want %d", len(all), len(want)-1)
	}
	for i, s := range all {
		if int(s) != i+1 || s.String() != want[s] {
			t.Errorf("status %d is %v, want %d %s", s, s, i+1, want[i+1])
		}
		for _, name := range []string{want[s], strings.ToUpper(want[s]), strings.TrimPrefix(want[s], "db_")} {
			if got, err := crawldb.ParseStatus(name); err != nil || got != s {
				t.Errorf("ParseStatus(%q) = %v, %v; want %v", name, got, err, s)
			}
		}
	}
	for _, name := range []string{"", "db_", "fetch", "unknown(0)", "db_db_gone"} {
		if s, err := crawldb.ParseStatus(name); err == nil {
			t.Errorf("ParseStatus(%q) = %v, want an error", name, s)
		}
	}
	if got := crawldb.Status(77).String(); got != "unknown(77)" {
		t.Errorf("status 77 is %q", got)
	}
}

func TestLeased(t *testing.T) {
	now := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		until time.Time
		want  bool
	}{{time.Time{}, false}, {now.Add(-1), false}, {now, false}, {now.Add(1), true}} {
		d := crawldb.Datum{LeasedUntil: test.until}
		if got := d.Leased(now); got != test.want {
			t.Errorf("leased until %v: %v at %v, want %v", test.until, got, now, test.want)
		}
	}
}

var full = crawldb.Datum{
	URL: "http://example.com/", Status: crawldb.Fetched, FetchTime: time.UnixMilli(1_700_000_000_123).UTC(), LastFetch: time.UnixMilli(-1).UTC(),
	Interval: 30 * 24 * time.Hour, Modified: time.UnixMilli(0).UTC(), Retries: 2, Score: 1.5, Priority: -2.5, Signature: []byte("0123456789abcdef"),
	ETag: `W/"x"`, LastModified: "Thu, 29 Feb 2024 23:59:59 GMT", LeasedUntil: time.UnixMilli(1_800_000_000_000).UTC(), LeasedBy: "20240229235959-000",
	Meta: crawldb.MetaOf("opic.cash", "0.5", "", "\x00\xff"),
}

// TestCodecGolden keeps records that were stored by an earlier version readable: as they
// are written now, and as they were before names had numbers.
func TestCodecGolden(t *testing.T) {
	const rest = "\xf6\xa1\xab\xfe\xf9b\x01\x80\x9a\x9e\x01\x00\x02?\xc0\x00\x00\xc0 \x00\x00\x100123456789abcdef\x05W/\"x\"" +
		"\x1dThu, 29 Feb 2024 23:59:59 GMT\x80\xc0\xe2\x85\xe3h\x1220240229235959-000"
	const want = "\x01\x02\xff_" + rest + "\x00\x02\x00\xff\x04\x030.5"
	const spelled = "\x01\x02\xff?" + rest + "\x12\x00\x02\x00\xff\topic.cash\x030.5"
	got, err := full.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("encoded as %q, want %q", got, want)
	}
	for _, enc := range []string{want, spelled} {
		d := crawldb.Datum{URL: full.URL}
		if err := d.UnmarshalBinary([]byte(enc)); err != nil {
			t.Errorf("%q: %v", enc, err)
		}
		same(t, d, full)
	}
	empty, err := new(crawldb.Datum).AppendBinary([]byte("prefix"))
	if err != nil || string(empty) != "prefix\x01\x00\x00" {
		t.Errorf("the zero record is %q, %v", empty, err)
	}
	// Numbers are stored: never renumber. A name without one is spelled.
	names := []string{"opic.cash", "opic.history", "schedule.rate", "schedule.since", "schedule.fixed", "depth.depth", "depth.max", "orphan.seen", "pagerank.seed",
		"sitemap.mark", "sitemap.hint", "sitemap.planned", "segment.turn", "Content-Type", "nutch.protocol.code", "_rs_", "_pst_"}
	lengths := []int{8, 16, 11, 8, 0, 1, 1, 10, 1, 0, 0, 8, 0, 9, 3, 3, 26}
	for i, name := range names {
		value := strings.Repeat("v", lengths[i])
		for value, want := range map[string]string{value: string(rune(3*(i+1)+2)) + value, value + "w": string(rune(3*(i+1)+1)) + string(rune(len(value)+1)) + value + "w"} {
			d := crawldb.Datum{Meta: crawldb.MetaOf(name, value)}
			if got, err := d.AppendBinary(nil); err != nil || string(got) != "\x01\x00\x80\x40"+want {
				t.Errorf("%s=%s is %q, %v", name, value, got, err)
			}
		}
	}
	for _, name := range []string{"", "opic.cas", "opic.cash2", "seed"} {
		d := crawldb.Datum{Meta: crawldb.MetaOf(name, "v")}
		if got, err := d.AppendBinary(nil); err != nil || string(got) != "\x01\x00\x80\x20"+string(rune(len(name)+3))+string(rune(len(name)))+name+"\x01v" {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func TestCodecRoundTrip(t *testing.T) {
	enc, err := full.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := crawldb.Datum{URL: full.URL, Retries: 99, ETag: "stale", Signature: []byte("stale")}
	if err := got.UnmarshalBinary(enc); err != nil {
		t.Fatal(err)
	}
	clear(enc) // the record keeps no part of it
	same(t, got, full)

	for name, change := range map[string]func(*crawldb.Datum){
		"no signature":         func(d *crawldb.Datum) { d.Signature = nil },
		"an empty signature":   func(d *crawldb.Datum) { d.Signature = []byte{} },
		"score and priority":   func(d *crawldb.Datum) { d.Score, d.Priority = 3, 3 },
		"priority of zero":     func(d *crawldb.Datum) { d.Priority = 0 },
		"score of zero":        func(d *crawldb.Datum) { d.Score = 0 },
		"negative zero":        func(d *crawldb.Datum) { d.Score = float32(math.Copysign(0, -1)) },
		"no number":            func(d *crawldb.Datum) { d.Score, d.Priority = float32(math.NaN()), float32(math.NaN()) },
		"infinite":             func(d *crawldb.Datum) { d.Score = float32(math.Inf(-1)) },
		"the longest interval": func(d *crawldb.Datum) { d.Interval = math.MaxInt32 * time.Second },
		"the most retries":     func(d *crawldb.Datum) { d.Retries = math.MaxInt32 },
		"no meta":              func(d *crawldb.Datum) { d.Meta = crawldb.Meta{} },
		"only a URL":           func(d *crawldb.Datum) { *d = crawldb.Datum{URL: d.URL} },
		"year 1":               func(d *crawldb.Datum) { d.FetchTime = time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC) },
		"names with numbers": func(d *crawldb.Datum) {
			d.Meta = crawldb.MetaOf("opic.cash", "12345678", "opic.history", "0123456789abcdef", "schedule.rate", "", "z", "")
		},
		"a large value": func(d *crawldb.Datum) { d.ETag = strings.Repeat("\x00\xff", 1<<20) },
	} {
		d := full
		change(&d)
		enc, err := d.AppendBinary(nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := crawldb.Datum{URL: d.URL}
		if err := got.UnmarshalBinary(enc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, got, d)
	}
}

func TestCodecTruncatesTimes(t *testing.T) {
	d := crawldb.Datum{FetchTime: time.Date(2024, 1, 1, 12, 0, 0, 123_999_999, time.FixedZone("", 3600)), Interval: 90*time.Second + 999*time.Millisecond}
	enc, err := d.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.UnmarshalBinary(enc); err != nil {
		t.Fatal(err)
	}
	same(t, d, crawldb.Datum{FetchTime: time.Date(2024, 1, 1, 11, 0, 0, 123_000_000, time.UTC), Interval: 90 * time.Second})
}

func TestCodecRefusesInvalidRecords(t *testing.T) {
	many := int64(math.MaxInt32) + 1 // where an int has 32 bits, a negative number
	for name, d := range map[string]crawldb.Datum{
		"negative interval": {Interval: -1},
		"long interval":     {Interval: (math.MaxInt32 + 1) * time.Second},
		"negative retries":  {Retries: -1},
		"many retries":      {Retries: int(many)},
	} {
		d.URL = "http://example.com/"
		if b, err := d.AppendBinary([]byte("prefix")); err == nil || string(b) != "prefix" || !strings.Contains(err.Error(), d.URL) {
			t.Errorf("%s: %q, %v; want the prefix and an error that names the URL", name, b, err)
		}
	}
}

func TestCodecForeignBytes(t *testing.T) {
	enc, err := full.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name string, b []byte) {
		t.Helper()
		d := crawldb.Datum{URL: full.URL, Retries: 99}
		if err := d.UnmarshalBinary(b); err == nil {
			t.Errorf("%s was read as %+v", name, d)
		}
		same(t, d, crawldb.Datum{URL: full.URL, Retries: 99})
		if err := new(crawldb.Keys).Decode(&d, []byte(crawldb.Key(full.URL)), b); err == nil {
			t.Errorf("%s was decoded as %+v", name, d)
		}
		same(t, d, crawldb.Datum{URL: full.URL})
	}
	for i := range enc {
		refused("a record cut short", enc[:i])
	}
	refused("a record and more", append(bytes.Clone(enc), 0))
	refused("another version", append([]byte{2}, enc[1:]...))
	refused("an unknown field", []byte("\x01\x01\x80\x80\x01"))
	refused("a length of 2^64-1", []byte("\x01\x01\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	refused("a length over 2^64", []byte("\x01\x01\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"))
	refused("a length with leading zeros", []byte("\x01\x01\x80\x01\x80\x00"))
	refused("meta out of order", []byte("\x01\x01\x80\x20\x06\x01b\x00\x01a\x00"))
	refused("meta with a name twice", []byte("\x01\x01\x80\x20\x06\x01a\x00\x01a\x00"))
	refused("meta without a value", []byte("\x01\x01\x80\x20\x02\x01a"))
	refused("no pairs", []byte("\x01\x01\x80\x40"))
	refused("pairs in both forms", []byte("\x01\x01\x80\x60\x00\x04\x00"))
	refused("pairs without a number", []byte("\x01\x01\x80\x40\x03a\x01v"))
	refused("a number of no name", []byte("\x01\x01\x80\x40\x01\x01v"))
	refused("a number behind the last", []byte("\x01\x01\x80\x40\x38\x00"))
	refused("a name that has a number", []byte("\x01\x01\x80\x40\x1bopic.cash\x01v\x08\x01v"))
	refused("names out of order", []byte("\x01\x01\x80\x40\x07\x01v\x04\x01v"))
	refused("a name twice", []byte("\x01\x01\x80\x40\x04\x01v\x04\x01w"))
	refused("a usual length that is written", []byte("\x01\x01\x80\x40\x04\x0812345678"))
	refused("a usual value that is short", []byte("\x01\x01\x80\x40\x051234567"))
	refused("a name that is short", []byte("\x01\x01\x80\x40\x04\x01v\x30abc"))
	refused("a name of 2^62 bytes", []byte("\x01\x01\x80\x40\x04\x01v\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	if n := testing.AllocsPerRun(10, func() {
		var d crawldb.Datum
		if d.UnmarshalBinary([]byte("\x01\x01\x80\x01\xff\xff\xff\xff\x0f")) == nil {
			t.Error("a length without bytes was read")
		}
	}); n > 3 {
		t.Errorf("a length without bytes made %v allocations", n)
	}
}

// same compares records to the bit.
func same(t *testing.T, got, want crawldb.Datum) {
	t.Helper()
	ok := got.URL == want.URL && got.Status == want.Status && got.FetchTime == want.FetchTime && got.LastFetch == want.LastFetch &&
		got.Interval == want.Interval && got.Modified == want.Modified && got.Retries == want.Retries &&
		math.Float32bits(got.Score) == math.Float32bits(want.Score) && math.Float32bits(got.Priority) == math.Float32bits(want.Priority) &&
		bytes.Equal(got.Signature, want.Signature) && (got.Signature == nil) == (want.Signature == nil) &&
		got.ETag == want.ETag && got.LastModified == want.LastModified && got.LeasedUntil == want.LeasedUntil && got.LeasedBy == want.LeasedBy && got.Meta == want.Meta
	if !ok {
		t.Errorf("record is\n%.500q, want\n%.500q", []any{got}, []any{want})
	}
}

// FuzzDatum demands that foreign bytes are refused or read as a record that is
// written and read as itself.
func FuzzDatum(f *testing.F) {
	enc, err := full.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(enc)
	f.Add([]byte("\x01\x00\x00"))
	f.Add([]byte("\x01\x01\x80\x20\x06\x01a\x00\x01b\x00"))
	f.Add([]byte("\x01\x01\x80\x20\x0d\x09opic.cash\x01v"))
	f.Add([]byte("\x01\x01\x80\x40\x0512345678\x080123456789abcdef\x03z\x00"))
	f.Add([]byte("\x01\x01\x90\x41\x02et\x03a\x00\x0512345678"))
	f.Add([]byte("\x01\x09\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := crawldb.Datum{URL: "u"}
		err := d.UnmarshalBinary(b)
		other := crawldb.Datum{URL: "v", Signature: []byte("s"), Retries: 1}
		if (new(crawldb.Keys).Decode(&other, []byte(crawldb.Key("u")), b) == nil) != (err == nil) {
			t.Fatalf("%q: Decode and UnmarshalBinary do not agree", b)
		}
		if err != nil {
			return
		}
		same(t, other, d)
		enc, err := d.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%q was read as a record that cannot be written: %v", b, err)
		}
		if len(enc) > len(b)+16 {
			t.Fatalf("%d bytes became %d", len(b), len(enc))
		}
		again := crawldb.Datum{URL: "u"}
		if err := again.UnmarshalBinary(enc); err != nil {
			t.Fatalf("%q was written as %q, which cannot be read", b, enc)
		}
		same(t, again, d)
	})
}

// The records that one Keys has decoded share the memory of their signatures, and no
// record sees what is appended to that of another, or to its own.
func TestDecodedSignaturesShareNoBytes(t *testing.T) {
	var keys crawldb.Keys
	var got, want []crawldb.Datum
	for i := range 100 {
		d := crawldb.Datum{URL: "http://example.com/", Signature: bytes.Repeat([]byte{byte(i)}, i%40)}
		if i%7 == 6 {
			d.Signature = nil
		}
		enc, err := d.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var out crawldb.Datum
		if err := keys.Decode(&out, []byte(crawldb.Key(d.URL)), enc); err != nil {
			t.Fatal(err)
		}
		_ = append(out.Signature, "appended"...)
		got, want = append(got, out), append(want, d)
	}
	for i := range got {
		same(t, got[i], want[i])
	}
}

// BenchmarkDecode asks what a record of a scan costs, apart from the engine.
func BenchmarkDecode(b *testing.B) {
	found := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: full.FetchTime, Interval: full.Interval, Score: 1.5, Priority: 1.5}
	fetched := full
	fetched.Retries, fetched.LeasedUntil, fetched.LeasedBy, fetched.Meta = 0, time.Time{}, "", crawldb.Meta{}
	cash := fetched
	cash.Meta = crawldb.MetaOf("opic.cash", "12345678", "opic.history", "0123456789abcdef")
	key := []byte(crawldb.Key("https://www.example.com/section-0012/00001234-of-a-site-and-what.html"))
	for _, kind := range []struct {
		name   string
		record crawldb.Datum
	}{{"discovered", found}, {"fetched", fetched}, {"fetched with cash", cash}} {
		b.Run(kind.name, func(b *testing.B) {
			enc, err := kind.record.AppendBinary(nil)
			if err != nil {
				b.Fatal(err)
			}
			var keys crawldb.Keys
			var d crawldb.Datum
			b.ReportAllocs()
			for b.Loop() {
				if err := keys.Decode(&d, key, enc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	enc, err := full.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var d crawldb.Datum
		if err := d.UnmarshalBinary(enc); err != nil {
			b.Fatal(err)
		}
	}
}
