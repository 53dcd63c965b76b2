package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/parse/sitemap"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func (a *app) sitemap() *cli.Command {
	return &cli.Command{
		Name: "sitemap", Category: flags.StageVerbs, Usage: "read sitemaps and feeds, and put what they name into the crawl db", ArgsUsage: "[URL|HOST...]",
		Description: `Reads sitemaps (XML, plain text, gzip, RSS, Atom) and the sitemaps that indexes
name: those whose URLs are given, and those listed in the robots.txt of the given
hosts. Each is fetched as politely as a page. The pages they name are added to the
crawl db, for crawl to fetch; known pages that they say have changed are due at
once, as far as the host's past signals were true. An interrupted round of crawl is
finished first. The rounds of crawl read the sitemaps in robots.txt by themselves,
once a day; with -conf, like Nutch, they do not. The crawl of -d is created if it
does not exist.

  recrawl sitemap -d crawl -agent mybot https://example.com/sitemap.xml
  recrawl sitemap -d crawl -agent mybot -default example.com
  recrawl sitemap -d crawl -agent mybot -hosts
  recrawl sitemap -list -agent mybot https://example.com/sitemap.xml
  recrawl sitemap -list sitemap.xml.gz

With -list and -json each line is one object. With -conf, records are made as by
Nutch's sitemap job: the score is the priority, and the interval comes from
changefreq.`,
		Flags: flags.Join(flags.Dir(),
			&cli.BoolFlag{Name: "hosts", Category: flags.SelectionGroup, Usage: "also read those listed in the robots.txt of every known host"},
			&cli.StringFlag{Name: "file", Category: flags.SelectionGroup, Aliases: []string{"sitemapUrls"}, Usage: "also read those in `FILE`, a URL or host a line; - is standard input"},
			&cli.BoolFlag{Name: "default", Category: flags.SelectionGroup, Usage: "try /sitemap.xml for a host whose robots.txt lists none (with -conf: as sitemap.url.default.sitemap.xml says)"},
			&cli.BoolFlag{Name: "no-strict", Aliases: []string{"noStrict"}, Category: flags.SelectionGroup, Usage: "accept all URLs of a sitemap, not only those below its directory and of the sites that list it"},
			&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Category: flags.SelectionGroup, Usage: "keep URLs that the URL filters reject"},
			&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNormalize"}, Category: flags.SelectionGroup, Usage: "do not normalize URLs"},
			&cli.BoolFlag{Name: "overwrite", Category: flags.SelectionGroup, Usage: "give known pages the interval of their changefreq, and with -conf also the score and the time of the last change"},
			&cli.BoolFlag{Name: "list", Category: flags.OutputGroup, Usage: "just print the entries of sitemaps, given as URLs or files"},
			flags.URLRules(), flags.Network(), flags.Reporting()),
		Action: a.runSitemap,
	}
}

func (a *app) runSitemap(ctx context.Context, c *cli.Command) error {
	if c.Bool("list") {
		return a.listSitemaps(ctx, c)
	}
	file := c.String("file")
	if !c.Args().Present() && !c.Bool("hosts") && file == "" {
		return flags.Usagef("sitemap needs URLs or hosts, -file or -hosts")
	}
	if file != "" {
		if _, err := statInput(file); err != nil {
			return fmt.Errorf("-file: %w", err)
		}
	}
	sources := func(yield func(string, error) bool) {
		for _, arg := range c.Args().Slice() {
			if !yield(arg, nil) {
				return
			}
		}
		if file != "" {
			urlsOf(file, yield)
		}
	}
	return a.withCrawl(ctx, c, access{network: true, create: true}, func(s *session) error {
		o := recrawl.SitemapOptions{}
		if s.conf != nil {
			o = s.conf.Sitemaps
		}
		flags.SetBool(c, "default", &o.Default)
		o.KnownHosts = c.Bool("hosts")
		o.Sources = sources
		return a.readSitemaps(ctx, c, s, o)
	}, func(o *recrawl.Options) {
		for flag, on := range map[string]*bool{"no-strict": &o.Fetch.Sitemaps.NoStrict, "no-filter": &o.Fetch.Sitemaps.NoFilter, "no-norm": &o.Fetch.Sitemaps.NoNormalize, "overwrite": &o.Update.Sitemaps.Overwrite} {
			flags.SetBool(c, flag, on)
		}
		if o.Fetch.Sitemaps.NoFilter || o.Fetch.Sitemaps.NoNormalize {
			// What was added to the crawl db must be selected, too.
			o.Generate.NoFilter = o.Generate.NoFilter || o.Fetch.Sitemaps.NoFilter
			o.Generate.NoNormalize = true
		}
	})
}

