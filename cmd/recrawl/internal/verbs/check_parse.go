package verbs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/documents"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// client makes the HTTP client of a checker.
func (k *checker) client(a *app) (*httpproto.Client, error) {
	var o httpproto.Options
	if k.conf != nil {
		o = k.conf.Crawl.HTTP
	}
	return flags.NewClient(k.c, o, time.Now, a.err)
}

// agent is the name that robots.txt and meta robots are matched against.
func (k *checker) agent() string {
	if k.conf != nil && !k.c.IsSet("agent") {
		return k.conf.Crawl.Agent
	}
	return k.c.String("agent")
}

func (k *checker) policy() (p robots.Policy) {
	if k.conf != nil {
		p = k.conf.Crawl.Robots
	}
	return p
}

func (k *checker) read(ctx context.Context, c *page.Content) (page.Parsed, error) {
	var p parse.Parser = htmlparse.Mux(&htmlparse.Parser{Agent: k.agent()})
	if k.conf != nil {
		p = k.conf.Crawl.Parser
	}
	if k.c.Bool("documents") {
		d := &documents.Parser{}
		defer d.Close()
		p = d.With(p)
	}
	return p.Parse(ctx, c)
}

func (k *checker) robots(p protocol.Protocol) *robots.Cache {
	return &robots.Cache{Protocol: p, Hosts: new(memstore.Hosts), Product: k.agent(), Policy: k.policy()}
}

// maxHops is how many redirects -followRedirects follows.
const maxHops = 5

func (a *app) checkParse() *cli.Command {
	return &cli.Command{
		Name: "parse", Usage: "fetch a page and show what the parser finds in it", ArgsUsage: "[URL...]",
		Description: `Fetches the page, without filters and pauses, and prints what the parser found:
title, text, directives, and each link as check filter prints it, with + if the
crawl would follow it and - and the rule if it would not.

  recrawl check parse -agent mybot https://example.com/
  recrawl check parse -agent mybot -dumpText https://example.com/`,
		Flags: flags.Join(stdinFlag(), flags.Documents(),
			&cli.BoolFlag{Name: "followRedirects", Usage: "follow up to five redirects, instead of just reporting one"},
			&cli.BoolFlag{Name: "checkRobotsTxt", Usage: "check robots.txt first, and do not fetch a page it forbids"},
			&cli.BoolFlag{Name: "normalize", Usage: "normalize the URL first"},
			&cli.StringFlag{Name: "forceAs", Usage: "parse the page as this media `TYPE`, whatever the server says"},
			&cli.BoolFlag{Name: "dumpText", Usage: "print the text of the page, too"},
			flags.Network(), flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) error {
			k, err := a.checker(c)
			if err != nil {
				return err
			}
			client, err := k.client(a)
			if err != nil {
				return err
			}
			defer client.Close()
			cache := k.robots(client)
			return a.each(ctx, c, func(url string) error { return a.checkPage(ctx, k, client, cache, url) })
		},
	}
}

// checkPage fetches one page and prints what is in it.
func (a *app) checkPage(ctx context.Context, k *checker, client *httpproto.Client, cache *robots.Cache, url string) error {
	resp, err := a.fetchToCheck(ctx, k, client, cache, url)
	if err != nil {
		return err
	}
	parsed, err := k.read(ctx, &resp.Content)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return badURL{fmt.Errorf("%s: %w", resp.Content.URL, err)}
	}
	return a.printPage(k, &resp, &parsed)
}

// fetchToCheck fetches one page.
func (a *app) fetchToCheck(ctx context.Context, k *checker, client *httpproto.Client, cache *robots.Cache, url string) (resp protocol.Response, err error) {
	if err := absolute(url); err != nil {
		return resp, err
	}
	if k.c.Bool("normalize") {
		n := *k.rules
		n.Filters = nil
		if url, err = n.Apply(urlfilter.AnyScope, url); err != nil {
			return resp, badURL{err}
		}
	}
	for hop := 0; ; hop++ {
		if k.c.Bool("checkRobotsTxt") {
			rules, err := cache.Fetch(ctx, url)
			if err != nil {
				return resp, err
			}
			if allowed, line := rules.Explain(url); !allowed {
				return resp, badURL{fmt.Errorf("%s: robots.txt forbids it: %s", url, robotsReason(rules, line))}
			}
		}
		if resp, err = client.Fetch(ctx, protocol.Request{URL: url}); err != nil {
			return resp, err
		}
		if !resp.Outcome.Code.Redirect() || !k.c.Bool("followRedirects") || hop == maxHops {
			break
		}
		if !k.c.Bool("json") {
			fmt.Fprintf(a.out, "redirect:\t%d %s\n", resp.Outcome.Status, resp.Outcome.Location)
		}
		url = resp.Outcome.Location
	}
	if resp.Outcome.Code != protocol.Success {
		return resp, badURL{fmt.Errorf("%s: %s", url, outcomeText(&resp.Outcome))}
	}
	if as := k.c.String("forceAs"); as != "" {
		resp.Content.Type = as
	}
	return resp, nil
}

