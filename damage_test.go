package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// A segment that is damaged, or none at all, costs a crawl that segment: rounds go on with
// others, once the damage is reported, and its pages are visited when their leases have ended.
func TestRoundsGoOnWithoutADamagedSegment(t *testing.T) {
	flip := func(t *testing.T, file string) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2] ^= 1
		if err := os.WriteFile(file, raw, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		parts  []string // that the segment has when it is damaged, beside its list
		damage func(t *testing.T, dir, name string) (damaged string)
	}{
		{"list", nil, func(t *testing.T, dir, name string) string {
			flip(t, filepath.Join(dir, name, segment.GeneratePart))
			return name
		}},
		{"no list", nil, func(t *testing.T, dir, name string) string {
			if err := os.WriteFile(filepath.Join(dir, name, segment.GeneratePart), []byte("what is this?"), 0o666); err != nil {
				t.Fatal(err)
			}
			return name
		}},
		{"visits", []string{segment.FetchPart}, func(t *testing.T, dir, name string) string {
			flip(t, filepath.Join(dir, name, segment.FetchPart))
			return name
		}},
		{"links", []string{segment.FetchPart}, func(t *testing.T, dir, name string) string {
			flip(t, filepath.Join(dir, name, segment.ParsePart))
			return name
		}},
		{"a copy", nil, func(t *testing.T, dir, name string) string {
			if err := os.CopyFS(filepath.Join(dir, name[:len(name)-1]+"9"), os.DirFS(filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			return name[:len(name)-1] + "9"
		}},
	} {
		for _, open := range []bool{false, true} { // the crawler, while it happens
			t.Run(fmt.Sprintf("%s, open %v", test.name, open), func(t *testing.T) {
				s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 8, Calm: true})
				dir := t.TempDir()
				segments, err := dirstore.Open(dir, dirstore.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer segments.Close()
				s.opts.Generate = generate.Options{TopN: 8}
				begin := func() *recrawl.Crawler {
					c, err := recrawl.New(recrawl.Stores{Crawl: s.db.Crawl(), Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: segments}, s.opts)
					if err != nil {
						t.Fatal(err)
					}
					return c
				}
				c := begin()
				defer func() { c.Close() }()
				other := s.web.Seeds()[2]
				if _, err := c.Inject(t.Context(), s.web.Seeds()[:2]...); err != nil {
					t.Fatal(err)
				}
				g, err := c.Generate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				name := g.Segments[0]
				if len(test.parts) > 0 {
					if _, err := c.Fetch(t.Context(), name); err != nil {
						t.Fatal(err)
					}
				}
				if !open {
					c.Close()
				}
				damaged := test.damage(t, dir, name)
				if !open {
					c = begin()
				}
				if _, err := c.Inject(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				byNew := len(c.Damaged()) > 0
				r, err := c.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				told := c.Damaged()
				if len(told) != 1 || !strings.Contains(told[0].Error(), damaged) || !errors.As(told[0], new(*segment.CorruptError)) {
					t.Errorf("Damaged: %v", told)
				}
				if slices.Contains(r.Damaged, damaged) == byNew {
					t.Errorf("%s is damaged; the report has %v", damaged, r.Damaged)
				}
				if d, err := s.db.Crawl().Get(t.Context(), other); err != nil || d.LastFetch.IsZero() {
					t.Errorf("the others were not visited: %+v, %v", d, err)
				}
				if again, err := c.Round(t.Context()); err != nil || again.Rounds > 0 || len(again.Damaged) > 0 || len(c.Damaged()) != 1 {
					t.Errorf("another round: %+v, %v, %v", again, err, c.Damaged())
				}
				s.now = s.now.AddDate(0, 0, 8)
				if _, err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				n := 0
				for d, err := range s.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
					if n++; err != nil || d.LastFetch.IsZero() {
						t.Errorf("%s was never visited: %v", d.URL, err)
					}
				}
				if n < 24 {
					t.Errorf("%d records", n)
				}
			})
		}
	}
}

// A Run that looks ahead names the damaged segments that it finds, too.
func TestRunAheadReportsADamagedSegment(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 2, Calm: true})
	dir := t.TempDir()
	segments, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer segments.Close()
	s.opts.Generate.Ahead = time.Hour
	stores := s.stores()
	stores.Segments = segments
	c, err := recrawl.New(stores, s.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()[0]); err != nil {
		t.Fatal(err)
	}
	g, err := c.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, g.Segments[0], segment.GeneratePart), []byte("what is this?"), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Damaged, g.Segments[:1]) || len(c.Damaged()) != 1 {
		t.Errorf("the report has %q, Damaged %v", r.Damaged, c.Damaged())
	}
}

// Damage of the crawl db ends a round.
func TestDamageOfTheCrawlDBEndsARound(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
	stores := s.stores()
	stores.Crawl = damagedCrawl{stores.Crawl}
	c, err := recrawl.New(stores, s.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context())
	if !errors.As(err, new(*crawldb.CorruptError)) || len(r.Damaged) > 0 || len(c.Damaged()) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// damagedCrawl finds damage where a record is fetched.
type damagedCrawl struct{ crawldb.Store }

func (s damagedCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	if b.Marks != nil && len(b.URLs) > 0 { // of update, not of inject or generate
		return &crawldb.CorruptError{File: "db/000123.sst", Err: errors.New("a checksum is wrong")}
	}
	return s.Store.Update(ctx, b)
}
