package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// everyCall makes each call once and returns what came of it.
func everyCall(ctx context.Context, db *DB) map[string]error {
	first := func(name string, errs map[string]error) func(error) bool {
		return func(err error) bool { errs[name] = err; return false }
	}
	errs := map[string]error{}
	_, errs["crawl.Get"] = db.Crawl().Get(ctx, "http://h00.example/0000")
	note := first("crawl.Due", errs)
	db.crawl.Due(ctx, crawldb.DueQuery{Now: time.UnixMilli(1)})(func(_ crawldb.Candidate, err error) bool { return note(err) })
	errs["crawl.CheckIndex"] = db.CheckIndex(ctx)
	errs["crawl.Update"] = db.Crawl().Update(ctx, trialBatch(1))
	errs["crawl.Sync"] = db.Crawl().Sync(ctx)
	_, errs["crawl.Progress"] = db.Crawl().Mark(ctx, "j")
	note = first("crawl.Scan", errs)
	db.Crawl().Scan(ctx, crawldb.Range{})(func(_ crawldb.Datum, err error) bool { return note(err) })
	_, errs["hosts.Get"] = db.Hosts().Get(ctx, "h.example")
	errs["hosts.Update"] = db.Hosts().Update(ctx, "h.example", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil })
	errs["hosts.Sync"] = db.Hosts().Sync(ctx)
	note = first("hosts.Scan", errs)
	db.Hosts().Scan(ctx)(func(_ hostdb.Host, err error) bool { return note(err) })
	_, errs["links.Get"] = db.Links().Get(ctx, "http://h00.example/0000")
	errs["links.Merge"] = db.Links().Merge(ctx, []linkdb.Entry{{URL: "http://a/", Inlinks: []linkdb.Inlink{{From: "http://b/"}}}}, 0)
	note = first("links.Scan", errs)
	db.Links().Scan(ctx, crawldb.Range{})(func(_ linkdb.Entry, err error) bool { return note(err) })
	errs["Compact"] = db.Compact(ctx)
	return errs
}

func TestFatalf(t *testing.T) {
	var log bytes.Buffer
	o := small()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	dir := filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	tr := trial{}
	if err := tr.run(t, db); err != nil {
		t.Fatal(err)
	}
	engineLog{db}.Fatalf("fatal commit error: %v", io.ErrUnexpectedEOF)
	engineLog{db}.Fatalf("and another: %d", 1)
	for name, err := range everyCall(t.Context(), db) {
		if !errors.Is(err, ErrFailed) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s after a fatal error: %v", name, err)
		}
	}
	if err := db.Close(); !errors.Is(err, ErrFailed) || strings.Count(err.Error(), "unexpected EOF") != 1 {
		t.Errorf("Close after a fatal error: %v", err)
	}
	if n := strings.Count(log.String(), "must be reopened"); n != 1 {
		t.Errorf("the failure was logged %d times:\n%s", n, &log)
	}
	tr.check(t, dir, small())
}

// TestTablesCannotBeWritten leaves the log alone: the engine could go on for
// ever, with all it is given in memory.
func TestTablesCannotBeWritten(t *testing.T) {
	tables := func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") && writes(op) }
	mem := vfs.NewMem()
	db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, &breaker{cause: syscall.EIO, picks: tables})))
	if err != nil {
		t.Fatal(err)
	}
	var tr trial
	for err == nil {
		if err = db.Crawl().Update(t.Context(), trialBatch(tr.round+1)); err == nil {
			tr.round++
		}
	}
	if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("after %d updates: %v", tr.round, err)
	}
	if err := db.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
	tr.check(t, memPath, inMemory(small(), mem))
}

// TestEveryReadFails makes each read fail in turn, once or from then on. The error may be
// reported or not, but nothing is lost and nothing is invented.
func TestEveryReadFails(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, once := range []bool{true, false} {
		t.Run(fmt.Sprintf("once=%t", once), func(t *testing.T) { everyReadFails(t, once) })
	}
}

func everyReadFails(t *testing.T, once bool) {
	for at := int64(0); ; at = after(at, 0) {
		b := &breaker{at: at, once: once, cause: syscall.EIO, picks: reads}
		mem := vfs.NewMem()
		var tr trial
		db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, b)))
		if err == nil {
			err = tr.run(t, db)
			if all, e := contents(t, db); e != nil {
				err = errors.Join(err, e)
			} else if err == nil && len(all) != trialURLs+trialRounds+1 {
				t.Errorf("read %d: %d things were read after operations that all succeeded", at, len(all))
			}
			err = errors.Join(err, db.Close())
		}
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Errorf("read %d: %v", at, err)
		}
		if b.hits.Load() == 0 {
			t.Logf("%d reads", at)
			return
		}
		if db != nil {
			tr.check(t, memPath, inMemory(small(), mem))
		}
	}
}