func outcomeText(o *protocol.Outcome) string {
	s := o.Code.String()
	if o.Status != 0 {
		s += fmt.Sprintf(" (%d)", o.Status)
	}
	switch {
	case o.Location != "":
		s += ", to " + o.Location + "; -followRedirects follows it"
	case o.Reason != "":
		s += ": " + o.Reason
	}
	return s
}

// asked writes directives as a page would.
func asked(d page.Directives) string {
	var all []string
	for _, a := range []struct {
		name string
		on   bool
	}{{"noindex", d.NoIndex}, {"nofollow", d.NoFollow}, {"noarchive", d.NoArchive}} {
		if a.on {
			all = append(all, a.name)
		}
	}
	if !d.UnavailableAfter.IsZero() {
		all = append(all, "unavailable_after: "+d.UnavailableAfter.UTC().Format(time.RFC3339))
	}
	return strings.Join(all, ",")
}

// printPage prints what was read in a page.
func (a *app) printPage(k *checker, resp *protocol.Response, p *page.Parsed) error {
	type link struct {
		URL      string `json:"url"`
		Normal   string `json:"normal,omitempty"`
		Anchor   string `json:"anchor,omitempty"`
		Accepted bool   `json:"accepted"`
		Rule     string `json:"rule,omitempty"`
	}
	var links []link
	for _, o := range p.Outlinks {
		l := link{URL: o.URL, Anchor: o.Anchor}
		l.Accepted, l.Normal, l.Rule = verdict(o.URL, k.rules.Explain(urlfilter.Outlink, o.URL))
		if o.NoFollow || p.NoFollow {
			l.Accepted, l.Rule = false, "nofollow"
		} else if l.Accepted {
			if why := k.ignored(resp.Content.URL, l.Normal); why != "" {
				l.Accepted, l.Rule = false, why
			}
		}
		links = append(links, l)
	}
	if k.c.Bool("json") {
		out := map[string]any{"url": resp.Content.URL, "status": resp.Outcome.Status, "type": resp.Content.Type, "bytes": resp.Bytes, "truncated": resp.Content.Truncated,
			"title": p.Title, "charset": p.Charset, "noindex": p.NoIndex, "nofollow": p.NoFollow, "noarchive": p.NoArchive, "refresh": p.Refresh, "canonical": p.Canonical,
			"meta": render.PropertiesJSON(p.Meta), "text_bytes": len(p.Text), "outlinks": render.NonNil(links), "outlinks_cut": p.OutlinksCut}
		if k.c.Bool("dumpText") {
			out["text"] = p.Text
		}
		return a.printLine(out)
	}
	w := a.out
	fmt.Fprintf(w, "url:\t%s\nstatus:\t%d\ntype:\t%s\nsize:\t%d\n", resp.Content.URL, resp.Outcome.Status, resp.Content.Type, len(resp.Content.Body))
	if resp.Content.Truncated {
		fmt.Fprintln(w, "cut:\tthe body reached a limit")
	}
	fmt.Fprintf(w, "title:\t%s\n", p.Title)
	for _, f := range []struct{ name, value string }{{"charset", p.Charset}, {"canonical", p.Canonical}, {"refresh", p.Refresh}} {
		if f.value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", f.name, f.value)
		}
	}
	if asks := asked(p.Directives); asks != "" {
		fmt.Fprintf(w, "robots:\t%s\n", asks)
	}
	for _, m := range p.Meta {
		fmt.Fprintf(w, "meta:\t%s = %s\n", m.Name, m.Value)
	}
	fmt.Fprintf(w, "text:\t%d bytes\n", len(p.Text))
	fmt.Fprintf(w, "outlinks:\t%d\n", len(links)+p.OutlinksCut)
	for _, l := range links {
		if l.Accepted {
			fmt.Fprintf(w, "  +%s\n", tabbed(l.Normal, l.Anchor))
		} else {
			fmt.Fprintf(w, "  -%s\n", tabbed(l.URL, l.Rule))
		}
	}
	if k.c.Bool("dumpText") {
		fmt.Fprintf(w, "\n%s\n", p.Text)
	}
	return nil
}

// ignored says why a link is not followed because of where it leads; empty if it is
// followed.
func (k *checker) ignored(from, to string) string {
	if k.conf == nil {
		return ""
	}
	o := &k.conf.Crawl.Fetch
	key := o.Links.By.Key
	if o.NutchCompat {
		key = o.Links.By.NutchKey
	}
	switch internal := key(from) == key(to); {
	case internal && o.Links.IgnoreInternal:
		return "db.ignore.internal.links"
	case !internal && o.Links.IgnoreExternal && (o.Links.Exempt == nil || !o.Links.Exempt(from, to)):
		return "db.ignore.external.links"
	}
	return ""
}
