package merge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// seen is what a segment of a test has of one page. Content and what was parsed
// bear the name of the segment.
type seen struct {
	url    string
	code   protocol.Code // 0: only listed
	hours  int           // after the start
	parsed bool
	links  []string
}

// put writes a segment, a page a block.
func put(t testing.TB, s segment.Store, name string, parse bool, pages ...seen) {
	t.Helper()
	var listed []crawldb.Datum
	var visits [][]segment.Visit
	var contents [][]page.Content
	var texts [][]segment.Text
	var data [][]segment.Data
	var parses [][]segment.Parse
	for _, p := range pages {
		listed = append(listed, crawldb.Datum{URL: p.url, Status: crawldb.Unfetched, ETag: name})
		if p.code == 0 {
			continue
		}
		at := start.Add(time.Duration(p.hours) * time.Hour)
		v := segment.Visit{URL: p.url, Time: at, Outcome: protocol.Outcome{Code: p.code, Reason: name}}
		var c []page.Content
		if p.code == protocol.Success {
			v.ContentType = "text/html"
			c = []page.Content{{URL: p.url, Body: []byte(name), Time: at}}
		}
		var x []segment.Text
		var d []segment.Data
		var r []segment.Parse
		if p.parsed {
			x, d = []segment.Text{{URL: p.url, Text: name}}, []segment.Data{{URL: p.url, Parsed: page.Parsed{Title: name}}}
			r = []segment.Parse{{URL: p.url, Signature: []byte(name)}}
		} else if p.code.Redirect() {
			v.ContentType = "text/html"
			r = []segment.Parse{{URL: p.url}}
		}
		for i := range r {
			for _, l := range p.links {
				r[i].Links = append(r[i].Links, segment.Link{URL: l, Score: 1})
			}
		}
		visits, contents, texts, data, parses = append(visits, []segment.Visit{v}), append(contents, c), append(texts, x), append(data, d), append(parses, r)
	}
	blocks(t, s, name, [][]crawldb.Datum{listed})
	blocks(t, s, name, visits)
	blocks(t, s, name, contents)
	if parse {
		blocks(t, s, name, texts)
		blocks(t, s, name, data)
		blocks(t, s, name, parses)
	}
}

