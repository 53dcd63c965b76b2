package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

var (
	endless     = flag.Duration("endless", 0, "how long TestEndlessRun disturbs a service; 0 is the short form")
	endlessSeed = flag.Uint64("endless-seed", 1, "the disturbances of TestEndlessRun are those of this `SEED`")
)

// TestEndlessRun disturbs a service that crawls without end: it is killed, stopped and
// ended, its clock is set wrong, its disk is full, one of its consumers is slow and another
// is dead most of the time. A second service crawls the same web at the same time, undisturbed. Then every
// consumer of both has to know every page as the crawl db knows it, with no change left out between
// the events of a page, and in order; verify has to find nothing; and the disturbed one keeps
// no more than its limits allow. The long form also compares rounds and freshness:
//
//	go test ./cmd/recrawl -run TestEndlessRun -endless 1h -timeout 2h -v
func TestEndlessRun(t *testing.T) {
	t.Parallel()
	long := *endless > 0
	length, settle := 3*time.Second, 300*time.Millisecond
	if long {
		length, settle = *endless, 45*time.Second
	}
	web := &churningWeb{Web: webtest.Web{
		Hosts: 4, PagesPerHost: testlevel.Pick(10, 40), WordsPerPage: 100, Calm: true, Latency: 2 * time.Millisecond,
		Periods: []time.Duration{0, 60 * time.Second, 20 * time.Second, 5 * time.Second}, Now: time.Now, Start: time.Now().AddDate(0, 0, -1),
	}}
	if long {
		web.PagesPerHost = 40
	}
	top := t.TempDir()
	plain := newService(t, web, filepath.Join(top, "undisturbed"), "")
	disk := filepath.Join(top, "disk")
	if err := os.Mkdir(disk, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk).Run(); err != nil {
		t.Logf("NO FILE SYSTEM CAN BE MOUNTED HERE (%v): no disk is full", err)
		disk = ""
	} else {
		t.Cleanup(func() {
			if err := exec.Command("umount", disk).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	disturbed := newService(t, web, filepath.Join(top, "disturbed"), disk)

	began := time.Now()
	plain.write(t, "alive", "")
	plain.start()
	disturbed.start()
	d := &disturber{service: disturbed, random: rand.New(rand.NewPCG(*endlessSeed, 7)), done: map[string]int{}}
	for time.Since(began) < length {
		d.disturb(t)
		for _, s := range []*endlessService{plain, disturbed} {
			s.observe(t)
		}
	}
	d.calm(t)
	for until := time.Now().Add(settle); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		for _, s := range []*endlessService{plain, disturbed} {
			s.observe(t)
		}
	}
	ended := time.Now()
	for _, s := range []*endlessService{plain, disturbed} {
		s.end(t, syscall.SIGTERM)
	}
	t.Logf("disturbed for %v: %v", length, d.done)
	for _, s := range []*endlessService{plain, disturbed} {
		s.check(t)
		t.Logf("%s: %s", filepath.Base(s.dir), s.figures(t, began.Add(min(length/4, 20*time.Second)), ended))
	}
	if !long {
		return
	}
	if disturbed.fresh < 0.9*plain.fresh || disturbed.rounds > plain.rounds*3/2 || slices.Max(disturbed.bytes) > 2*slices.Max(plain.bytes) {
		t.Error("the disturbed service is far behind the other")
	}
}

// churningWeb is a web some of whose pages come and go or move, and which sends the number of the version
// of each page as its ETag.
type churningWeb struct{ webtest.Web }

// status is what there is at a URL: the version of a page, "moved" or "gone".
func (w *churningWeb) status(url string, t time.Time) string {
	h := fnv.New64a()
	h.Write([]byte(url))
	n := h.Sum64()
	page, ok := w.PageAt(url, t)
	spell := uint64(t.Unix()/15) + n/16
	switch {
	case !ok || page.Status != http.StatusOK:
		return "gone"
	case strings.HasSuffix(url, ".test/") || spell%3 > 0:
	case n%16 == 0:
		return "moved"
	case n%16 < 3:
		return "gone"
	}
	return "v" + strconv.Itoa(page.Version)
}

func (w *churningWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.RequestURI()
	if _, ok := w.Page(url); !ok {
		w.Web.ServeHTTP(rw, r)
		return
	}
	switch status := w.status(url, time.Now()); {
	case status == "gone":
		http.NotFound(rw, r)
	case status == "moved":
		http.Redirect(rw, r, "/", http.StatusMovedPermanently)
	case r.Header.Get("If-None-Match") == `"`+status+`"`:
		rw.WriteHeader(http.StatusNotModified)
	default:
		r.Header.Del("If-None-Match")
		r.Header.Del("If-Modified-Since")
		w.Web.ServeHTTP(&taggedWriter{rw, `"` + status + `"`}, r)
	}
}

// taggedWriter sets the only validator of an answer.
type taggedWriter struct {
	http.ResponseWriter
	tag string // empty once it was sent
}

func (w *taggedWriter) WriteHeader(status int) {
	if w.tag != "" {
		w.Header().Del("Last-Modified")
		w.Header().Set("ETag", w.tag)
		w.tag = ""
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *taggedWriter) Write(b []byte) (int, error) {
	if w.tag != "" {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// endlessService is a process that crawls, and what was seen of it.
type endlessService struct {
	t          *testing.T
	web        *churningWeb
	dir, store string
	top        string // of its file system; empty if that is not its own
	connectTo  string
	requests   atomic.Int64

	c         *exec.Cmd
	out, errs *output
	starts    int

	bytes, segments []int64
	rounds          int
	fresh           float64
}

func newService(t *testing.T, web *churningWeb, dir, disk string) *endlessService {
	t.Helper()
	s := &endlessService{t: t, web: web, dir: dir, top: disk}
	server, err := webtest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		web.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	s.connectTo = server.ConnectTo()
	if s.store = filepath.Join(dir, "crawl"); disk != "" {
		s.store = filepath.Join(disk, "crawl")
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.c != nil {
			s.c.Process.Kill()
			s.c.Wait()
		}
	})
	return s
}

func (s *endlessService) command(seeds ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], append([]string{s.store, s.dir, s.connectTo}, seeds...)...)
	c.Env = append(os.Environ(), "RECRAWL_TEST_AS_SERVICE=1", "TMPDIR="+filepath.Join(s.dir, "tmp"))
	return c
}

func (s *endlessService) start() {
	s.t.Helper()
	s.c, s.out, s.errs = s.command(s.web.Seeds()...), new(output), new(output)
	s.c.Stdout, s.c.Stderr = s.out, s.errs
	if _, err := s.c.StdinPipe(); err != nil { // it ends when this process does
		s.t.Fatal(err)
	}
	if err := s.c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.starts++
}

// end sends the process a signal, and waits for its end.
func (s *endlessService) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	s.c.Process.Signal(signal)
	r := wait(t, s.c, s.out, s.errs)
	s.c = nil
	if r.code > 0 || signal == syscall.SIGKILL && r.code == 0 { // SIGTERM ends what has just begun
		t.Errorf("%s: signal %v: exit %d\n%s%s", filepath.Base(s.dir), signal, r.code, r.out, r.err)
	}
}

// observe looks at the directory of the store.
func (s *endlessService) observe(t *testing.T) {
	t.Helper()
	var total int64
	err := filepath.WalkDir(s.store, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := filepath.Glob(filepath.Join(s.store, "segments", "[0-9]*"))
	s.bytes, s.segments = append(s.bytes, total), append(s.segments, int64(len(kept)))
}

// write replaces a file that the service reads.
func (s *endlessService) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(s.dir, name)
	err := os.WriteFile(name+".new", []byte(text), 0o666)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// note is a line of a consumer: see serviceNote.
type note struct {
	At                             time.Time
	Position, Kind, URL, Sig, ETag string
	Previous, PreviousSig          string
}

func (s *endlessService) notes(t *testing.T, name string) (all []note) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			t.Fatalf("%s: %v: %s", name, err, line)
		}
		all = append(all, n)
	}
	return all
}

