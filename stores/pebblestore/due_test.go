package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

var dueEpoch = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

func TestLevels(t *testing.T) {
	inf := float32(math.Inf(1))
	last := -1
	// Downwards over all magnitudes; a level is an eighth of an octave, exactly.
	for i := 127 * 8; i > -126*8; i-- {
		p := float32(math.Exp2(float64(i) / 8))
		below := math.Nextafter32(p, 0)
		if a, b := level(p), level(below); int(b) != int(a)+1 {
			t.Fatalf("2^(%d/8): level %d, and %d just below", i, a, b)
		}
		if n := int(level(p)); n <= last {
			t.Fatalf("2^(%d/8) has level %d after %d", i, n, last)
		} else {
			last = n
		}
	}
	order := []float32{inf, math.MaxFloat32, 1, math.SmallestNonzeroFloat32 * (1 << 21), 0, -math.SmallestNonzeroFloat32 * (1 << 21), -1, -math.MaxFloat32, -inf, float32(math.NaN())}
	for i := 1; i < len(order); i++ {
		if level(order[i-1]) >= level(order[i]) {
			t.Errorf("%v has level %d, %v has %d", order[i-1], level(order[i-1]), order[i], level(order[i]))
		}
	}
	if level(0) != level(float32(math.Copysign(0, -1))) || level(order[len(order)-1]) != lastLevel {
		t.Error("zeros or NaN")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		a, b := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		if a < b && level(a) < level(b) {
			t.Fatalf("%v has level %d, %v has %d", a, level(a), b, level(b))
		}
	}
}

func FuzzDueEntry(f *testing.F) {
	f.Add([]byte{})
	f.Add(entry{from: always, priority: 1}.appendValue(nil))
	f.Add(entry{from: 1717243200000, priority: -2}.appendValue(nil))
	f.Add((&dueState{mark: markOf(5), whole: true}).append(nil))
	f.Add((&dueState{mark: markOf(5), whole: true, out: 9, goal: lastLevel, filled: []byte("com)"), least: 300}).append(nil))
	f.Add((&dueState{mark: []byte("\x00\x00\x00\x05com)"), built: []byte("com,example)")}).append(nil))
	f.Add((&dueState{mark: markOf(5), whole: true, long: true}).append(nil))
	f.Add((&dueState{mark: markOf(5), whole: true, long: true, stale: true}).append(nil))
	f.Add(entry{from: 1717243200000, priority: 2, whole: true, of: &crawldb.Datum{FetchTime: time.UnixMilli(1717243200000), Signature: make([]byte, 16), ETag: `"an entity tag that is long"`}}.appendValue(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e entry
		if e.decode(b) == nil {
			var again entry
			if err := again.decode(e.appendValue(nil)); err != nil || !again.same(e, true) {
				t.Errorf("%+v, %+v, %v", e, again, err)
			}
		}
		s, ok, err := parseState(b)
		if err != nil || !ok {
			return
		}
		if again, _, err := parseState(s.append(nil)); err != nil || string(again.mark) != string(s.mark) || string(again.built) != string(s.built) || again.whole != s.whole || again.out != s.out || again.goal != s.goal || again.least != s.least || again.long != s.long || again.stale != s.stale || string(again.filled) != string(s.filled) {
			t.Errorf("%+v, %+v, %v", s, again, err)
		}
	})
}

// dueURLs are hosts of several sizes, and what is no URL.
func dueModelURLs() []string {
	urls := []string{"", "!", "file:///a", "HTTP://Example.com/", "http://h1.example", "http://h1.example:8080/x", "http://[2001:db8::1]/", "http://u@h1.example/"}
	for i := range 150 {
		urls = append(urls, fmt.Sprintf("http://h%d.example/%03d", i%7*i%5, i))
		if i%10 == 0 {
			urls = append(urls, fmt.Sprintf("http://www.h0.example/%03d", i), fmt.Sprintf("http://h0.example-%d.test/%03d", i, i))
		}
	}
	slices.SortFunc(urls, crawldb.Compare)
	return urls
}

