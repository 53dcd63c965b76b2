package generate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// lazy is a store with an index as poor as the contract allows: levels of an
// eighth of an octave in any order, records that are not due, and some twice; of
// some it says that they are due.
type lazy struct {
	crawldb.Store
	rnd *rand.Rand
}

func (s lazy) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		levels := map[float64][]crawldb.Candidate{}
		for d, err := range s.Scan(ctx, crawldb.Range{}) {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			p := float64(d.Priority)
			level := math.Floor(math.Log2(math.Abs(p)) * 8)
			switch {
			case p == 0:
				level = -1e6
			case p < 0:
				level = -2e6 - level
			}
			c := crawldb.Candidate{URL: d.URL, Priority: d.Priority}
			c.Due = !d.FetchTime.After(q.Now) && !d.Leased(q.Now) && s.rnd.IntN(3) > 0
			levels[level] = append(levels[level], c)
			if s.rnd.IntN(10) == 0 {
				levels[level] = append(levels[level], c)
			}
		}
		keys := slices.Sorted(maps.Keys(levels))
		slices.Reverse(keys)
		for _, k := range keys {
			s.rnd.Shuffle(len(levels[k]), func(i, j int) { levels[k][i], levels[k][j] = levels[k][j], levels[k][i] })
			for _, c := range levels[k] {
				if q.MinPriority > 0 && !(c.Priority >= q.MinPriority) || q.WantHost != nil && !q.WantHost(crawldb.Host(c.URL)) {
					continue
				}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// naive is the selection said in the plainest way.
func naive(data []crawldb.Datum, o generate.Options) [][]string {
	data = slices.Clone(data)
	slices.SortFunc(data, func(a, b crawldb.Datum) int {
		if a.Priority != b.Priority {
			if a.Priority > b.Priority {
				return -1
			}
			return 1
		}
		return crawldb.Compare(a.URL, b.URL)
	})
	segments := make([][]string, max(o.Segments, 1))
	counts := make([]map[string]int, len(segments))
	for _, d := range data {
		ok, err := true, error(nil)
		if o.Where != nil {
			ok, err = o.Where(&d)
		}
		if d.FetchTime.After(now) || d.LeasedUntil.After(now) || !ok || err != nil ||
			o.Status != 0 && d.Status != o.Status || o.MinScore != 0 && d.Priority < o.MinScore || o.MaxInterval != 0 && d.Interval > o.MaxInterval {
			continue
		}
		key := o.By.Key(d.URL)
		for i := range segments {
			if counts[i] == nil {
				counts[i] = map[string]int{}
			}
			if (o.TopN == 0 || len(segments[i]) < o.TopN) && (o.MaxPerHost == 0 || counts[i][key] < o.MaxPerHost) {
				segments[i] = append(segments[i], d.URL)
				counts[i][key]++
				break
			}
		}
	}
	for i := range segments {
		slices.SortFunc(segments[i], crawldb.Compare)
	}
	return slices.DeleteFunc(segments, func(s []string) bool { return len(s) == 0 })
}

// Whatever the store shows first, however many lists: the selection is the one
// that a sorted table gives.
func TestSelectionIsExact(t *testing.T) {
	testlevel.SkipInRace(t)
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var data []crawldb.Datum
		hosts := 1 + rnd.IntN(8)
		for i := range rnd.IntN(200) {
			d := due(fmt.Sprintf("http://h%d.d%d.test/%d", rnd.IntN(hosts), rnd.IntN(2), i), float32(rnd.IntN(40)-5)/8)
			if rnd.IntN(8) == 0 {
				d.FetchTime = now.Add(time.Hour)
			}
			if rnd.IntN(8) == 0 {
				d.LeasedUntil, d.LeasedBy = now.Add(time.Hour), "x"
			}
			d.Status = crawldb.Statuses()[rnd.IntN(2)]
			d.Interval = time.Duration(rnd.IntN(3)+1) * day
			d.Retries = rnd.IntN(3)
			data = append(data, d)
		}
		o := generate.Options{TopN: rnd.IntN(60), MaxPerHost: rnd.IntN(6), Segments: rnd.IntN(4), Lists: generate.Lists{Count: rnd.IntN(4)}, By: hostdb.By(rnd.IntN(2))}
		if rnd.IntN(3) == 0 {
			o.Status = crawldb.Unfetched
		}
		if rnd.IntN(3) == 0 {
			o.MinScore = 1.5
		}
		if rnd.IntN(3) == 0 {
			o.MaxInterval = 2 * day
		}
		if rnd.IntN(3) == 0 {
			o.Where = func(d *crawldb.Datum) (bool, error) {
				if d.Retries == 2 {
					return true, errors.New("no")
				}
				return d.Retries == 0, nil
			}
		}
		want := naive(data, o)
		for _, indexed := range []bool{false, true} {
			for _, chunk := range []int{1, 7, 10_000} {
				db := &memstore.DB{}
				put(t, db.Crawl(), slices.Clone(data)...)
				var crawl crawldb.Store = db.Crawl()
				if indexed {
					crawl = lazy{crawl, rnd}
				}
				r := run(t, crawl, db.Segments(), o.WithChunk(chunk))
				if got := lists(t, db.Segments(), r); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
					t.Fatalf("seed %d, indexed %v, chunk %d, %+v:\n got %v\nwant %v", seed, indexed, chunk, o, got, want)
				}
				if total := r.Selected; !indexed {
					for _, n := range r.Rejected {
						total += n
					}
					if o.TopN == 0 && total != len(data) {
						t.Fatalf("seed %d: %+v counts %d of %d", seed, r, total, len(data))
					}
				}
			}
		}
	}
}

