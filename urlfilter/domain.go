package urlfilter

import (
	"fmt"
	"io"
	"strings"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// domainFilter accepts or rejects URLs by their host. The time it takes does not
// depend on the length of its list.
type domainFilter struct {
	compat  bool // NutchCompat
	mode    domainMode
	entries map[string]*domainEntry
	spelled map[string]int // the line of each entry in lower case
	plain   bool           // spelled and entries have the same names
}

type domainEntry struct {
	line  int // its line in the file; 0 if there is none
	below below
}

// below is what an entry says of the hosts below it.
type below uint8

const (
	belowNone below = iota // nothing
	belowMost              // lists them, unless the public suffix list has a longer suffix
	belowSome              // lists the exceptions of the public suffix list
)

type domainMode uint8

const (
	domainAccept domainMode = iota
	domainReject
	domainWithin // every host below an entry is listed
)

// Within makes a filter that accepts the given hosts and every host below them,
// to crawl a few sites: Within("example.org") accepts www.example.org. Without
// names nothing is accepted.
func Within(names ...string) (Filter, error) {
	f := &domainFilter{mode: domainWithin}
	for _, name := range names {
		if f.add(name, 0) != nil {
			return nil, fmt.Errorf("urlfilter: %q is not a host", name)
		}
	}
	return f, nil
}

// ParseDomain reads a list of hosts to accept, in the format of Nutch's domain-urlfilter.txt: one
// entry per line; lines are trimmed, empty ones and those that begin with "#" are skipped. An entry
// is a public suffix ("net") or a registered domain ("apache.org"), each of which
// stands for every host that has it as suffix or domain, or any other host
// ("www.example.com"), which stands for itself alone; use [Within] to include
// the hosts below it. The suffix of "www.example.co.uk" is "co.uk", so "uk"
// does not list it. Only the ICANN section of the public suffix list counts.
// Without entries nothing is accepted. (Nutch: urlfilter-domain, urlfilter.domain.file.)
//
// NutchCompat makes the filter answer as Nutch's filters do in cases a list
// does not cover: an empty list accepts everything, even one of hosts to
// accept; URLs that java.net.URL refuses are rejected; a list of hosts to
// reject accepts a URL without a host; and hosts that are not ASCII, or end
// with a dot, are compared as spelled. An error is a [*SyntaxError].
func ParseDomain(r io.Reader, o Options) (Filter, error) { return parseDomain(r, o, domainAccept) }

// ParseDomainDeny reads the same format, and rejects what [ParseDomain] would accept, and a URL
// that has no host. (Nutch: urlfilter-domaindenylist, urlfilter.domaindenylist.file.)
func ParseDomainDeny(r io.Reader, o Options) (Filter, error) { return parseDomain(r, o, domainReject) }

func parseDomain(r io.Reader, o Options, mode domainMode) (Filter, error) {
	f := &domainFilter{compat: o.NutchCompat, mode: mode}
	err := readLines(r, func(n int, line string) error {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			return nil
		}
		return f.add(line, n)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *domainFilter) add(entry string, line int) error {
	host, err := normalHost(strings.TrimSpace(entry))
	if err != nil {
		return fmt.Errorf("%q is not a host, domain or suffix", strings.TrimSpace(entry))
	}
	if f.entries == nil {
		f.entries, f.spelled, f.plain = map[string]*domainEntry{}, map[string]int{}, true
	}
	name := javaurl.ToLower(strings.TrimSpace(entry))
	if _, ok := f.spelled[name]; !ok {
		f.spelled[name] = line
	}
	f.plain = f.plain && name == host
	if _, ok := f.entries[host]; !ok {
		f.entries[host] = &domainEntry{line: line, below: belowOf(host)}
	}
	return nil
}

// commonLabel is what most hosts have before the domain. No public suffix
// begins with it, so it can stand for others as well.
const commonLabel = "www."

func belowOf(entry string) below {
	if !mayHaveParents(entry) {
		return belowNone
	}
	suffix, domain := domainOf(commonLabel + entry)
	switch {
	case suffix == entry || domain == entry:
		return belowMost
	case suffix == commonLabel+entry: // of a wildcard, which may have exceptions
		return belowSome
	}
	return belowNone
}

// Accept reports whether the host of the URL is acceptable.
func (f *domainFilter) Accept(url string) bool {
	if f.compat && f.mode != domainWithin {
		if len(f.entries) == 0 {
			return true
		}
		u, err := javaurl.Parse(url, javaurl.Handled)
		if err != nil {
			return false
		}
		return (f.entryNutch(javaurl.ToLower(u.Host)) != "") != (f.mode == domainReject)
	}
	host := hostOf(url)
	if host == "" {
		return false
	}
	return (f.entry(host) != "") != (f.mode == domainReject)
}

// entry returns the entry that lists a host, or "".
func (f *domainFilter) entry(host string) string {
	if _, ok := f.entries[host]; ok {
		return host
	}
	if !mayHaveParents(host) {
		return ""
	}
	for parent := host; ; {
		i := strings.IndexByte(parent, '.')
		if i < 0 {
			return ""
		}
		parent = parent[i+1:]
		e, ok := f.entries[parent]
		if !ok {
			continue
		}
		if f.mode == domainWithin {
			return parent
		}
		if e.lists(host[:len(host)-len(parent)], host, parent) {
			return parent
		}
	}
}

// entryNutch returns the entry that lists a host by Nutch's lookup, or "".
func (f *domainFilter) entryNutch(host string) string {
	if host == "" || f.plain && isASCII(host) && !strings.HasSuffix(host, ".") {
		return f.entry(host)
	}
	suffix, domain := domainNutch(host)
	for _, name := range [...]string{suffix, domain, host} {
		if _, ok := f.spelled[name]; ok && name != "" {
			return name
		}
	}
	return ""
}

// lists reports whether the entry, parent, lists a host with some more labels.
func (e *domainEntry) lists(labels, host, parent string) bool {
	switch {
	case e.below == belowNone:
		return false
	case e.below == belowMost && labels == commonLabel:
		return true
	}
	suffix, domain := domainOf(host)
	return parent == suffix || parent == domain
}

// Explain returns the entry that lists the host.
func (f *domainFilter) Explain(url string) string {
	if f.compat && f.mode != domainWithin {
		if e := f.entryNutch(javaHost(url)); e != "" {
			return ruleAt(f.spelled[e], e)
		}
		return ""
	}
	host := hostOf(url)
	if host == "" {
		return ""
	}
	if e := f.entry(host); e != "" {
		return ruleAt(f.entries[e].line, e)
	}
	return ""
}

// String describes the filter.
func (f *domainFilter) String() string {
	kind := [...]string{"domain", "domain deny", "domain"}[f.mode]
	return fmt.Sprintf("%s filter of %d entries", kind, len(f.entries))
}

func (f *domainFilter) empty() bool { return f.mode == domainAccept && len(f.entries) == 0 }