// randomDue changes a record as anything might.
func randomDue(r *rand.Rand, d crawldb.Datum, clock time.Time) crawldb.Datum {
	change := func(n int) bool { return r.IntN(n) == 0 }
	d.Status = crawldb.Unfetched
	if change(2) {
		d.FetchTime = clock.Add(time.Duration(r.IntN(400)-200) * time.Hour / 4)
	}
	if change(15) {
		d.FetchTime = []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1), dueEpoch.AddDate(500, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}[r.IntN(5)]
	}
	if change(3) {
		d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	} else if change(3) {
		d.LeasedUntil, d.LeasedBy = clock.Add(time.Duration(r.IntN(100)-50)*time.Hour), "s"
	}
	switch {
	case change(10):
		d.Priority = []float32{0, -1, 1e-40, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(6)]
	case change(2):
		d.Priority = float32(math.Exp(r.NormFloat64() * 2))
	}
	d.Retries = r.IntN(3)
	if change(2) {
		if d.Signature, d.ETag = nil, ""; !change(4) { // it was fetched
			d.Signature = binary.BigEndian.AppendUint64(nil, r.Uint64())
			if d.ETag = strings.Repeat("e", restMost); change(5) { // or it is too short, or too long
				d.ETag = strings.Repeat("e", r.IntN(2*wholeMost))
			}
		}
	}
	return d
}

func dueBy(d crawldb.Datum, q crawldb.DueQuery) bool {
	return (!d.FetchTime.After(q.Now) || !q.DueBeyond.IsZero() && d.FetchTime.After(q.DueBeyond)) && !d.Leased(q.Now)
}

