package pebblestore

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// oddRecords are due, and of all kinds that their entries in the index may have to
// tell of.
func oddRecords() []crawldb.Datum {
	at := dueEpoch.Add(-time.Hour)
	var meta crawldb.Meta
	meta.Set("opic.cash", "12345678")
	var more crawldb.Meta
	more.Set("of", "which there is too much for an entry")
	ofOPIC := crawldb.MetaOf("depth.depth", "7", "opic.cash", "12345678", "opic.history", "0123456789abcdef")
	all := []crawldb.Datum{
		{Score: 1, Priority: 1},
		{Score: 2, Priority: 3, Interval: time.Hour},
		{Score: 0, Priority: 3},
		{Score: 3, Priority: 0},
		{Score: float32(math.Copysign(0, -1)), Priority: float32(math.Copysign(0, -1))},
		{Score: -1, Priority: -1, Retries: 7},
		{Score: 4, Priority: 4, Meta: meta, Interval: 30 * 24 * time.Hour},
		{Score: 4, Priority: 4, Meta: more},
		{Score: 4, Priority: 4, Meta: ofOPIC, Interval: 30 * 24 * time.Hour, Retries: 3},
		{Score: 5, Priority: 5, Status: crawldb.Gone, LastFetch: at.Add(-time.Hour)},
		{Score: 5, Priority: 5, Signature: []byte{}},
		{Score: 5, Priority: 5, ETag: "e"},
		{Score: 5, Priority: 5, LastModified: "m"},
		{Score: 5, Priority: 5, LeasedBy: "20260101"},
		{Score: 5, Priority: 5, LeasedUntil: at.Add(time.Minute)},
		{Score: 5, Priority: 5, LeasedUntil: at.Add(-time.Minute), LeasedBy: "20260101"},
	}
	for i := range all {
		all[i].URL = fmt.Sprintf("http://a.example/%02d", i)
		all[i].FetchTime = at
		if all[i].Status == 0 {
			all[i].Status = crawldb.Unfetched
		}
	}
	return append(all, crawldb.Datum{URL: "http://a.example/99", Status: crawldb.Unfetched, Priority: 1, Score: 1}) // without a time
}

// What a token tells is what the record says, and once that may have changed the
// record is read.
func TestTokensHoldTheStoredRecord(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.Crawl()
	data := oddRecords()
	urls := make([]string, len(data))
	for i := range data {
		urls[i] = data[i].URL
	}
	put := func(tokens []string, change func(i int, d crawldb.Datum) *crawldb.Datum) (olds []crawldb.Datum) {
		t.Helper()
		olds = make([]crawldb.Datum, len(urls))
		err := s.Update(t.Context(), crawldb.Batch{URLs: urls, Tokens: tokens, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old == nil {
				return &data[i], nil
			}
			olds[i] = *old
			return change(i, *old), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return olds
	}
	tokens := func() []string {
		t.Helper()
		all := make([]string, len(urls))
		for c, err := range s.(crawldb.DueStore).Due(t.Context(), crawldb.DueQuery{Now: dueEpoch}) {
			if err != nil {
				t.Fatal(err)
			}
			all[slices.Index(urls, c.URL)] = c.Token
		}
		return all
	}
	stored := func() []crawldb.Datum {
		t.Helper()
		all := make([]crawldb.Datum, len(urls))
		for i, u := range urls {
			if all[i], err = s.Get(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	put(nil, nil)
	first := tokens()
	n := 0
	for i, d := range stored() {
		fromToken, ok := db.crawl.index.RecordOfToken(first[i], d.URL)
		if ok {
			n++
		}
		if ok && !reflect.DeepEqual(fromToken, d) {
			t.Errorf("token %+v, stored %+v", fromToken, d)
		}
	}
	if n != 9 { // all that can be, and what scoring filters keep of a page is no reason why not
		t.Errorf("%d of %d tokens hold their records", n, len(urls))
	}
	// As generate leases them.
	now := stored()
	lease := func(i int) (string, time.Time) { return "20260102", dueEpoch.Add(time.Duration(i) * time.Hour) }
	if olds := put(first, func(i int, d crawldb.Datum) *crawldb.Datum {
		d.LeasedBy, d.LeasedUntil = lease(i)
		return &d
	}); !reflect.DeepEqual(olds, now) {
		t.Errorf("%+v, want %+v", olds, now)
	}
	for i, d := range stored() {
		want := now[i]
		if want.LeasedBy, want.LeasedUntil = lease(i); !reflect.DeepEqual(d, want) {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Now they tell of what is no more.
	now = stored()
	if olds := put(first, func(_ int, d crawldb.Datum) *crawldb.Datum { d.LeasedBy, d.LeasedUntil = "", time.Time{}; return &d }); !reflect.DeepEqual(olds, now) {
		t.Errorf("old tokens are believed: %+v, want %+v", olds, now)
	}
	second := tokens()
	// What changes besides the lease is written.
	now = stored()
	put(second, func(i int, d crawldb.Datum) *crawldb.Datum {
		d.Meta.Set("n", fmt.Sprint(i))
		return &d
	})
	for i, d := range stored() {
		want := now[i]
		if want.Meta.Set("n", fmt.Sprint(i)); !reflect.DeepEqual(d, want) {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
	for _, bad := range []string{"x", "01234567", "0123456789abcdef", first[0]} {
		now := stored()
		if olds := put(slices.Repeat([]string{bad}, len(urls)), func(i int, d crawldb.Datum) *crawldb.Datum { return &d }); !reflect.DeepEqual(olds, now) {
			t.Errorf("%q: %+v, want %+v", bad, olds, now)
		}
	}
	err = s.Update(t.Context(), crawldb.Batch{URLs: urls, Tokens: second[1:], Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }})
	if err == nil {
		t.Error("tokens of other URLs")
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A record is another one if any field differs but the URL and those of the lease.
func TestSameRecord(t *testing.T) {
	lease := []string{"URL", "LeasedUntil", "LeasedBy"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[crawldb.Datum]()) {
		var a, b crawldb.Datum
		switch v := reflect.ValueOf(&b).Elem().FieldByIndex(f.Index); f.Type {
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(dueEpoch))
		case reflect.TypeFor[[]byte]():
			v.Set(reflect.ValueOf([]byte{}))
		case reflect.TypeFor[crawldb.Meta]():
			v.Set(reflect.ValueOf(crawldb.MetaOf("a", "b")))
		case reflect.TypeFor[float32]():
			v.SetFloat(math.Copysign(0, -1))
		case reflect.TypeFor[string]():
			v.SetString("x")
		case reflect.TypeFor[crawldb.Status]():
			v.SetUint(1)
		default:
			v.SetInt(1)
		}
		if got := codec.EqualRecords(&a, &b); got != slices.Contains(lease, f.Name) {
			t.Errorf("records that differ in %s: %v", f.Name, got)
		}
	}
	a, b := crawldb.Datum{Signature: []byte{1}}, crawldb.Datum{Signature: []byte{2}}
	if codec.EqualRecords(&a, &b) || !codec.EqualRecords(&a, &a) {
		t.Error("two signatures")
	}
}
