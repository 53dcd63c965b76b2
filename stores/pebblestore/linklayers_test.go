package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// layerStore opens a store whose Merges all make tables, with joins of more than two layers.
func layerStore(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	db.links.leastTable, db.links.mostLayers = 0, 2
	return db
}

// linksOf returns the link db, which a Get and a Scan of some pages agree with.
func linksOf(t *testing.T, s linkdb.Store) map[string][]linkdb.Inlink {
	t.Helper()
	all := map[string][]linkdb.Inlink{}
	for e, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[e.URL] = e.Inlinks
		if got, err := s.Get(t.Context(), e.URL); err != nil || !reflect.DeepEqual(got, e.Inlinks) {
			t.Fatalf("a scan has %v for %s, and Get %v, %v", e.Inlinks, e.URL, got, err)
		}
	}
	return all
}

// joined waits until no layers are being joined.
func joined(db *DB) { alone(db, func() {}) }

// alone does something while no layers are being joined.
func alone(db *DB, do func()) {
	db.links.joining <- struct{}{}
	defer func() { <-db.links.joining }()
	do()
}

// rowsIn counts the rows of each layer that there are, read or not.
func rowsIn(t *testing.T, db *DB) map[codec.Layer]int {
	t.Helper()
	it, err := db.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(codec.LayerTable)}, UpperBound: []byte{byte(codec.LinkTable) + 1}})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[codec.Layer]int{}
	for ok := it.First(); ok; ok = it.Next() {
		l, _, ok := codec.SplitLinkKey(it.Key())
		if !ok {
			t.Errorf("a key %q", it.Key())
		}
		rows[l]++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// someLinks are entries with links from the page of a Merge: to every page, or some.
func someLinks(n, every int) (entries []linkdb.Entry) {
	for i := n % every; i < 60; i += every {
		entries = append(entries, linkdb.Entry{URL: fmt.Sprintf("http://h%d.example/%02d", i/20, i), Inlinks: []linkdb.Inlink{
			{From: fmt.Sprintf("http://from.example/%03d", n), Anchor: fmt.Sprint(n)}, {From: "http://same.example/", Anchor: "again"}}})
	}
	return entries
}

// Merges make layers, these become fewer by themselves, and what they have stays what it was.
func TestLayersAreJoined(t *testing.T) {
	dir := t.TempDir()
	db := layerStore(t, dir, small())
	var model memstore.Links
	most := 0
	for n := range 60 {
		entries := someLinks(n, 1+n%3)
		for _, s := range []linkdb.Store{db.Links(), &model} {
			if err := s.Merge(t.Context(), entries, 40); err != nil {
				t.Fatal(err)
			}
		}
		joined(db)
		most = max(most, len(*db.links.layers.Load()))
		if n%10 == 0 {
			if got, want := linksOf(t, db.Links()), linksOf(t, &model); !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d merges\n%v\nand not\n%v", n+1, got, want)
			}
		}
	}
	if most != 3 { // with the newest
		t.Errorf("there were up to %d layers", most)
	}
	list := *db.links.layers.Load()
	rows := rowsIn(t, db)
	for l := range rows {
		if !slices.Contains(list, l) {
			t.Errorf("%d rows of %+v are left; there are %+v", rows[l], l, list)
		}
	}
	for i, l := range list {
		if i > 0 && l.From != list[i-1].To+1 || i == 0 && l.From != 0 {
			t.Errorf("%+v is not whole", list)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = layerStore(t, dir, small())
	want := linksOf(t, &model)
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("opened again\n%v\nand not\n%v", got, want)
	}
	if got := *db.links.layers.Load(); !slices.Equal(got, list) {
		t.Errorf("opened again there are %+v, and not %+v", got, list)
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("compacted\n%v\nand not\n%v", got, want)
	}
	if rows := rowsIn(t, db); len(rows) != 1 || rows[codec.Layer{From: 0, To: list[len(list)-1].To}] != 60 {
		t.Errorf("compacted there are rows of %v", rows)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// The Merges of an inversion, each behind the last, are one layer, in the last level.
func TestInversionMakesOneLayer(t *testing.T) {
	db := layerStore(t, t.TempDir(), small())
	defer db.Close()
	for round := range 3 {
		entries := someLinks(round, 1)
		for some := range slices.Chunk(entries, 20) {
			if err := db.Links().Merge(t.Context(), some, 0); err != nil {
				t.Fatal(err)
			}
		}
		// What is left of the last page comes with it once more.
		if err := db.Links().Merge(t.Context(), entries[59:], 0); err != nil {
			t.Fatal(err)
		}
		if list := *db.links.layers.Load(); len(list) != round+1 {
			t.Errorf("round %d: layers %+v", round, list)
		}
	}
	if levels := db.db.Metrics().Levels; levels[len(levels)-1].TablesIngested < 9 {
		t.Errorf("%d tables were added to the last level", levels[len(levels)-1].TablesIngested)
	}
	// A small one goes where the last one went.
	db.links.leastTable = linkLeast
	if err := db.Links().Merge(t.Context(), someLinks(7, 1), 0); err != nil {
		t.Fatal(err)
	}
	if list := *db.links.layers.Load(); len(list) != 3 {
		t.Errorf("layers %+v", list)
	}
}

// Reads see all that was merged before, while layers are joined, deleted and begun.
func TestReadersSeeAllLayers(t *testing.T) {
	t.Parallel()
	db := layerStore(t, t.TempDir(), small())
	defer db.Close()
	var merged atomic.Int64
	done := make(chan error, 2)
	var stop atomic.Bool
	complete := func(links []linkdb.Inlink, n int64) error {
		if int64(len(links)) < n+1 && n > 0 { // and the one that all have
			return fmt.Errorf("%d links after %d merges", len(links), n)
		}
		return nil
	}
	go func() {
		var err error
		for err == nil && !stop.Load() {
			n := merged.Load()
			var links []linkdb.Inlink
			if links, err = db.Links().Get(t.Context(), "http://h1.example/30"); err == nil {
				err = complete(links, n)
			}
		}
		done <- err
	}()
	go func() {
		var err error
		for err == nil && !stop.Load() {
			n, pages := merged.Load(), 0
			for e, serr := range db.Links().Scan(t.Context(), crawldb.Range{}) {
				if err = serr; err == nil {
					err = complete(e.Inlinks, n)
				}
				if pages++; err != nil {
					break
				}
			}
			if err == nil && n > 0 && pages != 60 {
				err = fmt.Errorf("%d pages", pages)
			}
		}
		done <- err
	}()
	for n := range testlevel.Pick(60, 150) {
		if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
			t.Fatal(err)
		}
		merged.Add(1)
		if n%20 == 19 {
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Store(true)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

// A read that has listed the layers, some of which are joined and deleted before it reads them, reads
// what they have become.
func TestReadSeesLayersThatAreJoinedDuringIt(t *testing.T) {
	db := layerStore(t, t.TempDir(), small())
	defer db.Close()
	n := 0
	again := func() {
		db.links.onList = nil
		for range 3 {
			if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
				t.Error(err)
			}
			n++
		}
		if err := db.links.joinAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	again()
	again()
	db.links.onList = again
	if links, err := db.Links().Get(t.Context(), "http://h1.example/30"); err != nil || len(links) != n+1 {
		t.Errorf("Get has %d links of %d, %v", len(links), n+1, err)
	}
	db.links.onList = again
	pages := 0
	for e, err := range db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil || len(e.Inlinks) != n+1 {
			t.Fatalf("a scan has %d links of %d, %v", len(e.Inlinks), n+1, err)
		}
		pages++
	}
	if pages != 60 {
		t.Errorf("a scan has %d pages", pages)
	}
}

// A limit counts the links of older layers, so layers that are not the oldest are joined as what
// they are: changes of what is not known.
func TestLimitsCountLinksOfOlderLayers(t *testing.T) {
	db := layerStore(t, t.TempDir(), small())
	defer db.Close()
	alone(db, func() { db.links.mostLayers = 100 })
	var model memstore.Links
	add := func(from, n, limit int) {
		t.Helper()
		e := linkdb.Entry{URL: "http://h.example/"}
		for i := range n {
			e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: fmt.Sprintf("http://from.example/%03d", from+i)})
		}
		for _, s := range []linkdb.Store{db.Links(), &model} {
			if err := s.Merge(t.Context(), []linkdb.Entry{e, {URL: fmt.Sprint("http://z.example/", from)}, {URL: "http://zz.example/", Inlinks: e.Inlinks[:1]}}, limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(0, 10, 0)
	add(50, 3, 3)
	add(100, 10, 10)
	add(150, 10, 10)
	add(200, 1, 0)
	want := linksOf(t, &model)
	if n := len(want["http://h.example/"]); n != 11 {
		t.Fatalf("%d links", n)
	}
	list := *db.links.layers.Load()
	if len(list) != 5 {
		t.Fatalf("layers %+v", list)
	}
	alone(db, func() {
		if err := db.links.joinLayers(t.Context(), list[1:4]); err != nil {
			t.Error(err)
		}
	})
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("joined\n%v\nand not\n%v", got, want)
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("compacted\n%v\nand not\n%v", got, want)
	}
}

// A crash between the joined layer and the deletion of those that it was made of leaves
// remainders: they are not read, and the next large Merge deletes them.
func TestRemaindersAreDeleted(t *testing.T) {
	for _, first := range []int{0, 1} { // with the layer that every store has, and without it
		dir := t.TempDir()
		db := layerStore(t, dir, small())
		alone(db, func() { db.links.mostLayers = 100 })
		for n := range 5 {
			if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
				t.Fatal(err)
			}
		}
		want := linksOf(t, db.Links())
		list := *db.links.layers.Load()
		some := list[first:4]
		to := codec.Layer{From: some[0].From, To: some[len(some)-1].To}
		var failed error
		if err := db.ingest(t.Context(), &db.links.view, tables{store: "layers-", rows: db.links.joinedTables(t.Context(), some, to, &failed), err: &failed}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}

		db = layerStore(t, dir, small())
		if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
			t.Errorf("%v\nand not\n%v", got, want)
		}
		left := append(slices.Clone(list[:first]), to, list[4])
		if got := *db.links.layers.Load(); !slices.Equal(got, left) {
			t.Errorf("layers %+v and not %+v", got, left)
		}
		if rows := rowsIn(t, db); len(rows) != len(left)+len(some) {
			t.Errorf("rows of %v", rows)
		}
		alone(db, func() { db.links.mostLayers = 100 })
		if err := db.Links().Merge(t.Context(), someLinks(4, 1), 0); err != nil {
			t.Fatal(err)
		}
		joined(db)
		if rows := rowsIn(t, db); len(rows) != len(left)+1 {
			t.Errorf("rows of %v", rows)
		}
		if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
			t.Errorf("%v\nand not\n%v", got, want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A page whose links cannot be read keeps its layers from being joined, and nothing else.
func TestUnreadableLinksAreNotJoined(t *testing.T) {
	var log bytes.Buffer
	o := small()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	db := layerStore(t, t.TempDir(), o)
	const merges = 40
	for n := range merges {
		if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
			t.Fatal(err)
		}
		joined(db)
		if n == 1 {
			bad := codec.Layer{From: 1, To: 1}.AppendKey(nil, crawldb.Key("http://h1.example/30"))
			if err := db.db.Set(bad, []byte{codec.BadLinks}, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.Links().Get(t.Context(), "http://h1.example/30"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "http://h1.example/30") {
		t.Errorf("Get of a page with unreadable links: %v", err)
	}
	if links, err := db.Links().Get(t.Context(), "http://h1.example/31"); err != nil || len(links) != merges+1 {
		t.Errorf("%d links, %v", len(links), err)
	}
	// Tried with 2, 6, 14 and 30 closed layers, or about that.
	if n := strings.Count(log.String(), "layers of the link db were not joined"); n < 2 || n > 6 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	if err := db.Compact(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("Compact: %v", err)
	}
	if n := db.db.Metrics().Levels[0].TablesCount; n > 0 {
		t.Errorf("Compact has left %d tables in level 0: the rest can be compacted", n)
	}
	if rows := rowsIn(t, db); rows[codec.Layer{From: 1, To: 1}] != 60 {
		t.Errorf("rows of %v", rows)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A block that cannot be read fails the reads that need it, and hides no layer.
func TestUnreadableBlockHidesNoLayer(t *testing.T) {
	dir := t.TempDir()
	db := layerStore(t, dir, small())
	const merges = 5
	for n := range merges {
		if err := db.Links().Merge(t.Context(), someLinks(n, 2), 0); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			alone(db, func() { db.links.mostLayers = 100 })
		}
	}
	list := *db.links.layers.Load()
	files, err := sstables.Files(db.db)
	if err != nil {
		t.Fatal(err)
	}
	var damaged []string
	for _, file := range files {
		if l, _, ok := codec.SplitLinkKey(file.Smallest.UserKey); ok && (l.To == 1 || l.To == 3) {
			damaged = append(damaged, filepath.Join(db.path, sstables.FileName(uint64(file.FileNum))))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if len(damaged) != 2 {
		t.Fatalf("files %v", damaged)
	}
	for _, name := range damaged {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[50] ^= 1 // the first block has all rows
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db = layerStore(t, dir, small())
	alone(db, func() { db.links.mostLayers = 100 })
	defer db.Close()
	if links, err := db.Links().Get(t.Context(), "http://h2.example/42"); err != nil || len(links) != 4 {
		t.Errorf("%d links, %v", len(links), err)
	}
	if got := *db.links.layers.Load(); !slices.Equal(got, list) {
		t.Errorf("layers %+v and not %+v", got, list)
	}
	var where *crawldb.CorruptError
	if _, err := db.Links().Get(t.Context(), "http://h2.example/43"); !errors.As(err, &where) || !slices.Contains(damaged, where.File) || where.ResumeKey != crawldb.Key("http://h2.example/59")+"\x00" {
		t.Errorf("Get of a page that cannot be read: %v, behind %q", err, where.ResumeKey)
	}
	for range 3 {
		if err := db.Links().Merge(t.Context(), someLinks(0, 2), 0); err != nil {
			t.Fatal(err)
		}
	}
	for n := 10; n < 16; n++ {
		if err := db.Links().Merge(t.Context(), someLinks(n, 2), 0); err != nil {
			t.Fatal(err)
		}
	}
	if links, err := db.Links().Get(t.Context(), "http://h2.example/42"); err != nil || len(links) != 7 {
		t.Errorf("%d links, %v", len(links), err)
	}
}

// Whatever else is in the files of the engine, layers are in others, each in its own: no table of a
// new one overlaps them, and where a block cannot be read they say which layers there are.
func TestLayersHaveTheirOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for open := range 2 {
		db := layerStore(t, dir, small())
		alone(db, func() { db.links.mostLayers = 100 })
		for n := range 3 {
			if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
				t.Fatal(err)
			}
			for i := range 300 {
				b := crawldb.Batch{URLs: []string{fmt.Sprintf("http://h.example/%05d", i)}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
					return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, Retries: 10*open + n, ETag: strings.Repeat("e", 200)}, nil
				}}
				if err := db.Crawl().Update(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			if db.batched.Load() < int64(db.memSize/2) {
				t.Fatalf("%d bytes of small updates", db.batched.Load())
			}
			if err := db.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		}
		files, err := sstables.Files(db.db)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[codec.Layer]bool{}
		for _, file := range files {
			first, last := file.Smallest.UserKey, file.Largest.UserKey
			a, _, ok := codec.SplitLinkKey(first)
			if b, _, _ := codec.SplitLinkKey(last); ok && a == b {
				seen[a] = true
			} else if first[0] <= byte(codec.LayerTable) && last[0] >= byte(codec.LayerTable) {
				t.Errorf("a file from %q to %q", first, last)
			}
		}
		if len(seen) != 3*(open+1) {
			t.Errorf("files of %v", seen)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A handle that is open for reading refuses what would write layers, and is none the worse for it.
func TestReadOnlyHandleWritesNoLayers(t *testing.T) {
	dir := t.TempDir()
	db := layerStore(t, dir, small())
	alone(db, func() { db.links.mostLayers = 100 })
	for n := range 4 {
		if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	want := linksOf(t, db.Links())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o := small()
	o.ReadOnly = true
	db = layerStore(t, dir, o)
	if err := db.Compact(t.Context()); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Compact: %v", err)
	}
	if err := db.Links().Merge(t.Context(), someLinks(9, 1), 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Merge: %v", err)
	}
	joined(db)
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nand not\n%v", got, want)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A disk that becomes full while layers are joined ends that, and the room is there again. What is
// left of joined layers is deleted even though the disk is full.
func TestJoinOfLayersOnFullDisk(t *testing.T) {
	disk := dirstoretest.NewDisk()
	disk.Resize(1 << 30)
	var filling atomic.Bool
	disk.OnOp = func(op dirstoretest.Op) error {
		if filling.Load() && op.Kind.Changes() && strings.Contains(op.Name, bulkPrefix+"layers-") {
			used, _ := disk.Usage()
			disk.Resize(used)
		}
		return nil
	}
	o := onDisk(small(), disk)
	o.MinFree = 60_000
	db := layerStore(t, memPath, o)
	alone(db, func() { db.links.mostLayers = 100 })
	for n := range 6 {
		if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	want := linksOf(t, db.Links())
	filling.Store(true)
	if err := db.Compact(t.Context()); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrFailed) {
		t.Errorf("Compact: %v", err)
	}
	filling.Store(false)
	disk.Resize(1 << 30)
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nand not\n%v", got, want)
	}
	list := *db.links.layers.Load()
	some, to := list[:len(list)-1], codec.Layer{From: 0, To: list[len(list)-2].To}
	var failed error
	if err := db.ingest(t.Context(), &db.links.view, tables{store: "layers-", fresh: true, rows: db.links.joinedTables(t.Context(), some, to, &failed), err: &failed}); err != nil {
		t.Fatal(err)
	}
	used, _ := disk.Usage()
	disk.Resize(used + o.MinFree/2)
	alone(db, func() {
		db.links.replaceLayers(some, to)
		db.links.remainders = append(db.links.remainders, some...)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if err := db.links.deleteRemainders(ctx); err != nil {
			t.Errorf("with little room left: %v", err)
		}
	})
	if rows := rowsIn(t, db); len(rows) != 1 {
		t.Errorf("rows of %v", rows)
	}
	if got := linksOf(t, db.Links()); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nand not\n%v", got, want)
	}
	disk.Resize(1 << 30)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Layers are joined only where there is room for one more of their size: then no change waits for
// room that the new one has taken.
func TestLayersAreNotJoinedWithoutRoom(t *testing.T) {
	disk := dirstoretest.NewDisk()
	disk.Resize(1 << 30)
	o := onDisk(small(), disk)
	o.MinFree = 60_000
	paused := false
	o.OnRoom = func(Room) { paused = true }
	db := layerStore(t, memPath, o)
	alone(db, func() { db.links.mostLayers = 100 })
	const merges = 8
	merge := func(n int) {
		t.Helper()
		if err := db.Links().Merge(t.Context(), someLinks(n, 1), 0); err != nil {
			t.Fatal(err)
		}
		joined(db)
	}
	for n := range merges {
		merge(n)
	}
	alone(db, func() { db.links.mostLayers = 2 })
	all := uint64(0)
	for _, l := range (*db.links.layers.Load())[:merges-2] {
		size, err := db.links.sizeOf(l)
		if err != nil {
			t.Fatal(err)
		}
		all += size
	}
	used, _ := disk.Usage()
	disk.Resize(used + o.MinFree*3/2 + int64(all)) // but a Merge takes some
	merge(merges)
	if n := len(*db.links.layers.Load()); n != merges+1 {
		t.Errorf("%d layers", n)
	}
	if err := db.Compact(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Compact: %v", err)
	}
	if paused {
		t.Error("changes have waited")
	}
	disk.Resize(1 << 30)
	merge(merges + 1) // into the layer that Compact has begun
	merge(merges + 2)
	if n := len(*db.links.layers.Load()); n > 3 {
		t.Errorf("%d layers, now that there is room", n)
	}
	if got := linksOf(t, db.Links()); len(got) != 60 || len(got["http://h1.example/30"]) != merges+4 {
		t.Errorf("%d pages, %v", len(got), got["http://h1.example/30"])
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
