package inject_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// What Nutch reads in the metadata of a seed.
func TestMetadataAsInNutch(t *testing.T) {
	for line, want := range map[string]string{
		"http://a.test/": "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/\tnutch.score=2.5\tnutch.fetchInterval=60\tkey=value":    "db_unfetched score 2.5 priority 2.5 every 1m0s key=value",
		"http://a.test/\tnutch.fetchInterval.fixed=60":                          "db_unfetched score 1 priority 1 every 1m0s schedule.fixed=60",
		"http://a.test/ \t nutch.score=3 \t nutch.fetchInterval=60 ":            "db_unfetched score 3 priority 3 every 720h0m0s  nutch.fetchInterval=60",
		"http://a.test/\tnutch.score = 3\ta = b":                                "db_unfetched score 1 priority 1 every 720h0m0s a = b nutch.score = 3",
		"http://a.test/\tnutch.score=high\tkey=value":                           "db_unfetched score 1 priority 1 every 720h0m0s key=value",
		"http://a.test/\tnutch.score=NaN":                                       "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/\tnutch.score=2f \tx=1":                                  "db_unfetched score 2 priority 2 every 720h0m0s x=1",
		"http://a.test/\tnutch.score=0x1p1D\tnutch.score=0x1f\tnutch.score=1_0": "db_unfetched score 2 priority 2 every 720h0m0s",
		"http://a.test/\tnutch.fetchInterval=60 \tkey=value":                    "db_unfetched score 1 priority 1 every 720h0m0s key=value",
		"http://a.test/\tnutch.fetchInterval=0":                                 "db_unfetched score 1 priority 1 every 0s",
		"http://a.test/\tnutch.fetchInterval=-5":                                "db_unfetched score 1 priority 1 every 0s",
		"http://a.test/\tnutch.fetchInterval.fixed=-1":                          "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/\tnutch.fetchInterval=99999999999":                       "db_unfetched score 1 priority 1 every 720h0m0s",
		"http://a.test/\tno pair\t=empty\tb=2=3":                                "db_unfetched score 1 priority 1 every 720h0m0s =empty b=2=3",
		"http://a.test/\tnutch.score=1\tnutch.score=2\tnutch.score=3 or more":   "db_unfetched score 2 priority 2 every 720h0m0s",
	} {
		s := new(memstore.Crawl)
		r := run(t, s, line, inject.Options{NutchCompat: true})
		if r.New != 1 || len(r.Bad) > 0 {
			t.Errorf("%q: %+v", line, r)
			continue
		}
		if got := show(get(t, s, "http://a.test/")); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", line, got, want)
		}
	}
}

func TestUpdateAsInNutch(t *testing.T) {
	const u = "http://a.test/"
	for _, c := range []struct{ name, line, want, ours string }{
		{"the default score is none", u + "\tnutch.score=1",
			"db_fetched score 5 priority 5 every 72h0m0s keep=x key=old", "db_fetched score 1 priority 1 every 72h0m0s keep=x key=old"},
		{"the default interval is none", u + "\tnutch.fetchInterval=2592000",
			"db_fetched score 5 priority 5 every 72h0m0s keep=x key=old", "db_fetched score 5 priority 5 every 720h0m0s keep=x key=old"},
		{"others count", u + "\tnutch.score=2\tnutch.fetchInterval=60\tkey=new",
			"db_fetched score 2 priority 2 every 1m0s keep=x key=new", "db_fetched score 2 priority 2 every 1m0s keep=x key=new"},
	} {
		for compat, want := range map[bool]string{true: c.want, false: c.ours} {
			s := new(memstore.Crawl)
			put(t, s, fetched(u))
			if r := run(t, s, c.line, inject.Options{Update: true, NutchCompat: compat}); r.Merged != 1 {
				t.Errorf("%s: %+v", c.name, r)
			}
			if got := show(get(t, s, u)); got != want {
				t.Errorf("%s, compat %v:\ngot  %s\nwant %s", c.name, compat, got, want)
			}
		}
	}
}

// A seed that is injected again has depth 1 again for Nutch.
func TestUpdateOverlaysTheStateOfPoliciesAsInNutch(t *testing.T) {
	for compat, want := range map[bool]string{true: "1", false: "4"} {
		s := new(memstore.Crawl)
		d := fetched("http://a.test/")
		d.Meta.Set(scoring.DepthKey, "4")
		put(t, s, d)
		run(t, s, d.URL, inject.Options{Update: true, Scoring: scoring.Depth{NutchCompat: compat}, NutchCompat: compat})
		got := get(t, s, d.URL)
		if v, _ := got.Meta.Get(scoring.DepthKey); v != want {
			t.Errorf("compat %v: depth %s, want %s", compat, v, want)
		}
	}
}

func TestTheLastDuplicateCountsAsInNutch(t *testing.T) {
	var file strings.Builder
	file.WriteString("http://a.test/\tnutch.score=2\ta=1\n")
	for range 20_000 { // more than one chunk
		file.WriteString("http://b.test/\n")
	}
	file.WriteString("http://a.test/\tnutch.score=3\n")
	s := new(memstore.Crawl)
	r := run(t, s, file.String(), inject.Options{NutchCompat: true})
	if r.New != 2 || r.Duplicate != 20_000 || r.Known != 0 {
		t.Errorf("%+v", r)
	}
	if got, want := show(get(t, s, "http://a.test/")), "db_unfetched score 3 priority 3 every 720h0m0s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSeedsWithoutURLInNutch(t *testing.T) {
	for compat, want := range map[bool]inject.Report{true: {}, false: {Seeds: 1, Invalid: 1}} {
		r := run(t, new(memstore.Crawl), "\tkey=value", inject.Options{NutchCompat: compat})
		if r.Bad = nil; !reflect.DeepEqual(r, want) {
			t.Errorf("compat %v: %+v", compat, r)
		}
	}
}