// TestFailedStatOfLogIsAnError lets the system refuse to describe a log that was just
// made, for which the engine has no answer but a panic.
func TestFailedStatOfLogIsAnError(t *testing.T) {
	testlevel.SkipInRace(t)
	for at := int64(0); ; at++ {
		b := &breaker{at: at, once: true, cause: syscall.EIO, picks: func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileStat && strings.HasSuffix(op.Path, ".log")
		}}
		mem := vfs.NewMem()
		var tr trial
		db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, b)))
		if err == nil {
			err = errors.Join(tr.run(t, db), db.Close())
		}
		if b.hits.Load() == 0 {
			if err != nil || at == 0 {
				t.Errorf("%d logs were described, %v", at, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) || db != nil && !errors.Is(err, ErrFailed) {
			t.Errorf("log %d: %v", at, err)
		}
		tr.check(t, memPath, inMemory(small(), mem))
	}
}

func TestClosed(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]error{"crawl": crawldb.ErrClosed, "hosts": hostdb.ErrClosed, "links": linkdb.ErrClosed}
	for name, err := range everyCall(t.Context(), db) {
		kind, _, ok := strings.Cut(name, ".")
		if ok && !errors.Is(err, want[kind]) || err == nil {
			t.Errorf("%s of a closed store: %v", name, err)
		}
	}
	for _, err := range db.Segments().List(t.Context()) {
		if !errors.Is(err, segment.ErrClosed) {
			t.Errorf("segments of a closed store: %v", err)
		}
	}
	for _, c := range []interface{ Close() error }{db.Crawl(), db.Hosts(), db.Links()} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseOfOneStore(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Hosts().Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range everyCall(t.Context(), db) {
		if closed := strings.HasPrefix(name, "hosts."); closed != errors.Is(err, hostdb.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCloseWhileInUse closes the store from within a loop and during an update.
func TestCloseWhileInUse(t *testing.T) {
	ctx := t.Context()
	open := func() *DB {
		db, err := Open(t.TempDir(), small())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Crawl().Update(ctx, trialBatch(1)); err != nil {
			t.Fatal(err)
		}
		return db
	}
	t.Run("scan", func(t *testing.T) {
		db, n := open(), 0
		var last error
		for _, last = range db.Crawl().Scan(ctx, crawldb.Range{}) {
			if n++; n == 1 {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if !errors.Is(last, crawldb.ErrClosed) {
			t.Errorf("the scan ended with %v", last)
		}
	})
	t.Run("update", func(t *testing.T) {
		db := open()
		inside, updated := make(chan struct{}), make(chan error)
		go func() {
			b := trialBatch(2)
			next := b.Next
			b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
				if i == 0 {
					close(inside)
					<-db.closing
				}
				return next(i, old)
			}
			updated <- db.Crawl().Update(ctx, b)
		}()
		<-inside
		closed := make(chan error)
		go func() { closed <- db.Close() }()
		if err := <-updated; !errors.Is(err, crawldb.ErrClosed) {
			t.Errorf("an update beside Close: %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestWaitForRoom checks what ends the wait of a writer for an engine that is
// behind: its context, Close and a failure.
func TestWaitForRoom(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(db *DB, cancel func())
		want error
	}{
		{"context", func(_ *DB, cancel func()) { cancel() }, context.Canceled},
		{"close", func(db *DB, _ func()) { go db.Close() }, crawldb.ErrClosed},
		{"failure", func(db *DB, _ func()) { db.fs.Fail(errCrash) }, ErrFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, err := Open(memPath, inMemory(small(), vfs.NewMem()))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				db.memSize = 0 // there is never room
				db.written.Store(lookEvery)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Minute, func() { tt.end(db, cancel) })
				start := time.Now()
				if err := db.Crawl().Update(ctx, trialBatch(1)); !errors.Is(err, tt.want) {
					t.Errorf("Update: %v, want %v", err, tt.want)
				}
				if took := time.Since(start); took < time.Minute || took > time.Minute+time.Second {
					t.Errorf("Update returned after %v", took)
				}
			})
		})
	}
}

// TestHostsAreDurableSoon also shows that Close leaves nothing running: the
// bubble would not end.
func TestHostsAreDurableSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		db, err := Open(memPath, inMemory(small(), mem))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			err := db.Hosts().Update(t.Context(), fmt.Sprint(i), func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(600 * time.Millisecond) // of the bubble
		}
		// The first two were made more than a second ago, the third was not.
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		time.Sleep(time.Second)
		late := mem.CrashClone(vfs.CrashCloneCfg{})
		if err := db.Hosts().Update(t.Context(), "3", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil { // with a sync due
			t.Error(err)
		}
		for i, want := range []int{2, 3} {
			d := &DB{}
			if d, err = Open(memPath, inMemory(small(), []vfs.FS{clone, late}[i])); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range d.Hosts().Scan(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n < want {
				t.Errorf("%d hosts are durable, want %d", n, want)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
