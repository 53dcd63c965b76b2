package pebblestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// benchGroup is a group of a divided crawl of one process.
type benchGroup struct {
	db     *DB
	member *groups.Member
}

// BenchmarkGroups asks how long generate, update and invert of a round take, and what CPU time, for
// one group and for four of one process with the same pages, what is exchanged included.
//
//	go test -run '^$' -bench BenchmarkGroups -benchtime 3x ./stores/pebblestore -update.urls 1000000 -update.pages 20000
func BenchmarkGroups(b *testing.B) {
	w := newLinkedWeb(*updURLs)
	all := new(memstore.Segments)
	w.write(b, all, roundName(0), 0, *updPages, *updLinks)
	for b.Loop() {
		one, oneCPU := w.groupRound(b, all, 1)
		four, fourCPU := w.groupRound(b, all, 4)
		say("one group: %v, CPU %v; four: %v, CPU %v; time %.2f, CPU %.2f", one.Round(time.Millisecond), oneCPU.Round(time.Millisecond), four.Round(time.Millisecond), fourCPU.Round(time.Millisecond),
			four.Seconds()/one.Seconds(), fourCPU.Seconds()/oneCPU.Seconds())
	}
}

// groupRound makes a crawl of n groups, and measures generate, update and invert.
func (w *linkedWeb) groupRound(b *testing.B, all *memstore.Segments, n int) (wall, used time.Duration) {
	b.Helper()
	ctx := context.Background()
	table, err := groups.Divide(n, groups.DefaultRouting())
	if err != nil {
		b.Fatal(err)
	}
	router := table.Routing.Router()
	dir := b.TempDir()
	var members []*benchGroup
	engine, err := groups.OpenLocal(ctx, new(memstore.Crawl), table, func(id int) (groups.Stores, func() error, error) {
		db, err := Open(filepath.Join(dir, fmt.Sprint(id)), Options{CacheSize: defaultCacheSize / int64(n), MemTableSize: defaultMemTableSize / int64(n)})
		members = append(members, &benchGroup{db: db, member: table.Member(id, router)})
		return groups.Stores{Crawl: db.Crawl(), Links: db.Links(), Segments: db.Segments(), Hosts: db.Hosts()}, db.Close, err
	})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	if _, err := engine.Renew(ctx, "bench"); err != nil {
		b.Fatal(err)
	}
	for id := range n {
		if _, err := engine.Acquire(ctx, "bench", id); err != nil {
			b.Fatal(err)
		}
	}
	for _, g := range members {
		w.loadGroup(b, g, all)
		settle(b, g.db)
	}
	began, start := time.Now(), cpu()
	turns := make(chan struct{}, 2)
	var phases []string
	each := func(f func(g *benchGroup) error) {
		before, from := time.Now(), cpu()
		defer func() {
			phases = append(phases, fmt.Sprintf("%v (%v CPU)", time.Since(before).Round(time.Millisecond), (cpu()-from).Round(time.Millisecond)))
		}()
		var wait sync.WaitGroup
		for _, g := range members {
			wait.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				if err := f(g); err != nil {
					b.Error(err)
				}
			})
		}
		wait.Wait()
	}
	each(func(g *benchGroup) error {
		_, err := generate.Run(ctx, g.db.Crawl(), new(memstore.Segments), generate.Options{TopN: *updPages / n, Now: func() time.Time { return w.now }})
		return err
	})
	o := update.Options{Scoring: scoring.OPIC{}, SortMemory: 64 << 20 / min(n, 2), Now: func() time.Time { return w.now.Add(7 * time.Hour) }}
	each(func(g *benchGroup) error {
		o := o
		o.Group = g.member
		if _, err := update.Run(ctx, g.db.Crawl(), g.db.Segments(), roundName(0), o); err != nil {
			return err
		}
		return g.invert(ctx, o.SortMemory)
	})
	if n > 1 {
		each(func(g *benchGroup) error { return g.receive(ctx, engine, &table, o) })
	}
	wall, used = time.Since(began), cpu()-start
	say("%d groups: generate, update and invert, receive: %s", n, strings.Join(phases, ", "))
	return wall, used
}

