package crawls

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

type engineKind int

const (
	mem engineKind = iota
	pebble
	engineKinds
)

func (k engineKind) String() string { return [...]string{"memstore", "pebblestore"}[k] }

// home is where a crawl keeps what it knows, on an engine of some kind.
type home struct {
	kind   engineKind
	dir    string // of no use to memstore
	stores recrawl.Stores
	db     *pebblestore.DB // nil of memstore
	close  func() error
}

// open opens a home, or opens it again.
func (h *home) open() error {
	if h.kind == mem {
		if h.close == nil {
			db := new(memstore.DB)
			h.stores = recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
			h.close = func() error { return nil }
		}
		return nil
	}
	db, err := pebblestore.Open(h.dir, pebblestore.Options{CacheSize: 4 << 20, MemTableSize: 256 << 10})
	if err != nil {
		return err
	}
	h.stores = recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	h.db, h.close = db, db.Close
	return nil
}

// dump is the contents of the stores as text, except for what depends on timing: how long
// answers took, when the hosts may be asked again, and in which order answers came.
func dump(ctx context.Context, s recrawl.Stores) (string, error) {
	var b strings.Builder
	if err := dumpCrawl(ctx, s, &b); err != nil {
		return "", err
	}
	err := dumpRest(ctx, s, &b)
	return b.String(), err
}

// dumpCrawl is the crawl db and the link db.
func dumpCrawl(ctx context.Context, s recrawl.Stores, b *strings.Builder) error {
	for d, err := range s.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		raw, err := d.AppendBinary(nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s %s %+v %x\n", d.URL, d.Status, plain(d), raw)
	}
	for e, err := range s.Links.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s <- %q\n", e.URL, e.Inlinks)
	}
	return nil
}

func dumpRest(ctx context.Context, s recrawl.Stores, b *strings.Builder) error {
	for h, err := range s.Hosts.Scan(ctx) {
		if err != nil {
			return err
		}
		if len(h.Grants) > 0 {
			return fmt.Errorf("%s: %d turns are kept", h.Name, len(h.Grants))
		}
		h.Stats.Failures = 0 // in a row
		fmt.Fprintf(b, "host %s: delay %v, %+v, %+v\n", h.Name, h.CrawlDelay, h.Stats, h.Signals)
		for _, r := range h.Robots {
			fmt.Fprintf(b, "host %s: %s %d %q fetched %v, expires %v, failing since %v\n", h.Name, r.Origin, r.Status, r.Body, r.Fetched, r.Expires, r.FailingSince)
		}
	}
	for name, err := range s.Segments.List(ctx) {
		if err != nil {
			return err
		}
		for _, part := range []func(context.Context, segment.Store, string) ([]string, error){
			records(func(d *crawldb.Datum) string { return fmt.Sprintf("%+v", plain(*d)) }),
			records(visited),
			records(func(c *page.Content) string { return fmt.Sprintf("%s %s %q", c.URL, c.Type, c.Body) }),
			records(func(t *segment.Text) string { return fmt.Sprintf("%q", *t) }),
			records(func(d *segment.Data) string { return fmt.Sprintf("%+v", *d) }),
			records(parsed),
		} {
			lines, err := part(ctx, s.Segments, name)
			if err != nil {
				return err
			}
			for _, l := range lines {
				fmt.Fprintf(b, "segment %s %s\n", name, l)
			}
		}
	}
	return nil
}

// visited leaves out how long it took. Why a robots.txt is unavailable depends on which host
// asked first if several have the same one, and is not kept forever.
func visited(v *segment.Visit) string {
	v.Elapsed = 0
	if v.Outcome.Code == protocol.RobotsFailed {
		v.Outcome.Reason = ""
	}
	return fmt.Sprintf("%+v", *v)
}

// parsed leaves out the sitemaps that a robots.txt lists: they are with the page
// of the host that came first, wherever that is.
func parsed(p *segment.Parse) string {
	p.Links = slices.DeleteFunc(p.Links, func(l segment.Link) bool {
		_, marked := crawldb.SitemapOf(l.Meta)
		return marked
	})
	if len(p.Links) == 0 && p.Signature == nil && p.Error == "" && p.Gave == 0 && !p.Sitemap {
		return "" // of nothing else, perhaps
	}
	return fmt.Sprintf("%+v", *p)
}

func plain(d crawldb.Datum) any {
	return struct {
		Fetch, Last, Modified, Interval any
		Retries                         int
		Score, Priority                 float32
		Sig                             string
		ETag, LM, By                    string
		Meta                            string
	}{d.FetchTime, d.LastFetch, d.Modified, d.Interval, d.Retries, d.Score, d.Priority, fmt.Sprintf("%x", d.Signature), d.ETag, d.LastModified, d.LeasedBy, fmt.Sprint(pairs(d.Meta.All()))}
}

func pairs(m iter.Seq2[string, string]) (all []string) {
	for n, v := range m {
		all = append(all, fmt.Sprintf("%q=%q", n, v))
	}
	return all
}

// records reads a part in the order of what it says.
func records[T segment.Record](text func(*T) string) func(context.Context, segment.Store, string) ([]string, error) {
	return func(ctx context.Context, s segment.Store, name string) ([]string, error) {
		var lines []string
		for r, err := range segment.Records[T](ctx, s, name) {
			if errors.Is(err, segment.ErrNotFound) {
				break
			}
			if err != nil {
				return nil, err
			}
			if t := text(&r); t != "" {
				lines = append(lines, segment.PartOf[T]()+" "+t)
			}
		}
		slices.Sort(lines)
		return lines, nil
	}
}

// difference is where two dumps first differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] == w[i] {
			continue
		}
		at := 0
		for at < min(len(g[i]), len(w[i])) && g[i][at] == w[i][at] {
			at++
		}
		about := func(l string) string {
			return fmt.Sprintf("%.120s … %s", l, l[max(0, min(at-100, len(l))):min(len(l), at+200)])
		}
		return fmt.Sprintf("line %d of %d, %d; at byte %d\ngot  %s\nwant %s", i, len(g), len(w), at, about(g[i]), about(w[i]))
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