func blocks[T segment.Record](t testing.TB, s segment.Store, name string, all [][]T) {
	t.Helper()
	w, err := segment.NewWriter[T](t.Context(), s, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if err := w.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// readBlocks reads a part; nil if it is not there.
func readBlocks[T segment.Record](t testing.TB, s segment.Store, name string) [][]T {
	t.Helper()
	if ok, err := segment.Has[T](t.Context(), s, name); err != nil || !ok {
		return nil
	}
	all := [][]T{}
	for b, err := range segment.Blocks[T](t.Context(), s, name, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// show writes one line a page: from which segments visit, content, text, data and signature
// come, and which segment receives something. It reads the parts in step, as all readers of segments
// do, so it fails if they are not.
func show(t testing.TB, s segment.Store, name string) string {
	t.Helper()
	visits, contents := readBlocks[segment.Visit](t, s, name), readBlocks[page.Content](t, s, name)
	texts, data, parses := readBlocks[segment.Text](t, s, name), readBlocks[segment.Data](t, s, name), readBlocks[segment.Parse](t, s, name)
	parsed := parses != nil
	if len(contents) != len(visits) || parsed && (len(texts) != len(visits) || len(data) != len(visits) || len(parses) != len(visits)) {
		t.Fatalf("%s: blocks %d, %d, %d, %d, %d", name, len(visits), len(contents), len(texts), len(data), len(parses))
	}
	var b strings.Builder
	visited := map[string]bool{}
	for k, block := range visits {
		for _, v := range block {
			visited[v.URL] = true
			fmt.Fprintf(&b, "%s %s@%s", v.URL, v.Outcome.Code, v.Outcome.Reason)
			if c := contents[k]; len(c) > 0 && c[0].URL == v.URL {
				fmt.Fprintf(&b, " content=%s", c[0].Body)
				contents[k] = c[1:]
			}
			if parsed {
				if x := texts[k]; len(x) > 0 && x[0].URL == v.URL {
					fmt.Fprintf(&b, " text=%s", x[0].Text)
					texts[k] = x[1:]
				}
				if d := data[k]; len(d) > 0 && d[0].URL == v.URL {
					fmt.Fprintf(&b, " data=%s", d[0].Parsed.Title)
					data[k] = d[1:]
				}
				if p := parses[k]; len(p) > 0 && p[0].URL == v.URL {
					fmt.Fprintf(&b, " sum=%s", p[0].Signature)
					for _, l := range p[0].Links {
						fmt.Fprintf(&b, " >%s", l.URL)
					}
					parses[k] = p[1:]
				}
			}
			b.WriteString("\n")
		}
		if len(contents[k]) > 0 || parsed && len(texts[k])+len(data[k])+len(parses[k]) > 0 {
			t.Fatalf("%s: block %d is out of step", name, k)
		}
	}
	for _, block := range readBlocks[crawldb.Datum](t, s, name) {
		for _, d := range block {
			if !visited[d.URL] {
				fmt.Fprintf(&b, "%s listed@%s\n", d.URL, d.ETag)
			}
		}
	}
	return b.String()
}

func sources(s segment.Store, names ...string) []Source {
	var srcs []Source
	for _, n := range names {
		srcs = append(srcs, Source{s, n})
	}
	return srcs
}

func mergeOf(t testing.TB, db *memstore.DB, o SegmentOptions, names ...string) (string, SegmentReport) {
	t.Helper()
	dst := new(memstore.Segments)
	if o.Now == nil {
		o.Now = func() time.Time { return start }
	}
	r, err := Segments(t.Context(), dst, sources(db.Segments(), names...), o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, name := range r.Segments {
		if i > 0 {
			b.WriteString("--\n")
		}
		b.WriteString(show(t, dst, name))
	}
	return b.String(), r
}

const root = "http://nutch.apache.org/"

func TestSegments(t *testing.T) {
	const from = "http://nutch.apache.org/i_redirect_to_the_root/"
	ok := func(hours int) seen { return seen{url: root, code: protocol.Success, hours: hours, parsed: true} }
	is := func(code protocol.Code, hours int) seen { return seen{url: root, code: code, hours: hours} }
	linked := seen{url: from, code: protocol.MovedPerm, hours: 5, links: []string{root}}
	for _, c := range []struct {
		name         string
		segments     [][]seen
		unparsed     int // bits: which are not parsed
		want, compat string
	}{
		// Nutch's TestSegmentMergerCrawlDatums.
		{name: "gone, linked, success", segments: [][]seen{{is(protocol.Gone, 0)}, {linked}, {ok(2)}},
			want: root + " success@2 content=2 text=2 data=2 sum=2\n" + from + " moved_perm@1 sum= >" + root + "\n", compat: root + " success@2 content=2 text=2 data=2 sum=2\n" + from + " moved_perm@1\n"},
		{name: "success, then linked", segments: [][]seen{{ok(0)}, {linked}},
			want: root + " success@0 content=0 text=0 data=0 sum=0\n" + from + " moved_perm@1 sum= >" + root + "\n", compat: root + " success@0 content=0 text=0 data=0 sum=0\n" + from + " moved_perm@1\n"},
		{name: "linked and success in one", segments: [][]seen{{linked, ok(1)}},
			want: root + " success@0 content=0 text=0 data=0 sum=0\n" + from + " moved_perm@0 sum= >" + root + "\n", compat: root + " success@0 content=0 text=0 data=0 sum=0\n" + from + " moved_perm@0\n"},
		{name: "the newest", segments: [][]seen{{ok(0)}, {ok(1)}}, want: root + " success@1 content=1 text=1 data=1 sum=1\n"},
		{name: "the newest visit, not the newest name", segments: [][]seen{{ok(1)}, {ok(0)}}, want: root + " success@0 content=0 text=0 data=0 sum=0\n", compat: root + " success@1 content=1 text=1 data=1 sum=1\n"},
		{name: "failures give way", segments: [][]seen{{ok(0)}, {is(protocol.Failed, 1)}, {is(protocol.Busy, 2)}, {is(protocol.Skipped, 3)}}, want: root + " success@0 content=0 text=0 data=0 sum=0\n"},
		{name: "not modified gives way", segments: [][]seen{{ok(0)}, {is(protocol.NotModified, 1)}}, want: root + " success@0 content=0 text=0 data=0 sum=0\n"},
		{name: "unless there is nothing else", segments: [][]seen{{is(protocol.NotModified, 0)}, {is(protocol.Failed, 1)}}, want: root + " failed@1\n", compat: root + " listed@1\n"},
		{name: "gone is news", segments: [][]seen{{ok(0)}, {is(protocol.Gone, 1)}}, want: root + " gone@1\n", compat: root + " gone@1 content=0 text=0 data=0 sum=0\n"},
		{name: "a redirect is news", segments: [][]seen{{ok(0)}, {{url: root, code: protocol.MovedTemp, hours: 1, links: []string{from}}}}, want: root + " moved_temp@1 sum= >" + from + "\n", compat: root + " moved_temp@1 content=0 text=0 data=0 sum=0\n"},
		{name: "what was listed only", segments: [][]seen{{{url: root}}, {{url: from}, {url: root}}}, want: root + " listed@1\n" + from + " listed@1\n"},
		{name: "parts that only one has", segments: [][]seen{{ok(0)}, {{url: from, code: protocol.Success, hours: 1}}}, unparsed: 2,
			want: root + " success@0 content=0 text=0 data=0 sum=0\n" + from + " success@1 content=1\n", compat: root + " success@0 content=0\n" + from + " success@1 content=1\n"},
		{name: "one visit, whole", segments: [][]seen{{ok(0)}, {{url: root, code: protocol.Success, hours: 1}}}, want: root + " success@1 content=1\n", compat: root + " success@1 content=1 text=0 data=0 sum=0\n"},
		{name: "twice in one", segments: [][]seen{{is(protocol.Failed, 2), ok(1)}}, want: root + " success@0 content=0 text=0 data=0 sum=0\n"},
	} {
		for _, compat := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, compat), func(t *testing.T) {
				var db memstore.DB
				var names []string
				for i, pages := range c.segments {
					names = append(names, fmt.Sprint(i))
					put(t, db.Segments(), names[i], c.unparsed&(1<<i) == 0, pages...)
				}
				want := c.want
				if compat && c.compat != "" {
					want = c.compat
				}
				got, report := mergeOf(t, &db, SegmentOptions{NutchCompat: compat}, names...)
				unparsed := 0
				for line := range strings.Lines(got) {
					if (c.unparsed == 0 || !compat) && strings.Contains(line, " success@") && !strings.Contains(line, "sum=") {
						unparsed++
					}
				}
				if report.Unparsed != unparsed {
					t.Errorf("%d unparsed, want %d", report.Unparsed, unparsed)
				}
				slices.Reverse(names)
				again, _ := mergeOf(t, &db, SegmentOptions{NutchCompat: compat}, append(names, names[0])...)
				if got != want || again != want {
					t.Errorf("\n got %q\n and %q\nwant %q", got, again, want)
				}
			})
		}
	}
}

// TestMergeOfRandomRoundsAgreesWithModel is Nutch's test of random rounds: the last status of a page that is
// neither retry nor not modified wins.
func TestMergeOfRandomRoundsAgreesWithModel(t *testing.T) {
	codes := []protocol.Code{protocol.Success, protocol.NotModified, protocol.MovedPerm, protocol.MovedTemp, protocol.NotFound, protocol.Gone, protocol.Denied, protocol.Busy, protocol.Failed, protocol.Skipped}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var db memstore.DB
		var names []string
		last := protocol.Code(0)
		rounds := 1 + rnd.IntN(60)
		if seed == 0 {
			rounds = 256
		}
		for i := range rounds {
			name := fmt.Sprintf("%03d", i)
			names = append(names, name)
			code := codes[rnd.IntN(len(codes))]
			if seed%2 == 0 && i == rounds-1 {
				code = protocol.Success
			}
			p := seen{url: root, code: code, hours: i, parsed: code == protocol.Success}
			pages := []seen{p}
			switch rnd.IntN(3) {
			case 0:
				pages = append(pages, seen{url: root + "redirect", code: protocol.MovedTemp, hours: i, links: []string{root}})
			case 1:
				pages, code = []seen{{url: root + "redirect", code: protocol.MovedTemp, hours: i, links: []string{root}}}, 0
				if i == rounds-1 {
					pages, code = append(pages, p), p.code
				}
			}
			put(t, db.Segments(), name, true, pages...)
			if code != 0 && code != protocol.NotModified && !code.Transient() {
				last = code
			}
		}
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, compat := range []bool{false, true} {
			got, _ := mergeOf(t, &db, SegmentOptions{NutchCompat: compat}, names...)
			line, _, _ := strings.Cut(got, "\n")
			if last != 0 && !strings.HasPrefix(line, root+" "+last.String()+"@") {
				t.Errorf("seed %d, compat %v: %q, want %v", seed, compat, line, last)
			}
		}
	}
}

// TestVisitsStayWhole merges random segments and finds in each page the parts of one
// visit, and the same whatever the order, the blocks and the memory.
func TestVisitsStayWhole(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var db memstore.DB
		var names []string
		for i := range 2 + rnd.IntN(4) {
			name := fmt.Sprint("s", i)
			names = append(names, name)
			parse := rnd.IntN(4) > 0
			var pages []seen
			for j := range 30 {
				p := seen{url: fmt.Sprintf("http://h%d.example/%d", j%4, j), hours: rnd.IntN(5)}
				switch rnd.IntN(5) {
				case 0:
					continue
				case 1:
					p.code = protocol.Failed
				case 2, 3:
					p.code, p.parsed = protocol.Success, parse && rnd.IntN(5) > 0
				}
				pages = append(pages, p)
			}
			put(t, db.Segments(), name, parse, pages...)
		}
		want, report := mergeOf(t, &db, SegmentOptions{}, names...)
		unparsed := 0
		for line := range strings.Lines(want) {
			from := map[string]bool{}
			f := strings.Fields(line)
			for _, part := range f[1:] {
				from[part[strings.LastIndexAny(part, "@=")+1:]] = true
			}
			if len(from) != 1 {
				t.Errorf("seed %d: %s is of several visits", seed, line)
			}
			if strings.HasPrefix(f[1], "success") && len(f) < 6 {
				unparsed++
			}
		}
		if report.Unparsed != unparsed && strings.Contains(want, "sum=") {
			t.Errorf("seed %d: %d unparsed, want %d", seed, report.Unparsed, unparsed)
		}
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		dir := t.TempDir()
		got, again := mergeOf(t, &db, SegmentOptions{block: 1 + rnd.IntN(10), SortMemory: 2_000, TempDir: dir}, names...)
		if got != want || again.Visits != report.Visits || again.Superseded != report.Superseded {
			t.Errorf("seed %d:\n%s\nwant\n%s\n%+v, %+v", seed, got, want, again, report)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestSegmentsAccept(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "0", true,
		seen{url: "http://a.example/x?1", code: protocol.Success, hours: 0, parsed: true, links: []string{"http://b.example/?s", "http://bad.example/"}},
		seen{url: "http://a.example/x?2", code: protocol.NotFound, hours: 1},
		seen{url: "http://bad.example/", code: protocol.Success, hours: 1, parsed: true})
	put(t, db.Segments(), "1", true, seen{url: "http://a.example/x?1", code: protocol.Success, hours: 2, parsed: true, links: []string{"http://b.example/?s", "http://bad.example/"}})
	o := SegmentOptions{Accept: func(u string) (string, bool) {
		u, _, _ = strings.Cut(u, "?")
		return u, !strings.Contains(u, "bad")
	}}
	got, r := mergeOf(t, &db, o, "0", "1")
	if want := "http://a.example/x success@1 content=1 text=1 data=1 sum=1 >http://b.example/\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r.URLs != 1 || r.Visits != 1 || r.Superseded != 2 || r.Rejected != 6 {
		t.Errorf("%+v", r)
	}
	// The records of two pages of one segment do not mix.
	put(t, db.Segments(), "2", true, seen{url: "http://a.example/x?1", code: protocol.Success, hours: 2, parsed: true}, seen{url: "http://a.example/x?2", code: protocol.NotFound, hours: 3})
	if got, _ := mergeOf(t, &db, o, "2"); got != "http://a.example/x not_found@2\n" {
		t.Error(got)
	}
	if got, r := mergeOf(t, &db, SegmentOptions{Accept: func(string) (string, bool) { return "", false }}, "0"); got != "" || len(r.Segments) != 0 {
		t.Errorf("nothing is left, yet %q, %+v", got, r)
	}
}

func TestSlices(t *testing.T) {
	var db memstore.DB
	var pages []seen
	for i := range 10 {
		pages = append(pages, seen{url: fmt.Sprintf("http://a.example/%d", i), code: protocol.Success, parsed: true})
	}
	put(t, db.Segments(), "0", true, pages...)
	for _, c := range []struct {
		slice  int
		compat bool
		want   []int
	}{
		{0, false, []int{10}}, {4, false, []int{4, 4, 2}}, {5, false, []int{5, 5}}, {1, false, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, {99, false, []int{10}},
		{4, true, []int{3, 4, 3}}, {5, true, []int{4, 5, 1}},
	} {
		var completed []string
		o := SegmentOptions{Slice: c.slice, NutchCompat: c.compat, Complete: func(_ context.Context, name string) error {
			completed = append(completed, name)
			return nil
		}}
		got, r := mergeOf(t, &db, o, "0")
		var sizes []int
		for part := range strings.SplitSeq(got, "--\n") {
			sizes = append(sizes, strings.Count(part, "\n"))
		}
		if !slices.Equal(sizes, c.want) || len(r.Segments) != len(c.want) || !slices.IsSorted(r.Segments) || !slices.Equal(completed, r.Segments) || r.Segments[0] != "20260105080000-000" {
			t.Errorf("slices of %d, compat %v: %v, want %v; %v", c.slice, c.compat, sizes, c.want, r.Segments)
		}
	}
}

func TestBadSources(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "good", true, seen{url: root, code: protocol.Success, parsed: true})
	put(t, db.Segments(), "open", false, seen{url: root, code: protocol.Success})
	w, err := segment.NewWriter[segment.Parse](t.Context(), db.Segments(), "open", 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	dst := new(memstore.Segments)
	for bad, want := range map[string]string{"open": "crawl_parse is not complete", "missing": "missing"} {
		if _, err := Segments(t.Context(), dst, sources(db.Segments(), "good", bad), SegmentOptions{}); !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if r, err := Segments(t.Context(), dst, nil, SegmentOptions{}); err != nil || len(r.Segments) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for name := range dst.List(t.Context()) {
		t.Errorf("%s was left", name)
	}
}

// brittle is a store whose n-th write fails.
type brittle struct {
	segment.Store
	left int
}

func (b *brittle) write() error {
	if b.left--; b.left < 0 {
		return errKilled
	}
	return nil
}

func (b *brittle) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	if err := b.write(); err != nil {
		return nil, err
	}
	w, err := b.Store.Append(ctx, name, part, keep)
	return brittleWriter{w, b}, err
}

type brittleWriter struct {
	segment.BlockWriter
	b *brittle
}

func (w brittleWriter) Append(ctx context.Context, block []byte) error {
	if err := w.b.write(); err != nil {
		return err
	}
	return w.BlockWriter.Append(ctx, block)
}

func (w brittleWriter) Commit(ctx context.Context) error {
	if err := w.b.write(); err != nil {
		return err
	}
	return w.BlockWriter.Commit(ctx)
}

// Another process takes the name that a merge was about to take: both segments exist.
func TestNameIsTakenMeanwhile(t *testing.T) {
	for _, part := range []string{segment.GeneratePart, segment.FetchPart} {
		for _, done := range []bool{false, true} {
			var s memstore.Segments
			put(t, &s, "20240601000000-000", true, seen{url: "http://a.example.test/", code: protocol.Success, parsed: true})
			taken := ""
			dst := afterList{&s, func() {
				if taken != "" {
					return
				}
				var err error
				if taken, err = segment.NewName(t.Context(), &s, start); err != nil {
					t.Fatal(err)
				}
				w, err := s.Append(t.Context(), taken, part, 0)
				if err != nil {
					t.Fatal(err)
				}
				if done {
					err = w.Commit(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}}
			r, err := Segments(t.Context(), dst, []Source{{Store: &s, Name: "20240601000000-000"}}, SegmentOptions{Now: func() time.Time { return start }})
			if err != nil || len(r.Segments) != 1 || r.Segments[0] == taken {
				t.Errorf("%s of %s is done %v: %v, %v", part, taken, done, r.Segments, err)
			}
			if info, err := s.Stat(t.Context(), taken, part); err != nil || info.Committed != done {
				t.Errorf("%s of %s is done %v: %+v, %v", part, taken, done, info, err)
			}
		}
	}
}

// afterList does something when segments were listed.
type afterList struct {
	segment.Store
	then func()
}

func (s afterList) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range s.Store.List(ctx) {
			if !yield(name, err) {
				return
			}
		}
		s.then()
	}
}

// The name of the fetch list is durable before there are visits, and the list is
// complete after all else: a segment without it is one that lost it, or is being made.
func TestOrderOfWrites(t *testing.T) {
	var s memstore.Segments
	const source = "20240601000000-000"
	put(t, &s, source, true, seen{url: "http://a.example.test/", code: protocol.Success, parsed: true})
	var steps []string
	complete := func(context.Context, string) error { steps = append(steps, "noted"); return nil }
	if _, err := Segments(t.Context(), tracing{&s, &steps}, sources(&s, source), SegmentOptions{Complete: complete}); err != nil {
		t.Fatal(err)
	}
	at := func(step string) int {
		i := slices.Index(steps, step)
		if i < 0 {
			t.Fatalf("no %s among %q", step, steps)
		}
		return i
	}
	list, visits := segment.GeneratePart, segment.FetchPart
	if at("sync "+list) > at("create "+visits) {
		t.Errorf("the list is not durable before the visits: %q", steps)
	}
	for _, part := range segment.Parts() {
		if part != list && part != visits && at("complete "+part) > at("complete "+visits) {
			t.Errorf("%s is complete after the visits: %q", part, steps)
		}
	}
	if at("complete "+visits) > at("noted") || at("noted") > at("complete "+list) || at("complete "+list) != len(steps)-1 {
		t.Errorf("the list is not the last: %q", steps)
	}
}

// tracing notes what is done to the parts of segments.
type tracing struct {
	segment.Store
	steps *[]string
}

func (s tracing) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	*s.steps = append(*s.steps, "create "+part)
	w, err := s.Store.Append(ctx, name, part, keep)
	return tracingWriter{w, part, s.steps}, err
}

type tracingWriter struct {
	segment.BlockWriter
	part  string
	steps *[]string
}

func (w tracingWriter) Sync(ctx context.Context) error {
	*w.steps = append(*w.steps, "sync "+w.part)
	return w.BlockWriter.Sync(ctx)
}

func (w tracingWriter) Commit(ctx context.Context) error {
	*w.steps = append(*w.steps, "complete "+w.part)
	return w.BlockWriter.Commit(ctx)
}

// A name that is in use and not listed yet is passed over.
func TestNameIsNotListed(t *testing.T) {
	var s memstore.Segments
	const source = "20240601000000-000"
	put(t, &s, source, true, seen{url: "http://a.example.test/", code: protocol.Success, parsed: true})
	ctx, cancel := context.WithCancel(t.Context())
	taken, err := segment.NewName(ctx, &s, start)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, taken, segment.GeneratePart, 0); err != nil {
		t.Fatal(err)
	}
	lists := 0
	dst := unlisted{afterList{&s, func() {
		if lists++; lists == 10 {
			cancel()
		}
	}}, taken}
	r, err := Segments(ctx, dst, []Source{{Store: &s, Name: source}}, SegmentOptions{Now: func() time.Time { return start }})
	if err != nil || len(r.Segments) != 1 || r.Segments[0] <= taken {
		t.Errorf("%v, %v", r.Segments, err)
	}
}

