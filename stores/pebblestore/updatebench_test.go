package pebblestore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	content "github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

var (
	updURLs    = flag.Int("update.urls", 200_000, "records of BenchmarkUpdateOfASegment")
	updPages   = flag.Int("update.pages", 2_000, "pages of a segment")
	updLinks   = flag.Int("update.links", 60, "links of a page")
	updRounds  = flag.Int("update.rounds", 2, "segments, one after the other")
	updDir     = flag.String("update.dir", "", "where the store is kept that is copied for each run; empty is a temporary directory")
	updCache   = flag.Int64("update.cache", 0, "cache in bytes; 0 is that of the package")
	updMemory  = flag.Int("update.memory", 0, "bytes to sort in; 0 is that of the package")
	updProfile = flag.String("update.profile", "", "file for a CPU profile of the updates alone")
)

// linkedWeb is a web with hosts as unequal as real ones, whose pages link to their neighbours,
// to popular pages on their host, and to popular pages on others, mostly on the largest.
type linkedWeb struct {
	n     int
	now   time.Time
	sizes []int
	upTo  []int // the first n+1 hosts have so many pages
}

func newLinkedWeb(n int) *linkedWeb {
	w := &linkedWeb{n: n, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	sizes := (&web{n: n}).hosts()
	sum := 0
	for _, k := range rand.New(rand.NewPCG(4, 4)).Perm(len(sizes)) {
		w.sizes = append(w.sizes, sizes[k])
		sum += sizes[k]
		w.upTo = append(w.upTo, sum)
	}
	return w
}

// at returns the host and the page of the i-th URL.
func (w *linkedWeb) at(i int) (host, page int) {
	host, _ = slices.BinarySearch(w.upTo, i+1)
	return host, i - w.upTo[host] + w.sizes[host]
}

// url is 50 to 120 bytes long. Those of a host ascend in key order.
func (w *linkedWeb) url(host, page int) string {
	b := make([]byte, 0, 128)
	b = append(b, "https://www.site"...)
	b = appendPadded(b, host, 6)
	b = append(b, ".example/section-"...)
	b = appendPadded(b, page/1000, 5)
	b = append(b, '/')
	b = appendPadded(b, page, 8)
	h := uint(host)*31 + uint(page)*2654435761
	b = append(b, "-of-a-site-and-what-it-has-to-say-about-this-and-that-and-all-the-others"[:1+h>>3%60]...)
	return string(append(b, ".html"...))
}

func appendPadded(b []byte, n, width int) []byte {
	s := strconv.Itoa(n)
	return append(append(b, "00000000"[:width-len(s)]...), s...)
}

// datum is the record of the i-th URL as OPIC keeps it: a half were fetched and are
// not due for some time, the others wait for it.
func (w *linkedWeb) datum(i int) crawldb.Datum {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: w.now.Add(-time.Duration(r.IntN(100)) * time.Hour), Interval: 30 * 24 * time.Hour}
	d.Score = float32(math.Exp(1.5 * r.NormFloat64()))
	scoring.OPIC{}.Injected(&d)
	d.Priority = d.Score
	if i%2 == 0 {
		(&web{}).fetched(&d, r, w.now.Add(-time.Duration(r.Int64N(int64(d.Interval)))))
	}
	return d
}

// popular draws a page of a host, the first most often.
func popular(r *rand.Rand, size int) int {
	return min(int(math.Exp(r.Float64()*math.Log(float64(size)+1)))-1, size-1)
}

// links are those of one page, distinct, with the anchors they have.
func (w *linkedWeb) links(r *rand.Rand, host, own, n int) []content.Outlink {
	seen := map[[2]int]bool{}
	var out []content.Outlink
	for len(out) < n {
		h, p := host, own
		switch x := r.IntN(100); {
		case x < 8: // a new one
			p = w.sizes[h] + r.IntN(w.sizes[h]/10+50)
		case x < 30: // the neighbours
			p = min(max(own+r.IntN(101)-50, 0), w.sizes[h]-1)
		case x < 77: // what is popular here
			p = popular(r, w.sizes[h])
		default: // and elsewhere
			h, _ = w.at(r.IntN(w.n))
			p = popular(r, w.sizes[h])
		}
		if at := [2]int{h, p}; !seen[at] {
			seen[at] = true
			out = append(out, content.Outlink{URL: w.url(h, p), Anchor: "about page " + strconv.Itoa(p%1000) + " of it"[:r.IntN(7)]})
		}
	}
	return out
}