// loadGroup loads the records of a group, and its part of the segment.
func (w *linkedWeb) loadGroup(b *testing.B, g *benchGroup, all *memstore.Segments) {
	b.Helper()
	ctx := context.Background()
	for i := 0; i < w.n; i += 20_000 {
		var urls []string
		var at []int
		for k := i; k < min(i+20_000, w.n); k++ {
			if u := w.url(w.at(k)); g.member.Owns(u) {
				urls, at = append(urls, u), append(at, k)
			}
		}
		err := g.db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Next: func(k int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			d := w.datum(at[k])
			return &d, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	ownPart(b, g, all, func(d *crawldb.Datum) string { return d.URL })
	ownPart(b, g, all, func(v *segment.Visit) string { return v.URL })
	ownPart(b, g, all, func(p *segment.Parse) string { return p.URL })
	ownPart(b, g, all, func(d *segment.Data) string { return d.URL })
}

func ownPart[T segment.Record](b *testing.B, g *benchGroup, all *memstore.Segments, url func(*T) string) {
	b.Helper()
	w := part[T](b, g.db.Segments(), roundName(0))
	for block, err := range segment.Blocks[T](context.Background(), all, roundName(0), 0) {
		if err != nil {
			b.Fatal(err)
		}
		add(b, w, slices.DeleteFunc(block, func(r T) bool { return !g.member.Owns(url(&r)) }))
	}
	if err := w.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// invert writes the links to pages of other groups as rows, as a crawler does.
func (g *benchGroup) invert(ctx context.Context, memory int) error {
	out := groups.NewOutbox(g.member, g.db.Crawl())
	_, err := linkdb.Invert(ctx, g.db.Links(), g.db.Segments(), []string{roundName(0)}, linkdb.InvertOptions{SortMemory: memory, Divert: func(_ context.Context, e linkdb.Entry) (bool, error) {
		if g.member.Owns(e.URL) {
			return false, nil
		}
		value := []byte{'a'}
		for _, l := range e.Inlinks {
			value = append(binary.AppendUvarint(value, uint64(len(l.From))), l.From...)
			value = append(binary.AppendUvarint(value, uint64(len(l.Anchor))), l.Anchor...)
		}
		out.Add(e.URL, value)
		return true, nil
	}})
	if err != nil {
		return err
	}
	marks, err := out.Cut(ctx)
	if err != nil || marks == nil {
		return err
	}
	return g.db.Crawl().Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
}

// receive folds what other groups have found, as a crawler does.
func (g *benchGroup) receive(ctx context.Context, e groups.Engine, t *groups.Table, o update.Options) error {
	inboxes, err := groups.Poll(ctx, e, t, []int{g.member.ID})
	if err != nil {
		return err
	}
	o.Group = g.member
	for in := &inboxes[0]; !in.Empty(); {
		rows, marks, err := in.Take(ctx, e, 16<<20)
		if err != nil {
			return err
		}
		var items []groups.Item
		links := map[string][]linkdb.Inlink{}
		for _, r := range rows {
			for it, err := range groups.Items(r.Text) {
				if err != nil {
					return err
				}
				if it.Value[0] != 'a' {
					items = append(items, it)
					continue
				}
				links[it.URL] = append(links[it.URL], benchAnchors([]byte(it.Value[1:]))...)
			}
		}
		var entries []linkdb.Entry
		for _, u := range slices.SortedFunc(maps.Keys(links), crawldb.Compare) {
			entries = append(entries, linkdb.Entry{URL: u, Inlinks: links[u]})
		}
		if err := g.db.Links().Merge(ctx, entries, 10_000); err != nil {
			return err
		}
		if _, err := update.Receive(ctx, g.db.Crawl(), items, marks, o); err != nil {
			return err
		}
	}
	return nil
}

func benchAnchors(value []byte) (in []linkdb.Inlink) {
	text := func() string {
		n, size := binary.Uvarint(value)
		s := string(value[size : size+int(n)])
		value = value[size+int(n):]
		return s
	}
	for len(value) > 0 {
		in = append(in, linkdb.Inlink{From: text(), Anchor: text()})
	}
	return in
}
