package recrawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// SitemapOptions say which sitemaps to read. (Nutch: its sitemap job.)
type SitemapOptions struct {
	// Sources are URLs of sitemaps, and names of hosts, which stand for the
	// sitemaps that their robots.txt lists; it is fetched if it is not known. Nil
	// means none.
	Sources iter.Seq2[string, error]
	// KnownHosts adds the sitemaps listed in every robots.txt already known. It
	// makes no request.
	KnownHosts bool
	// Default tries /sitemap.xml where robots.txt lists none, for hosts named in
	// Sources. (Nutch: sitemap.url.default.sitemap.xml.)
	Default bool
}

// SitemapReport says what Crawler.ReadSitemaps did.
type SitemapReport struct {
	// Report is what the rounds did. Its Sitemaps and SitemapEffects include all sitemaps
	// read in those rounds.
	Report
	// Listed counts the sitemaps asked for, each once; Hosts the hosts. Without
	// names the hosts whose robots.txt lists no sitemap or could not be fetched.
	Listed, Hosts int
	Without       []string
	// Refused says, for each source that is not a URL or that the rules keep out,
	// why.
	Refused []error
	// Signals is what is known by now of the signals of the hosts whose sitemaps were
	// asked for, if anything is.
	Signals map[string]hostdb.SignalStats
}