// write makes the segment of a round, as generate and fetch do, except for what update and
// invert do not read.
func (w *linkedWeb) write(b *testing.B, s segment.Store, name string, round, pages, links int) (all, distinct int) {
	b.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(uint64(round), 7))
	picked := map[int]bool{}
	for len(picked) < min(pages, w.n/2) {
		picked[r.IntN(w.n)] = true
	}
	order := make([]int, 0, len(picked))
	for i := range picked {
		order = append(order, i)
	}
	slices.Sort(order)
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	targets := map[uint64]struct{}{}
	at := w.now.Add(time.Duration(round) * 6 * time.Hour)
	list, visits, parses, data := part[crawldb.Datum](b, s, name), part[segment.Visit](b, s, name), part[segment.Parse](b, s, name), part[segment.Data](b, s, name)
	for block := range slices.Chunk(order, 64) {
		var ds []crawldb.Datum
		var vs []segment.Visit
		var ps []segment.Parse
		var pd []segment.Data
		for _, i := range block {
			h, p := w.at(i)
			d := w.datum(i)
			d.URL = w.url(h, p)
			ds = append(ds, d)
			v := segment.Visit{URL: d.URL, Time: at, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, ContentType: "text/html", ETag: fmt.Sprintf("%q", fmt.Sprintf("%016x", r.Uint64())), LastModified: at.Format(time.RFC1123), Modified: at, Bytes: 10_000, Elapsed: time.Second}
			vs = append(vs, v)
			ps = append(ps, segment.Parse{URL: d.URL, Signature: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())})
			out := w.links(r, h, p, links)
			give := make([]scoring.Link, len(out))
			for k := range out {
				give[k] = scoring.Link{From: d.URL, URL: out[k].URL}
				targets[hash(out[k].URL)] = struct{}{}
			}
			q := &ps[len(ps)-1]
			q.Gave = scoring.OPIC{}.Distribute(scoring.Page{Datum: &d, Found: len(give)}, give)
			for _, l := range give {
				q.Links = append(q.Links, segment.Link{URL: l.URL, Score: l.Score})
			}
			all += len(give)
			pd = append(pd, segment.Data{URL: d.URL, Parsed: content.Parsed{Title: "a page", Outlinks: out}})
		}
		add(b, list, ds)
		add(b, visits, vs)
		add(b, parses, ps)
		add(b, data, pd)
	}
	for _, p := range []interface {
		Commit(context.Context) error
	}{list, visits, parses, data} {
		if err := p.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return all, len(targets)
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func part[T segment.Record](b *testing.B, s segment.Store, name string) *segment.Writer[T] {
	b.Helper()
	w, err := segment.NewWriter[T](context.Background(), s, name, 0)
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func add[T segment.Record](b *testing.B, w *segment.Writer[T], records []T) {
	b.Helper()
	if err := w.Append(context.Background(), records); err != nil {
		b.Fatal(err)
	}
}

func roundName(i int) string { return fmt.Sprintf("round-%03d", i) }

// prepared returns a directory with a compacted store of n records, and with the segments of
// some rounds.
func (w *linkedWeb) prepared(b *testing.B, rounds int) string {
	b.Helper()
	ctx := context.Background()
	dir := *updDir
	if dir == "" {
		dir = b.TempDir()
	}
	dir = filepath.Join(dir, fmt.Sprintf("%d-%d-%d", w.n, *updPages, *updLinks))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		b.Fatal(err)
	}
	db, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	if _, err := db.Crawl().Get(ctx, w.url(w.at(w.n-1))); err != nil {
		start := cpu()
		for i := 0; i < w.n; i += 20_000 {
			urls := make([]string, min(20_000, w.n-i))
			for k := range urls {
				urls[k] = w.url(w.at(i + k))
			}
			err := db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Next: func(k int, _ *crawldb.Datum) (*crawldb.Datum, error) {
				d := w.datum(i + k)
				return &d, nil
			}})
			if err != nil {
				b.Fatal(err)
			}
		}
		settle(b, db)
		say("load of %d, settled: %v a URL", w.n, (cpu()-start)/time.Duration(w.n))
	}
	for round := range rounds {
		if ok, err := segment.Has[segment.Data](ctx, db.Segments(), roundName(round)); err != nil {
			b.Fatal(err)
		} else if ok {
			continue
		}
		if err := db.Segments().Remove(ctx, roundName(round)); err != nil {
			b.Fatal(err)
		}
		all, distinct := w.write(b, db.Segments(), roundName(round), round, *updPages, *updLinks)
		say("segment %d: %d links to %d pages, %.0f %% again", round, all, distinct, 100-100*float64(distinct)/float64(all))
	}
	return dir
}

