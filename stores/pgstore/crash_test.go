//go:build servers

package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

// A cut is how a proxy breaks a connection at COMMIT.
type cut int

const (
	beforeCommit cut = iota // the server never gets it
	afterCommit             // the server commits, and its answer is lost
	duringCommit            // the server gets it, and may not have committed yet when the client returns
	cuts
)

// commitMessage is the message by which pgx commits.
var commitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

// proxy passes connections on to a server and breaks them.
type proxy struct {
	address string
	onCut   func()
	next    atomic.Int32 // the cut of the next COMMIT; negative for none
}

func newProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String()}
	p.next.Store(-1)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.serve(client, server) })
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return p
}

func (p *proxy) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var group sync.WaitGroup
	defer group.Wait()
	answers := make(chan struct{}, 1)
	var dropping atomic.Bool
	group.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if dropping.Load() {
				answers <- struct{}{}
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			server.Close()
			return
		}
		how := cut(-1)
		if bytes.Contains(buf[:n], commitMessage) {
			how = cut(p.next.Swap(-1))
		}
		dropping.Store(how >= 0)
		if how != beforeCommit {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if how < 0 {
			continue
		}
		if how == afterCommit {
			<-answers
		}
		if p.onCut != nil {
			p.onCut()
		}
		client.Close()
		server.Close()
		return
	}
}

// count adds one to the number in a record and in the mark of its name.
func count(ctx context.Context, s crawldb.Store, url string) error {
	n := 0
	return s.Update(ctx, crawldb.Batch{
		URLs: []string{url},
		Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := crawldb.Datum{}
			if old != nil {
				d = *old
			}
			d.Retries++
			n = d.Retries
			return &d, nil
		},
		Marks: func() map[string]string { return map[string]string{url: strconv.Itoa(n)} },
	})
}

