package pebblestore

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

func leaseStore(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func put(t *testing.T, db *DB, url string, next func(old *crawldb.Datum) *crawldb.Datum) {
	t.Helper()
	err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return next(old), nil }})
	if err != nil {
		t.Fatal(err)
	}
}

// got asks for a record in every way there is.
func got(t *testing.T, db *DB, url string) crawldb.Datum {
	t.Helper()
	d, err := db.Crawl().Get(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range db.Crawl().Scan(t.Context(), crawldb.Range{From: crawldb.Key(url), To: crawldb.Key(url) + "\x00"}) {
		if err != nil || !reflect.DeepEqual(s, d) {
			t.Fatalf("Scan shows %+v, %v; Get %+v", s, err, d)
		}
	}
	put(t, db, url, func(old *crawldb.Datum) *crawldb.Datum {
		if old == nil || !reflect.DeepEqual(*old, d) {
			t.Errorf("Update shows %+v; Get %+v", old, d)
		}
		return old
	})
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// A lease leaves the record as it is, and ends without a trace.
func TestLeaseLeavesTheRecord(t *testing.T) {
	db := leaseStore(t)
	const url = "http://a.example/1"
	first := crawldb.Datum{URL: url, Status: crawldb.Unfetched, FetchTime: dueEpoch, Priority: 2, ETag: `"e"`}
	put(t, db, url, func(*crawldb.Datum) *crawldb.Datum { return &first })
	key := crawldb.Key(url)
	stored := func(t codec.Table) []byte {
		b, _ := rows.Get(db.db, t.Key(key))
		return b
	}
	bare := stored(codec.CrawlTable)
	if d := got(t, db, url); !reflect.DeepEqual(d, first) {
		t.Fatalf("%+v", d)
	}
	for _, test := range []struct {
		until time.Time
		by    string
	}{{dueEpoch.Add(time.Hour), "s1"}, {dueEpoch.Add(2 * time.Hour), ""}, {time.Time{}, "s2"}, {time.Time{}, ""}, {millis(1), "s3"}} {
		put(t, db, url, func(old *crawldb.Datum) *crawldb.Datum {
			d := *old
			d.LeasedUntil, d.LeasedBy = test.until, test.by
			return &d
		})
		want := first
		want.LeasedUntil, want.LeasedBy = test.until, test.by
		if d := got(t, db, url); !reflect.DeepEqual(d, want) {
			t.Errorf("%+v, want %+v", d, want)
		}
		if b := stored(codec.CrawlTable); string(b) != string(bare) {
			t.Errorf("%v: the record was written anew", test)
		}
		if has := stored(codec.LeaseTable) != nil; has != (test.by != "" || !test.until.IsZero()) {
			t.Errorf("%v: there is a lease: %t", test, has)
		}
	}
	put(t, db, url, func(old *crawldb.Datum) *crawldb.Datum {
		d := *old
		d.Status = crawldb.Fetched
		return &d
	})
	if d := got(t, db, url); d.Status != crawldb.Fetched || d.LeasedBy != "s3" {
		t.Errorf("%+v", d)
	}
	put(t, db, url, func(*crawldb.Datum) *crawldb.Datum { return nil })
	if stored(codec.CrawlTable) != nil || stored(codec.LeaseTable) != nil {
		t.Error("something is left of a record that was deleted")
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// A store that was written before there was a table of leases has them in its
// records.
func TestLeaseInAnOldRecord(t *testing.T) {
	db := leaseStore(t)
	const url = "http://a.example/1"
	want := crawldb.Datum{URL: url, Status: crawldb.Unfetched, FetchTime: dueEpoch, LeasedUntil: dueEpoch.Add(time.Hour), LeasedBy: "s1"}
	put(t, db, url, func(*crawldb.Datum) *crawldb.Datum { return &want })
	enc, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := crawldb.Key(url)
	if err := errors.Join(db.db.Set(codec.CrawlTable.Key(key), enc, nil), db.db.Delete(codec.LeaseTable.Key(key), nil)); err != nil {
		t.Fatal(err)
	}
	// No selection is to overlook it, so it goes into the table with the index.
	if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("CheckIndex: %v", err)
	}
	db.crawl.index.Rebuild()
	if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != 0 {
		t.Error("what is leased is due")
	}
	if n := countDue(t, db, crawldb.DueQuery{Now: want.LeasedUntil}); n != 1 {
		t.Error("what was leased is not due")
	}
	if d := got(t, db, url); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, want %+v", d, want)
	}
	put(t, db, url, func(old *crawldb.Datum) *crawldb.Datum {
		d := *old
		d.LeasedBy = "s2"
		return &d
	})
	want.LeasedBy = "s2"
	if d := got(t, db, url); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, want %+v", d, want)
	}
	put(t, db, url, func(old *crawldb.Datum) *crawldb.Datum {
		d := *old
		d.LeasedUntil, d.LeasedBy = time.Time{}, ""
		return &d
	})
	want.LeasedUntil, want.LeasedBy = time.Time{}, ""
	if d := got(t, db, url); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, want %+v", d, want)
	}
}

func TestLeasesOutliveTheHandle(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const url = "http://a.example/1"
	want := crawldb.Datum{URL: url, Status: crawldb.Unfetched, LeasedUntil: dueEpoch, LeasedBy: "s1"}
	put(t, db, url, func(*crawldb.Datum) *crawldb.Datum { return &want })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if d := got(t, db, url); !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, want %+v", d, want)
	}
}

func TestCheckIndexFindsLeases(t *testing.T) {
	lease := codec.AppendLease(nil, &crawldb.Datum{LeasedBy: "s1"})
	for _, test := range []struct {
		name, url string
		value     []byte
	}{
		{"without a record, before", "http://a.example/0", lease},
		{"without a record, behind", "http://a.example/2", lease},
		{"damaged", "http://a.example/1", []byte{4}},
	} {
		db := leaseStore(t)
		put(t, db, "http://a.example/1", func(*crawldb.Datum) *crawldb.Datum {
			return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch}
		})
		if err := db.db.Set(codec.LeaseTable.Key(crawldb.Key(test.url)), test.value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func FuzzLease(f *testing.F) {
	f.Add([]byte{})
	f.Add(codec.AppendLease(nil, &crawldb.Datum{LeasedUntil: dueEpoch, LeasedBy: "s"}))
	f.Add(codec.AppendLease(nil, &crawldb.Datum{LeasedUntil: dueEpoch}))
	f.Add(codec.AppendLease(nil, &crawldb.Datum{LeasedBy: "20240601120000"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again crawldb.Datum
		if codec.DecodeLease(&d, b) != nil {
			return
		}
		if err := codec.DecodeLease(&again, codec.AppendLease(nil, &d)); err != nil || !reflect.DeepEqual(d, again) {
			t.Errorf("%+v, %+v, %v", d, again, err)
		}
	})
}
