package urlfilter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// NewQueryNormalizer makes a normalizer that sorts the parameters of a query, which "&" separates, by
// their bytes. Empty ones are dropped. NutchCompat sorts by UTF-16 code units, keeps empty
// parameters except at the end, drops user information, and refuses what java.net.URL refuses.
// (Nutch: urlnormalizer-querystring.)
func NewQueryNormalizer(o Options) Normalizer { return queryNormalizer(o) }

type queryNormalizer Options

// Normalize returns the URL with its query sorted. The scope makes no difference.
func (n queryNormalizer) Normalize(_ Scope, url string) (string, error) {
	if n.NutchCompat {
		u, err := javaurl.Parse(url, Basic{}.javaKnows)
		if err != nil {
			return "", err
		}
		if !u.HasQuery {
			return url, nil
		}
		u.Query = sortQueryNutch(u.Query)
		return rebuilt(&u, u.Path), nil
	}
	begin := strings.IndexByte(url, '?')
	end := strings.IndexByte(url, '#')
	if end < 0 {
		end = len(url)
	}
	if begin < 0 || begin > end {
		return url, nil
	}
	query := url[begin+1 : end]
	if isSortedQuery(query) {
		return url, nil
	}
	parts := slices.DeleteFunc(strings.Split(query, "&"), func(p string) bool { return p == "" })
	slices.Sort(parts)
	return url[:begin+1] + strings.Join(parts, "&") + url[end:], nil
}

func isSortedQuery(query string) bool {
	if query == "" {
		return true
	}
	last := ""
	for more := true; more; {
		var part string
		if part, query, more = strings.Cut(query, "&"); part == "" || part < last {
			return false
		}
		last = part
	}
	return true
}

func sortQueryNutch(query string) string {
	parts := strings.Split(query, "&")
	for n := len(parts); n > 0 && parts[n-1] == "" && query != ""; n-- {
		parts = parts[:n-1]
	}
	slices.SortStableFunc(parts, func(a, b string) int {
		if isASCII(a) && isASCII(b) {
			return cmp.Compare(a, b)
		}
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return strings.Join(parts, "&")
}

// Explain says whether the query changes.
func (n queryNormalizer) Explain(url string) string {
	return explainChange(n, AnyScope, url, "sort the query")
}

// String names the normalizer.
func (queryNormalizer) String() string { return "query string normalizer" }

// explainChange returns rule if the normalizer changes the URL.
func explainChange(n Normalizer, scope Scope, url, rule string) string {
	if u, err := n.Normalize(scope, url); err != nil || u == url {
		return ""
	}
	return rule
}

// rebuilt reassembles a URL as several of Nutch's normalizers do: without user
// information, and with two slashes even if there is no host.
func rebuilt(u *javaurl.URL, path string) string {
	s := u.Protocol + "://" + u.Host
	if u.Port > -1 {
		s += fmt.Sprintf(":%d", u.Port)
	}
	if s += path; u.HasQuery {
		s += "?" + u.Query
	}
	if u.HasRef {
		s += "#" + u.Ref
	}
	return s
}

// cutURL splits a URL with an authority: scheme ("http"), user information with
// its "@", host, port with its ":", and the rest. It returns false if there is
// no authority.
func cutURL(url string) (scheme, user, host, port, rest string, ok bool) {
	i := strings.IndexByte(url, ':')
	if i <= 0 || !strings.HasPrefix(url[i:], "://") || strings.ContainsAny(url[:i], "/?#") {
		return "", "", "", "", "", false
	}
	scheme, rest = url[:i], url[i+3:]
	end := 0
	for end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#' {
		end++
	}
	auth, rest := rest[:end], rest[end:]
	if i := strings.LastIndexByte(auth, '@'); i >= 0 {
		user, auth = auth[:i+1], auth[i+1:]
	}
	host = auth
	if i := strings.LastIndexByte(auth, ':'); i > strings.LastIndexByte(auth, ']') {
		host, port = auth[:i], auth[i:]
	}
	return scheme, user, host, port, rest, host != ""
}

// A hostRule is a line of a file about a host, or about a domain and everything
// below it.
type hostRule struct {
	line  int
	text  string
	value string
}

// hostRules holds such lines by their host, and those for "*.domain" by the
// domain.
type hostRules struct{ exact, wide map[string]hostRule }

func newHostRules() hostRules {
	return hostRules{map[string]hostRule{}, map[string]hostRule{}}
}

func (h hostRules) len() int { return len(h.exact) + len(h.wide) }

// lookup returns the rule for the host itself or the nearest domain above it, and
// for the domain itself if bare.
func (h hostRules) lookup(host string, bare bool) (hostRule, bool) {
	if r, ok := h.exact[host]; ok || len(h.wide) == 0 {
		return r, ok
	}
	if bare {
		if r, ok := h.wide[host]; ok {
			return r, true
		}
	}
	if !mayHaveParents(host) {
		return hostRule{}, false
	}
	for {
		dot := strings.IndexByte(host, '.')
		if dot < 0 {
			return hostRule{}, false
		}
		host = host[dot+1:]
		if r, ok := h.wide[host]; ok {
			return r, true
		}
	}
}

// set records a rule for a host, or for "*." and a domain, without checking the
// name.
func (h hostRules) set(host string, r hostRule) {
	if name, ok := strings.CutPrefix(host, "*."); ok {
		h.wide[name] = r
	} else {
		h.exact[host] = r
	}
}

// add records a rule for a host, or for "*." and a domain if wide.
func (h hostRules) add(host string, wide bool, r hostRule) error {
	name, isWide := strings.CutPrefix(host, "*.")
	if isWide && !wide {
		return errors.New(`"*." is not supported here`)
	}
	name, err := normalHost(name)
	if err != nil {
		return fmt.Errorf("%q is not a host", host)
	}
	all := h.exact
	if isWide {
		all = h.wide
	}
	if old, ok := all[name]; ok && old.value != r.value {
		return fmt.Errorf("line %d has a different rule for %s", old.line, host)
	}
	all[name] = r
	return nil
}

func sortedByLine(h hostRules) []hostRule {
	all := slices.AppendSeq(slices.Collect(maps.Values(h.exact)), maps.Values(h.wide))
	slices.SortFunc(all, func(a, b hostRule) int { return cmp.Compare(a.line, b.line) })
	return all
}