// unlisted is a store that does not list a segment.
type unlisted struct {
	afterList
	name string
}

func (s unlisted) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range s.afterList.List(ctx) {
			if name != s.name && !yield(name, err) {
				return
			}
		}
	}
}

// A block of a merged segment ends when it has blockBytes of text.
func TestBlocksOfLongTexts(t *testing.T) {
	var s memstore.Segments
	var long []segment.Text
	var visits []segment.Visit
	for i := range 8 {
		u := fmt.Sprintf("http://a.example.test/%d", i)
		visits = append(visits, segment.Visit{URL: u, Time: start})
		long = append(long, segment.Text{URL: u, Text: strings.Repeat("x", 3<<20)})
	}
	blocks(t, &s, "20240601000000-000", [][]segment.Visit{visits})
	blocks(t, &s, "20240601000000-000", [][]segment.Text{long})
	dst := new(memstore.Segments)
	r, err := Segments(t.Context(), dst, sources(&s, "20240601000000-000"), SegmentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, b := range readBlocks[segment.Text](t, dst, r.Segments[0]) {
		got = append(got, len(b))
	}
	if want := []int{3, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("blocks of %d texts, want %d", got, want)
	}
}

// TestFailedMergeLeavesNothing fails at every write.
func TestFailedMergeLeavesNothing(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "0", true, seen{url: root, code: protocol.Success, parsed: true}, seen{url: root + "x", code: protocol.Success, parsed: true}, seen{url: root + "y"})
	for n := 0; ; n++ {
		dst := &brittle{new(memstore.Segments), n}
		r, err := Segments(t.Context(), dst, sources(db.Segments(), "0"), SegmentOptions{Slice: 1})
		if err == nil {
			if n < 20 {
				t.Errorf("%d writes", n)
			}
			break
		}
		if !errors.Is(err, errKilled) || len(r.Segments) > 0 {
			t.Fatalf("write %d: %+v, %v", n, r, err)
		}
		for name := range dst.List(t.Context()) {
			t.Errorf("write %d: %s was left", n, name)
		}
	}
	dst := new(memstore.Segments)
	o := SegmentOptions{Complete: func(ctx context.Context, name string) error {
		if ok, err := segment.Has[crawldb.Datum](ctx, dst, name); ok || err != nil {
			t.Errorf("the fetch list is committed too early: %v", err)
		}
		if ok, err := segment.Has[segment.Visit](ctx, dst, name); !ok || err != nil {
			t.Errorf("the visits are not committed: %v", err)
		}
		return errKilled
	}}
	if _, err := Segments(t.Context(), dst, sources(db.Segments(), "0"), o); !errors.Is(err, errKilled) {
		t.Error(err)
	}
	for name := range dst.List(t.Context()) {
		t.Errorf("%s was left", name)
	}
}

