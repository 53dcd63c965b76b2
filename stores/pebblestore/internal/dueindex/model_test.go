package dueindex

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

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
		d.FetchTime = []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1), epoch.AddDate(500, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}[r.IntN(5)]
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
			if d.ETag = strings.Repeat("e", maxShortRest); change(5) { // or it is too short, or too long
				d.ETag = strings.Repeat("e", r.IntN(2*maxWholeRest))
			}
		}
	}
	return d
}

func dueBy(d crawldb.Datum, q crawldb.DueQuery) bool {
	return (!d.FetchTime.After(q.Now) || !q.DueBeyond.IsZero() && d.FetchTime.After(q.DueBeyond)) && !d.Leased(q.Now)
}

// TestDueModel does random things to a store and to a map, with a clock that
// creeps, jumps and goes back, leases that are given back, visited, or run out, steps that end
// early, and ends of both kinds. After each the index is that of the records, and every query is
// answered as the map would.
func TestDueModel(t *testing.T) {
	testlevel.SkipInRace(t)
	urls := dueModelURLs()
	cut, whole := 0, 0
	for seed := range uint64(testlevel.Pick(4, 200)) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := newStore(t)
		s.limits.LeastReady = 0
		clock, model := epoch, map[string]crawldb.Datum{}
		for step := range 120 {
			at := fmt.Sprintf("seed %d, step %d: ", seed, step)
			s.LeastReady, s.HeldBelowCut, s.SideList = int64(r.IntN(20)), r.IntN(100), 1+r.IntN(20)
			s.RebuildBytes, s.StepBytes = []uint64{0, 1 << 30}[r.IntN(2)], 32<<10
			if r.IntN(3) == 0 {
				if r.IntN(2) == 0 { // what is cut depends on sizes of files
					if err := s.db.Flush(); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.TryCut(t.Context()); err != nil {
					t.Fatal(err)
				}
				if s.state.Load().cut > 0 {
					cut++
				}
			}
			if n := s.state.Load().cut; n > 0 && r.IntN(3) == 0 { // a part of what a selection asks for
				s.StepBytes = 1 + r.IntN(2000)
				oneStep(t, s, s.state.Load().lastReady()+1+uint16(r.IntN(int(n))))
			}
			switch n := r.IntN(16); {
			case n > 11:
				whole += leaseSome(t, s, r, clock, model)
			case n < 6:
				updateSome(t, s, r, clock, urls, model)
			case n < 8:
				clock = clock.Add(time.Duration(r.IntN(300)) * time.Minute)
			case n == 8 && r.IntN(2) == 0:
				clock = clock.Add(time.Duration(r.IntN(2000)-1000) * time.Hour)
			case n == 9 && r.IntN(2) == 0: // a selection that ends before it has begun
				to := clock.Add(time.Duration(r.IntN(50)) * time.Hour)
				s.BuildStep, s.MoveStep, s.StepBytes = 1+r.IntN(20), 1+r.IntN(20), 1+r.IntN(2000)
				mark := markAfter(hourOf(to.UnixMilli()))
				rebuild, err := s.movesTooMuch(t.Context(), mark)
				if err != nil {
					t.Fatal(err)
				}
				s.lock.Lock()
				_, err = s.prepareStep(t.Context(), mark, rebuild)
				s.lock.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				if err := s.checkError(t); err != nil {
					t.Fatal(at, err)
				}
				if r.IntN(2) == 0 {
					continue // and nothing asks before the next change
				}
			case n == 9 && r.IntN(2) == 0:
				s.Rebuild() // as after a clock that went back
			case n == 10 && r.IntN(2) == 0:
				s.reopen(t)
			case n == 11 && r.IntN(2) == 0:
				s.sync(t)
				s.crash(t)
			}
			if err := s.checkError(t); err != nil {
				t.Fatal(at, err)
			}
			askModel(t, s, r, clock, model, at)
		}
	}
	if cut == 0 || whole == 0 {
		t.Errorf("the index was cut %d times, and %d tokens had a page that was fetched", cut, whole)
	}
}

// updateSome changes, adds and deletes records.
func updateSome(t *testing.T, s *testStore, r *rand.Rand, clock time.Time, urls []string, model map[string]crawldb.Datum) {
	t.Helper()
	batch := slices.DeleteFunc(slices.Clone(urls), func(string) bool { return r.IntN(6) > 0 })
	next := make([]*crawldb.Datum, len(batch))
	for i, u := range batch {
		if d, ok := model[u]; !ok || r.IntN(5) > 0 {
			d = randomDue(r, d, clock)
			d.URL = u
			next[i] = &d
		}
	}
	s.update(t, crawldb.Batch{URLs: batch, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return next[i], nil }}, r.IntN(2) == 0)
	for i, u := range batch {
		if delete(model, u); next[i] != nil {
			model[u] = *next[i]
		}
	}
}

// leaseSome selects as generate does, and leases, visits or gives back what it gets. It returns how
// many tokens had the record of a page that was fetched before.
func leaseSome(t *testing.T, db *testStore, r *rand.Rand, clock time.Time, model map[string]crawldb.Datum) (whole int) {
	t.Helper()
	q := crawldb.DueQuery{Now: clock, Limit: 1 + r.IntN(80)}
	taken, most := map[string]int{}, 1+r.IntN(20)
	q.WantHost = func(host string) bool { return taken[host] < most }
	tokens := map[string]string{}
	for c, err := range db.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		taken[crawldb.Host(c.URL)]++
		tokens[c.URL] = c.Token
		if d, ok := db.RecordOfToken(c.Token, c.URL); ok && d.Signature != nil {
			whole++
		}
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
		db.update(t, b, r.IntN(2) == 0)
	}
	return whole
}

func encoded(t *testing.T, d crawldb.Datum) []byte {
	t.Helper()
	b, err := d.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// askModel asks a random query of a store and of the map.
func askModel(t *testing.T, db *testStore, r *rand.Rand, clock time.Time, model map[string]crawldb.Datum, prefix string) {
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
	for c, err := range db.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(prefix, err)
		}
		d, ok := model[c.URL]
		sure := ok && !d.FetchTime.After(q.Now) && !d.Leased(q.Now)
		switch l := levelOf(c.Priority); {
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
