package fetch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

var epoch = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

var every = [paces]bool{true, true, true, true}

// A clock that is set back keeps no host waiting: what it waits for is a time of the
// monotonic clock, which time.Time.Round takes away.
func TestQueuesWaitByTheMonotonicClock(t *testing.T) {
	q := newQueues(1, 0, epoch)
	q.add("h", item{Datum: crawldb.Datum{URL: "http://h/1"}})
	q.add("h", item{Datum: crawldb.Datum{URL: "http://h/2"}})
	h, _, _ := q.next(time.Now(), every)
	stored := time.Now().Add(5 * time.Second).Truncate(time.Millisecond)
	q.visitEnded(h, stored)
	if _, _, at := q.next(time.Now(), every); !at.Equal(stored) || at == at.Round(0) {
		t.Errorf("the next visit is at %v, want %v and a reading of the monotonic clock", at, stored)
	}
}

// What a host needs may be more than 292 years.
func TestQueuesOfLongPauses(t *testing.T) {
	q := newQueues(1, 1000*time.Hour, epoch)
	q.add("one", item{Datum: crawldb.Datum{URL: "http://one/"}})
	q.add("two", item{Datum: crawldb.Datum{URL: "http://two/"}})
	for range 4000 {
		q.add("many", item{Datum: crawldb.Datum{URL: "http://many/"}})
	}
	for _, want := range []string{"one", "many", "two"} {
		if h, _, _ := q.next(epoch, every); h == nil || h.name != want {
			t.Fatalf("%v comes, want %s", h, want)
		}
	}
}

func TestQueuesAgainstAModel(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		pause := time.Duration(seed%3) * time.Second
		q := newQueues(1, pause, epoch)
		type model struct {
			items []string
			at    time.Time
			busy  *host
		}
		want := map[string]*model{}
		total, turn, now := 0, 0, epoch
		for step := range 3000 {
			name := fmt.Sprint("h", rnd.IntN(10))
			m := want[name]
			if m == nil {
				m = &model{}
				want[name] = m
			}
			switch rnd.IntN(5) {
			case 0, 1:
				if len(m.items) == 0 && m.busy == nil {
					m.at = now // it was forgotten
				}
				u := fmt.Sprint(name, "/", step)
				q.add(name, item{Datum: crawldb.Datum{URL: u}})
				m.items = append(m.items, u)
				total++
			case 2, 3:
				now = now.Add(time.Duration(rnd.IntN(3)) * time.Second)
				h, it, at := q.next(now, every)
				var first *model
				// Every other visit is for the one that was ready first, and those between
				// for the one that has most to wait for.
				before := func(o, than *model) bool {
					if pause > 0 && turn%2 == 1 && len(o.items) != len(than.items) {
						return len(o.items) > len(than.items)
					}
					return o.at.Before(than.at)
				}
				for _, o := range want {
					if o.busy != nil || len(o.items) == 0 {
						continue
					}
					switch ready := !o.at.After(now); {
					case first == nil, ready && first.at.After(now):
						first = o
					case ready && before(o, first), !ready && o.at.Before(first.at):
						first = o
					}
				}
				switch {
				case first == nil:
					if h != nil || !at.IsZero() {
						t.Fatalf("step %d: something comes out of nothing", step)
					}
				case first.at.After(now):
					if h != nil || !at.Equal(first.at) {
						t.Fatalf("step %d: next at %v, want %v", step, at, first.at)
					}
				default:
					if h == nil {
						t.Fatalf("step %d: nothing, although %v waits", step, first.items)
					}
					o := want[h.name]
					if o.busy != nil || before(first, o) || it.URL != o.items[0] {
						t.Fatalf("step %d: %s of %s, want %s", step, it.URL, h.name, o.items[0])
					}
					o.busy, o.items = h, o.items[1:]
					turn++
					total--
				}
			case 4:
				if m.busy == nil {
					continue
				}
				switch rnd.IntN(6) {
				case 0:
					u := fmt.Sprint(name, "/back", step)
					q.putFront(m.busy, item{Datum: crawldb.Datum{URL: u}})
					m.items = append([]string{u}, m.items...)
					total++
				case 1:
					if n := len(q.drop(m.busy)); n != len(m.items) {
						t.Fatalf("step %d: %d dropped of %d", step, n, len(m.items))
					}
					total -= len(m.items)
					m.items = nil
				}
				m.at = now.Add(time.Duration(rnd.IntN(5)) * time.Second)
				q.visitEnded(m.busy, m.at)
				m.busy = nil
			}
			hosts := 0
			for _, o := range want {
				if o.busy != nil || len(o.items) > 0 {
					hosts++
				}
			}
			if q.items != total || len(q.hosts) != hosts {
				t.Fatalf("step %d: %d items of %d hosts, want %d of %d", step, q.items, len(q.hosts), total, hosts)
			}
		}
	}
}