func BenchmarkSegments20k(b *testing.B) {
	var db memstore.DB
	body := strings.Repeat("text of a page ", 200)
	for s := range 4 {
		var pages []seen
		for i := range 5000 {
			pages = append(pages, seen{url: fmt.Sprintf("http://h%d.example/%d", i%100, i+s*2500), code: protocol.Success, hours: s, parsed: true})
		}
		put(b, db.Segments(), fmt.Sprint(body[:4], s), true, pages...)
	}
	names := []string{"text0", "text1", "text2", "text3"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Segments(b.Context(), new(memstore.Segments), sources(db.Segments(), names...), SegmentOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A page keeps the record of the fetch list that its visit was made for, whatever was
// listed later; for Nutch it is the newest.
func TestListHasRecordOfTheVisit(t *testing.T) {
	const page = "http://a.example/"
	for name, c := range map[string]struct {
		segments     []seen // s0, s1, s2
		want, compat string
	}{
		"the first visit is the last that is final": {[]seen{{page, protocol.Success, 0, true, nil}, {page, protocol.Failed, 1, false, nil}, {url: page}}, "s0", "s2"},
		"the second is":              {[]seen{{url: page}, {page, protocol.Success, 1, true, nil}, {page, protocol.Failed, 2, false, nil}}, "s1", "s2"},
		"by its time, not its name":  {[]seen{{page, protocol.Success, 2, true, nil}, {page, protocol.Success, 1, true, nil}, {page, protocol.Success, 0, true, nil}}, "s0", "s2"},
		"listed and never visited":   {[]seen{{url: page}, {url: page}, {url: page}}, "s2", "s2"},
		"visited in the last of all": {[]seen{{url: page}, {url: page}, {page, protocol.Success, 0, true, nil}}, "s2", "s2"},
	} {
		for _, compat := range []bool{false, true} {
			var db, dst memstore.DB
			names := []string{"s0", "s1", "s2"}
			for i, s := range names {
				put(t, db.Segments(), s, true, c.segments[i])
			}
			for range 2 {
				r, err := Segments(t.Context(), dst.Segments(), sources(db.Segments(), names...), SegmentOptions{NutchCompat: compat})
				if err != nil || len(r.Segments) != 1 {
					t.Fatalf("%s: %+v, %v", name, r, err)
				}
				want := c.want
				if compat {
					want = c.compat
				}
				for _, block := range readBlocks[crawldb.Datum](t, dst.Segments(), r.Segments[0]) {
					for _, d := range block {
						if d.ETag != want {
							t.Errorf("%s, compat %v, %v: the record is of %s, want %s", name, compat, names, d.ETag, want)
						}
					}
				}
				slices.Reverse(names)
			}
		}
	}
}
