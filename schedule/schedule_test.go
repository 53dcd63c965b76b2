package schedule

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func TestModified(t *testing.T) {
	prev, known := t0.Add(-10*day), t0.Add(-20*day)
	for _, c := range []struct {
		name string
		v    Visit
		want time.Time
	}{
		{"changed", Visit{Change: Changed, PrevFetch: prev, PrevModified: known}, t0},
		{"changed, and the server knows when", Visit{Change: Changed, PrevFetch: prev, PrevModified: known, Modified: t0.Add(-day)}, t0.Add(-day)},
		{"changed, but the server says it did before the visit that saw the old content", Visit{Change: Changed, PrevFetch: prev, Modified: t0.Add(-11 * day)}, t0},
		{"changed, and the server's clock is wrong", Visit{Change: Changed, PrevFetch: prev, Modified: t0.Add(day)}, t0},
		{"unchanged", Visit{Change: Unchanged, PrevFetch: prev, PrevModified: known}, known},
		{"unchanged, whatever the server says", Visit{Change: Unchanged, PrevFetch: prev, PrevModified: known, Modified: t0}, known},
		{"unchanged, and nothing known but by the server", Visit{Change: Unchanged, PrevFetch: prev, Modified: known}, known},
		{"unchanged, and nothing known", Visit{Change: Unchanged, PrevFetch: prev}, time.Time{}},
		{"first visit", Visit{}, t0},
		{"first visit, and the server knows", Visit{Modified: known}, known},
		{"first visit, and the server has no clock", Visit{Modified: time.Unix(0, 0)}, t0},
		{"not comparable", Visit{PrevFetch: prev, PrevModified: known}, known},
	} {
		c.v.Time = t0
		for _, s := range []FetchSchedule{Default{}, Adaptive{}, MimeAdaptive{}} {
			if got := s.Fetched(crawldb.Datum{}, c.v).Modified; !got.Equal(c.want) {
				t.Errorf("%s, %T: %v, want %v", c.name, s, got, c.want)
			}
		}
	}
}

func TestAdaptive(t *testing.T) {
	hosts := map[string]Bounds{"slow.example": {Min: 10 * day}, "fast.example": {Max: day}, "wide.example": {Min: time.Second, Max: 1000 * day}}
	mod := func(ago time.Duration) Visit { return Visit{Change: Changed, Modified: t0.Add(-ago)} }
	for _, c := range []struct {
		name          string
		s             Adaptive
		url           string
		interval      time.Duration
		v             Visit
		interval2, at time.Duration
	}{
		{"unknown", Adaptive{}, "", 10 * day, Visit{}, 10 * day, 10 * day},
		{"no interval yet", Adaptive{}, "", 0, Visit{}, 30 * day, 30 * day},
		{"changed", Adaptive{}, "", 10 * day, Visit{Change: Changed}, 8 * day, 8 * day},
		{"unchanged", Adaptive{}, "", 10 * day, Visit{Change: Unchanged}, 14 * day, 14 * day},
		{"unchanged for years", Adaptive{}, "", 10 * day, Visit{Change: Unchanged, PrevModified: t0.Add(-1000 * day)}, 14 * day, 14 * day},
		{"up to the maximum", Adaptive{}, "", 80 * day, Visit{Change: Unchanged}, 90 * day, 90 * day},
		{"down to the minimum", Adaptive{}, "", 70 * time.Second, Visit{Change: Changed}, time.Minute, time.Minute},
		{"above the maximum", Adaptive{}, "", 365 * day, Visit{Change: Changed}, 72 * day, 72 * day},
		{"changed two days ago", Adaptive{}, "", 10 * day, mod(2 * day), 8 * day, 8*day - 2*day*3/10},
		{"changed long ago", Adaptive{}, "", 10 * day, mod(100 * day), 8 * day, 8*day - 8*day*3/10},
		{"changed long ago, full rate", Adaptive{SyncRate: 5}, "", 10 * day, mod(100 * day), 8 * day, time.Minute},
		{"changed two days ago, no sync", Adaptive{SyncRate: -1}, "", 10 * day, mod(2 * day), 8 * day, 8 * day},
		{"no rates", Adaptive{IncRate: -1, DecRate: -1}, "", 10 * day, Visit{Change: Unchanged}, 10 * day, 10 * day},
		{"host minimum", Adaptive{HostIntervals: hosts}, "http://slow.example/", day, Visit{Change: Changed}, 10 * day, 10 * day},
		{"host maximum", Adaptive{HostIntervals: hosts}, "http://fast.example:81/", day, Visit{Change: Unchanged}, day, day},
		{"host bounds do not widen", Adaptive{HostIntervals: hosts}, "http://wide.example/", 89 * day, Visit{Change: Unchanged}, 90 * day, 90 * day},
		{"other host", Adaptive{HostIntervals: hosts}, "http://example.com/", 10 * day, Visit{Change: Changed}, 8 * day, 8 * day},
		{"minimum above maximum", Adaptive{MinInterval: 100 * day}, "", day, Visit{Change: Changed}, 90 * day, 90 * day},
	} {
		c.v.Time = t0
		d := c.s.Fetched(crawldb.Datum{URL: c.url, Interval: c.interval}, c.v)
		if d.Interval != c.interval2 || d.FetchTime.Sub(t0) != c.at {
			t.Errorf("%s: interval %v, next fetch after %v; want %v and %v", c.name, d.Interval, d.FetchTime.Sub(t0), c.interval2, c.at)
		}
	}
}

