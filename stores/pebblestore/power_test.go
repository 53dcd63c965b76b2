package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
)

// durableMarks is what the store has acknowledged to a crawl as durable.
type durableMarks struct {
	mu     sync.Mutex
	marks  map[string][]string // all cursors of a job, in order
	done   map[string]int      // how many of these, by the last Update that returned
	synced map[string]int      // and by the last Sync
	parts  map[[2]string]bool  // committed
}

func newDurableMarks() *durableMarks {
	return &durableMarks{marks: map[string][]string{}, done: map[string]int{}, synced: map[string]int{}, parts: map[[2]string]bool{}}
}

func (k *durableMarks) clone() *durableMarks {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &durableMarks{marks: maps.Clone(k.marks), done: maps.Clone(k.done), synced: maps.Clone(k.synced), parts: maps.Clone(k.parts)}
}

// tellingCrawl and tellingSegments note what the stores say.
type tellingCrawl struct {
	crawldb.DueStore
	durable *durableMarks
}

func (s tellingCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	// What is under way may be there, too.
	begun := map[string]int{}
	begin := func(marks map[string]string) {
		s.durable.mu.Lock()
		defer s.durable.mu.Unlock()
		for job, cursor := range marks {
			s.durable.marks[job] = append(slices.Clip(s.durable.marks[job]), cursor)
			begun[job] = len(s.durable.marks[job])
		}
	}
	if all := b.Marks; all != nil {
		b.Marks = func() map[string]string {
			m := all()
			begin(m)
			return m
		}
	}
	err := s.DueStore.Update(ctx, b)
	s.durable.mu.Lock()
	defer s.durable.mu.Unlock()
	for job, n := range begun {
		if err == nil {
			s.durable.done[job] = n
		}
	}
	return err
}

func (s tellingCrawl) Sync(ctx context.Context) error {
	before := s.durable.clone()
	err := s.DueStore.Sync(ctx)
	s.durable.mu.Lock()
	defer s.durable.mu.Unlock()
	if err == nil {
		for job, n := range before.done {
			s.durable.synced[job] = max(s.durable.synced[job], n)
		}
	}
	return err
}

type tellingSegments struct {
	segment.Store
	durable *durableMarks
}

func (s tellingSegments) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	w, err := s.Store.Append(ctx, seg, part, keep)
	if err != nil {
		return nil, err
	}
	return tellingWriter{w, s.durable, [2]string{seg, part}}, nil
}

func (s tellingSegments) Remove(ctx context.Context, seg string) error {
	s.durable.mu.Lock()
	for at := range s.durable.parts {
		if at[0] == seg {
			delete(s.durable.parts, at)
		}
	}
	s.durable.mu.Unlock()
	return s.Store.Remove(ctx, seg)
}

type tellingWriter struct {
	segment.BlockWriter
	durable *durableMarks
	at      [2]string
}

func (w tellingWriter) Commit(ctx context.Context) error {
	err := w.BlockWriter.Commit(ctx)
	if err == nil {
		w.durable.mu.Lock()
		w.durable.parts[w.at] = true
		w.durable.mu.Unlock()
	}
	return err
}

// site is a web, and the crawl of it until nothing is due.
type site struct {
	web  *webtest.Web
	now  time.Time
	topN int
}

func newSite(topN int) site {
	w := &webtest.Web{Hosts: 3, PagesPerHost: 14, LinksPerPage: 4, WordsPerPage: 30}
	return site{w, time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC), topN}
}

func (s site) crawl(ctx context.Context, db *DB, k *durableMarks) (err error) {
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	if k != nil {
		stores.Crawl, stores.Segments = tellingCrawl{db.Crawl().(crawldb.DueStore), k}, tellingSegments{db.Segments(), k}
	}
	c, err := recrawl.New(stores, recrawl.Options{
		Agent: "tester", Protocol: s.web.Protocol(), Now: func() time.Time { return s.now },
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}, Threads: 3}, Generate: generate.Options{TopN: s.topN},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.InjectSeeds(ctx, inject.URLs(s.web.Seeds()...), inject.Options{}); err != nil {
		return err
	}
	_, err = c.Run(ctx)
	return err
}