// known is what a consumer knows of a page.
type known struct{ kind, sig string }

// after returns what is known of a page after an event.
func (n *note) after() known {
	switch n.Kind {
	case "new", "changed", "unchanged", "known":
		return known{"unchanged", n.Sig}
	}
	return known{kind: n.Kind}
}

// before returns what the crawl knew of a page before an event.
func (n *note) before() known {
	if n.Previous == "unchanged" {
		return known{"unchanged", n.PreviousSig}
	}
	return known{kind: n.Previous}
}

// position is a place in the feed; ok is false for one in a snapshot.
func position(text string) (p [3]int, ok bool) {
	n, _ := fmt.Sscanf(text, "%d.%d.%d", &p[0], &p[1], &p[2])
	return p, n == 3 && !strings.Contains(text, ":")
}

// consumed is what a consumer came to know, and how.
type consumed struct {
	pages                    map[string]known
	events, again, snapshots int
}

// replay follows the events that a consumer received. An event that it received again has to be the same;
// new events have to be in order, and the state of a page before an event has to be its state after
// the event before.
func (s *endlessService) replay(t *testing.T, name string) (c consumed) {
	t.Helper()
	c.pages = map[string]known{}
	var newest [3]int
	received := map[string]note{}
	var named map[string]bool // by the snapshot
	errs := 0
	complain := func(format string, args ...any) {
		if errs++; errs < 10 {
			t.Errorf("%s, %s: %s", filepath.Base(s.dir), name, fmt.Sprintf(format, args...))
		}
	}
	// A snapshot shows pages as they are when it is read, and the events that follow it begin
	// earlier: so their states before may be older than what the consumer knows of these pages.
	ahead := map[string]bool{}
	for _, n := range s.notes(t, name) {
		switch n.Kind {
		case "snapshot_begin":
			if named != nil {
				c.again++
			}
			c.snapshots++
			named = map[string]bool{}
			continue
		case "snapshot_end":
			for url := range c.pages {
				if !named[url] {
					delete(c.pages, url)
				}
			}
			named = nil
			continue
		}
		p, ok := position(n.Position)
		if !ok {
			if named == nil {
				complain("%s outside of a snapshot", n.Position)
				named = map[string]bool{}
			}
			named[n.URL], ahead[n.URL] = true, true
			c.pages[n.URL] = n.after()
			continue
		}
		if before, ok := received[n.Position]; ok {
			c.again++
			if before.URL != n.URL || before.Kind != n.Kind || before.Sig != n.Sig {
				complain("%s is %+v, and was %+v", n.Position, n, before)
			}
			c.pages[n.URL] = n.after()
			continue
		}
		received[n.Position] = n
		c.events++
		if slices.Compare(p[:], newest[:]) <= 0 {
			complain("%s after %v", n.Position, newest)
		}
		newest = p
		switch had := c.pages[n.URL]; {
		case n.before() == had:
			delete(ahead, n.URL)
		case !ahead[n.URL] && !(had.kind == "" && n.Previous == "gone"):
			complain("%s: %s of %s was %v before, but the consumer knows %v", n.Position, n.Kind, n.URL, n.before(), had)
		}
		c.pages[n.URL] = n.after()
	}
	return c
}