func TestMimeAdaptive(t *testing.T) {
	s := MimeAdaptive{Types: map[string]AdaptiveRates{"text/html": {1, 0.5}, "text/plain": {}}}
	for _, c := range []struct {
		typ       string
		change    Change
		want      time.Duration
		whichRate string
	}{
		{"text/html", Unchanged, 20 * day, "its own"},
		{"text/html", Changed, 5 * day, "its own"},
		{"text/plain", Unchanged, 10 * day, "zero is zero"},
		{"image/png", Unchanged, 14 * day, "that of all"},
		{"", Changed, 8 * day, "that of all"},
	} {
		d := s.Fetched(crawldb.Datum{Interval: 10 * day}, Visit{Time: t0, Change: c.change, ContentType: c.typ})
		if d.Interval != c.want {
			t.Errorf("%q %v: interval %v, want %v (%s)", c.typ, c.change, d.Interval, c.want, c.whichRate)
		}
	}
}

func TestFixedInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"3600": time.Hour, "0.2": time.Second, "1e30": 90 * day, "31536000": 90 * day,
		"0": 10 * day, "-5": 10 * day, "NaN": 10 * day, "soon": 10 * day, "": 10 * day,
	} {
		for _, s := range []FetchSchedule{Default{}, Adaptive{}, MimeAdaptive{}} {
			d := crawldb.Datum{Interval: 10 * day, Meta: crawldb.MetaOf(FixedKey, text)}
			got := s.Fetched(d, Visit{Time: t0})
			if got.Interval != want || got.FetchTime.Sub(t0) != want {
				t.Errorf("%q, %T: interval %v, next fetch after %v, want %v", text, s, got.Interval, got.FetchTime.Sub(t0), want)
			}
		}
	}
}

func TestGoneGrows(t *testing.T) {
	d := crawldb.Datum{}
	for i, want := range []time.Duration{45 * day, 45 * day * 3 / 2, 90 * day, 90 * day} {
		if d = (Default{}).Gone(d, Visit{Time: t0}); d.Interval != want || d.FetchTime.Sub(t0) != want {
			t.Errorf("visit %d: interval %v, want %v", i, d.Interval, want)
		}
	}
}

// A page that never changes: Nutch comes ever sooner until three tenths of its
// age exceed the maximum; we never come sooner than before.
func TestNoHotLoop(t *testing.T) {
	for _, c := range []struct {
		nutch    bool
		visits   int
		shortest time.Duration
	}{{true, 30, 17*time.Minute + 59976*time.Millisecond}, {false, 18, day}} {
		s := Adaptive{Default: Default{NutchCompat: c.nutch, DefaultInterval: day, MaxInterval: 7 * day}, MinInterval: time.Hour, AdaptiveMax: 7 * day}
		visits, shortest := 0, 365*day
		d := s.Init(crawldb.Datum{}, t0)
		for at := t0; at.Before(t0.Add(100 * day)); at = at.Add(time.Hour) {
			if !s.Due(&d, at) {
				continue
			}
			v := Visit{Time: at, Change: Unchanged, PrevModified: t0}
			if visits == 0 {
				v = Visit{Time: at}
			}
			d = s.Fetched(d, v)
			visits++
			shortest = min(shortest, d.FetchTime.Sub(at))
		}
		if visits != c.visits || shortest != c.shortest {
			t.Errorf("NutchCompat %v: %d visits in 100 days, the shortest time between two is %v; want %d and %v", c.nutch, visits, shortest, c.visits, c.shortest)
		}
	}
}

func TestChangeString(t *testing.T) {
	for c, want := range map[Change]string{Unknown: "unknown", Changed: "changed", Unchanged: "unchanged", 200: "unchanged"} {
		if c.String() != want {
			t.Errorf("%d is %q", c, c)
		}
	}
}