// ReadSitemaps reads sitemaps now, due or not, and the sitemaps that they name in
// turn: it marks their records, and works on rounds in which nothing else is
// selected. An interrupted round comes first, and if ReadSitemaps is itself
// interrupted, the next ReadSitemaps or Run finishes its round. Pages that sitemaps
// name are not fetched; that is left to Run.
func (c *Crawler) ReadSitemaps(ctx context.Context, o SitemapOptions) (SitemapReport, error) {
	var r SitemapReport
	end, err := c.lockRounds(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	err = c.readSitemaps(ctx, o, &r)
	keep, done := grace.Context(ctx)
	defer done()
	if e := c.stores.Crawl.Sync(keep); err == nil && e != nil {
		err = fmt.Errorf("recrawl: %w", e)
	}
	return r, err
}

func (c *Crawler) readSitemaps(ctx context.Context, o SitemapOptions, r *SitemapReport) error {
	marks, asked := map[string]crawldb.Sitemap{}, map[string]bool{}
	if err := c.addSources(ctx, o, marks, asked, r); err != nil {
		return err
	}
	if o.KnownHosts {
		for h, err := range c.stores.Hosts.Scan(ctx) {
			if err != nil {
				return fmt.Errorf("recrawl: sitemaps: %w", err)
			}
			for _, f := range h.Robots {
				rules := robots.Parse(f.Body, c.opts.Agent)
				if c.addListed(f.Origin, rules.Sitemaps, marks) > 0 {
					asked[hostdb.ByHost.Key(f.Origin)] = true
				}
			}
		}
	}
	r.Listed, r.Hosts = len(marks), len(asked)
	if err := c.markSitemaps(ctx, marks); err != nil {
		return err
	}
	g := c.generateOptions()
	g.Where = func(d *crawldb.Datum) (bool, error) {
		_, marked := crawldb.SitemapOf(d.Meta)
		return marked, nil
	}
	g.Status, g.MinScore, g.MaxInterval, g.Ahead, g.MaxPerHost, g.HostLimit = 0, 0, 0, 0, 0, nil
	for {
		round, err := c.oneRound(ctx, g, calledBySitemaps)
		r.add(round)
		if err != nil {
			return err
		}
		if round.Rounds == 0 {
			break
		}
	}
	return c.reportLastmods(ctx, marks, r)
}

// addSources adds what the options name.
func (c *Crawler) addSources(ctx context.Context, o SitemapOptions, marks map[string]crawldb.Sitemap, asked map[string]bool, r *SitemapReport) error {
	if o.Sources == nil {
		return nil
	}
	homes := map[string]string{}
	for source, err := range o.Sources {
		if err != nil {
			return err
		}
		if strings.Contains(source, "://") {
			normal, err := c.sitemapRules().ApplySitemap(urlfilter.Inject, source)
			if err == nil && crawldb.Origin(normal) == "" {
				err = errors.New("not a URL of http or https")
			}
			if err != nil {
				r.Refused = append(r.Refused, fmt.Errorf("recrawl: sitemap %s: %w", source, err))
				continue
			}
			addMark(marks, normal, crawldb.Sitemap{Budget: c.maxSitemapFiles()})
			continue
		}
		home, err := c.homeURL(source)
		if err != nil {
			r.Refused = append(r.Refused, fmt.Errorf("recrawl: sitemaps of %s: %w", source, err))
			continue
		}
		homes[source] = home
	}
	urls := slices.Sorted(maps.Values(homes))
	if err := c.fetchRobots(ctx, slices.Compact(urls)); err != nil {
		return err
	}
	for _, source := range slices.Sorted(maps.Keys(homes)) {
		home := homes[source]
		asked[hostdb.ByHost.Key(home)] = true
		rules, known, err := c.robots.Cached(ctx, home)
		if err != nil {
			return fmt.Errorf("recrawl: sitemaps: %w", err)
		}
		if known && c.addListed(crawldb.Origin(home), rules.Sitemaps, marks) > 0 {
			continue
		}
		if o.Default && known && !rules.Unavailable {
			c.addListed(crawldb.Origin(home), []string{"/sitemap.xml"}, marks)
			continue
		}
		r.Without = append(r.Without, source)
	}
	return nil
}

// homeURL is the start page of a host, with the first scheme that the rules
// accept. (Nutch: SitemapMapper.)
func (c *Crawler) homeURL(host string) (string, error) {
	var first error
	for _, scheme := range []string{"http", "https"} {
		u, err := c.sitemapRules().Apply(urlfilter.Inject, scheme+"://"+host+"/")
		if err == nil && crawldb.Origin(u) == "" {
			err = errors.New("not the name of a host")
		}
		if err == nil {
			return u, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// sitemapRules are the rules for what sitemaps name.
func (c *Crawler) sitemapRules() *urlfilter.Rules {
	some := *c.opts.Rules
	if c.opts.Fetch.Sitemaps.NoNormalize {
		some.Normalizers = nil
	}
	if c.opts.Fetch.Sitemaps.NoFilter {
		some.Filters = nil
	}
	return &some
}

// addListed adds the sitemaps that a robots.txt lists, and returns how many.
func (c *Crawler) addListed(origin string, sitemaps []string, marks map[string]crawldb.Sitemap) (n int) {
	base := weburl.Parse(origin + "/robots.txt")
	most := c.opts.Fetch.Sitemaps.MaxListed
	if most == 0 {
		most = 100
	}
	if most > 0 {
		sitemaps = sitemaps[:min(len(sitemaps), most)]
	}
	for _, s := range sitemaps {
		target, ok := base.Resolve(s)
		if !ok {
			continue
		}
		normal, err := c.sitemapRules().ApplySitemap(urlfilter.Inject, target)
		if err != nil || crawldb.Origin(normal) == "" {
			continue
		}
		addMark(marks, normal, crawldb.Sitemap{Budget: c.maxSitemapFiles() / len(sitemaps), Origins: []string{origin}})
		n++
	}
	return n
}

// maxSitemapFiles is how many sitemaps one source may name.
func (c *Crawler) maxSitemapFiles() int {
	switch n := c.opts.Fetch.Sitemaps.MaxFiles; {
	case n == 0:
		return 10_000
	case n < 0:
		return min(1<<40, math.MaxInt)
	default:
		return n
	}
}

func addMark(marks map[string]crawldb.Sitemap, url string, mark crawldb.Sitemap) {
	if was, ok := marks[url]; ok {
		mark = was.With(mark)
	}
	marks[url] = mark
}

// fetchRobots fetches the robots.txt of hosts where it is not known, as a round
// would: by a fetch of their start pages with a protocol that requests no pages.
func (c *Crawler) fetchRobots(ctx context.Context, homes []string) error {
	homes = slices.Clone(homes)
	var err error
	homes = slices.DeleteFunc(homes, func(u string) bool {
		_, known, e := c.robots.Cached(ctx, u)
		err = errors.Join(err, e)
		return known
	})
	if err != nil || len(homes) == 0 {
		return err
	}
	c.status.setStage("robots", "")
	segments := new(memstore.Segments)
	g, err := generate.Free(ctx, segments, func(yield func(string, error) bool) {
		for _, u := range homes {
			if !yield(u, nil) {
				return
			}
		}
	}, generate.Options{By: c.opts.Fetch.Politeness.By, Now: c.opts.Now})
	if err != nil || len(g.Segments) == 0 {
		return err
	}
	o := c.fetchOptions(false)
	o.Protocol, o.OnVisit, o.NoContent = robotsOnly{}, nil, true
	_, err = fetch.Run(ctx, segments, g.Segments[0], o)
	return err
}

// robotsOnly is a protocol that requests no pages.
type robotsOnly struct{}

func (robotsOnly) Fetch(context.Context, protocol.Request) (protocol.Response, error) {
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Refused, Reason: "only robots.txt was asked for"}}, nil
}

// markSitemaps marks the records, creating new ones, and makes them due.
func (c *Crawler) markSitemaps(ctx context.Context, marks map[string]crawldb.Sitemap) error {
	o := c.updateOptions()
	urls := slices.SortedFunc(maps.Keys(marks), crawldb.Compare)
	for some := range slices.Chunk(urls, 1000) {
		err := c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: some, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			return update.MarkSitemap(old, some[i], marks[some[i]], o), nil
		}})
		if err != nil {
			return fmt.Errorf("recrawl: sitemaps: %w", err)
		}
	}
	return nil
}

// reportLastmods reports what is known of the hosts.
func (c *Crawler) reportLastmods(ctx context.Context, marks map[string]crawldb.Sitemap, r *SitemapReport) error {
	r.Signals = map[string]hostdb.SignalStats{}
	for u, mark := range marks {
		for _, of := range append([]string{u}, mark.Origins...) {
			name := hostdb.ByHost.Key(of)
			if _, ok := r.Signals[name]; ok {
				continue
			}
			h, err := c.stores.Hosts.Get(ctx, name)
			if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
				return fmt.Errorf("recrawl: sitemaps: %w", err)
			}
			if h.Signals != (hostdb.SignalStats{}) {
				r.Signals[name] = h.Signals
			}
		}
	}
	return nil
}
