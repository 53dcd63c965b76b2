package nutchconf_test

import (
	"fmt"
	"log"

	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

// A crawler that decides as a Nutch with this configuration does.
func Example() {
	c, err := nutchconf.Read("testdata/stock")
	if err != nil {
		log.Fatal(err) // names file and line
	}
	c.Set("http.agent.name", "testbot") // as -D does
	c.Set("fetcher.server.delay", "2.5")
	c.Set("http.useHttp11", "false")
	c.Set("fetcher.thread.fetch", "20")
	o, err := c.Options()
	if err != nil {
		log.Fatal(err) // names every mistake, with file and line
	}
	fmt.Println(o.Crawl.Fetch.Politeness.Delay, o.Crawl.Fetch.Threads)
	fmt.Println(o.Crawl.Rules.Apply(urlfilter.Outlink, "HTTP://Example.com:80/a//b#top"))
	for _, n := range o.Notes {
		fmt.Println(n)
	}
	// recrawl.New(stores, o.Crawl) makes the crawler.

	// Output:
	// 2.5s 10
	// http://example.com/a/b <nil>
	// -D http.useHttp11: not honoured: net/http speaks HTTP/1.1 and HTTP/2
	// -D fetcher.thread.fetch: unknown: Nutch has no such property; did you mean fetcher.threads.fetch?
}

func ExampleProperties() {
	for _, p := range nutchconf.Properties() {
		if p.Name == "generate.min.interval" {
			fmt.Println(p.Support, p.Field, p.Flag)
			fmt.Println(p.Note)
		}
	}
	// Output:
	// yes generate.Options.MaxInterval generate -max-interval
	// the longest interval, despite its name
}