func (a *app) readSitemaps(ctx context.Context, c *cli.Command, s *session, o recrawl.SitemapOptions) error {
	stop := a.watched(c, s)
	r, err := s.crawler.ReadSitemaps(ctx, o)
	stop()
	s.failures.Report(a.err, c.Bool("v"))
	for _, bad := range r.Refused {
		fmt.Fprintln(a.err, bad)
	}
	if e := a.printSitemaps(c, &r); err == nil {
		err = e
	}
	if n := len(r.Refused); err == nil && n > 0 {
		err = fmt.Errorf("%d of the given URLs and hosts could not be used", n)
	}
	return err
}

// noSitemaps is for the verbs that fetch.
func noSitemaps() cli.Flag {
	return &cli.BoolFlag{Name: "no-sitemaps", Category: flags.SelectionGroup, Usage: "read neither feeds nor the sitemaps in robots.txt"}
}

// sitemapsJSON is what sitemap -json prints.
type sitemapsJSON struct {
	Rounds   int                           `json:"rounds"`
	Hosts    int                           `json:"hosts"`
	Listed   int                           `json:"listed"`
	None     []string                      `json:"none"`
	Read     map[string]int                `json:"read"`
	New      int                           `json:"new"`
	Known    int                           `json:"known"`
	Due      int                           `json:"due"`
	NoTrust  int                           `json:"untrusted"`
	Sitemaps int                           `json:"new_sitemaps"`
	Outcomes map[string]int                `json:"outcomes"`
	Bytes    int64                         `json:"bytes"`
	Lastmod  map[string]render.LastmodJSON `json:"lastmod"`
	Seconds  float64                       `json:"seconds"`
}

func readJSON(s *fetch.SitemapReport) map[string]int {
	return map[string]int{"files": s.Files, "indexes": s.Indexes, "feeds": s.Feeds, "failed": s.Failed, "urls": s.URLs, "sitemaps": s.Sitemaps,
		"out_of_scope": s.OutOfScope, "rejected": s.Rejected, "bad": s.Bad, "cut": s.Cut, "truncated": s.Truncated}
}