// TestDueModel does random things to a store and to a map, with a clock that
// creeps, jumps and goes back, leases that are given back, visited, or run out, more
// of them than are held in memory, and ends of both kinds. After each the index is that
// of the records, and every query is answered as the map would.
//
//	go test -run TestDueModel ./stores/pebblestore -due.models 200
func TestDueModel(t *testing.T) {
	urls := dueModelURLs()
	trimmed, long, stale := 0, 0, 0
	// Whether there is something to trim depends on how far the engine is with its tables, and what is
	// brought later on that, so more seeds follow until there was some of each.
	for seed := uint64(0); seed < uint64(*dueModels) || (trimmed == 0 || long == 0 || stale == 0) && seed < 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 9))
		rg := newRig(t)
		rg.power = seed%2 == 0
		h, err := rg.open()
		if err != nil {
			t.Fatal(err)
		}
		clock, model := dueEpoch, map[string]crawldb.Datum{}
		for step := range 120 {
			h.crawl.bulkLeast, h.crawl.farKeys = []int{1, 1 << 30}[r.IntN(2)], []int{1, farKeys}[r.IntN(2)]
			if seed%4 > 1 { // some, or none, of the leases are held
				h.crawl.leases.most = r.IntN(60)
			}
			h.crawl.due.least, h.crawl.due.tails, h.crawl.due.side = int64(r.IntN(20)), r.IntN(100), 1+r.IntN(20)
			h.crawl.due.anew = []uint64{0, anewBytes}[r.IntN(2)]
			if r.IntN(3) == 0 {
				if err := h.crawl.tryTrim(t.Context()); err != nil {
					t.Fatal(err)
				}
				if h.crawl.due.state.Load().out > 0 {
					trimmed++
				}
			}
			if out := h.crawl.due.state.Load().out; out > 0 && r.IntN(3) == 0 { // a part of what a selection asks for
				s := &h.crawl
				s.bulkStep = 1 + r.IntN(2000)
				oneStep(t, h.DB, s.due.state.Load().depth()+1+uint16(r.IntN(int(out))))
			}
			switch n := r.IntN(16); {
			case n > 11:
				leaseSome(t, h.DB, r, clock, model)
			case n < 6:
				batch := slices.DeleteFunc(slices.Clone(urls), func(string) bool { return r.IntN(6) > 0 })
				next := make([]*crawldb.Datum, len(batch))
				for i, u := range batch {
					if d, ok := model[u]; !ok || r.IntN(5) > 0 {
						d = randomDue(r, d, clock)
						d.URL = u
						next[i] = &d
					}
				}
				b := crawldb.Batch{URLs: batch, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return next[i], nil }}
				if r.IntN(2) == 0 {
					err = h.Crawl().Update(t.Context(), b)
				} else {
					err = crawldb.UpdateAll(t.Context(), h.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) })
				}
				if err != nil {
					t.Fatal(err)
				}
				for i, u := range batch {
					if delete(model, u); next[i] != nil {
						model[u] = *next[i]
					}
				}
			case n < 8:
				clock = clock.Add(time.Duration(r.IntN(300)) * time.Minute)
			case n == 8 && r.IntN(2) == 0:
				clock = clock.Add(time.Duration(r.IntN(2000)-1000) * time.Hour)
			case n == 9 && r.IntN(2) == 0: // a selection that ends before it has begun
				s, to := &h.crawl, clock.Add(time.Duration(r.IntN(50))*time.Hour)
				s.due.step, s.due.most, s.bulkStep = 1+r.IntN(20), 1+r.IntN(20), 1+r.IntN(2000)
				anew, err := s.ripeAnew(t.Context(), markOf(bucket(to.UnixMilli())))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.db.take(t.Context(), &s.view, s.turn); err != nil {
					t.Fatal(err)
				}
				_, err = s.step(t.Context(), to.UnixMilli(), anew)
				s.db.give(s.turn)
				if err != nil {
					t.Fatal(err)
				}
				if err := h.CheckIndex(t.Context()); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
				checkLeases(t, h.DB)
				if r.IntN(2) == 0 {
					continue // and nothing asks before the next change
				}
			case n == 9 && r.IntN(2) == 0:
				h.crawl.due.late.Store(true) // as after a clock that went back
			case n == 10 && r.IntN(2) == 0:
				if err := h.DB.Close(); err != nil {
					t.Fatal(err)
				}
				if h, err = h.reopen(); err != nil {
					t.Fatal(err)
				}
			case n == 11 && r.IntN(2) == 0:
				if err := h.Crawl().Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if h, err = h.crash(); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.CheckIndex(t.Context()); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if h.crawl.due.state.Load().long {
				long++
			}
			if h.crawl.due.state.Load().stale {
				stale++
			}
			checkLeases(t, h.DB)
			askModel(t, h.DB, r, clock, model, fmt.Sprintf("seed %d, step %d: ", seed, step))
			if checkLeases(t, h.DB); !h.crawl.leases.read() {
				t.Fatal("a selection has not read the leases")
			}
		}
		if err := h.DB.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if trimmed == 0 || long == 0 || stale == 0 {
		t.Errorf("the index was trimmed %d times, had long rests %d times, and old priorities %d times", trimmed, long, stale)
	}
}

