package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/recrawl/recrawl/bench/cputime"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

func (c cost) per() float64         { return perPage(c.CPU, c.N) }
func (c cost) perSettled() float64  { return perPage(c.Settled, c.N) }
func (c cost) rate() float64        { return float64(c.N) / max(c.CPU.Seconds(), 1e-9) }
func (c cost) rateSettled() float64 { return float64(c.N) / max(c.Settled.Seconds(), 1e-9) }

// measured runs do, which returns how many there were, and waits for what it leaves
// to be done.
func measured(ctx context.Context, do func() (int, error)) (c cost, err error) {
	before, err := cputime.Sum()
	if err != nil {
		return c, err
	}
	if c.N, err = do(); err != nil {
		return c, err
	}
	after, err := cputime.Sum()
	if err != nil {
		return c, err
	}
	c.CPU = after - before
	for idle := 0; idle < 3; {
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		now, err := cputime.Sum()
		if err != nil {
			return c, err
		}
		if idle++; now-after > 2*time.Millisecond {
			idle = 0
		}
		after = now
	}
	c.Settled = after - before
	return c, nil
}

const chunk = 20_000

// load writes the population with what compaction it takes; the making of the
// records is not counted.
func load(ctx context.Context, db *pebblestore.DB, p *population, due float64) (total cost, err error) {
	r := rand.New(rand.NewPCG(5, 5))
	var urls []string
	var data []*crawldb.Datum
	for i := range p.n {
		urls, data = append(urls, p.url(i)), append(data, p.datum(r, due))
		if len(urls) < chunk && i < p.n-1 {
			continue
		}
		before, err := cputime.Sum()
		if err != nil {
			return total, err
		}
		err = db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return data[i], nil }})
		if err != nil {
			return total, err
		}
		after, err := cputime.Sum()
		if err != nil {
			return total, err
		}
		total.N, total.CPU = total.N+len(urls), total.CPU+after-before
		urls, data = urls[:0], data[:0]
	}
	c, err := measured(ctx, func() (int, error) { return 0, db.Compact(ctx) })
	total.Settled = total.CPU + c.Settled
	return total, err
}

// inject writes the URLs into a file, in no order, and injects them into a store
// of their own, with the default rules.
func (r *dbResult) inject(ctx context.Context, p *population) (c cost, err error) {
	name := filepath.Join(r.Dir, "seeds")
	if err := writeSeeds(name, p); err != nil {
		return c, err
	}
	other := *r
	other.Dir = filepath.Join(r.Dir, "injected")
	if err := os.Mkdir(other.Dir, 0o700); err != nil {
		return c, err
	}
	db, _, err := other.open()
	if err != nil {
		return c, err
	}
	c, err = measured(ctx, func() (int, error) {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		rep, err := inject.Run(ctx, db.Crawl(), inject.Read(f), inject.Options{Rules: urlfilter.Default(), Scoring: &scoring.OPIC{}})
		if err == nil && rep.New != p.n {
			err = fmt.Errorf("%d of %d URLs injected", rep.New, p.n)
		}
		return p.n, err
	})
	return c, errors.Join(err, db.Close(), os.RemoveAll(other.Dir), os.Remove(name))
}

func writeSeeds(name string, p *population) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for _, i := range rand.New(rand.NewPCG(9, 9)).Perm(p.n) {
		w.WriteString(p.url(i))
		w.WriteByte('\n')
	}
	return errors.Join(w.Flush(), f.Close())
}

func scan(ctx context.Context, db *pebblestore.DB, n int) (cost, error) {
	return measured(ctx, func() (int, error) {
		got := 0
		for _, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
			if err != nil {
				return got, err
			}
			got++
		}
		if got != n {
			return got, fmt.Errorf("a scan found %d of %d records", got, n)
		}
		return got, nil
	})
}

type due func(crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error]

func byIndex(ctx context.Context, db *pebblestore.DB) due {
	return func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] { return crawldb.Due(ctx, db.Crawl(), q) }
}

