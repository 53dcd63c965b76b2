package nutchtext

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// From the rules of Float.toString in the Java API, and its examples.
func TestFloat(t *testing.T) {
	for _, test := range []struct {
		f    float32
		want string
	}{
		{0, "0.0"}, {float32(math.Copysign(0, -1)), "-0.0"}, {1, "1.0"}, {-1, "-1.0"}, {0.5, "0.5"}, {0.1, "0.1"}, {1.0 / 3, "0.33333334"}, {2.0 / 3, "0.6666667"},
		{0.05, "0.05"}, {0.001, "0.001"}, {0.00099, "9.9E-4"}, {1e-5, "1.0E-5"}, {1.5e-5, "1.5E-5"}, {-1e-5, "-1.0E-5"}, {0.0009999999, "9.999999E-4"},
		{1e6, "1000000.0"}, {9999999, "9999999.0"}, {1e7, "1.0E7"}, {12345678, "1.2345678E7"}, {123456, "123456.0"}, {1234567.9, "1234567.9"}, {16777216, "1.6777216E7"}, {1e10, "1.0E10"},
		{math.MaxFloat32, "3.4028235E38"}, {math.SmallestNonzeroFloat32, "1.4E-45"}, {2 * math.SmallestNonzeroFloat32, "2.8E-45"}, {1.17549435e-38, "1.1754944E-38"},
		{float32(math.Inf(1)), "Infinity"}, {float32(math.Inf(-1)), "-Infinity"}, {float32(math.NaN()), "NaN"},
		{1.0 / 4096, "2.4414062E-4"}, {-1.0 / 4096, "-2.4414062E-4"}, {2097152.25, "2097152.2"}, {2097152.75, "2097152.8"},
		{2e-3, "0.002"}, {1e23, "1.0E23"}, {3.3554432e7, "3.3554432E7"}, {8.5e-10, "8.5E-10"}, {1e-10, "1.0E-10"}, {100, "100.0"}, {1000, "1000.0"}, {0.010011, "0.010011"},
	} {
		if got := Float(test.f); got != test.want {
			t.Errorf("Float(%v) = %s, want %s", test.f, got, test.want)
		}
	}
	for _, test := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"}, {0.01, "0.01"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {2e23, "2.0E23"}, {4.9e-324, "4.9E-324"}, {9.9e-324, "9.9E-324"}, {1e7, "1.0E7"}, {math.MaxFloat64, "1.7976931348623157E308"},
		{0.10000000149011612, "0.10000000149011612"}, {1e-3, "0.001"}, {-1.5e-4, "-1.5E-4"}, {1.0e16, "1.0E16"},
	} {
		if got := double(test.f); got != test.want {
			t.Errorf("Double(%v) = %s, want %s", test.f, got, test.want)
		}
	}
}

// Whatever is printed is the number, with a point and a digit on either side.
func FuzzFloat(f *testing.F) {
	for _, bits := range []uint32{0, 1, 2, 0x3f800000, 0x00800000, 0x7f7fffff, 0x4b189680, 0x3a83126f} {
		f.Add(bits)
	}
	f.Fuzz(func(t *testing.T, bits uint32) {
		v := math.Float32frombits(bits)
		if v != v || math.IsInf(float64(v), 0) {
			return
		}
		text := Float(v)
		back, err := strconv.ParseFloat(text, 32)
		if err != nil || math.Float32bits(float32(back)) != bits {
			t.Errorf("%x is %s, which is %x, %v", bits, text, math.Float32bits(float32(back)), err)
		}
		point := 0
		for i, c := range text {
			if c == '.' && i > 0 && text[i-1] >= '0' && text[i-1] <= '9' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
				point++
			}
		}
		if point != 1 {
			t.Errorf("%x is %s", bits, text)
		}
	})
}

func TestDate(t *testing.T) {
	for _, test := range []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, "Thu Jan 01 00:00:00 UTC 1970"},
		{time.UnixMilli(0), "Thu Jan 01 00:00:00 UTC 1970"},
		{time.UnixMilli(-1), "Wed Dec 31 23:59:59 UTC 1969"},
		{time.Date(2026, 1, 5, 8, 0, 0, 999_000_000, time.FixedZone("", 3600)), "Mon Jan 05 07:00:00 UTC 2026"},
		{time.Date(12026, 1, 5, 8, 0, 0, 0, time.UTC), "Mon Jan 05 08:00:00 UTC 12026"},
	} {
		if got := date(test.t); got != test.want {
			t.Errorf("Date(%v) = %q, want %q", test.t, got, test.want)
		}
	}
}

