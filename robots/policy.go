package robots

import (
	"net/http"
	"strings"

	"github.com/recrawl/recrawl/hostdb"
)

// A Policy says under which names robots.txt is read, how far it is looked for, and
// where it does not decide. The zero value is that of RFC 9309.
type Policy struct {
	// Aliases are further product tokens of the crawler: the groups that name one
	// of them hold together with those that name Cache.Product, and those for
	// everybody only if none of them is named. (Nutch: http.robots.agents.)
	Aliases []string
	// Exempt are hosts whose robots.txt is neither asked for nor obeyed, and
	// domains with all hosts below them: "example.org" is the host of that name and
	// "www.example.org", not "badexample.org"; ".example.org" is only what is below.
	// They are in lower case, and in the spelling of the URLs. For servers of one's
	// own, or whose owners agree. (Nutch: http.robot.rules.allowlist.)
	Exempt []string
	// Deny403 makes a robots.txt that the server refuses to show with 403 forbid all,
	// where RFC 9309 section 2.3.1.3 takes it for a file that is not there. (Nutch:
	// http.robots.403.allow=false.)
	Deny403 bool
	// MaxHops is how many redirects of a robots.txt are followed; zero means 5, the
	// least that RFC 9309 section 2.3.1.2 asks for, negative none. (Nutch:
	// http.robots.redirect.max.)
	MaxHops int
}

// exempt reports whether the robots.txt of an origin does not count.
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

// denied reports whether a file that is not there forbids all.
func (p *Policy) denied(status int) bool { return p.Deny403 && status == http.StatusForbidden }