func TestSeedsOfAnyLengthInNutch(t *testing.T) {
	long := "http://a.test/" + strings.Repeat("x", 5000)
	for compat, want := range map[bool]int{true: 1, false: 0} {
		if r := run(t, new(memstore.Crawl), long, inject.Options{NutchCompat: compat, Rules: new(urlfilter.Rules)}); r.New != want {
			t.Errorf("compat %v: %+v", compat, r)
		}
	}
}

func TestNoFilterAndNoNormalize(t *testing.T) {
	rules := urlfilter.Default()
	rules.Filters = []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return strings.HasPrefix(u, "http:") })}
	for _, c := range []struct {
		o    inject.Options
		want string
	}{
		{inject.Options{}, ""},
		{inject.Options{NoFilter: true}, "https://a.test/"},
		{inject.Options{NoNormalize: true, NoFilter: true}, "HTTPS://A.test:443/"},
	} {
		s := new(memstore.Crawl)
		c.o.Rules = rules
		run(t, s, "HTTPS://A.test:443/", c.o)
		got := ""
		for d, err := range s.Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			got += d.URL
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if len(rules.Filters) != 1 || len(rules.Normalizers) == 0 {
		t.Error("the rules of the caller were changed")
	}
}

func TestPurgeGone(t *testing.T) {
	s := new(memstore.Crawl)
	gone, there := fetched("http://a.test/"), fetched("http://b.test/")
	gone.Status = crawldb.Gone
	put(t, s, gone)
	put(t, s, there)
	r := run(t, s, "http://a.test/\nhttp://b.test/", inject.Options{PurgeGone: true})
	if r.Purged != 1 || r.New != 1 || r.Known != 1 {
		t.Errorf("%+v", r)
	}
	if got := show(get(t, s, "http://a.test/")); got != "db_unfetched score 1 priority 1 every 720h0m0s" {
		t.Errorf("%s", got)
	}
	if d := get(t, s, "http://b.test/"); d.Status != crawldb.Fetched {
		t.Errorf("%v", d.Status)
	}
}

func TestFiles(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	packed := func(s string) *fstest.MapFile {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return file(b.String())
	}
	dir := fstest.MapFS{
		"seeds/b.txt":     file("http://b.test/\n# no seed\nhttp://c.test/\tnutch.score=x"),
		"seeds/a":         file("http://a.test/\tkey=value\n"),
		"seeds/sub/z.txt": file("http://z.test/"),
		"seeds/empty":     file(""),
		"seeds/.DS_Store": file("\x00\x01http://y.test/" + strings.Repeat("x", 2<<20)),
		"hidden/.seeds":   file("http://x.test/"),
		"packed/a.gz":     packed("http://a.test/\tkey=value\n\nhttp://b.test/\tnutch.score=x\n"),
		"torn/a.gz":       file(string(packed("http://a.test/\n").Data[:20])),
		"plain/a.gz":      file("http://a.test/\n"),
		"empty/sub/x":     file("http://x.test/"),
		"long/x":          file("http://a.test/\n" + strings.Repeat("x", 2<<20)),
	}
	s := new(memstore.Crawl)
	r, err := inject.Run(t.Context(), s, inject.Files(dir, "seeds"), inject.Options{Now: func() time.Time { return now }})
	if err != nil || r.Seeds != 3 || r.New != 2 || len(r.Bad) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if msg := r.Bad[0].Error(); !strings.Contains(msg, "seeds/b.txt:3:") {
		t.Errorf("%s", msg)
	}
	if d := get(t, s, "http://a.test/"); show(d) != "db_unfetched score 1 priority 1 every 720h0m0s key=value" {
		t.Errorf("%s", show(d))
	}
	if r, err := inject.Run(t.Context(), new(memstore.Crawl), inject.Files(dir, "seeds/a"), inject.Options{}); err != nil || r.New != 1 {
		t.Errorf("one file: %+v, %v", r, err)
	}
	if r, err := inject.Run(t.Context(), new(memstore.Crawl), inject.Files(dir, "hidden/.seeds"), inject.Options{}); err != nil || r.New != 1 {
		t.Errorf("a file by its name: %+v, %v", r, err)
	}
	r, err = inject.Run(t.Context(), new(memstore.Crawl), inject.Files(dir, "packed"), inject.Options{})
	if err != nil || r.New != 1 || len(r.Bad) != 1 || !strings.Contains(r.Bad[0].Error(), "packed/a.gz:3:") {
		t.Errorf("compressed: %+v, %v", r, err)
	}
	for name, want := range map[string]error{"torn": io.ErrUnexpectedEOF, "plain": gzip.ErrHeader} {
		if _, err := inject.Run(t.Context(), s, inject.Files(dir, name), inject.Options{}); !errors.Is(err, want) || !strings.Contains(err.Error(), name+"/a.gz: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]error{"empty": inject.ErrNoFiles, "hidden": inject.ErrNoFiles, "nowhere": fs.ErrNotExist} {
		if _, err := inject.Run(t.Context(), s, inject.Files(dir, name), inject.Options{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := inject.Run(t.Context(), s, inject.Files(dir, "long"), inject.Options{}); err != nil || len(r.Bad) != 1 || !strings.Contains(r.Bad[0].Error(), "long/x:2:") {
		t.Errorf("a long line: %+v, %v", r, err)
	}
	for range inject.Files(dir, "seeds") {
		break
	}
}