// leaseSome selects as generate does, and leases, visits or gives back what it gets.
func leaseSome(t *testing.T, db *DB, r *rand.Rand, clock time.Time, model map[string]crawldb.Datum) {
	t.Helper()
	q := crawldb.DueQuery{Now: clock, Limit: 1 + r.IntN(80)}
	taken, most := map[string]int{}, 1+r.IntN(20)
	q.WantHost = func(host string) bool { return taken[host] < most }
	tokens := map[string]string{}
	for c, err := range db.crawl.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		taken[crawldb.Host(c.URL)]++
		tokens[c.URL] = c.Token
	}
	visited := map[string]string{} // what was leased before
	for _, u := range slices.Sorted(maps.Keys(model)) {
		if d := model[u]; d.LeasedBy != "" && r.IntN(3) == 0 {
			visited[u] = ""
		}
	}
	until := clock.Add(time.Duration(r.IntN(20)) * time.Hour)
	for i, some := range []map[string]string{tokens, visited} {
		b := crawldb.Batch{URLs: slices.SortedFunc(maps.Keys(some), crawldb.Compare)}
		if i == 0 {
			b.Tokens = make([]string, len(b.URLs))
			for i, u := range b.URLs {
				b.Tokens[i] = some[u]
			}
		}
		b.Next = func(k int, old *crawldb.Datum) (*crawldb.Datum, error) {
			want := model[b.URLs[k]]
			if old == nil || string(encoded(t, *old)) != string(encoded(t, want)) {
				t.Fatalf("%+v, want %+v", old, want)
			}
			d := *old
			if d.LeasedUntil, d.LeasedBy = until, "g"; i == 1 {
				d.LeasedUntil, d.LeasedBy = time.Time{}, ""
				if r.IntN(3) > 0 {
					d.FetchTime, d.Priority = clock.Add(time.Duration(r.IntN(60))*time.Hour), r.Float32()
				}
			}
			model[d.URL] = d
			return &d, nil
		}
		var err error
		if r.IntN(2) == 0 {
			err = db.Crawl().Update(t.Context(), b)
		} else {
			err = crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func encoded(t *testing.T, d crawldb.Datum) []byte {
	t.Helper()
	b, err := d.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkLeases compares what is known of leases with the table.
func checkLeases(t *testing.T, db *DB) {
	t.Helper()
	l := db.crawl.leases
	rows := 0
	err := db.crawl.rows(t.Context(), db.db, codec.LeaseTable, func(key, value []byte) error {
		rows++
		end, err := leaseEndOf(value)
		if got, leased, known := l.find(key[1:]); known && (!leased || got != end) {
			t.Errorf("the lease of %q ends at %d, %t, not at %d", key, got, leased, end)
		}
		return err
	})
	if err != nil || l.read() && rows != l.rows || l.state == leasesKnown && rows != len(l.ends) {
		t.Fatalf("%d leases, counted %d, held %d: %v", rows, l.rows, len(l.ends), err)
	}
}

// askModel asks a random query of a store and of the map.
func askModel(t *testing.T, db *DB, r *rand.Rand, clock time.Time, model map[string]crawldb.Datum, prefix string) {
	t.Helper()
	q := crawldb.DueQuery{Now: clock}
	if r.IntN(3) == 0 {
		q.AheadOfClock = time.Duration(r.IntN(200)) * time.Hour
		q.Now = q.Now.Add(q.AheadOfClock)
	}
	if r.IntN(2) == 0 {
		q.DueBeyond = q.Now.AddDate(0, r.IntN(3), 1)
	}
	if r.IntN(4) == 0 {
		q.Limit = 1 + r.IntN(50)
	}
	if r.IntN(4) == 0 {
		q.MinPriority = float32(math.Exp(r.NormFloat64() * 2))
	}
	full, most, count := map[string]bool{}, 1+r.IntN(4), map[string]int{}
	limited := r.IntN(3) == 0
	if limited {
		q.WantHost = func(host string) bool { return !full[host] }
	}
	var next time.Time
	if q.Limit == 0 && q.MinPriority == 0 && !limited {
		q.NotDue = func(d *crawldb.Datum) {
			if d.FetchTime.After(q.Now) && (next.IsZero() || d.FetchTime.Before(next)) {
				next = d.FetchTime
			}
		}
	}
	got := map[string]bool{}
	least, n := uint16(0), 0
	for c, err := range db.crawl.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(prefix, err)
		}
		d, ok := model[c.URL]
		sure := ok && !d.FetchTime.After(q.Now) && !d.Leased(q.Now)
		switch l := level(c.Priority); {
		case !ok || got[c.URL]:
			t.Fatalf("%s%+v: %q is yielded twice, or for nothing", prefix, q, c.URL)
		case math.Float32bits(c.Priority) != math.Float32bits(d.Priority):
			t.Fatalf("%s%q has priority %v, not %v", prefix, c.URL, d.Priority, c.Priority)
		case c.Due != sure:
			t.Fatalf("%s%+v: %+v is due: %v", prefix, q, d, c.Due)
		case l < least:
			t.Fatalf("%s%v after level %d", prefix, c.Priority, least)
		default:
			least = l
		}
		got[c.URL] = true
		if host := crawldb.Host(c.URL); limited {
			if count[host]++; count[host] > most {
				t.Fatalf("%s%d of %q", prefix, count[host], host)
			}
			full[host] = count[host] == most
		}
		n++
	}
	if q.Limit > 0 && n == q.Limit {
		return
	}
	if q.NotDue != nil {
		var want time.Time
		for _, d := range model {
			at := d.FetchTime
			if d.LeasedUntil.After(at) {
				at = d.LeasedUntil
			}
			if !dueBy(d, q) && (want.IsZero() || at.Before(want)) {
				want = at
			}
		}
		if !next.Equal(want) {
			t.Fatalf("%s%+v: the next is due at %v, not at %v", prefix, q, want, next)
		}
	}
	for _, u := range slices.Sorted(maps.Keys(model)) {
		d := model[u]
		if dueBy(d, q) && !(q.MinPriority > 0 && !(d.Priority >= q.MinPriority)) && !full[crawldb.Host(u)] && !got[u] {
			t.Fatalf("%s%+v: %+v is due and was omitted", prefix, q, d)
		}
	}
}

// putDue writes records that are due at their times.
func putDue(t *testing.T, db *DB, n int, at func(i int) time.Time) []string {
	t.Helper()
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%03d.example/%06d", i/100, i)
	}
	for from := 0; from < n; from += 10_000 {
		chunk := urls[from:min(from+10_000, n)]
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: at(from + i), Score: float32(from + i), Priority: float32(from + i)}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return urls
}