// dump is the result of a crawl, whatever happens on the way: crawl db, link db, and what does
// not depend on the time of day in the host db.
func dump(ctx context.Context, db *DB) (string, error) {
	text, err := everything(ctx, db)
	return text, errors.Join(err, db.CheckIndex(ctx))
}

func everything(ctx context.Context, db *DB) (string, error) {
	var b bytes.Buffer
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return "", err
		}
		raw, err := d.AppendBinary(nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %x\n", d.URL, raw)
	}
	for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%v\n", e)
	}
	for h, err := range db.Hosts().Scan(ctx) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s", h.Name)
		for _, r := range h.Robots {
			fmt.Fprintf(&b, " %s %d %q", r.Origin, r.Status, r.Body)
		}
		fmt.Fprintln(&b)
	}
	return b.String(), nil
}

// undisturbed is the result of the crawl if nothing happens.
func (s site) undisturbed(t *testing.T) string {
	t.Helper()
	db, err := Open(memPath, onDisk(small(), dirstoretest.NewDisk()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := s.crawl(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	want, err := dump(t.Context(), db)
	if err != nil || strings.Count(want, "\n") < 80 {
		t.Fatalf("%v\n%s", err, want)
	}
	return want
}

// check opens the store that is left on a disk, compares it with what was acknowledged, and
// crawls on to the end.
func (k *durableMarks) check(ctx context.Context, s site, d *dirstoretest.Disk, want string) (err error) {
	db, err := Open(memPath, onDisk(small(), d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := k.kept(ctx, db); err != nil {
		return err
	}
	if err := s.crawl(ctx, db, nil); err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	got, err := dump(ctx, db)
	if err == nil && got != want {
		err = fmt.Errorf("it comes to something else: %s", difference(got, want))
	}
	return err
}

func (k *durableMarks) kept(ctx context.Context, db *DB) error {
	if err := db.CheckIndex(ctx); err != nil {
		return err
	}
	for job, cursors := range k.marks {
		cursor, err := db.Crawl().Mark(ctx, job)
		if err != nil {
			return err
		}
		if n := k.synced[job]; n > 0 && !slices.Contains(cursors[n-1:], cursor) && cursor != "" {
			return fmt.Errorf("the mark %q is %q; %q was synced", job, cursor, cursors[n-1])
		} else if n > 0 && cursor == "" && !slices.Contains(cursors[n-1:], "") {
			return fmt.Errorf("the mark %q is gone; %q was synced", job, cursors[n-1])
		}
	}
	for at := range k.parts {
		info, err := db.Segments().Stat(ctx, at[0], at[1])
		if err != nil || !info.Committed {
			return fmt.Errorf("%v was committed: %+v, %w", at, info, err)
		}
		blocks := 0
		for _, err := range db.Segments().Read(ctx, at[0], at[1], 0) {
			if err != nil {
				return err
			}
			blocks++
		}
		if blocks != info.Blocks {
			return fmt.Errorf("%v has %d blocks of %d", at, blocks, info.Blocks)
		}
	}
	return nil
}

func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// A crash is a disk after the power went.
type crash struct {
	what    string
	disk    *dirstoretest.Disk
	durable *durableMarks
	again   uint64 // if not zero, the power goes once more
}

func (c *crash) check(ctx context.Context, s site, want string) error {
	if c.again == 0 {
		return c.durable.check(ctx, s, c.disk, want)
	}
	rng, mu := rand.New(rand.NewPCG(c.again, 1)), sync.Mutex{}
	at := rng.IntN(300)
	var second *dirstoretest.Disk
	var before *durableMarks
	k := c.durable.clone()
	k.done = maps.Clone(k.synced) // the rest may be lost, and done again or not
	c.disk.OnOp = func(op dirstoretest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if at--; at == 0 {
			before = k.clone()
			second = c.disk.Crash(rng.Float64(), rng)
		}
		return nil
	}
	db, err := Open(memPath, onDisk(small(), c.disk))
	if err != nil {
		return err
	}
	if err := errors.Join(k.kept(ctx, db), s.crawl(ctx, db, k), db.Close()); err != nil {
		return err
	}
	if second == nil {
		return nil
	}
	if err := before.check(ctx, s, second, want); err != nil {
		return fmt.Errorf("and once more: %w", err)
	}
	return nil
}

// TestPowerLoss makes the power fail before operations on the disk while a site is crawled to
// the end, with nothing, half or all of the unsynced data on the disk afterwards. Everything
// acknowledged is there, and the crawl continues to the same result. Now and then the power
// fails again meanwhile.
func TestPowerLoss(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	runs, stride := 1, 37
	if testlevel.Exhaustive {
		// How the background work falls between is another thing each time.
		runs, stride = 8, 1
	}
	points := 0
	for run := range runs {
		points += powerLoss(t, run, stride)
	}
	t.Logf("%d crash points", points)
}

func powerLoss(t *testing.T, run, stride int) (points int) {
	s := newSite(20 + 5*run)
	want := s.undisturbed(t)
	crashes := make(chan crash)
	var checks sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		checks.Go(func() {
			for c := range crashes {
				if err := c.check(t.Context(), s, want); err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
			}
		})
	}
	rng, mu, n, manifests := rand.New(rand.NewPCG(7, uint64(run))), sync.Mutex{}, 0, map[string]bool{}
	disk, k := dirstoretest.NewDisk(), newDurableMarks()
	disk.OnOp = func(op dirstoretest.Op) error {
		if !op.Kind.Changes() || path.Base(op.Name) == lockName {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if name := path.Base(op.Name); strings.HasPrefix(name, "MANIFEST-") {
			manifests[name] = true
		}
		if n++; n%stride != 0 {
			return nil
		}
		// What was acknowledged before must be on the disk afterwards.
		before := k.clone()
		for _, survives := range []float64{0, 0.5, 1} {
			points++
			c := crash{disk: disk.Crash(survives, rng), durable: before}
			c.what = fmt.Sprintf("run %d, before operation %d, %v, %.0f %% survive", run, n, op, 100*survives)
			if points%5 == 0 {
				c.again = uint64(points)
			}
			crashes <- c
		}
		return nil
	}
	db, err := Open(memPath, onDisk(small(), disk))
	if err == nil {
		err = errors.Join(s.crawl(t.Context(), db, k), db.Close())
	}
	close(crashes)
	checks.Wait()
	if err != nil || n < 300 || len(manifests) < 2 {
		t.Errorf("%d operations, %d manifests, %v", n, len(manifests), err)
	}
	t.Logf("run %d: %d operations, %d manifests, %d crash points", run, n, len(manifests), points)
	return points
}

// TestPowerLossWhileOpening makes the power fail before each change that opening and closing a
// store makes, ten times, each time with another part of the unsynced data: nothing is missing
// afterwards.
func TestPowerLossWhileOpening(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	crashes := testlevel.Pick(3, 10) // before each operation
	ctx := t.Context()
	disk := dirstoretest.NewDisk()
	db, err := Open(memPath, onDisk(small(), disk))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(5)
	if err := errors.Join(s.crawl(ctx, db, nil), db.Crawl().Sync(ctx)); err != nil {
		t.Fatal(err)
	}
	want, err := dump(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	killed := disk.Crash(0, rand.New(rand.NewPCG(1, 1))) // it has a log to replay
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, disk := range []*dirstoretest.Disk{disk, killed} {
		rng, mu, n := rand.New(rand.NewPCG(2, 2)), sync.Mutex{}, 0
		disk.OnOp = func(op dirstoretest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !op.Kind.Changes() || path.Base(op.Name) == lockName {
				return nil
			}
			n++
			for i := range crashes {
				left := disk.Crash([]float64{0, 0.5, 1}[min(i, 1)+i/(crashes-1)], rng)
				db, err := Open(memPath, onDisk(small(), left))
				if err != nil {
					t.Errorf("before %v: %v", op, err)
					continue
				}
				got, err := dump(ctx, db)
				if err = errors.Join(err, db.Close()); err != nil || got != want {
					t.Errorf("before %v: %v; %s", op, err, difference(got, want))
				}
			}
			return nil
		}
		db, err := Open(memPath, onDisk(small(), disk))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if n < 10 {
			t.Errorf("%d changes", n)
		}
		t.Logf("%d changes", n)
	}
}
