package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) serve() *cli.Command {
	return &cli.Command{
		Name: "serve", Category: flags.ReadVerbs, Usage: "serve pages about the crawl to browsers, and JSON to programs",
		Description: `Serves an overview of the crawl, its hosts, the whole story of each URL, changes, the
schedule, and consumers of the change feed, at http://127.0.0.1:8080/, until
interrupted. Each page is JSON under its path with .json; /openapi.json describes
them.

  recrawl serve -d crawl
  recrawl serve -d crawl -allow all
  recrawl serve -d crawl -listen :8080 -host crawl.example.com -token-file token

If a crawl, fetch or sitemap is running in the directory, its process makes the
pages. Otherwise serve opens the directory while it answers, and a crawl can begin
at any time.

Pages can be read only, unless -allow names what may be changed: add_seeds, fetch,
signal, pause_host, reload_rules, drop_consumer, or all. Others than this machine
are served only with -token-file: browsers ask for a password, which is the token,
and programs send it as a bearer token. It is sent as it is: use a proxy with TLS.
A request under a name that -host does not give is refused.

With -mcp, agents use the crawl over the Model Context Protocol at /mcp: see recrawl
mcp.`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8080", Usage: "the `ADDRESS` to serve at (default 127.0.0.1:8080)"},
			&cli.StringSliceFlag{Name: "allow", Usage: "let users of the pages do this `ACTION`; may be repeated"},
			&cli.StringSliceFlag{Name: "host", Usage: "a `NAME` under which the pages are requested, beside localhost; may be repeated"},
			&cli.StringFlag{Name: "token-file", Usage: "answer only requests with the token in `FILE`"},
			searchIndexFlag(),
			&cli.BoolFlag{Name: "mcp", Usage: "serve the Model Context Protocol at /mcp, too"},
			&cli.StringFlag{Name: "agent", Usage: "the `NAME` of the crawler, as in explain"},
			flags.URLRules(), flags.Scheduling(), flags.MinFree(), flags.Reporting()),
		Action: a.servePages,
	}
}

func (a *app) servePages(ctx context.Context, c *cli.Command) error {
	if err := flags.NoArgs(c); err != nil {
		return err
	}
	guard, err := readGuard(c)
	if err != nil {
		return err
	}
	if err := a.tryCrawl(ctx, c); err != nil {
		return err
	}
	pages := &crawlPages{a: a, c: c, guard: guard}
	if pages.index, err = openIndexPages(c); err != nil {
		return err
	}
	err = a.serveAt(ctx, c, pages)
	return errors.Join(err, pages.Close())
}

// serveAt serves pages at the address that -listen names, until the context ends.
func (a *app) serveAt(ctx context.Context, c *cli.Command, pages *crawlPages) error {
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	var handler http.Handler = pages
	if c.Bool("mcp") {
		handler = withMCP(pages, readActions(c))
	}
	server := http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	how := "read-only"
	if len(c.StringSlice("allow")) > 0 {
		how = "may change: " + strings.Join(c.StringSlice("allow"), ", ")
	}
	if c.Bool("json") {
		err = a.printLine(map[string]string{"url": "http://" + l.Addr().String() + "/"})
	} else {
		fmt.Fprintf(a.out, "serving http://%s/ (%s)\n", l.Addr(), how)
		err = a.printed()
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if server.Shutdown(stop) != nil {
			_ = server.Close()
		}
		err = nil // that is how it ends
	}
	return err
}

// readGuard reads the flags that authorize requests.
func readGuard(c *cli.Command) (g httpapi.Guard, err error) {
	allowed := readActions(c)
	for _, a := range allowed {
		if !slices.Contains(httpapi.Actions(), a) {
			return g, flags.Usagef("-allow: %q is not one of %v, or all", a, httpapi.Actions()[1:])
		}
	}
	g.Hosts = append([]string{"localhost", "127.0.0.1", "::1"}, c.StringSlice("host")...)
	g.Authorize = httpapi.Allow(allowed...)
	if path := c.String("token-file"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return g, flags.Usagef("-token-file: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if len(token) < 8 {
			return g, flags.Usagef("-token-file: the token in %s has fewer than 8 characters", path)
		}
		g.Authorize = httpapi.Token(token, allowed...)
		return g, nil
	}
	host, _, err := net.SplitHostPort(c.String("listen"))
	if err != nil {
		return g, flags.Usagef("-listen: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return g, flags.Usagef("-listen %s can be reached from elsewhere: -token-file is required", c.String("listen"))
	}
	return g, nil
}

// readActions reads -allow, which may have unknown names.
func readActions(c *cli.Command) (allowed []httpapi.Action) {
	for _, name := range c.StringSlice("allow") {
		if name == "all" {
			return httpapi.Actions()
		}
		allowed = append(allowed, httpapi.Action(name))
	}
	return allowed
}

// tryCrawl opens the crawl once, to report at once what is wrong with it or with the flags.
func (a *app) tryCrawl(ctx context.Context, c *cli.Command) error {
	s, err := a.begin(ctx, c, access{})
	if err == nil {
		err = s.end()
	}
	if errors.Is(err, pebblestore.ErrLocked) {
		return nil
	}
	return err
}