func byScan(ctx context.Context, db *pebblestore.DB) due {
	return func(q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
		return crawldb.DueByScan(ctx, db.Crawl(), q, nil)
	}
}

// selections measures one for each limit. What has become due since the last one
// is moved in the index before them, and what the engine then compacts is waited for:
// behind a load it is all of the index.
func (r *dbResult) selections(ctx context.Context, db *pebblestore.DB, now time.Time) (map[int]cost, error) {
	if _, err := moved(ctx, db, now); err != nil {
		return nil, err
	}
	all := map[int]cost{}
	for _, most := range limits {
		c, err := selection(byIndex(ctx, db), now, r.Top, most)
		if err != nil {
			return nil, err
		}
		r.say("limit %d: %.2f µs a URL, %d selected", most, c.per(), c.N)
		all[most] = c
	}
	return all, nil
}

// moved is what a selection of one URL takes: it moves what has become due since the
// last one.
func moved(ctx context.Context, db *pebblestore.DB, now time.Time) (cost, error) {
	return measured(ctx, func() (int, error) {
		_, err := selection(byIndex(ctx, db), now, 1, 0)
		return 0, err
	})
}

// selection pulls n candidates, at most most of a host, as generate does.
func selection(seq due, now time.Time, n, most int) (c cost, err error) {
	taken := map[string]int{}
	q := crawldb.DueQuery{Now: now, Limit: n}
	if most > 0 {
		q.Limit = 0
		q.WantHost = func(host string) bool { return taken[host] < most }
	}
	before, err := cputime.Sum()
	if err != nil {
		return c, err
	}
	for candidate, err := range seq(q) {
		if err != nil {
			return c, err
		}
		if most > 0 {
			taken[crawldb.Host(candidate.URL)]++
		}
		if c.N++; c.N == n {
			break
		}
	}
	after, err := cputime.Sum()
	c.CPU = after - before
	return c, err
}

// round selects, makes up what a fetch would have brought, and folds it in.
func (r *dbResult) round(ctx context.Context, db *pebblestore.DB, p *population, l *linker) (d dbRound, err error) {
	now := func() time.Time { return p.now }
	var names []string
	d.Generate, err = measured(ctx, func() (int, error) {
		rep, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{TopN: r.Top, MaxPerHost: 100, Now: now})
		names = rep.Segments
		return rep.Selected, err
	})
	if err != nil {
		return d, err
	}
	if len(names) != 1 {
		return d, fmt.Errorf("%d segments", len(names))
	}
	links, err := visit(ctx, db.Segments(), names[0], p, l, r.Links)
	if err != nil {
		return d, err
	}
	crawl := &sortTimer{store: db.Crawl().(store)}
	d.Update, err = measured(ctx, func() (int, error) {
		if crawl.began, err = cputime.Sum(); err != nil {
			return 0, err
		}
		rep, err := update.Run(ctx, crawl, db.Segments(), names[0], update.Options{Scoring: &scoring.OPIC{}, Now: now})
		d.Changed = rep.Visits + rep.Targets - rep.Overgrown
		if err == nil && rep.Links != links {
			err = fmt.Errorf("an update of %d of %d links", rep.Links, links)
		}
		return links, err
	})
	if err != nil {
		return d, err
	}
	d.Sort = crawl.sorted
	d.Invert, err = measured(ctx, func() (int, error) {
		rep, err := linkdb.Invert(ctx, db.Links(), db.Segments(), names, linkdb.InvertOptions{})
		return rep.Links, err
	})
	if err != nil {
		return d, err
	}
	return d, db.Segments().Remove(ctx, names[0])
}

// sortTimer is a crawl db that notes what was spent before the first batch of an
// update.
type sortTimer struct {
	store
	began, sorted time.Duration
}

type store interface {
	crawldb.DueStore
	crawldb.BulkStore
}