// The cost of one decision of the loop, and the memory of a waiting host with one page,
// besides the record of the page.
func BenchmarkLoopStep(b *testing.B) {
	for _, hosts := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			q := newQueues(1, 0, epoch)
			for i := range hosts {
				name := fmt.Sprintf("h%d.example.test", i)
				q.add(name, item{Datum: crawldb.Datum{URL: "http://" + name + "/"}})
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			per := float64(after.HeapAlloc-before.HeapAlloc) / float64(hosts)
			s := threadShares{threads: 50, spare: 100, slowAfter: time.Second}
			var limiter Limiter
			now := epoch
			var under []*runningVisit
			b.ReportAllocs()
			for b.Loop() {
				s.ageOut(now)
				g, _ := limiter.begin(now)
				h, it, _ := q.next(now, s.openPaces())
				if h == nil {
					b.Fatal("no queue waits")
				}
				under = append(under, s.begin(h.pace, now))
				if len(under) == 50 {
					s.end(under[0])
					under = append(under[:0], under[1:]...)
				}
				limiter.end(g, true, 0, now)
				q.add(h.name, it)
				now = now.Add(time.Millisecond)
				h.pace = quick
				q.visitEnded(h, now)
			}
			b.ReportMetric(per, "B/host")
		})
	}
}

// listedURL is a page as a crawl db with scores lists it after it was discovered; n
// is below ten million.
func listedURL(host string, n int) crawldb.Datum {
	d := crawldb.Datum{
		URL:    fmt.Sprintf("http://%s/section-%02d/2026/an-article-of-usual-length-%07d.html", host, n%50, n),
		Status: crawldb.Unfetched, FetchTime: epoch, Interval: 30 * 24 * time.Hour, Score: 0.01,
	}
	d.Meta.Set("opic.cash", "12345678")
	d.Meta.Set("opic.history", "1234567812345678")
	return d
}

// A page that waits must take at most 300 bytes of memory, and its host at most a kilobyte,
// whatever else was in the same block of the list.
func TestMemoryOfWhatWaits(t *testing.T) {
	for _, hosts := range []int{20, 20_000} {
		const urls = 20_000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		q := newQueues(1, 0, epoch)
		size := 0
		for n := range urls {
			d := listedURL(fmt.Sprintf("h%06d.example.test", n%hosts), n)
			size += len(d.URL)
			// As it is read: part of a string that holds the block.
			block := d.URL + strings.Repeat("x", 2000)
			d.URL = block[:len(d.URL)]
			q.add(d.URL[len("http://"):][:len("h000000.example.test")], item{Datum: d})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		per := float64(after.HeapAlloc-before.HeapAlloc) / urls
		t.Logf("%d hosts: %.0f bytes a URL, of which %d are the URL", hosts, per, size/urls)
		if limit := 300. + 700*float64(hosts)/urls; per > limit {
			t.Errorf("%d hosts: %.0f bytes a URL, want %.0f", hosts, per, limit)
		}
		if q.items != urls || len(q.hosts) != hosts {
			t.Errorf("%d URLs of %d hosts wait", q.items, len(q.hosts))
		}
		runtime.KeepAlive(q)
	}
}
