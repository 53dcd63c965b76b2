package pebblestore

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// TestSecondCrashAddsNoPause shows that a second crash does not take the time
// since the first for a part of the pause.
func TestSecondCrashAddsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handle{path: memPath, o: inMemory(small(), vfs.NewCrashableMem())}
		h, err := h.reopen()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		err = h.Hosts().Update(t.Context(), "h", func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{LastFetch: now, NextFetch: now.Add(5 * time.Second)}, nil
		})
		if err == nil {
			err = h.Hosts().Sync(t.Context())
		}
		for range 3 {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			h, err = h.crash()
		}
		if err != nil {
			t.Fatal(err)
		}
		want := now.Add(time.Minute + 5*time.Second)
		if got, err := h.Hosts().Get(t.Context(), "h"); err != nil || !got.NextFetch.Equal(want) {
			t.Errorf("next fetch at %v, %v; want %v", got.NextFetch, err, want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRobotsAreWrittenWhenTheyChange(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	body := bytes.Repeat([]byte("Disallow: /x\n"), 40_000)
	update := func(next func(h *hostdb.Host)) (written uint64) {
		t.Helper()
		before := db.db.Metrics().WAL.BytesIn
		err := db.Hosts().Update(ctx, "h", func(old *hostdb.Host) (*hostdb.Host, error) {
			h := hostdb.Host{}
			if old != nil {
				h = *old
			}
			next(&h)
			return &h, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return db.db.Metrics().WAL.BytesIn - before
	}
	robots := []hostdb.Robots{{Origin: "http://h", Status: 200, Body: body, Fetched: millis(1)}}
	if n := update(func(h *hostdb.Host) { h.Robots = robots }); n < uint64(len(body)) {
		t.Errorf("new robots.txt: %d bytes written", n)
	}
	if n := update(func(h *hostdb.Host) { h.NextFetch = millis(9) }); n > 200 {
		t.Errorf("a turn wrote %d bytes", n)
	}
	want := hostdb.Host{Name: "h", NextFetch: millis(9), Robots: robots}
	if h, err := db.Hosts().Get(ctx, "h"); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("Get: %v, next fetch %v, %d files", err, h.NextFetch, len(h.Robots))
	}
	update(func(h *hostdb.Host) { h.Robots = nil })
	if _, closer, err := db.db.Get(codec.HostDetailTable.Key("h")); err == nil {
		t.Error("robots.txt files are there that no host has", closer.Close())
	}
	update(func(h *hostdb.Host) { h.Robots = robots })
	err = db.Hosts().Update(ctx, "h", func(*hostdb.Host) (*hostdb.Host, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Hosts().Get(ctx, "h"); !errors.Is(err, hostdb.ErrNotFound) {
		t.Errorf("Get of a host that was deleted: %v", err)
	}
	if _, closer, err := db.db.Get(codec.HostDetailTable.Key("h")); err == nil {
		t.Error("robots.txt files are there that no host has", closer.Close())
	}
}

// A turn at a host neither copies its robots.txt files nor writes them.
func TestTurnCopiesNoRobots(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	body := bytes.Repeat([]byte("Disallow: /ab\n"), 1<<20/14)
	update := func(next func(*hostdb.Host) (*hostdb.Host, error)) {
		t.Helper()
		if err := db.Hosts().Update(t.Context(), "h", next); err != nil {
			t.Fatal(err)
		}
	}
	update(func(*hostdb.Host) (*hostdb.Host, error) {
		return &hostdb.Host{Robots: []hostdb.Robots{{Origin: "http://h", Status: 200, Body: body}}}, nil
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	written := db.db.Metrics().WAL.BytesIn
	const turns = 50
	for i := range turns {
		update(func(old *hostdb.Host) (*hostdb.Host, error) {
			h := *old
			h.Backoff = i
			return &h, nil
		})
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / turns; n > 100_000 {
		t.Errorf("a turn allocates %d bytes beside a robots.txt of %d", n, len(body))
	}
	if n := (db.db.Metrics().WAL.BytesIn - written) / turns; n > 200 {
		t.Errorf("a turn writes %d bytes", n)
	}
	if h, err := db.Hosts().Get(t.Context(), "h"); err != nil || !bytes.Equal(h.Robots[0].Body, body) || h.Backoff != turns-1 {
		t.Errorf("in the end there is another record, or %v", err)
	}
}

// millis returns a time by milliseconds since 1970, as hosts have them.
func millis(n int64) time.Time { return time.UnixMilli(n).UTC() }