func TestHorizon(t *testing.T) {
	if ahead, ok := Horizon(MimeAdaptive{}); ahead != 90*day || !ok {
		t.Errorf("got %v, %v", ahead, ok)
	}
	if _, ok := Horizon(struct{ FetchSchedule }{Default{}}); ok {
		t.Error("a schedule without the method has a horizon")
	}
}

func TestNutchFilesAreRead(t *testing.T) {
	read := func(file string) *os.File {
		f, err := os.Open("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	hosts, err := ParseHostIntervals(read("hosts.txt"))
	if want := map[string]Bounds{
		"www.example.com":  {0, 20 * day},
		"www.example.org":  {15 * day, 0},
		"news.example.net": {60500 * time.Millisecond, time.Hour},
	}; err != nil || !maps.Equal(hosts, want) {
		t.Errorf("hosts.txt: %v, %v", hosts, err)
	}
	if marked, err := ParseHostIntervals(strings.NewReader("\ufeff# h\r\nexample.org 60 120\r\n")); err != nil || len(marked) != 1 {
		t.Errorf("with a byte order mark: %v, %v", marked, err)
	}
	types, err := ParseMimeRates(read("mimetypes.txt"))
	if want := map[string]AdaptiveRates{"text/html": {.2, .2}, "application/xhtml+xml": {.2, .2}, "application/pdf": {.1, .4}}; err != nil || !maps.Equal(types, want) {
		t.Errorf("mimetypes.txt: %v, %v", types, err)
	}
	for text, want := range map[string]string{
		"\n# x\na 1":                        "schedule: line 3: 2 fields, want 3",
		"a 1 2 3":                           "schedule: line 1: 4 fields, want 3",
		"a one 2":                           `schedule: line 1: "one" is not a number of at least zero`,
		"a 1 -2":                            `schedule: line 1: "-2" is not a number of at least zero`,
		"a 1 NaN":                           `schedule: line 1: "NaN" is not a number of at least zero`,
		"a 1 Inf":                           `schedule: line 1: "Inf" is not a number of at least zero`,
		"a 2 1":                             "schedule: line 1: the least interval exceeds the greatest",
		"a 0 1e12":                          `schedule: line 1: the interval "1e12" is too long`,
		"a 1 1\nb 1e400 1":                  `schedule: line 2: "1e400" is not a number of at least zero`,
		"a 1 " + strings.Repeat("1", 1<<17): "schedule: line 1: bufio.Scanner: token too long",
	} {
		if _, err := ParseHostIntervals(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("hosts %.20q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseMimeRates(strings.NewReader("text/html .2 x")); err == nil {
		t.Error("a bad rate is no error")
	}
}

func FuzzParseHostIntervals(f *testing.F) {
	seedFrom(f, "hosts.txt")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHostIntervals(strings.NewReader(text))
		if err != nil && hosts != nil {
			t.Fatal("a result beside an error")
		}
		s := Adaptive{HostIntervals: hosts}
		for _, host := range slices.Sorted(maps.Keys(hosts)) {
			if b := hosts[host]; b.Min < 0 || b.Max < 0 || b.Max > 0 && b.Min > b.Max {
				t.Fatalf("%q: %v", host, b)
			}
			d := s.Fetched(crawldb.Datum{URL: "http://" + host + "/"}, Visit{Time: t0, Change: Changed})
			if gap := d.FetchTime.Sub(t0); gap < time.Second || gap > 90*day {
				t.Fatalf("%q: next fetch after %v", host, gap)
			}
		}
	})
}

func FuzzParseMimeRates(f *testing.F) {
	seedFrom(f, "mimetypes.txt")
	f.Fuzz(func(t *testing.T, text string) {
		types, err := ParseMimeRates(strings.NewReader(text))
		if err != nil && types != nil {
			t.Fatal("a result beside an error")
		}
		s := MimeAdaptive{Types: types}
		for typ := range types {
			for c := Unknown; c <= Unchanged; c++ {
				d := s.Fetched(crawldb.Datum{Interval: time.Hour}, Visit{Time: t0, Change: c, ContentType: typ})
				if gap := d.FetchTime.Sub(t0); gap < time.Minute || gap > 90*day {
					t.Fatalf("%q %v: next fetch after %v", typ, types[typ], gap)
				}
			}
		}
	})
}

func seedFrom(f *testing.F, file string) {
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("a 1e308 0x1p-2\r\nb DEFAULT default")
}

func BenchmarkAdaptiveFetched(b *testing.B) {
	s := Adaptive{}
	d := crawldb.Datum{URL: "http://www.example.com/", Interval: day}
	b.ReportAllocs()
	for b.Loop() {
		s.Fetched(d, Visit{Time: t0, Change: Changed})
	}
}