func (a *app) printSitemaps(c *cli.Command, r *recrawl.SitemapReport) error {
	lastmod := map[string]render.LastmodJSON{}
	for name, l := range r.Signals {
		lastmod[name] = render.LastmodJSON{Hits: l.Hits, False: l.False, Misses: l.Misses, Trusted: l.Trusted()}
	}
	if c.Bool("json") {
		return a.printJSON(sitemapsJSON{Rounds: r.Rounds, Hosts: r.Hosts, Listed: r.Listed, None: render.NonNil(r.Without), Read: readJSON(&r.Sitemaps),
			New: r.SitemapEffects.New, Known: r.SitemapEffects.Known, Due: r.SitemapEffects.Due, NoTrust: r.SitemapEffects.Untrusted, Sitemaps: r.SitemapEffects.Sitemaps,
			Outcomes: render.OutcomesJSON(r.Visits), Bytes: r.Bytes, Lastmod: lastmod, Seconds: r.Elapsed.Seconds()})
	}
	s := &r.Sitemaps
	fmt.Fprintf(a.out, "%d sitemaps requested, %d hosts; %d rounds, %d visits, %s in %v\n", r.Listed, r.Hosts, r.Rounds, r.Visited(), render.Size(r.Bytes), r.Elapsed.Round(time.Millisecond))
	fmt.Fprintf(a.out, "  read          %d (%d indexes, %d feeds, %d cut off), %d not sitemaps\n", s.Files, s.Indexes, s.Feeds, s.Truncated, s.Failed)
	fmt.Fprintf(a.out, "  entries       %d pages, %d sitemaps\n", s.URLs, s.Sitemaps)
	fmt.Fprintf(a.out, "  left out      %d out of scope, %d by the rules, %d not URLs, %d beyond a limit\n", s.OutOfScope, s.Rejected, s.Bad, s.Cut)
	fmt.Fprintf(a.out, "  pages         %d new, %d known, of which %d are due sooner and %d are not believed\n", r.SitemapEffects.New, r.SitemapEffects.Known, r.SitemapEffects.Due, r.SitemapEffects.Untrusted)
	render.Outcomes(a.out, r.Visits)
	for _, name := range r.Without {
		fmt.Fprintf(a.out, "  %s: robots.txt lists no sitemap, or is unavailable\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(lastmod)) {
		l := lastmod[name]
		fmt.Fprintf(a.out, "  %s: lastmod was true %d times, false %d, missing %d: %s\n", name, l.Hits, l.False, l.Misses,
			map[bool]string{true: "believed", false: "not believed"}[l.Trusted])
	}
	return nil
}

// listSitemaps prints the entries of sitemaps.
func (a *app) listSitemaps(ctx context.Context, c *cli.Command) error {
	if !c.Args().Present() {
		return flags.Usagef("sitemap -list needs the URL of a sitemap, or a file")
	}
	k, err := a.checker(c)
	if err != nil {
		return err
	}
	var client *httpproto.Client
	for _, arg := range c.Args().Slice() {
		o := sitemap.Options{URL: arg, MaxDepth: -1}
		var in io.Reader
		if strings.Contains(arg, "://") {
			if client == nil {
				if client, err = k.client(a); err != nil {
					return err
				}
				defer client.Close()
			}
			resp, err := fetchSitemap(ctx, client, arg)
			if err != nil {
				return err
			}
			o.URL, o.ContentType, o.Truncated = resp.Content.URL, resp.Content.Type, resp.Content.Truncated
			in = bytes.NewReader(resp.Content.Body)
		} else {
			f, err := os.Open(arg)
			if err != nil {
				return err
			}
			defer f.Close()
			o.URL, o.ContentType = "", "text/plain"
			in = f
		}
		if err := a.listSitemap(ctx, c, arg, sitemap.NewReader(in, o)); err != nil {
			return err
		}
	}
	return nil
}

// fetchSitemap requests a sitemap, and follows its redirects.
func fetchSitemap(ctx context.Context, client *httpproto.Client, url string) (protocol.Response, error) {
	for range maxHops + 1 {
		resp, err := client.Fetch(ctx, protocol.Request{URL: url, MaxBytes: sitemap.DefaultMaxBytes})
		switch code := resp.Outcome.Code; {
		case err != nil:
			return resp, err
		case code == protocol.Success:
			return resp, nil
		case !code.Redirect():
			return resp, fmt.Errorf("%s: %v: %s", url, code, resp.Outcome.Reason)
		}
		url = resp.Outcome.Location
	}
	return protocol.Response{}, fmt.Errorf("%s: more than %d redirects", url, maxHops)
}

func (a *app) listSitemap(ctx context.Context, c *cli.Command, name string, r *sitemap.Reader) error {
	for e, err := range r.All(ctx) {
		if err != nil {
			return err
		}
		if c.Bool("json") {
			err = a.printLine(entryJSON(&e))
		} else {
			_, err = fmt.Fprintln(a.out, entryText(&e))
		}
		if err != nil {
			return err
		}
	}
	rep := r.Report()
	fmt.Fprintf(a.err, "recrawl: %s: %s, %d entries, %d not URLs, %d unreadable fields, %d faults\n", name, rep.Format, rep.Entries, rep.BadURLs, rep.BadFields, rep.Faults)
	if rep.Truncated {
		return fmt.Errorf("%s was not read to the end: %w", name, errors.New(rep.Reason))
	}
	return nil
}

func entryJSON(e *sitemap.Entry) map[string]any {
	j := map[string]any{"url": e.URL, "sitemap": e.Sitemap, "priority": sitemap.DefaultPriority}
	if e.HasPriority {
		j["priority"] = e.Priority
	}
	if !e.Modified.IsZero() {
		j["modified"], j["span_seconds"] = e.Modified.Format(time.RFC3339), e.Span.Seconds()
	}
	if e.ChangeFreq != "" {
		j["changefreq"] = e.ChangeFreq
	}
	return j
}

func entryText(e *sitemap.Entry) string {
	line := []string{e.URL}
	if e.Sitemap {
		line = append(line, "sitemap")
	}
	if !e.Modified.IsZero() {
		line = append(line, fmt.Sprintf("modified %s within %v", e.Modified.Format(time.RFC3339), e.Span))
	}
	if e.ChangeFreq != "" {
		line = append(line, e.ChangeFreq)
	}
	if e.HasPriority {
		line = append(line, fmt.Sprintf("priority %g", e.Priority))
	}
	return strings.Join(line, "\t")
}