// counted returns the number in a record, and demands that the mark agrees.
func counted(t *testing.T, s crawldb.Store, url string) int {
	t.Helper()
	d, err := s.Get(t.Context(), url)
	if err != nil && !errors.Is(err, crawldb.ErrNotFound) {
		t.Fatal(err)
	}
	mark, err := s.Mark(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := strconv.Atoi(mark); got != d.Retries {
		t.Errorf("the mark of %s is %q, its record has %d", url, mark, d.Retries)
	}
	return d.Retries
}

func openTest(t *testing.T, dsn string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// An update whose connection breaks at COMMIT is applied once, whether the server had got the
// COMMIT or not.
func TestUpdateIsAppliedOnceIfConnectionBreaksAtCommit(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	p := newProxy(t, server.Address())
	db := openTest(t, pgtest.DSNAt(p.address, "cut"))
	const url = "http://example.com/"
	for i := range 30 {
		p.next.Store(int32(i % int(cuts)))
		if err := count(t.Context(), db.Crawl(), url); err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
		if got := counted(t, db.Crawl(), url); got != i+1 {
			t.Fatalf("update %d, cut %d: %d updates were applied", i, i%int(cuts), got)
		}
	}
}

// What a cancelled update returns is true, also if its connection broke at COMMIT.
func TestCancelledUpdateReportsOutcomeOfBrokenCommit(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	p := newProxy(t, server.Address())
	db := openTest(t, pgtest.DSNAt(p.address, "cut"))
	const url = "http://example.com/"
	done := 0
	for i := range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		p.onCut = cancel
		p.next.Store(int32(i % int(cuts)))
		err := count(ctx, db.Crawl(), url)
		cancel()
		switch {
		case err == nil:
			done++
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
		if got := counted(t, db.Crawl(), url); got != done {
			t.Fatalf("update %d, cut %d: it returned %v, but %d updates were applied, expected %d", i, i%int(cuts), err, got, done)
		}
	}
}

// A server that crashes and starts again is a pause: no update, host, link or block is lost,
// and none is applied twice.
func TestCrashOfServerIsPause(t *testing.T) {
	server := pgtest.Start(t)
	db := openTest(t, server.DSN("crash"))
	var stop atomic.Bool
	var group sync.WaitGroup
	var updates, turns, merges, blocks int
	const url = "http://example.com/"
	run := func(n *int, f func(i int) error) {
		group.Go(func() {
			for !stop.Load() {
				if err := f(*n); err != nil {
					t.Error(err)
					return
				}
				*n++
			}
		})
	}
	run(&updates, func(int) error { return count(t.Context(), db.Crawl(), url) })
	run(&turns, func(int) error {
		return db.Hosts().Update(t.Context(), "example.com", func(old *hostdb.Host) (*hostdb.Host, error) {
			h := hostdb.Host{}
			if old != nil {
				h = *old
			}
			h.Stats.Fetched++
			return &h, nil
		})
	})
	run(&merges, func(i int) error {
		return db.Links().Merge(t.Context(), []linkdb.Entry{{URL: url, Inlinks: []linkdb.Inlink{{From: fmt.Sprintf("http://example.com/%06d", i)}}}}, 0)
	})
	w, err := db.Segments().Append(t.Context(), "seg", "part", 0)
	if err != nil {
		t.Fatal(err)
	}
	run(&blocks, func(i int) error { return w.Append(t.Context(), []byte(strconv.Itoa(i))) })
	for range 3 {
		time.Sleep(300 * time.Millisecond)
		if err := server.Stop("immediate"); err != nil {
			t.Error(err)
		}
		if err := server.Start(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	group.Wait()
	if t.Failed() {
		return
	}
	if got := counted(t, db.Crawl(), url); got != updates {
		t.Errorf("%d updates returned, %d were applied", updates, got)
	}
	h, err := db.Hosts().Get(t.Context(), "example.com")
	if err != nil || h.Stats.Fetched != int64(turns) {
		t.Errorf("%d turns of a host returned, %d were applied, %v", turns, h.Stats.Fetched, err)
	}
	links, err := db.Links().Get(t.Context(), url)
	if err != nil || len(links) != merges {
		t.Errorf("%d links were merged, %d are there, %v", merges, len(links), err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for b, err := range db.Segments().Read(t.Context(), "seg", "part", 0) {
		if err != nil || string(b) != strconv.Itoa(n) {
			t.Fatalf("block %d is %q, %v", n, b, err)
		}
		n++
	}
	if n != blocks {
		t.Errorf("%d blocks were appended, %d are there", blocks, n)
	}
	t.Logf("%d updates, %d turns, %d merges, %d blocks", updates, turns, merges, blocks)
}

// While the server is gone, a call ends with its context or with the patience of the store.
func TestServerThatStaysAwayIsError(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	db, err := Open(t.Context(), server.DSN("away"), Options{Patience: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop("immediate"); err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), db.Crawl(), "http://example.com/"); err == nil {
		t.Error("an update succeeded without a server")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), db.Crawl(), "http://example.com/"); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// One DB at a time has a crawl open for writing.
func TestOpenCrawlIsLocked(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	o := Options{leaseTime: 500 * time.Millisecond}
	first, err := Open(t.Context(), server.DSN("lock"), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := Open(t.Context(), server.DSN("lock"), o); !errors.Is(err, ErrLocked) {
			t.Errorf("a second opening: %v", err)
		}
	}
	openTest(t, server.DSN("other"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	second, err := Open(t.Context(), server.DSN("lock"), Options{leaseTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	second.release() // a kill
	third, err := Open(t.Context(), server.DSN("lock"), o)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < o.leaseTime {
		t.Errorf("after a kill the crawl was open in %v", took)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// A process that gives no sign of life loses the crawl: it can change nothing any more.
func TestSilentProcessIsFenced(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	first := openTest(t, server.DSN("fence"))
	first.endSigns()
	const url = "http://example.com/"
	if err := count(t.Context(), first.Crawl(), url); err != nil {
		t.Fatal(err)
	}
	w, err := first.Segments().Append(t.Context(), "seg", "part", 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), server.DSN("fence"), Options{leaseTime: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for what, f := range map[string]func() error{
		"Update": func() error { return count(t.Context(), first.Crawl(), url) },
		"UpdateAll": func() error {
			return crawldb.UpdateAll(t.Context(), first.Crawl(), func(yield func(crawldb.Batch, error) bool) {
				yield(crawldb.Batch{Marks: crawldb.Mark("a", "b")}, nil)
			})
		},
		"Merge": func() error {
			return first.Links().Merge(t.Context(), []linkdb.Entry{{URL: url, Inlinks: []linkdb.Inlink{{From: url}}}}, 0)
		},
		"Append of a part":  func() error { _, err := first.Segments().Append(t.Context(), "seg", "other", 0); return err },
		"Append of a block": func() error { return w.Append(t.Context(), nil) },
		"Commit":            func() error { return w.Commit(t.Context()) },
		"Remove":            func() error { return first.Segments().Remove(t.Context(), "other") },
	} {
		if err := f(); !errors.Is(err, ErrFenced) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
	if got := counted(t, second.Crawl(), url); got != 1 {
		t.Errorf("%d updates were applied", got)
	}
	if got := counted(t, first.Crawl(), url); got != 1 {
		t.Errorf("the DB before reads %d", got)
	}
	if err := count(t.Context(), second.Crawl(), url); err != nil {
		t.Error(err)
	}
	var names []string
	for name, err := range second.Segments().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"seg"}) {
		t.Errorf("segments: %q", names)
	}
}