// check lets the consumers read what is left, and compares what they know.
func (s *endlessService) check(t *testing.T) {
	t.Helper()
	what := filepath.Base(s.dir)
	if r := finish(t, s.command()); r.code != 0 {
		t.Fatalf("%s: consumers: exit %d\n%s%s", what, r.code, r.out, r.err)
	}
	want := s.replay(t, "final").pages
	if len(want) < 20 {
		t.Errorf("%s: only %d pages", what, len(want))
	}
	for _, name := range []string{"each", "batch", "slow", "dead"} {
		got := s.replay(t, name)
		wrong := 0
		for url := range maps.Keys(want) {
			if k := got.pages[url]; k != want[url] && !(k.kind == "" && want[url].kind == "gone") {
				if wrong++; wrong < 10 {
					t.Errorf("%s: %s knows %v of %s, and the crawl db %v", what, name, k, url, want[url])
				}
			}
			delete(got.pages, url)
		}
		if len(got.pages) > 0 {
			t.Errorf("%s: %s knows pages that are not there: %v", what, name, got.pages)
		}
		t.Logf("%s: %s: %d events, %d of them again, %d snapshots", what, name, got.events, got.again, got.snapshots)
	}
	_, err := pebblestore.Verify(t.Context(), s.store, verify.Options{Found: func(f verify.Finding) {
		if !f.Harmless || !strings.Contains(f.Error(), "is cut off") {
			t.Errorf("%s: verify: %v", what, f)
		}
	}})
	if err != nil {
		t.Errorf("%s: verify: %v", what, err)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("%s: temporary files: %v, %v", what, left, err)
	}
}