func hosts(t *testing.T, all ...hostdb.Host) hostdb.Store {
	t.Helper()
	s := new(memstore.Hosts)
	for _, h := range all {
		if err := s.Update(t.Context(), h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What is computed for one host holds for it alone: in Nutch it leaks to the hosts
// of the same score that have no record.
func TestHostLimitAndDelay(t *testing.T) {
	known := hosts(t,
		hostdb.Host{Name: "a.example.test", Pages: hostdb.Pages{Fetched: 2}},
		hostdb.Host{Name: "b.example.test", Pages: hostdb.Pages{Fetched: 0}},
		hostdb.Host{Name: "c.example.test", Pages: hostdb.Pages{Fetched: -1}},
		hostdb.Host{Name: "d.example.test", Pages: hostdb.Pages{Fetched: 99}})
	number := func(h *hostdb.Host) (float64, error) {
		if h.Pages.Fetched == 99 {
			return 5, errors.New("no number")
		}
		return float64(h.Pages.Fetched) + 0.4, nil
	}
	data, names := letters("A1 B1 C1 D1 E1 A2 B2 C2 D2 E2 A3 B3 C3 D3 E3 A4 C4 D4 E4")
	for i := range data {
		data[i].Priority = 1
	}
	o := generate.Options{Hosts: known, HostLimit: number, MaxPerHost: 3}
	got, r := selected(t, o, data...)
	if s, want := named(got, names), "A1 A2 C1 C2 C3 C4 D1 D2 D3 E1 E2 E3"; s != want || r.ExprErrors != 1 || r.ExprError == nil {
		t.Errorf("%s, want %s; %+v", s, want, r)
	}
	if r.Rejected[generate.HostFull] != 7 || r.HostsAffected != 4 {
		t.Errorf("%+v", r)
	}
	o.NutchCompat = true // there 0 is no limit
	if got, _ := selected(t, o, data...); named(got, names) != "A1 A2 B1 B2 B3 C1 C2 C3 C4 D1 D2 D3 E1 E2 E3" {
		t.Error(named(got, names))
	}

	for _, compat := range []bool{false, true} {
		want := map[string]time.Duration{"a": 2 * time.Millisecond}
		if compat {
			want["b"], want["c"] = -time.Millisecond, -time.Millisecond
		}
		db := &memstore.DB{}
		put(t, db.Crawl(), slices.Clone(data)...)
		r := run(t, db.Crawl(), db.Segments(), generate.Options{Hosts: known, HostDelay: number, NutchCompat: compat})
		for _, d := range list(t, db.Segments(), r.Segments[0]) {
			turn, err := segment.TakePlacement(&d)
			if host := d.URL[len("http://"):][:1]; err != nil || turn.Delay != want[host] {
				t.Errorf("NutchCompat %v, %s: %v, %v, want %v", compat, d.URL, turn, err, want[host])
			}
		}
	}
}

// turns returns the turn of each URL.
func turns(t *testing.T, s segment.Store, name string) map[string]segment.Placement {
	t.Helper()
	out := map[string]segment.Placement{}
	for _, d := range list(t, s, name) {
		turn, err := segment.TakePlacement(&d)
		if err != nil {
			t.Fatal(err)
		}
		out[d.URL] = turn
	}
	return out
}

func TestLists(t *testing.T) {
	data := many(300, 40)
	data = append(data, due("file:/a", 1), due("file:/b", 1))
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain} {
		before := map[string]segment.Placement{}
		for _, seed := range []int32{0, 0, 99} {
			db := &memstore.DB{}
			put(t, db.Crawl(), slices.Clone(data)...)
			r := run(t, db.Crawl(), db.Segments(), generate.Options{Lists: generate.Lists{Count: 4, By: by, Seed: seed}})
			got := turns(t, db.Segments(), r.Segments[0])
			if len(got) != 302 {
				t.Errorf("%d URLs", len(got))
			}
			of, used := map[string]int{}, map[int]bool{}
			for u, turn := range got {
				key := hostdb.ByHost.Key(u)
				if by == hostdb.ByDomain {
					key = hostdb.ByDomain.Key(u)
				}
				if l, ok := of[key]; ok && l != turn.List || turn.Lists != 4 || turn.By != by || turn.List >= 4 {
					t.Errorf("%s: %+v, but %q is on %d", u, turn, key, l)
				}
				of[key] = turn.List
				used[turn.List] = true
			}
			if by == hostdb.ByHost && len(used) != 4 {
				t.Errorf("only %v are used", used)
			}
			same := maps.Equal(got, before)
			if len(before) > 0 && same != (seed == 0) && by == hostdb.ByHost {
				t.Errorf("seed %d: the same lists: %v", seed, same)
			}
			before = got
		}
	}
	// One list is no list.
	db := &memstore.DB{}
	put(t, db.Crawl(), slices.Clone(data)...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{Lists: generate.Lists{Count: 1}})
	for _, d := range list(t, db.Segments(), r.Segments[0]) {
		if d.Meta.Len() != 0 {
			t.Errorf("%+v", d)
		}
	}
}

// A normalizer that tells URLs of one host apart does not tear the host apart.
func TestListsKeepQueuesWhole(t *testing.T) {
	data := many(100, 2)
	torn := &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{tear{}}}
	db := &memstore.DB{}
	put(t, db.Crawl(), slices.Clone(data)...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{Lists: generate.Lists{Count: 9}, Rules: torn})
	of := map[string]int{}
	for u, turn := range turns(t, db.Segments(), r.Segments[0]) {
		if l, ok := of[crawldb.Host(u)]; ok && l != turn.List {
			t.Errorf("%s is on %d and %d", crawldb.Host(u), l, turn.List)
		}
		of[crawldb.Host(u)] = turn.List
	}
}

// Whatever the URLs, the normalizer and the partition, two lists never share a queue of a
// fetch: a host, a domain if they are made by domain, or an address if they are made by
// address.
func TestListsShareNoQueue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		if len(host)%3 == 0 {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(len(host) % 4)}), netip.MustParseAddr("::ffff:10.0.0.9")}, nil
	}
	for life := range 60 {
		var data []crawldb.Datum
		for i := range 60 {
			host := one("", "www.", "WWW.", "a.b.") + one("example", "Example", "x-y", "bücher", "xn--bcher-kva") + one(".com", ".co.uk", ".COM", ".test", ".com.")
			host = one(host, host, host, "10.0.0.1", "[::1]", "localhost", "", "u:p@"+host)
			u := one("http", "https", "HTTP", "ftp") + "://" + host + one("", ":80", ":8080") + "/" + fmt.Sprint(i)
			data = append(data, due(one(u, u, u, u, "file:/x/"+fmt.Sprint(i)), rnd.Float32()))
		}
		o := generate.Options{Lists: generate.Lists{Count: 2 + rnd.IntN(6), By: hostdb.By(rnd.IntN(3)), Seed: rnd.Int32(), Lookup: lookup}, NutchCompat: life%2 == 0, NoNormalize: rnd.IntN(3) == 0}
		switch rnd.IntN(3) {
		case 0:
			o.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{tear{}}}
		case 1:
			o.Rules = urlfilter.Default()
			o.Rules.Filters = nil
		}
		db := &memstore.DB{}
		put(t, db.Crawl(), data...)
		r := run(t, db.Crawl(), db.Segments(), o)
		if len(r.Segments) != 1 {
			t.Fatalf("life %d: %+v", life, r)
		}
		of := map[string]int{}
		for u, turn := range turns(t, db.Segments(), r.Segments[0]) {
			queues := []string{hostdb.ByHost.Key(u)}
			switch o.Lists.By {
			case hostdb.ByDomain:
				queues = append(queues, "domain "+hostdb.ByDomain.Key(u))
			case hostdb.ByIP:
				if addrs, err := lookup(t.Context(), queues[0]); err == nil && o.Rules == nil && queues[0] != "" && queues[0][0] != '[' && queues[0] != "10.0.0.1" {
					queues = append(queues, "address "+slices.MinFunc(addrs, netip.Addr.Compare).Unmap().String())
				}
			}
			for _, q := range queues {
				if l, ok := of[q]; ok && l != turn.List {
					t.Fatalf("life %d, %+v: %q is on lists %d and %d, the latter for %s", life, o, q, l, turn.List, u)
				}
				of[q] = turn.List
			}
		}
	}
}

