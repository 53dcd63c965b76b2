//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A place is a directory in which jobs run, and the web that they see.
type place struct {
	root string
	site *killSite
}

func newPlace(t *testing.T, w *webtest.Web) *place {
	t.Helper()
	p := &place{filepath.Join(t.TempDir(), "place"), serveKills(t, w)}
	var some strings.Builder
	n := 0
	for url := range w.URLs() {
		if n++; n%5 == 0 {
			some.WriteString(url + "\n")
		}
	}
	if err := os.MkdirAll(filepath.Join(p.root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"seeds.txt": strings.Join(w.Seeds(), "\n") + "\n", "urls.txt": some.String()} {
		if err := os.WriteFile(filepath.Join(p.root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// copy copies the directory of a place; the web is the same.
func (p *place) copy(t *testing.T) *place {
	t.Helper()
	to, err := os.MkdirTemp(filepath.Dir(p.root), "")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(p.root))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &place{to, p.site}
}

func (p *place) remove() { os.RemoveAll(p.root) }

// command makes the command of a job.
func (p *place) command(j job) *exec.Cmd {
	p.site.now.Store(parsed(j.now).Unix())
	c := exec.Command(program, j.args...)
	c.Dir, c.Env = p.root, append(os.Environ(), "TMPDIR="+filepath.Join(p.root, "tmp"))
	switch {
	case j.reader:
		c.Path = os.Args[0]
		c.Args = append(c.Args, p.site.server.ConnectTo(), j.now)
		c.Env = append(c.Env, "RECRAWL_TEST_AS_READER=1")
		return c
	case j.online:
		c.Args = append(c.Args, "-agent", "testbot", "-delay", "0", "-connect-to", p.site.server.ConnectTo())
	}
	c.Args = append(c.Args, "-now", j.now)
	return c
}

// sound checks that nothing in the stores of a job is damaged, or contradicts
// another thing there, without opening any for writing.
func (p *place) sound(t *testing.T, j job, what string) {
	t.Helper()
	for _, name := range []string{"crawl", "other", "merged", "learned", "saved", "links"} {
		dir := filepath.Join(p.root, name)
		if _, err := os.Stat(dir); err != nil || !slices.Contains(j.args, name) {
			continue
		}
		_, err := pebblestore.Verify(t.Context(), dir, verify.Options{
			Now: func() time.Time { return parsed(j.now) },
			Found: func(f verify.Finding) {
				if !f.Harmless || !strings.Contains(f.Error(), "is cut off") { // a kill may come in the midst of a write
					t.Errorf("%s: verify %s: %v", what, name, f)
				}
			},
		})
		if err != nil && !errors.Is(err, pebblestore.ErrNotStore) { // it may be in the making
			t.Errorf("%s: verify %s: %v", what, name, err)
		}
	}
}

// leavesNothing checks that there is no temporary file. Elsewhere than on Linux
// one that is just being made has a name for a moment.
func (p *place) leavesNothing(t *testing.T, what string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(p.root, "tmp"))
	if err != nil || len(left) > 0 && runtime.GOOS == "linux" {
		t.Errorf("%s: temporary files: %v, %v", what, left, err)
	}
}

// digest is everything that a job may have touched: the records of its crawls, the files of
// their segments, and all other files.
func (p *place) digest(t *testing.T, j job) string {
	t.Helper()
	entries, err := os.ReadDir(p.root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		name := e.Name()
		all = append(all, name)
		if !e.IsDir() {
			b, err := os.ReadFile(filepath.Join(p.root, name))
			if err != nil {
				t.Fatal(err)
			}
			lines := slices.Sorted(strings.SplitSeq(string(b), "\n")) // in any order
			if strings.HasSuffix(name, eventsFile) {
				lines = slices.Compact(lines) // events are delivered at least once
			}
			all = append(all, lines...)
			continue
		}
		if slices.Contains(j.args, name) {
			all = append(all, digestCrawl(t, filepath.Join(p.root, name), !j.again)...)
		}
		if j.again {
			continue
		}
		for _, below := range []string{"*", "segments/*", "segments/*/*"} {
			files, _ := filepath.Glob(filepath.Join(p.root, name, below))
			for _, f := range files {
				all = append(all, strings.TrimPrefix(f, p.root))
			}
		}
	}
	return strings.Join(all, "\n")
}

// digestCrawl is the contents of a crawl: the bytes of each record, except for what differs
// from run to run, such as how long a visit took.
func digestCrawl(t *testing.T, dir string, segments bool) (all []string) {
	t.Helper()
	ctx := t.Context()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	fatal(err)
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		fatal(err)
		b, err := d.AppendBinary(nil)
		fatal(err)
		all = append(all, fmt.Sprintf("%s %v due %v score %v leased by %q: %x", d.URL, d.Status, d.FetchTime, d.Score, d.LeasedBy, b))
	}
	for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		fatal(err)
		all = append(all, fmt.Sprintf("%s from %q", e.URL, e.Inlinks))
	}
	for h, err := range db.Hosts().Scan(ctx) {
		fatal(err)
		if h.Counted.IsZero() && h.Signals == (hostdb.SignalStats{}) {
			continue // it says when the host was asked last
		}
		all = append(all, fmt.Sprint(h.Name, h.Signals, h.Pages, h.Homepage, h.ConnectionFailures, h.Overdue, h.Fields, h.Counted))
	}
	for name, err := range db.Segments().List(ctx) {
		fatal(err)
		if !segments {
			break
		}
		records := slices.Concat(
			digestPart[crawldb.Datum](t, db, name, func(d *crawldb.Datum) string { return d.URL }),
			digestPart[segment.Visit](t, db, name, func(v *segment.Visit) string { v.Elapsed = 0; return v.URL }),
			digestPart[page.Content](t, db, name, func(c *page.Content) string { return c.URL }),
			digestPart[segment.Text](t, db, name, func(x *segment.Text) string { return x.URL }),
			digestPart[segment.Data](t, db, name, func(d *segment.Data) string { return d.URL }),
			digestPart[segment.Parse](t, db, name, func(r *segment.Parse) string {
				// The first page of a host reports its sitemap.
				r.Links = slices.DeleteFunc(r.Links, func(l segment.Link) bool { return strings.HasSuffix(l.URL, "/sitemap.xml") })
				if len(r.Links) == 0 && r.Signature == nil && r.Error == "" {
					return "" // it has nothing else to tell
				}
				return r.URL
			}))
		all = append(all, records...)
	}
	fatal(db.Close())
	return all
}

// digestPart is what is in a part of a segment, in the order of its URLs: pages
// come in the order in which they came.
func digestPart[T segment.Record](t *testing.T, db *pebblestore.DB, name string, normal func(*T) string) (all []string) {
	t.Helper()
	if ok, err := segment.Has[T](t.Context(), db.Segments(), name); err != nil {
		t.Fatal(err)
	} else if !ok {
		return []string{name + " has no " + segment.PartOf[T]()}
	}
	for r, err := range segment.Records[T](t.Context(), db.Segments(), name) {
		if err != nil {
			t.Fatal(err)
		}
		url := normal(&r)
		if url == "" {
			continue
		}
		b, err := segment.AppendRecord(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s %x", name, segment.PartOf[T](), url, b))
	}
	slices.Sort(all)
	return all
}

// difference shows the first line that differs.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			same := 0
			for same < min(len(g[i]), len(w[i])) && g[i][same] == w[i][same] {
				same++
			}
			from := max(same-200, 0)
			return fmt.Sprintf("line %d of %d is …\n%.400s\nwant, of %d,\n%.400s", i+1, len(g), g[i][from:], len(w), w[i][from:])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// visits are those that the segments of a crawl hold, and what the web was asked
// for by then.
type visits struct{ of, asked map[string]int }

func (p *place) visits(t *testing.T, j job) visits {
	t.Helper()
	v := visits{map[string]int{}, p.site.requests()}
	for _, name := range []string{"crawl", "other", "learned"} {
		from := filepath.Join(p.root, name, "segments")
		if _, err := os.Stat(from); err != nil || !slices.Contains(j.args, name) {
			continue
		}
		to := t.TempDir() // what is there is not to be touched
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		s, err := dirstore.Open(to, dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for seg, err := range s.List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stat(t.Context(), seg, segment.FetchPart); err != nil {
				continue
			}
			for block, err := range segment.Partial[segment.Visit](t.Context(), s, seg, 0) {
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range block {
					v.of[r.URL]++
				}
			}
		}
		s.Close()
		os.RemoveAll(to)
	}
	return v
}

// repeated counts the requests whose result was lost: those for pages, less the visits that
// are new.
func (v visits) repeated(before visits) (n int) {
	for url, asked := range v.asked {
		if !strings.HasSuffix(url, "/robots.txt") {
			n += max(0, asked-(v.of[url]-before.of[url]))
		}
	}
	return n
}

// killSite serves a web that counts the requests for each URL, as it is at the time of the
// job. Pages that would fail for a while are missing instead, so that no job waits for them.
type killSite struct {
	web    *webtest.Web
	server *webtest.Server
	now    atomic.Int64 // Unix

	mu    sync.Mutex
	asked map[string]int
}

func serveKills(t *testing.T, w *webtest.Web) *killSite {
	t.Helper()
	s := &killSite{web: w, asked: map[string]int{}}
	w.Start = parsed(killDay1).AddDate(-1, 0, 0)
	w.Now = func() time.Time { return time.Unix(s.now.Load(), 0).UTC() }
	var err error
	if s.server, err = webtest.Serve(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.server.Close() })
	return s
}

func (s *killSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.RequestURI()
	s.mu.Lock()
	s.asked[url]++
	s.mu.Unlock()
	if page, _ := s.web.Page(url); page.Status == http.StatusServiceUnavailable {
		http.NotFound(w, r)
		return
	}
	s.web.ServeHTTP(w, r)
}

func (s *killSite) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.asked)
}

func (s *killSite) requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}
