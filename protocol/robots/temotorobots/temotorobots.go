// Package temotorobots reads robots.txt with github.com/temoto/robotstxt, for
// callers that want that parser's interpretation: set its Parse as
// robots.Cache.Parse. Package robots itself does not use it.
//
// Version 1.1.2 is known to differ from RFC 9309 and from Google's parser:
//
//   - A rule or Crawl-delay before the first User-agent line, and a Crawl-delay
//     that is no number, reject the whole file. Parse forbids all then.
//   - Of an Allow and a Disallow of equal length the first wins, not Allow.
//   - The length of a rule with a wildcard is that of a regular expression made
//     of it, so that a shorter rule may win.
//   - A rule with a wildcard or a final $ matches anywhere in a path, not only
//     from its beginning; a rule without a slash is given one.
//   - A Crawl-delay ends a group: a User-agent line after it begins the next.
//   - Product tokens match by prefix: the group "foo" is for "foobot" too; and
//     "User-agent: bot/1.2" is not for "bot", nor is "User-agent: foo, bot".
//   - Percent-encoding is not made alike: "%e3" is not "%E3", nor a raw octet.
//   - A group without a rule does not count: that of "*" holds.
//   - "$" in the middle of a pattern matches nothing; "#" without white space
//     before it does not begin a comment; white space before the colon makes a
//     line unknown; the misspelling "disalow" is too; a path ends at white
//     space. UTF-16 is not read, and tags are not taken out of a web page; a
//     byte order mark counts for nothing wherever it is.
//   - "Allow: /dir/index.html" does not allow "/dir/", as it does for Google.
//   - A rule with a wildcard is a regular expression, so that a long file takes
//     its time: 10,000 rules 40 ms and 25 MB.
//
// Two faults of the parser are fixed here: that /robots.txt itself can be
// forbidden, and that files have no size limit.
package temotorobots

import (
	"bytes"

	"github.com/temoto/robotstxt"

	"github.com/recrawl/recrawl/protocol/robots"
)

// Parse reads a robots.txt file, at most robots.MaxBytes of it, for the crawler with the
// given product token; of several, the first that a group names counts, since that parser
// does not combine groups. A file that temoto/robotstxt rejects forbids everything: nobody
// knows what it was meant to forbid.
func Parse(body []byte, products ...string) *robots.Rules {
	if len(body) > robots.MaxBytes {
		body = body[:bytes.LastIndexAny(body[:robots.MaxBytes], "\r\n")+1]
	}
	data, err := robotstxt.FromBytes(body)
	if err != nil {
		return robots.DenyAll()
	}
	// Look up everybody's groups by a name that no file has.
	everybody := data.FindGroup("")
	group := everybody
	for _, p := range products {
		if group = data.FindGroup(p); group != everybody {
			break
		}
	}
	return robots.NewRules(robots.RuleSet{Allow: group.Test, CrawlDelay: group.CrawlDelay, Sitemaps: data.Sitemaps})
}
