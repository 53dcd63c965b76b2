package pebblestore_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// soundTime is when all that soundStore makes was made.
func soundTime() time.Time { return time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC) }

const (
	soundDone  = "20260105080000-000" // a segment that is done
	soundBegun = "20260105090000-000" // one that is half fetched, and has leases
)

// soundStore makes a crawl of n records in dir, partly in tables and partly in the log, and
// leaves it open. Each step is called when something was written to the log.
func soundStore(t *testing.T, dir string, n int, steps ...func(*pebblestore.DB)) *pebblestore.DB {
	t.Helper()
	db, err := pebblestore.Open(dir, pebblestore.Options{MemTableSize: 64 << 10, CacheSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := soundTime()
	var all []crawldb.Datum
	for i := range n {
		d := crawldb.Datum{URL: fmt.Sprintf("http://h%02d.example/%04d", i/40, i), Status: crawldb.Unfetched, FetchTime: at.Add(time.Duration(i) * time.Minute), Interval: 24 * time.Hour, Score: float32(i) / 8, Priority: float32(i) / 8}
		switch {
		case i%3 == 0:
			d.Status, d.LastFetch, d.Signature, d.ETag = crawldb.Fetched, at, []byte(fmt.Sprintf("%016d", i)), fmt.Sprintf("\"%d\"", i)
		case i%7 == 2:
			d.Meta = crawldb.MetaOf("opic.cash", "01234567", "opic.history", "0123456789abcdef", "seed", "yes")
		case i%7 == 1:
			d.LeasedBy, d.LeasedUntil = soundBegun, at.Add(100*365*24*time.Hour)
		}
		all = append(all, d)
	}
	step := func() {
		for _, f := range steps {
			f(db)
		}
	}
	put := func(some []crawldb.Datum) {
		urls := make([]string, len(some))
		for i := range some {
			urls[i] = some[i].URL
		}
		must(db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("update/"+soundDone, "done"), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &some[i], nil }}))
	}
	put(all[:n/2])
	var links []linkdb.Entry
	for i := range n / 4 {
		links = append(links, linkdb.Entry{URL: all[i].URL, Inlinks: []linkdb.Inlink{{From: "http://b.example/", Anchor: "a"}, {From: "http://b.example/2"}}})
	}
	must(db.Links().Merge(ctx, links, 0))
	for i := range n/40 + 1 {
		must(db.Hosts().Update(ctx, fmt.Sprintf("h%02d.example", i), func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{NextFetch: at, Robots: []hostdb.Robots{{Origin: "http://a.example", Status: 200, Body: []byte("User-agent: *"), Fetched: at}}}, nil
		}))
	}
	must(db.Compact(ctx))
	// Two layers above the one that has been compacted.
	db.LinksAsTables()
	for layer := range 2 {
		var more []linkdb.Entry
		for i := range n / 8 {
			more = append(more, linkdb.Entry{URL: all[2*i+layer].URL, Inlinks: []linkdb.Inlink{{From: fmt.Sprint("http://c.example/", layer), Anchor: "b"}}})
		}
		must(db.Links().Merge(ctx, more, 100))
	}
	step()
	put(all[n/2 : n*3/4])
	step()
	put(all[n*3/4:])
	step()
	must(db.Crawl().Sync(ctx))
	must(db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark("round/"+soundDone, "done")}))
	step()

	s := db.Segments()
	for _, name := range []string{soundDone, soundBegun} {
		list, err := segment.NewWriter[crawldb.Datum](ctx, s, name, 0)
		must(err)
		var listed []crawldb.Datum
		for _, d := range all {
			if (d.LeasedBy == soundBegun) == (name == soundBegun) {
				listed = append(listed, d)
			}
		}
		must(list.Append(ctx, listed[:len(listed)/2]))
		must(list.Append(ctx, listed[len(listed)/2:]))
		must(list.Commit(ctx))
		contents, err := segment.NewWriter[page.Content](ctx, s, name, 0)
		must(err)
		texts, err := segment.NewWriter[segment.Text](ctx, s, name, 0)
		must(err)
		data, err := segment.NewWriter[segment.Data](ctx, s, name, 0)
		must(err)
		parses, err := segment.NewWriter[segment.Parse](ctx, s, name, 0)
		must(err)
		visits, err := segment.NewWriter[segment.Visit](ctx, s, name, 0)
		must(err)
		for k := range 3 {
			var c []page.Content
			var x []segment.Text
			var d []segment.Data
			var p []segment.Parse
			var v []segment.Visit
			for _, l := range listed[k*2 : k*2+2] {
				v = append(v, segment.Visit{URL: l.URL, Time: at, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}})
				c = append(c, page.Content{URL: l.URL, Type: "text/html", Body: []byte("<p>" + l.URL), Time: at})
				x = append(x, segment.Text{URL: l.URL, Text: l.URL})
				d = append(d, segment.Data{URL: l.URL, Parsed: page.Parsed{Title: l.URL}})
				p = append(p, segment.Parse{URL: l.URL, Signature: []byte("0123456789abcdef")})
			}
			must(contents.Append(ctx, c))
			must(texts.Append(ctx, x))
			must(data.Append(ctx, d))
			must(parses.Append(ctx, p))
			must(visits.Append(ctx, v))
		}
		end := []interface{ Close() error }{contents, texts, data, parses, visits}
		if name == soundDone {
			must(contents.Commit(ctx))
			must(texts.Commit(ctx))
			must(data.Commit(ctx))
			must(parses.Commit(ctx))
			must(visits.Commit(ctx))
			end = nil
		}
		for _, w := range end {
			must(w.Close())
		}
	}
	must(db.Crawl().Sync(ctx))
	return db
}