// figures says what there is to compare of two services.
func (s *endlessService) figures(t *testing.T, from, to time.Time) string {
	t.Helper()
	visits := 0
	text, err := os.ReadFile(filepath.Join(s.dir, "rounds.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r struct{ Rounds, Visits int }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		s.rounds += r.Rounds
		visits += r.Visits
	}
	s.fresh = s.freshness(t, from, to)
	mean := func(all []int64) (sum int64) {
		for _, n := range all {
			sum += n
		}
		return sum / int64(max(1, len(all)))
	}
	return fmt.Sprintf("%d starts, %d rounds, %d visits, %d requests, %.3f fresh; segments: %d on average, %d at most; disk: %.2f MB on average, %.2f at most",
		s.starts, s.rounds, visits, s.requests.Load(), s.fresh, mean(s.segments), slices.Max(s.segments), float64(mean(s.bytes))/1e6, float64(slices.Max(s.bytes))/1e6)
}

// freshness is the share of pages and time at which the consumer of every visit knew a page as it was.
func (s *endlessService) freshness(t *testing.T, from, to time.Time) float64 {
	t.Helper()
	notes := s.notes(t, "each")
	copies := map[string]string{}
	fresh, all := 0, 0
	for at := from; at.Before(to); at = at.Add(500 * time.Millisecond) {
		for len(notes) > 0 && notes[0].At.Before(at) {
			switch n := notes[0]; {
			case n.Kind == "gone" || n.Kind == "moved":
				copies[n.URL] = n.Kind
			case n.ETag != "":
				copies[n.URL] = n.ETag
			}
			notes = notes[1:]
		}
		for url := range s.web.URLs() {
			if all++; copies[url] == s.web.status(url, at) {
				fresh++
			}
		}
	}
	return float64(fresh) / float64(max(1, all))
}

// disturber disturbs a service.
type disturber struct {
	service *endlessService
	random  *rand.Rand
	done    map[string]int
}

func (d *disturber) upTo(most time.Duration) time.Duration {
	return time.Duration(d.random.Int64N(int64(most)))
}

func (d *disturber) kill(t *testing.T) {
	d.service.end(t, syscall.SIGKILL)
	if d.random.IntN(3) == 0 {
		time.Sleep(d.upTo(time.Second))
	}
	d.service.start()
}

func (d *disturber) disturb(t *testing.T) {
	t.Helper()
	time.Sleep(d.upTo(800 * time.Millisecond))
	what := []string{"kill", "kill", "kill", "pause", "end", "clock", "clock", "disk", "alive", "dead"}[d.random.IntN(10)]
	d.done[what]++
	switch what {
	case "kill":
		d.kill(t)
	case "pause":
		d.service.c.Process.Signal(syscall.SIGSTOP)
		time.Sleep(d.upTo(2 * time.Second))
		d.service.c.Process.Signal(syscall.SIGCONT)
	case "end":
		d.service.end(t, syscall.SIGTERM)
		d.service.start()
	case "clock":
		step := []string{"0s", "0s", "0s", "2s", "-2s", "30s", "-30s", "1h", "-1h", "24h", "-24h", "87600h"}[d.random.IntN(12)]
		d.service.write(t, "clock", step)
	case "alive":
		d.service.write(t, "alive", "")
	case "dead":
		os.Remove(filepath.Join(d.service.dir, "alive"))
	case "disk":
		d.fillDisk(t)
	}
}

// fillDisk fills the disk of the service until that waits, and perhaps kills it then.
func (d *disturber) fillDisk(t *testing.T) {
	t.Helper()
	if d.service.top == "" {
		return
	}
	ballast := filepath.Join(d.service.top, "ballast")
	paused := func() bool { return strings.Contains(d.service.errs.String(), "paused: true") }
	stuff(ballast)
	for until := time.Now().Add(d.upTo(3 * time.Second)); time.Now().Before(until) && !paused(); {
		time.Sleep(5 * time.Millisecond)
	}
	if paused() {
		d.done["disk, waiting"]++
		time.Sleep(d.upTo(500 * time.Millisecond))
	}
	switch d.random.IntN(3) {
	case 0:
		d.kill(t) // it comes back to a full disk
		time.Sleep(d.upTo(500 * time.Millisecond))
	case 1:
		d.service.end(t, syscall.SIGKILL)
		defer d.service.start()
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
}

// calm ends all disturbances but the dead consumer.
func (d *disturber) calm(t *testing.T) {
	t.Helper()
	d.service.write(t, "clock", "0s")
	os.Remove(filepath.Join(d.service.dir, "alive"))
}
