package temotorobots_test

import (
	"fmt"

	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/robots/temotorobots"
)

func Example() {
	cache := &robots.Cache{Parse: temotorobots.Parse} // and Protocol, Hosts, Product
	rules := cache.Parse([]byte("User-agent: *\nDisallow: /a\nAllow: /a\n"), "recrawl")
	fmt.Println(rules.Allowed("/a"))
	// Output: false
}