// soundStores has the files of each store that sound has made, by its arguments.
var soundStores = struct {
	sync.Mutex
	made map[soundKind]fstest.MapFS
}{made: map[soundKind]fstest.MapFS{}}

type soundKind struct {
	n      int
	killed bool
}

// sound returns a directory with a store that soundStore made: closed, or as a kill leaves it.
// It is made once, and copied for each test.
func sound(t *testing.T, n int, killed bool) (dir string) {
	t.Helper()
	soundStores.Lock()
	defer soundStores.Unlock()
	kind := soundKind{n, killed}
	if soundStores.made[kind] == nil {
		soundStores.made[kind] = inMemoryFiles(t, makeSound(t, n, killed))
	}
	dir = filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, soundStores.made[kind]); err != nil {
		t.Fatal(err)
	}
	return dir
}

// inMemoryFiles reads a directory.
func inMemoryFiles(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f := &fstest.MapFile{Mode: info.Mode(), ModTime: info.ModTime()}
		if e.Type().IsRegular() {
			f.Data, err = os.ReadFile(path)
		}
		all[filepath.ToSlash(rel)] = f
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func makeSound(t *testing.T, n int, killed bool) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db := soundStore(t, dir, n)
	if !killed {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := db.CopyKilled(copied); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return copied
}

// soundKilled is sound of a store that was killed at its busiest: some of its log is
// not synced, and there is what it was making. It returns what the tables held at
// each step of the log, the last is what they hold.
func soundKilled(t *testing.T, n int) (dir string, states []string) {
	t.Helper()
	step := func(db *pebblestore.DB) {
		got, err := readAll(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, tablesOf(got))
	}
	opened := filepath.Join(t.TempDir(), "store")
	db := soundStore(t, opened, n, step)
	for i := range 3 { // not synced
		err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("update/"+soundDone, fmt.Sprint(i)), URLs: []string{"http://h00.example/0000"}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := *old
			d.ETag = strings.Repeat(fmt.Sprint(i), 700) // more than a sector
			return &d, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		step(db)
	}
	dir = filepath.Join(t.TempDir(), "copy")
	if err := db.CopyKilled(dir); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	half := func(pattern, name string) {
		from, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(from) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		text, err := os.ReadFile(from[0])
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text[:len(text)/2], 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	half("db/*.sst", "db/900001.sst")
	half("db/MANIFEST-*", "db/MANIFEST-900002")
	half("db/OPTIONS-*", "db/temporary.900003.dbtmp")
	half("FORMAT", "SEAL.new")
	return dir, states
}

// tablesOf is what readAll has read that is in the log.
func tablesOf(got map[string]string) string {
	return got["crawl db"] + "\x00" + got["host db"] + "\x00" + got["link db"]
}

// unread reports whether the contents of a file of a store mean nothing.
func unread(name string) bool {
	name = filepath.Base(name)
	return name == "LOCK" || strings.HasPrefix(name, "marker.") || strings.HasPrefix(name, "LOGS-") || strings.HasPrefix(name, "SYNCED-")
}
