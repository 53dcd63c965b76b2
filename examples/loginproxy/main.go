// Loginproxy crawls an intranet that asks for a login, through a proxy. The login goes to
// the one origin it is for and to no other, not even by a redirect.
//
//	go run ./loginproxy https://intranet.example/ USER PASSWORD [http://proxy.example:3128]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"net/url"
	"os"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/memstore"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: loginproxy URL USER PASSWORD [PROXY]")
	}
	proxy := ""
	if len(os.Args) > 4 {
		proxy = os.Args[4]
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2], os.Args[3], proxy, recrawl.Options{Agent: "loginproxy"}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, seed, user, password, proxy string, o recrawl.Options) error {
	u, err := url.Parse(seed)
	if err != nil {
		return err
	}
	o.HTTP = httpproto.Options{
		Logins: []httpproto.Login{{Origin: u.Scheme + "://" + u.Host, User: user, Password: password}},
		// A form that sets a cookie is another way to log in: post it, and hand its cookie in
		// with Cookies, or keep what the server sets with Jar.
		Jar:   &httpproto.Jar{},
		Proxy: proxy, // by CONNECT, for http and https
		// Names are looked up here, also for a proxy, and private addresses are refused unless
		// they are allowed.
		Guard: httpproto.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}},
	}
	o.Fetch.Links = fetch.Links{IgnoreExternal: true}
	o.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
		_, err := fmt.Fprintln(out, e.Kind, e.URL)
		return err
	}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, o)
	if err != nil {
		return err
	}
	defer crawler.Close()
	seeds, err := crawler.Inject(ctx, seed)
	if err := errors.Join(err, seeds.Err()); err != nil {
		return err
	}
	report, err := crawler.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d visits: %v\n", report.Visited(), report.Visits) // a wrong login is robots_denied or gone
	return nil
}