func countDue(t *testing.T, db *DB, q crawldb.DueQuery) (n int) {
	t.Helper()
	for _, err := range db.crawl.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// tableSize counts the entries of a table of the index.
func tableSize(t *testing.T, db *DB, tab codec.Table) (n int) {
	t.Helper()
	if err := db.crawl.rows(t.Context(), db.db, tab, func(_, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAheadMovesNothing asks about the future: the entries stay where the clock
// needs them.
// An entry is in the wheel unless its key there comes before the mark, wherever that is.
func TestWhereAnEntryIs(t *testing.T) {
	key := crawldb.AppendKey(nil, "http://www.example.org/b")
	e := entry{from: 7 * bucketMillis, priority: 1}
	inWheel := append([]byte{byte(codec.WheelTable), 0, 0, 0, 7}, key...)
	for _, mark := range []string{"", "\x00", "\x00\x00\x00\x07", "\x00\x00\x00\x08", "\x00\x00\x00\x06" + string(key), "\x00\x00\x00\x08" + string(key),
		"\x00\x00\x00\x07" + string(key), "\x00\x00\x00\x07" + string(key[:5]), "\x00\x00\x00\x07" + string(key) + "x", "\x00\x00\x01", "\x00\x00\x00"} {
		want := inWheel
		if string(inWheel[1:]) < mark {
			want = e.appendReady(nil, key)
		}
		if got := e.appendKey(nil, []byte(mark), key); !bytes.Equal(got, want) {
			t.Errorf("mark %q: %q, want %q", mark, got, want)
		}
	}
}

func TestAheadMovesNothing(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	putDue(t, db, 2000, func(i int) time.Time { return dueEpoch.Add(time.Duration(i) * time.Hour) })
	for _, days := range []int{0, 1, 30, 1000} {
		ahead := time.Duration(days) * 24 * time.Hour
		if n, want := countDue(t, db, crawldb.DueQuery{Now: dueEpoch.Add(ahead), AheadOfClock: ahead}), min(days*24+1, 2000); n != want {
			t.Errorf("%d days ahead %d are due, want %d", days, n, want)
		}
		if n := tableSize(t, db, codec.ReadyTable); n != 1 {
			t.Errorf("%d entries are ready", n)
		}
	}
	if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch.Add(99 * time.Hour)}); n != 100 || tableSize(t, db, codec.ReadyTable) != 100 {
		t.Errorf("%d are due, %d entries are ready", n, tableSize(t, db, codec.ReadyTable))
	}
}

// TestClockThatWentBack matures everything with a clock that is years ahead and then goes
// back: entries that are not due are passed over once, and then the index is rebuilt.
func TestClockThatWentBack(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 5000
	db.crawl.due.tooMany = n - 1000
	putDue(t, db, n, func(i int) time.Time { return dueEpoch.Add(time.Duration(i) * time.Minute) })
	if got := countDue(t, db, crawldb.DueQuery{Now: dueEpoch.AddDate(10, 0, 0), Limit: 5}); got != 5 || tableSize(t, db, codec.ReadyTable) != n {
		t.Fatalf("%d are due, %d are ready", got, tableSize(t, db, codec.ReadyTable))
	}
	for round, ready := range []int{n, 60} {
		if got := countDue(t, db, crawldb.DueQuery{Now: dueEpoch.Add(59 * time.Minute)}); got != 60 || tableSize(t, db, codec.ReadyTable) != ready {
			t.Errorf("round %d: %d are due, %d are ready, want 60 and %d", round, got, tableSize(t, db, codec.ReadyTable), ready)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestMoreBeyondThanFit has more records beyond the horizon than are held at a time.
func TestMoreBeyondThanFit(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 4100
	db.crawl.due.side = 2000
	putDue(t, db, n, func(i int) time.Time {
		if i == 0 {
			return dueEpoch
		}
		return dueEpoch.AddDate(3, 0, 0)
	})
	// The first record is due, and the mark is where it is.
	got, least := map[string]bool{}, uint16(0)
	for c, err := range db.crawl.Due(t.Context(), crawldb.DueQuery{Now: dueEpoch, DueBeyond: dueEpoch.AddDate(1, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		if l := level(c.Priority); l < least {
			t.Fatalf("level %d after %d", l, least)
		} else {
			least = l
		}
		got[c.URL] = true
	}
	if len(got) != n {
		t.Errorf("%d of %d", len(got), n)
	}
}

// TestMovesMeanwhile lets another selection, by another clock, move the entries that
// one has not come to.
func TestMovesMeanwhile(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	urls := putDue(t, db, 3000, func(i int) time.Time {
		if i < 2000 {
			return dueEpoch
		}
		return dueEpoch.Add(50 * time.Hour)
	})
	got := map[string]bool{}
	for c, err := range db.crawl.Due(t.Context(), crawldb.DueQuery{Now: dueEpoch.Add(100 * time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		if got[c.URL] = true; len(got) == 10 {
			db.crawl.due.late.Store(true)
			if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != 2000 {
				t.Errorf("%d are due before", n)
			}
		}
	}
	if len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
	// The same with more than one list of those that are not due by the clock.
	db.crawl.due.side = 1000
	urls = putDue(t, db, 5000, func(int) time.Time { return dueEpoch.Add(50 * time.Hour) })
	db.crawl.due.late.Store(true)
	countDue(t, db, crawldb.DueQuery{Now: dueEpoch})
	clear(got)
	for c, err := range db.crawl.Due(t.Context(), crawldb.DueQuery{Now: dueEpoch.Add(100 * time.Hour), AheadOfClock: 100 * time.Hour}) {
		if err != nil {
			t.Fatal(err)
		}
		if got[c.URL] = true; len(got) == 10 {
			countDue(t, db, crawldb.DueQuery{Now: dueEpoch.Add(50 * time.Hour), Limit: 1})
		}
	}
	if len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
}

// TestCheckIndexFinds damages the index in each way there is.
func TestCheckIndexFinds(t *testing.T) {
	for name, damage := range map[string]func(b *pebble.Batch, key, value []byte) error{
		"missing":   func(b *pebble.Batch, key, _ []byte) error { return b.Delete(key, nil) },
		"surplus":   func(b *pebble.Batch, key, value []byte) error { return b.Set(append(key, 'x'), value, nil) },
		"value":     func(b *pebble.Batch, key, value []byte) error { return b.Set(key, value[:4], nil) },
		"misplaced": func(b *pebble.Batch, key, value []byte) error { key[2]++; return b.Set(key, value, nil) },
		"no value":  func(b *pebble.Batch, key, _ []byte) error { return b.Set(key, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := Open(t.TempDir(), small())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			putDue(t, db, 50, func(int) time.Time { return dueEpoch })
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := entry{from: dueEpoch.UnixMilli(), priority: 7}
			key := e.appendReady(nil, []byte(crawldb.Key("http://h000.example/000007")))
			batch := db.db.NewBatch()
			if err := damage(batch, key, e.appendValue(nil)); err != nil {
				t.Fatal(err)
			}
			if err := batch.Commit(pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestGoldenV2 opens a directory that was written before there was an index.
func TestGoldenV2(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS("testdata/v2")); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		records, due := 0, 0
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			records++
			if dueBy(d, crawldb.DueQuery{Now: dueEpoch}) {
				due++
			}
		}
		if round == 0 { // a change comes before the index
			if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://h0.example/new"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.Add(time.Hour)}, nil
			}}); err != nil {
				t.Fatal(err)
			}
		} else if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != due || due != 31 || records != 61 {
			t.Errorf("round %d: %d of %d are due by the index, %d by the records", round, n, records, due)
		}
		if cursor, err := db.Crawl().Mark(t.Context(), "golden"); cursor != "1" || err != nil {
			t.Errorf("the mark is %q, %v", cursor, err)
		}
		if h, err := db.Hosts().Get(t.Context(), "h1.example"); err != nil || !reflect.DeepEqual(h, hostdb.Host{Name: "h1.example", NextFetch: millis(5)}) {
			t.Errorf("%+v, %v", h, err)
		}
		if e, err := db.Links().Get(t.Context(), "http://h1.example/"); err != nil || !slices.Equal(e, []linkdb.Inlink{{From: "http://h2.example/", Anchor: "a"}}) {
			t.Errorf("%+v, %v", e, err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, formatName)); err != nil || string(text) != fmt.Sprintf("%s%d\n", formatMagic, formatVersion) {
			t.Errorf("the mark is %q, %v", text, err)
		}
	}
}

// Much that becomes due at once is moved as tables, in the order of records, whatever
// hours it is from; and what is deleted with it is nothing to verify or to salvage.
func TestMuchBecomesDue(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	const n, hours = 500, 7
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Fetched, FetchTime: dueEpoch.Add(time.Duration(i%hours) * time.Hour), LastFetch: dueEpoch.AddDate(0, -1, 0), Priority: float32(i % 3)}, nil
	}}
	for i := range n {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%05d", i/100, i))
	}
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	before := db.db.Metrics().Ingest.Count
	db.crawl.bulkLeast, db.crawl.due.most = 1, n/2+1
	if err := db.crawl.prepare(t.Context(), dueEpoch.Add(hours*time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	if got := db.db.Metrics().Ingest.Count - before; got != 2 {
		t.Errorf("%d ingestions, want 2", got)
	}
	if any, err := db.has(codec.WheelTable); any || err != nil {
		t.Errorf("the wheel still has entries: %v %v", any, err)
	}
	q := crawldb.DueQuery{Now: dueEpoch.Add(hours * time.Hour)}
	found := 0
	for c, err := range crawldb.Due(t.Context(), db.Crawl(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if found++; !c.Due {
			t.Errorf("%s is not due", c.URL)
		}
	}
	if found != n {
		t.Errorf("%d are due, want %d", found, n)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { t.Error(f) }}); err != nil {
		t.Error(err)
	}
	if _, err := Salvage(t.Context(), dir, dir+".new", SalvageOptions{Lost: func(l Loss) { t.Error(l) }}); err != nil {
		t.Error(err)
	}
}

// A record that is in the wheel twice is damage, and not what a table cannot have.
func TestTwiceInTheWheel(t *testing.T) {
	db, err := Open(memPath, inMemory(small(), vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, least := range []int{1, 1 << 30} {
		b := db.db.NewBatch()
		for hour := range int64(2) {
			e := entryOf(&crawldb.Datum{FetchTime: dueEpoch.Add(time.Duration(hour) * time.Hour)})
			if err := b.Set(e.appendKey(nil, markOf(0), []byte(crawldb.Key("http://a.example/"))), e.appendValue(nil), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		db.crawl.bulkLeast = least
		db.crawl.due.state.Store(&dueState{mark: markOf(0), whole: true})
		if err := db.crawl.prepare(t.Context(), dueEpoch.Add(9*time.Hour).UnixMilli()); !errors.Is(err, ErrDamaged) {
			t.Errorf("least %d: %v, want %v", least, err, ErrDamaged)
		}
	}
}
