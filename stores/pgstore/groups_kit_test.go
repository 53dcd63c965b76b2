//go:build servers

package pgstore

import (
	"errors"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/crawldb/groups/groupstest"
	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

func TestGroupsKit(t *testing.T) {
	r := &rig{server: pgtest.Start(t, "fsync = off\nmax_connections = 300")}
	dsns := map[groups.Engine]string{}
	open := func(dsn string, first groups.Table) (groups.Engine, error) {
		g, err := OpenGroups(t.Context(), dsn, first, Options{leaseTime: 100 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		dsns[g] = dsn
		return g, nil
	}
	groupstest.Run(t, groupstest.Harness{
		Open:  func(first groups.Table) (groups.Engine, error) { return open(r.newDSN(), first) },
		Again: func(e groups.Engine) (groups.Engine, error) { return open(dsns[e], groups.Table{}) },
	})
}

// A crawl becomes the first of several groups, keeps what it has, and is not opened as a whole any
// more.
func TestCrawlIsDivided(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	dsn := server.DSN("whole")
	quick := Options{leaseTime: 500 * time.Millisecond}
	whole, err := Open(t.Context(), dsn, quick)
	if err != nil {
		t.Fatal(err)
	}
	const url = "http://example.com/"
	if err := count(t.Context(), whole.Crawl(), url); err != nil {
		t.Fatal(err)
	}
	several, err := groups.Divide(2, groups.Routing{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := groups.Divide(1, groups.Routing{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGroups(t.Context(), dsn, one, quick); !errors.Is(err, ErrLocked) {
		t.Errorf("while the crawl is open: %v, want ErrLocked", err)
	}
	whole.Close()
	if _, err := OpenGroups(t.Context(), dsn, several, Options{}); err == nil {
		t.Error("a crawl with records became several groups")
	}
	g, err := OpenGroups(t.Context(), dsn, one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := Open(t.Context(), dsn, Options{ReadOnly: true}); !errors.Is(err, ErrDivided) {
		t.Errorf("Open of a divided crawl: %v, want ErrDivided", err)
	}
	if _, err := g.Renew(t.Context(), "worker"); err != nil {
		t.Fatal(err)
	}
	l, err := g.Acquire(t.Context(), "worker", 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), s.Crawl, url); err != nil {
		t.Fatal(err)
	}
	if n := counted(t, s.Crawl, url); n != 2 {
		t.Errorf("the record has %d, want 2", n)
	}
	if err := g.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := count(t.Context(), s.Crawl, url); !errors.Is(err, crawldb.ErrFenced) || !errors.Is(err, ErrFenced) {
		t.Errorf("Update after Release: %v, want ErrFenced", err)
	}
}

// A lease, a release and a posted row whose COMMIT was not answered take effect once.
func TestAmbiguousCommitsOfGroupsTakeEffectOnce(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	p := newProxy(t, server.Address())
	one, _ := groups.Divide(1, groups.Routing{})
	g, err := OpenGroups(t.Context(), pgtest.DSNAt(p.address, "ambiguous"), one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx := t.Context()
	if _, err := g.Renew(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for how := range cuts {
		p.next.Store(int32(how))
		l, err := g.Acquire(ctx, "a", 0)
		if err != nil {
			t.Fatalf("cut %d: %v", how, err)
		}
		held, err := g.Renew(ctx, "a")
		if err != nil || len(held) != 1 || held[0] != l {
			t.Fatalf("cut %d: held are %v, %v; want %v", how, held, err, l)
		}
		p.next.Store(int32(how))
		if err := g.Post(ctx, 0, "row"); err != nil {
			t.Fatalf("cut %d: %v", how, err)
		}
		marks, err := g.Marks(ctx, []groups.MarkName{{Group: groups.Outside, Name: groups.OutboxMark(0)}})
		if want := (groups.Bounds{First: 1, Next: int64(how) + 2}).String(); err != nil || marks[0] != want {
			t.Errorf("cut %d: bounds are %q, %v; want %s", how, marks, err, want)
		}
		p.next.Store(int32(how))
		if err := g.Release(ctx, l); err != nil {
			t.Fatalf("cut %d: %v", how, err)
		}
	}
	s, err := g.State(ctx)
	if err == nil {
		p.next.Store(int32(afterCommit))
		err = g.Expel(ctx, s.Workers[0])
	}
	if err != nil {
		t.Fatal(err)
	}
}