type tear struct{}

func (tear) Normalize(scope urlfilter.Scope, url string) (string, error) {
	if scope == urlfilter.Partition {
		return "http://" + url[len(url)-1:] + ".test/", nil
	}
	return url, nil
}

func TestListsByAddress(t *testing.T) {
	data := many(60, 30) // h0 to h29
	data = append(data, due("http://[2001:db8::1]/", 1), due("http://10.0.0.3/", 1), due("http://unselected.test/", 0))
	var mu sync.Mutex
	asked := map[string]int{}
	at, most := 0, 0
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		mu.Lock()
		asked[host]++
		if at++; at > most {
			most = at
		}
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		at--
		mu.Unlock()
		n := int(host[1] - '0')
		if n == 9 {
			return nil, errors.New("no such host")
		}
		addrs := []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), netip.AddrFrom4([4]byte{10, 0, 1, byte(n)})}
		if len(host)%2 == 0 {
			slices.Reverse(addrs)
		}
		return addrs, nil
	}
	db := &memstore.DB{}
	put(t, db.Crawl(), data...)
	r := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: 62, Lists: generate.Lists{Count: 1000, By: hostdb.ByIP, Lookup: lookup}})
	of := map[string]int{}
	for u, turn := range turns(t, db.Segments(), r.Segments[0]) {
		host := crawldb.Host(u)
		ip := host
		if host[0] == 'h' {
			ip = "10.0.0." + host[1:2]
		}
		if l, ok := of[ip]; ok && l != turn.List {
			t.Errorf("%s is on %d, not %d", u, turn.List, l)
		}
		of[ip] = turn.List
	}
	if len(of) < 10 || asked["unselected.test"] != 0 || asked["10.0.0.3"] != 0 || most > 25 {
		t.Errorf("addresses %v, asked %v, %d at once", of, asked, most)
	}
	for h, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", h, n)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	again := &memstore.DB{}
	put(t, again.Crawl(), many(60, 30)...)
	_, err := generate.Run(ctx, again.Crawl(), again.Segments(), generate.Options{Now: clock, Lists: generate.Lists{Count: 2, By: hostdb.ByIP, Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { cancel(); return nil, ctx.Err() }}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for d, err := range again.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil || d.LeasedBy != "" {
			t.Fatalf("%s is leased by %q, %v", d.URL, d.LeasedBy, err)
		}
	}
}

func TestScheduleThatSelects(t *testing.T) {
	d := due("http://a.example.test/", 1)
	d.Interval = 200 * day
	_, r := selected(t, generate.Options{MaxInterval: 100 * day, Schedule: &schedule.Default{}}, d)
	if r.Rejected[generate.Interval] != 1 {
		t.Errorf("%+v", r)
	}
}
