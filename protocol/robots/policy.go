package robots

import (
	"net/http"
	"strings"

	"github.com/recrawl/recrawl/hostdb"
)

// A Policy sets the names under which robots.txt is read, how many redirects
// are followed to find it, and where it does not decide. The zero value follows
// RFC 9309.
type Policy struct {
	// Aliases are further product tokens of the crawler: groups that name one
	// of them apply together with those that name Cache.Product, and those for
	// all crawlers only if none is named. (Nutch: http.robots.agents.)
	Aliases []string
	// Exempt lists hosts whose robots.txt is neither requested nor obeyed, and
	// domains with all hosts below them: "example.org" is that host and
	// "www.example.org", not "badexample.org"; ".example.org" is only the hosts
	// below. They are in lower case, spelled as in URLs. Use it for your own
	// servers, or with their owners' consent. (Nutch: http.robot.rules.allowlist.)
	Exempt []string
	// Deny403 makes a 403 for robots.txt forbid everything, where RFC 9309 section
	// 2.3.1.3 treats it as a missing file. (Nutch: http.robots.403.allow=false.)
	Deny403 bool
	// MaxRedirects is how many redirects of a robots.txt are followed; zero means 5,
	// the least that RFC 9309 section 2.3.1.2 demands, negative none. (Nutch:
	// http.robots.redirect.max.)
	MaxRedirects int
	// Purposes are what the crawl is for, as categories of [Usage], such as "search" or "train-ai". If
	// robots.txt says, in Content-Usage or Content-Signal, that a page may not be used for one of them,
	// the page is not visited, as if it were disallowed. Empty: what robots.txt says of usage is passed on only.
	Purposes []string
}

// exempt reports whether the robots.txt of an origin is ignored.
func (p *Policy) exempt(origin string) bool {
	if len(p.Exempt) == 0 {
		return false
	}
	host := hostdb.ByHost.Key(origin)
	for _, e := range p.Exempt {
		if below, ok := strings.CutSuffix(host, e); ok && e != "" && (below == "" || e[0] == '.' || strings.HasSuffix(below, ".")) {
			return true
		}
	}
	return false
}

// deniesAll reports whether a missing file forbids everything.
func (p *Policy) deniesAll(status int) bool { return p.Deny403 && status == http.StatusForbidden }
