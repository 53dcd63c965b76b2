package robots

import (
	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/page"
)

// ParseHeader reads the values of X-Robots-Tag headers for the crawler with the
// given product tokens, and combines what they ask of all crawlers and of it. The
// name of a crawler before a colon applies to all that follows in that header,
// up to the next name: "otherbot: noindex, nofollow, recrawl: nofollow". What
// it does not understand is ignored. It can also read page.Content.Robots.
func ParseHeader(values []string, products ...string) page.Directives {
	return directives.Header(values, products...)
}

// ParseMeta reads a meta element with the given name and content. The element
// is ignored unless its name is "robots" or one of the product tokens.
func ParseMeta(name, content string, products ...string) page.Directives {
	return directives.Meta(name, content, products...)
}
