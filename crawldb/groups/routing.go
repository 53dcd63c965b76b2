package groups

import (
	_ "embed"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// Routing says which slot a URL has. It is stored with the crawl, suffix list included, so that
// a later version of this module with a later list gives each URL the same slot.
type Routing struct {
	// Suffixes are rules of the public suffix list in its own notation, one a line; a line that
	// begins with "//" is a comment. Rules of one label make no difference: the last label of a
	// host is a suffix in any case. A new list is a migration of the crawl.
	Suffixes string
	// Hot are registered domains so large that each of their hosts has a slot of its own
	// choosing. Limits for a domain then hold for each group.
	Hot []string
}

// DefaultRouting returns the routing for a new crawl: the public suffix list with its private
// section, and no hot domains.
func DefaultRouting() Routing { return Routing{Suffixes: suffixList} }

//go:embed suffixes.txt
var suffixList string

// A Router finds the slots of URLs. It may be used by many goroutines at once.
type Router struct {
	rules map[string]byte // by suffix: suffixRule and the like
	hot   map[string]bool
}

// The kinds of rules about a suffix.
const (
	suffixRule    = 1 << iota // it is a suffix
	wildcardRule              // so is every name with one label more
	exceptionRule             // it is not, whatever a wildcard says
)

// Router returns the router of a routing.
func (r *Routing) Router() *Router {
	t := &Router{rules: map[string]byte{}, hot: map[string]bool{}}
	for line := range strings.Lines(r.Suffixes) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "!"):
			t.rules[line[1:]] |= exceptionRule
		case strings.HasPrefix(line, "*."):
			t.rules[line[2:]] |= wildcardRule
		default:
			t.rules[line] |= suffixRule
		}
	}
	for _, d := range r.Hot {
		t.hot[d] = true
	}
	return t
}

// Slot returns the slot of a URL, a number from 0 to [Slots]-1.
func (t *Router) Slot(url string) int { return t.hostSlot(crawldb.Host(url)) }

func (t *Router) hostSlot(host string) int {
	h := fnv.New64a()
	h.Write([]byte(t.Name(host)))
	return int(h.Sum64() % Slots)
}

// Name returns the routing name of a host: its registered domain, or the host itself if the
// domain is hot or the host is an address or a suffix. Hosts with the same routing name have the
// same slot.
func (t *Router) Name(host string) string {
	host = hostdb.ByHost.HostKey(host)
	if host == "" || host[0] == '[' || '0' <= host[len(host)-1] && host[len(host)-1] <= '9' {
		return host
	}
	// The longest matching rule counts, and an exception before all others.
	domain := host
	for at := 0; ; {
		name := host[at:]
		next := strings.IndexByte(name, '.')
		if next < 0 { // the last label is a suffix
			break
		}
		parent := name[next+1:]
		if t.rules[name]&exceptionRule != 0 {
			domain = name
			break
		}
		if t.rules[name]&suffixRule != 0 || t.rules[parent]&wildcardRule != 0 {
			break
		}
		domain = name
		at += next + 1
	}
	if t.hot[domain] {
		return host
	}
	return domain
}

// A Member is one group of a divided crawl, as its worker needs it: it says to which group a URL
// belongs. It may be used by many goroutines at once. Nil stands for a crawl that is not divided,
// which owns every URL.
type Member struct {
	// ID is the number of the group.
	ID     int
	router *Router
	groups [Slots]int
}

// Member returns the member for a group of the table. The router is that of its routing.
func (t *Table) Member(id int, r *Router) *Member {
	m := &Member{ID: id, router: r}
	for s := range m.groups {
		m.groups[s] = t.OfSlot(s)
	}
	return m
}

// Of returns the group that a URL belongs to.
func (m *Member) Of(url string) int { return m.groups[m.router.Slot(url)] }

// Owns reports whether a URL belongs to the group itself.
func (m *Member) Owns(url string) bool { return m == nil || m.Of(url) == m.ID }

// Alone reports whether the group has all slots, so that it owns every URL.
func (m *Member) Alone() bool {
	return m == nil || !slices.ContainsFunc(m.groups[:], func(g int) bool { return g != m.ID })
}
