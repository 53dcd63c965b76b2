package verbs

import (
	"context"
	"errors"
	"net/http"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/httpapi/mcp"
)

func (a *app) mcp() *cli.Command {
	return &cli.Command{
		Name: "mcp", Category: flags.ReadVerbs, Usage: "let an agent use the crawl over the Model Context Protocol",
		Description: `Answers an agent on standard input and output, until the input ends. Its tools are
search_pages, read_page, explain_url, what_changed, list_urls and crawl_status. With
-allow there are tools that change the crawl: fetch (fetch_now), signal
(signal_change) and add_seeds.

  recrawl mcp -d crawl
  recrawl mcp -d crawl -allow fetch

A crawl may run in the directory, or begin, at any time. The configuration of an
agent names the command and its arguments, for example:

  {"mcpServers": {"crawl": {"command": "recrawl", "args": ["mcp", "-d", "/srv/crawl"]}}}`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringSliceFlag{Name: "allow", Usage: "let the agent do this `ACTION`: fetch, signal, add_seeds, or all; may be repeated"},
			searchIndexFlag(),
			&cli.StringFlag{Name: "agent", Usage: "the `NAME` of the crawler, as in explain"},
			flags.URLRules(), flags.Scheduling(), flags.MinFree(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			allowed := readActions(c)
			for _, action := range allowed {
				if !slices.Contains(httpapi.Actions(), action) {
					return flags.Usagef("-allow: %q is not fetch, signal, add_seeds or all", action)
				}
			}
			if err := a.tryCrawl(ctx, c); err != nil {
				return err
			}
			pages := &crawlPages{a: a, c: c, guard: httpapi.Guard{Authorize: httpapi.Allow(allowed...)}}
			var err error
			if pages.index, err = openIndexPages(c); err != nil {
				return err
			}
			err = mcp.NewServer(mcp.Options{Pages: pages, Allow: allowed, Version: mcpVersion}).Run(ctx, &sdk.StdioTransport{})
			if ctx.Err() != nil {
				err = nil // that is how it ends
			}
			return errors.Join(err, pages.Close())
		},
	}
}

// mcpVersion is that of the tools.
const mcpVersion = "1"

// withMCP adds the Model Context Protocol to the pages. Every client that may read may use all tools.
func withMCP(pages *crawlPages, allowed []httpapi.Action) http.Handler {
	inner := &crawlPagesFor{pages, allowed}
	agents := mcp.NewHandler(mcp.NewServer(mcp.Options{Pages: inner, Allow: allowed, Version: mcpVersion}))
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.Handle("/mcp", pages.guard.Protect(agents, func(*http.Request) httpapi.Action { return httpapi.ActionRead }))
	return mux
}

// crawlPagesFor are pages for requests of tools, which were checked before.
type crawlPagesFor struct {
	pages   *crawlPages
	allowed []httpapi.Action
}

func (p *crawlPagesFor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control.AllowIn(r, append([]httpapi.Action{httpapi.ActionRead}, p.allowed...))
	p.pages.answer(w, r)
}