// copied copies a store, so that every run begins with the same.
func copied(b *testing.B, dir string) string {
	b.Helper()
	to := b.TempDir()
	if err := os.CopyFS(filepath.Join(to, "db"), os.DirFS(dir)); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(to, "db")
}

// rest waits until the engine has nothing to do any more.
func rest(b *testing.B, db *DB) {
	b.Helper()
	if err := db.flush(); err != nil {
		b.Fatal(err)
	}
	for quiet := 0; quiet < 10; {
		if m := db.db.Metrics(); m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0 {
			quiet++
		} else {
			quiet = 0
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// peak is the most memory the process has had since it was last asked, in MiB.
func peak() float64 {
	defer os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kb / 1024
		}
	}
	return 0
}

// BenchmarkUpdateOfASegment asks what a link and what a changed record cost an
// update, in CPU time of the whole process, until it is durable and until the engine
// has come to rest after it; sort, deduplication and scores by OPIC are counted.
// Beside it, in the same run, what it costs to get a record and to set one.
//
//	go test -run '^$' -bench UpdateOfASegment -benchtime 1x ./stores/pebblestore -update.urls 10000000 -update.pages 100000 -update.rounds 4
func BenchmarkUpdateOfASegment(b *testing.B) {
	ctx := context.Background()
	w := newLinkedWeb(*updURLs)
	dir := copied(b, w.prepared(b, *updRounds))
	db, err := Open(dir, Options{CacheSize: *updCache})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	profiled(b, func() {
		peak()
		for round := range *updRounds {
			now := w.now.Add(time.Duration(round)*6*time.Hour + time.Hour)
			before, start, wall := db.db.Metrics(), cpu(), time.Now()
			counting := &countingStore{DueStore: db.Crawl().(crawldb.DueStore), start: start}
			r, err := update.Run(ctx, counting, db.Segments(), roundName(round), update.Options{
				Scoring: scoring.OPIC{}, SortMemory: *updMemory, Now: func() time.Time { return now },
			})
			if err != nil {
				b.Fatal(err)
			}
			durable, took := cpu()-start, time.Since(wall)
			rest(b, db)
			settled := cpu() - start
			m := db.db.Metrics()
			perCore := func(n int, d time.Duration) float64 { return float64(n) / d.Seconds() / 1000 }
			say("round %d: %d links, %d targets, %d changed, overgrown %d; CPU %.2f s durable (%.2f wall), %.2f settled: %.0f k links/s, %.2f us a changed record, apply alone %.2f us settled = %.0f k/s; WAL %.0f MB, flushed %.0f, compacted %.0f; peak %.0f MiB",
				round, r.Links, r.Targets, counting.changed, r.Overgrown, durable.Seconds(), took.Seconds(), settled.Seconds(), perCore(r.Links, settled), settled.Seconds()*1e6/float64(counting.changed),
				(settled-counting.before).Seconds()*1e6/float64(counting.changed), perCore(counting.changed, settled-counting.before),
				float64(m.WAL.BytesWritten-before.WAL.BytesWritten)/1e6, float64(m.Total().TableBytesFlushed-before.Total().TableBytesFlushed)/1e6,
				float64(m.Total().TableBytesCompacted-before.Total().TableBytesCompacted)/1e6, peak())
			sayLevels(before, m)
			if round == *updRounds-1 {
				b.ReportMetric(perCore(r.Links, settled)*1000, "links/s")
				b.ReportMetric(perCore(counting.changed, settled)*1000, "changed/s")
			}
		}
	})
	w.getAndSet(b, db)
	for b.Loop() {
	}
}

// sayLevels says what was written to each level, in MB, and what lies there now.
func sayLevels(before, m *pebble.Metrics) {
	var s strings.Builder
	for i := range m.Levels {
		l, was := &m.Levels[i], &before.Levels[i]
		if l.TablesCount == 0 && l.TableBytesCompacted == was.TableBytesCompacted {
			continue
		}
		fmt.Fprintf(&s, "; L%d %.0f (%d tables): ingested %.0f, flushed %.0f, compacted %.0f, moved %.0f", i, float64(l.TablesSize)/1e6, l.TablesCount,
			float64(l.TableBytesIngested-was.TableBytesIngested)/1e6, float64(l.TableBytesFlushed-was.TableBytesFlushed)/1e6,
			float64(l.TableBytesCompacted-was.TableBytesCompacted)/1e6, float64(l.TableBytesMoved-was.TableBytesMoved)/1e6)
	}
	c, o := m.Compact, before.Compact
	say("compactions %d (default %d, move %d, elision %d, read %d, rewrite %d, tombstones %d)%s", c.Count-o.Count, c.DefaultCount-o.DefaultCount,
		c.MoveCount-o.MoveCount, c.ElisionOnlyCount-o.ElisionOnlyCount, c.ReadCount-o.ReadCount, c.RewriteCount-o.RewriteCount,
		c.TombstoneDensityCount-o.TombstoneDensityCount, s.String())
}

// profiled calls f, and writes a profile of it if one is asked for.
func profiled(b *testing.B, f func()) {
	b.Helper()
	if *updProfile == "" {
		f()
		return
	}
	file, err := os.Create(*updProfile)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		b.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	f()
}

// countingStore counts what an update changes, and what it took before that.
type countingStore struct {
	crawldb.DueStore
	changed int
	start   time.Duration
	before  time.Duration // until the first change, which is reading and sorting
}

func (s *countingStore) Update(ctx context.Context, b crawldb.Batch) error {
	if b.Next == nil {
		return s.DueStore.Update(ctx, b)
	}
	if s.before == 0 {
		s.before = cpu() - s.start
	}
	changed := s.count(&b)
	err := s.DueStore.Update(ctx, b)
	s.add(changed)
	return err
}

// UpdateAll is that of the engine, and counts.
func (s *countingStore) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	all := s.DueStore.(crawldb.BulkStore)
	return all.UpdateAll(ctx, func(yield func(crawldb.Batch, error) bool) {
		for b, err := range batches {
			if s.before == 0 {
				s.before = cpu() - s.start
			}
			changed := s.count(&b)
			if !yield(b, err) {
				return
			}
			s.add(changed)
		}
	})
}

// count makes a batch say which of its records it changes.
func (s *countingStore) count(b *crawldb.Batch) []bool {
	next, changed := b.Next, make([]bool, len(b.URLs))
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d, err := next(i, old)
		changed[i] = d != old
		return d, err
	}
	return changed
}

func (s *countingStore) add(changed []bool) {
	for _, c := range changed {
		if c {
			s.changed++
		}
	}
}

// getAndSet is the baseline: records drawn by lot, read and written one by one.
func (w *linkedWeb) getAndSet(b *testing.B, db *DB) {
	b.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(9, 9))
	n := min(w.n/10, 100_000)
	start := cpu()
	for range n {
		url := w.url(w.at(r.IntN(w.n)))
		d, err := db.Crawl().Get(ctx, url)
		if err != nil && !errors.Is(err, crawldb.ErrNotFound) {
			b.Fatal(err)
		}
		d.Score *= 1.01
		err = db.Crawl().Update(ctx, crawldb.Batch{URLs: []string{url}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Crawl().Sync(ctx); err != nil {
		b.Fatal(err)
	}
	rest(b, db)
	say("Get and Set of %d URLs, one by one: %.2f us a URL", n, (cpu()-start).Seconds()*1e6/float64(n))
}
