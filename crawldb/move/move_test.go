package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/move"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

func newStores() move.Stores {
	return move.Stores{Crawl: new(memstore.Crawl), Hosts: new(memstore.Hosts), Links: new(memstore.Links), Segments: new(memstore.Segments)}
}

// filled returns stores with something of everything.
func filled(t *testing.T) move.Stores {
	t.Helper()
	s, ctx := newStores(), t.Context()
	var must []error
	var urls []string
	for i := range 12_000 {
		urls = append(urls, fmt.Sprintf("http://host.example/%05d", i))
	}
	must = append(must, s.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("history", "a"), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{URL: urls[i], Score: float32(i), FetchTime: time.UnixMilli(int64(i)).UTC(), LeasedBy: "seg"}, nil
	}}))
	must = append(must, s.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark("command/kept", "old")}))
	for i := range 20 {
		name := fmt.Sprintf("host%d.example", i)
		must = append(must, s.Hosts.Update(ctx, name, func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{Name: name, Homepage: fmt.Sprint(i), Robots: []hostdb.Robots{{Origin: "http://" + name, Body: []byte("User-agent: *")}}}, nil
		}))
	}
	must = append(must, s.Links.Merge(ctx, []linkdb.Entry{{URL: "http://a.example/", Inlinks: []linkdb.Inlink{{From: "http://b.example/", Anchor: "b"}, {From: "http://c.example/"}}}}, 0))
	for _, part := range []string{segment.GeneratePart, segment.FetchPart, segment.ListPart(segment.ContentPart, 3)} {
		w, err := s.Segments.Append(ctx, "20260102030405-000", part, 0)
		must = append(must, err, w.Append(ctx, []byte("block of "+part)), w.Append(ctx, nil))
		if part == segment.GeneratePart {
			must = append(must, w.Commit(ctx))
		}
		must = append(must, w.Close())
	}
	if err := errors.Join(must...); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMoveCopiesEverything(t *testing.T) {
	from, to := filled(t), newStores()
	r, err := move.Run(t.Context(), from, to, move.Options{Source: "here"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (move.Report{Records: 12_000, Marks: 2, Hosts: 20, Targets: 1, Segments: 1, Blocks: 6, Compared: 12_000 + 2 + 20 + 1 + 1 + 3 + 6}); r != want {
		t.Errorf("report is %+v, want %+v", r, want)
	}
	if value, err := to.Crawl.Mark(t.Context(), move.Mark); value != "" || err != nil {
		t.Errorf("the mark of the move is %q, %v", value, err)
	}
	back := newStores()
	if _, err := move.Run(t.Context(), to, back, move.Options{Source: "there"}); err != nil {
		t.Errorf("back: %v", err)
	}
	if _, err := move.Run(t.Context(), from, to, move.Options{Source: "here"}); !errors.Is(err, move.ErrNotEmpty) {
		t.Errorf("into a crawl: %v, want ErrNotEmpty", err)
	}
}

// A move that is cancelled anywhere goes on with the next run, and only from the same source.
func TestMoveIsResumed(t *testing.T) {
	from, to := filled(t), newStores()
	for stop, runs := 1, 0; ; stop, runs = stop+1, runs+1 {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		_, err := move.Run(ctx, from, to, move.Options{Source: "here", Progress: func(move.Report) {
			if calls++; calls == stop {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			if runs < 4 {
				t.Errorf("%d runs were cancelled", runs)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := move.Run(t.Context(), from, to, move.Options{Source: "elsewhere"}); !errors.Is(err, move.ErrNotEmpty) {
			t.Fatalf("from another source: %v, want ErrNotEmpty", err)
		}
	}
	if r, err := move.Run(t.Context(), to, newStores(), move.Options{}); err != nil || r.Records != 12_000 || r.Blocks != 6 {
		t.Errorf("the copy has %+v, %v", r, err)
	}
}

func TestMoveFindsADifference(t *testing.T) {
	for what, change := range map[string]func(context.Context, move.Stores) error{
		"record": func(ctx context.Context, s move.Stores) error {
			return s.Crawl.Update(ctx, crawldb.Batch{URLs: []string{"http://host.example/00007"}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				d.Retries++
				return &d, nil
			}})
		},
		"host": func(ctx context.Context, s move.Stores) error {
			return s.Hosts.Update(ctx, "host7.example", func(*hostdb.Host) (*hostdb.Host, error) { return nil, nil })
		},
		"inlinks": func(ctx context.Context, s move.Stores) error {
			return s.Links.Merge(ctx, []linkdb.Entry{{URL: "http://a.example/", Inlinks: []linkdb.Inlink{{From: "http://new.example/"}}}}, 0)
		},
		"mark": func(ctx context.Context, s move.Stores) error {
			return s.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark("new", "mark")})
		},
		"block": func(ctx context.Context, s move.Stores) error {
			w, err := s.Segments.Append(ctx, "20260102030405-000", segment.FetchPart, 1)
			return errors.Join(err, w.Append(ctx, []byte("other")), w.Close())
		},
	} {
		t.Run(what, func(t *testing.T) {
			from, to := filled(t), newStores()
			_, err := move.Run(t.Context(), from, to, move.Options{Progress: func(r move.Report) {
				if r.Segments == 1 && r.Marks == 0 {
					if err := change(t.Context(), to); err != nil {
						t.Error(err)
					}
				}
			}})
			if !errors.Is(err, move.ErrDiffers) || !strings.Contains(err.Error(), what) {
				t.Errorf("error is %v, want ErrDiffers about %s", err, what)
			}
		})
	}
}

func TestMoveChangesMarks(t *testing.T) {
	from, to := filled(t), newStores()
	_, err := move.Run(t.Context(), from, to, move.Options{Change: func(name, value string) string {
		if name == "command/kept" {
			return "new"
		}
		return value
	}})
	if value, e := to.Crawl.Mark(t.Context(), "command/kept"); err != nil || e != nil || value != "new" {
		t.Errorf("mark is %q; %v, %v", value, err, e)
	}
}