func TestDatum(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name string
		d    crawldb.Datum
		want string
	}{
		{"injected", crawldb.Datum{URL: "http://a.example/", Status: crawldb.Unfetched, FetchTime: at, Interval: 30 * 24 * time.Hour, Score: 1},
			"http://a.example/\tVersion: 7\nStatus: 1 (db_unfetched)\nFetch time: Mon Jan 05 08:00:00 UTC 2026\nModified time: Thu Jan 01 00:00:00 UTC 1970\nRetries since fetch: 0\n" +
				"Retry interval: 2592000 seconds (30 days)\nScore: 1.0\nSignature: null\nMetadata: \n \n"},
		{"fetched", crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: at, Modified: at, Retries: 1, Interval: 86399 * time.Second, Score: 1e-5, Signature: []byte{0, 0xab},
			Meta: crawldb.MetaOf("_pst_", "success(1), lastModified=0", "_rs_", "67", "Content-Type", "text/html", "nutch.protocol.code", "200", "opic.cash", "x", "schedule.state", "y")},
			"http://a.example/\tVersion: 7\nStatus: 2 (db_fetched)\nFetch time: Mon Jan 05 08:00:00 UTC 2026\nModified time: Mon Jan 05 08:00:00 UTC 2026\nRetries since fetch: 1\n" +
				"Retry interval: 86399 seconds (0 days)\nScore: 1.0E-5\nSignature: 00ab\nMetadata: \n \t_pst_=success(1), lastModified=0\n\t_rs_=67\n\tContent-Type=text/html\n\tnutch.protocol.code=200\n\n"},
		{"odd", crawldb.Datum{URL: "", Status: 77, Retries: 200, Signature: []byte{}},
			"\tVersion: 7\nStatus: 77 (unknown)\nFetch time: Thu Jan 01 00:00:00 UTC 1970\nModified time: Thu Jan 01 00:00:00 UTC 1970\nRetries since fetch: -56\n" +
				"Retry interval: 0 seconds (0 days)\nScore: 0.0\nSignature: \nMetadata: \n \n"},
	} {
		if got := string(AppendRecord(nil, &test.d)); got != test.want {
			t.Errorf("%s: %q\nwant %q", test.name, got, test.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		d    crawldb.Datum
		want string
	}{
		{crawldb.Datum{}, "[]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("schedule.fixed", "3600")}, "[{fixedInterval 3600.0}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("schedule.fixed", "often")}, "[{fixedInterval often}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("depth.depth", "2")}, "[{_depth_ 2}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("_maxdepth_", "9", "depth.max", "3")}, "[{_maxdepth_ 3}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("_maxdepth_", "9")}, "[{_maxdepth_ 9}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("orphan.seen", "1767600000")}, "[{_orphan_ 1767600000}]"},
		{crawldb.Datum{LeasedUntil: at.Add(9 * 24 * time.Hour), LeasedBy: "20260105080001-000"}, "[{_ngt_ 1767600001000}]"},
		{crawldb.Datum{LeasedUntil: at.Add(7 * 24 * time.Hour), LeasedBy: "mine"}, "[{_ngt_ 1767600000000}]"},
		{crawldb.Datum{LeasedBy: "mine"}, "[{_ngt_ 0}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("a", "1", "é", "2")}, "[{a 1} {é 2}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("page.description", "x")}, "[{description x}]"},
		{crawldb.Datum{Meta: crawldb.MetaOf("lang", "seed", "page.lang", "page")}, "[{lang page}]"},
	} {
		if got := fmt.Sprint(metadata(&test.d)); got != test.want {
			t.Errorf("%v: %s, want %s", test.d.Meta, got, test.want)
		}
	}
}

func TestHost(t *testing.T) {
	h := hostdb.Host{Name: "a.example", Pages: hostdb.Pages{Unfetched: 1, Fetched: 2, Gone: 3, RedirTemp: 4, RedirPerm: 5, NotModified: 6, Duplicate: 7, Orphan: 8, ParseFailed: 9},
		DNSFailures: 10, ConnectionFailures: 11, Score: 0.5, LastCheck: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), Homepage: "https://a.example/", Overdue: 2,
		Fields: map[string]float64{"min._rs_": 15, "avg._rs_": 20.25, "Content-Type.text/html": 3, "mine": 0.5}}
	want := "a.example\t1\t2\t3\t4\t5\t6\t21\t10\t11\t21\t0.5\t2026-01-05 08:00:00\thttps://a.example/\t"
	got := string(AppendHost(nil, &h))
	if len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, m := range []string{"min._rs_:15.0|||", "avg._rs_:20.25|||", "Content-Type.text/html:3|||", "mine:0.5|||", "num.overdue:2|||"} {
		if !strings.Contains(got, m) {
			t.Errorf("%q has no %q", got, m)
		}
	}
	if got, want := string(AppendHost(nil, &hostdb.Host{Name: "b"})), "b\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0.0\t1970-01-01 00:00:00\t\t\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The order of a table of 16 slots is not that of one of 32.
func TestOrderOfMetadata(t *testing.T) {
	names := func(d *crawldb.Datum) (all []string) {
		for _, p := range metadata(d) {
			all = append(all, p.Name)
		}
		return all
	}
	d := crawldb.Datum{LeasedBy: "x", Meta: crawldb.MetaOf("Content-Type", "", "_maxdepth_", "", "_orphan_", "", "_pst_", "", "_repr_", "", "_rs_", "", "depth.depth", "", "nutch.protocol.code", "", "schedule.fixed", "1")}
	// 1, 2, 3, 4, 8, 10, 11, 11, 13, 14
	want := []string{"_ngt_", "_orphan_", "_depth_", "_repr_", "_pst_", "fixedInterval", "_rs_", "Content-Type", "_maxdepth_", "nutch.protocol.code"}
	if got := names(&d); !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
	// With 13 names: 1, 3, 8, 10, 13, 18, 20, 27, 27, 29, 30, and where the others fall.
	for _, name := range []string{"nutch.score", "x", "y"} {
		d.Meta.Set(name, "")
	}
	want = []string{"_ngt_", "_depth_", "_pst_", "fixedInterval", "_maxdepth_", "_orphan_", "_repr_", "_rs_", "Content-Type", "nutch.score", "nutch.protocol.code"}
	got := slices.DeleteFunc(names(&d), func(s string) bool { return s == "x" || s == "y" })
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// Orders of random names that Java 17 gave, of a HashMap whose keys are hashed as
// Text is and were put in by name.
func TestOrderOfJavasHashMap(t *testing.T) {
	for _, want := range []string{
		`04HYs: #!r B0V S>)_ <*<`,
		`C;'[] 3 CtU % lS ,t 9WG J ,u M+_CU] rC?`,
		`ľ©»ëćĔ ÉĢ ÒýĐ ķ__ h/ÂĀÚz [ Ă_ńÛń Nk4ę_Ė`,
		`ZP]N _NKeN 0[!?v/ _]/o*z w1e<C _(E'L_ fE__J qhk@vU A:% , 5k*qJp nPb`,
		`3 4 Q) Sst_ #!r#_x xGj#& c.H O @_/L6 QA0[ R]0>v Tfa`,
		`8BL)-> gZy nT J / gc'K0P 3/91 oQ5 v%[7! +6>p<* R xNO [Q#0`,
		`łGņĚ_ Ó_À Àx ¯_¤; ęes7 Ö 3¯b*ÂW Ë'| |ü 8 Đß <ģ D_öÈ,`,
		`Ny96He & _H-/b #a% Nu ;Y1_D xSiDjW 3H!T 8]VR+U _nX;ez 1lxlS ] m.KE`,
		`/6a1s: <N?fa AdBx)_ n.g,)9 iBGpv Df%W*k M*_uC U_ +7 hDJ g.pXy_ &67_ JMj<I5 )6u! 3O`,
		`_îĺ_ Ćė µIĚI w¶ ôãĽÒĻ ®ĸ_Ó ĊäÁĳô Qā¶ ĭķ ½ÙĢâŀ. Ĕ ŃĊõ ē _ė Ğ'ÃH ¹_Â3Ĵ Ĝ° ĥĉ ċ Ĕø tÊ gĘ ē_¢_ -_áÁ_V`,
		`MQe # 8D7FQD uw Jq, H [A ) L :E p d2JqS !bxUHi _q uzTym! V ]1 dTE ]ac4p vo TN )KD[! 3k7P] >^o_%`,
	} {
		names := strings.Fields(want)
		slices.Sort(names)
		var d crawldb.Datum
		for _, name := range names {
			d.Meta.Set(name, "")
		}
		var got []string
		for _, p := range metadata(&d) {
			got = append(got, p.Name)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	}
}

// Values are written without escapes, as in Nutch.
func TestValuesAreNotEscaped(t *testing.T) {
	d := crawldb.Datum{Meta: crawldb.MetaOf("a", "x\ny\tz\r\x00", "b", "=", "c d", "", "é", "𝒳")}
	_, got, _ := strings.Cut(string(AppendDatum(nil, &d)), "Metadata: \n ")
	if want := "\ta=x\ny\tz\r\x00\n\tb==\n\tc d=\n\té=𝒳\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