func (s *sortTimer) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	return s.store.UpdateAll(ctx, func(yield func(crawldb.Batch, error) bool) {
		for b, err := range batches {
			if s.sorted == 0 && err == nil {
				var now time.Duration
				now, err = cputime.Sum()
				s.sorted = now - s.began
			}
			if !yield(b, err) {
				return
			}
		}
	})
}

// visit writes what a fetch would: each page is there, with so many links.
func visit(ctx context.Context, s segment.Store, name string, p *population, l *linker, n int) (links int, err error) {
	visits, err := segment.NewWriter[segment.Visit](ctx, s, name, 0)
	if err != nil {
		return 0, err
	}
	defer visits.Close()
	parses, err := segment.NewWriter[segment.Parse](ctx, s, name, 0)
	if err != nil {
		return 0, err
	}
	defer parses.Close()
	data, err := segment.NewWriter[segment.Data](ctx, s, name, 0)
	if err != nil {
		return 0, err
	}
	defer data.Close()
	for block, err := range segment.Blocks[crawldb.Datum](ctx, s, name, 0) {
		if err != nil {
			return 0, err
		}
		var vs []segment.Visit
		var ps []segment.Parse
		var ds []segment.Data
		for _, d := range block {
			signature := make([]byte, 16)
			for i := range signature {
				signature[i] = byte(l.r.Uint32())
			}
			v := segment.Visit{URL: d.URL, Time: p.now, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, ContentType: "text/html", ETag: fmt.Sprintf("\"%x\"", signature[:8]), Bytes: 10_000}
			parse, parsed := segment.Parse{URL: d.URL, Signature: signature}, segment.Data{URL: d.URL}
			host, err := hostOf(d.URL)
			if err != nil {
				return 0, err
			}
			given := scoring.Cash(&d) / float64(n)
			seen := map[string]bool{d.URL: true}
			for range n {
				to := l.link(host)
				if seen[to] {
					continue
				}
				seen[to] = true
				parse.Links = append(parse.Links, segment.Link{URL: to, Score: given})
				parsed.Parsed.Outlinks = append(parsed.Parsed.Outlinks, page.Outlink{URL: to, Anchor: anchors[len(to)%len(anchors)]})
			}
			parse.Gave = given * float64(len(parse.Links))
			links += len(parse.Links)
			vs, ps, ds = append(vs, v), append(ps, parse), append(ds, parsed)
		}
		if err := errors.Join(parses.Append(ctx, ps), data.Append(ctx, ds), visits.Append(ctx, vs)); err != nil {
			return 0, err
		}
	}
	return links, errors.Join(parses.Commit(ctx), data.Commit(ctx), visits.Commit(ctx))
}

var anchors = []string{"Home", "Read more", "What this site has to say", "Next", "A longer anchor, as headlines are", "About us", "10"}

// getSet changes URLs one by one, as programs do that know of no batches.
func getSet(ctx context.Context, db *pebblestore.DB, p *population) (cost, error) {
	r := rand.New(rand.NewPCG(8, 8))
	return measured(ctx, func() (int, error) {
		n := min(chunk, p.n)
		for range n {
			d, err := db.Crawl().Get(ctx, p.url(r.IntN(p.n)))
			if err != nil {
				return 0, err
			}
			d.Score *= 1.01
			if err := db.Crawl().Update(ctx, crawldb.Batch{URLs: []string{d.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }}); err != nil {
				return 0, err
			}
		}
		return n, db.Crawl().Sync(ctx)
	})
}

// touch changes as many URLs as there are in a chunk, and does not sync.
func touch(ctx context.Context, db *pebblestore.DB, p *population, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 8))
	picked := map[int]bool{}
	for len(picked) < min(chunk, p.n/2) {
		picked[r.IntN(p.n)] = true
	}
	var urls []string
	for i := range picked {
		urls = append(urls, p.url(i))
	}
	slices.SortFunc(urls, crawldb.Compare)
	return db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.Score *= 1.01
		return &d, nil
	}})
}
